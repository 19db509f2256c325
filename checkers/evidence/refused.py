"""The evidence checker's only way to say no."""

from __future__ import annotations

__all__ = ["RefusedError", "require"]


class RefusedError(Exception):
    """A step is no instance of its rule, or rests on what is no fact."""


def require(holds: bool, why: str) -> None:
    """Refuse unless the condition on the evidence holds."""
    if not holds:
        raise RefusedError(why)
