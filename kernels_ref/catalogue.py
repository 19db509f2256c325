"""Names of the recipes that have kernels, each with the module whose `kernels(backend)` runs it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KERNELS"]

KERNELS: Mapping[str, str] = {"ort.gqa.complete": "routeproof.kernels_ref.gqa.kernels"}
