"""Where the cache lies unless an option says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_place"]


def cache_place() -> Path:
    """`ROUTEPROOF_CACHE_DIR`, or else the folder that the platform has for caches."""
    given = os.environ.get("ROUTEPROOF_CACHE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("routeproof")
