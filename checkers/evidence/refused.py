"""How the evidence checker says no: to evidence that is wrong, and to what it cannot show."""

from __future__ import annotations

__all__ = ["OpenError", "RefusedError", "require", "shown"]


class RefusedError(Exception):
    """A step is no instance of its rule, or rests on what is no fact."""


class OpenError(Exception):
    """Something true of a proof may be beyond the checker: it is not confirmed, nor refused."""


def shown(holds: bool, what: str) -> None:
    """Leave it open unless the checker can show it."""
    if not holds:
        raise OpenError(what)


def require(holds: bool, why: str) -> None:
    """Refuse unless the condition on the evidence holds."""
    if not holds:
        raise RefusedError(why)
