"""The models reproduce rows computed by compiled extracts of the real code."""

from __future__ import annotations

from routeproof.spec.obligation import Obligation, Rows, obligation

from .sources import FUNCTION_SOURCES

__all__ = ["CONFORMS"]


def _conforms(function: str) -> Obligation:
    @obligation(
        f"genai.conforms.{function.replace('_', '-')}",
        f"genai.{function} reproduces the recorded rows of the real code",
        source=FUNCTION_SOURCES[function],
        expect="replayed",
    )
    def statement() -> Rows:
        return Rows(f"genai.{function}", "routeproof.proofs.genai", f"rows/{function}.jsonl.gz")

    return statement


CONFORMS = tuple(map(_conforms, FUNCTION_SOURCES))
