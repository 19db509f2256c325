"""Envelopes: the admitted workload, as bounds that are enforced by the runtime or only declared."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ModelError
from .function import Source
from .terms import Bool, Int, all_of
from .text import render

__all__ = ["Bound", "Envelope"]


@dataclass(frozen=True, slots=True)
class Bound:
    """lo <= quantity <= hi (None: open), and whether the runtime rejects what lies outside."""

    quantity: Int
    lo: int | Int | None
    hi: int | Int | None
    enforced: bool
    source: Source

    def __post_init__(self) -> None:
        """Refuse an `enforced` that is only true or false by accident."""
        given: object = self.enforced
        if not isinstance(given, bool):
            raise ModelError(f"enforced is True or False, got {given!r}")
        if not isinstance(self.quantity, Int):
            raise ModelError(f"a bound is about an integer term, got {self.quantity!r}")

    @property
    def holds(self) -> Bool:
        """The bound as a condition."""
        above = () if self.lo is None else (self.quantity >= self.lo,)
        below = () if self.hi is None else (self.quantity <= self.hi,)
        return all_of(*above, *below)

    def __str__(self) -> str:
        """One line for reports."""
        kind = "enforced" if self.enforced else "declared only"
        return f"{render(self.holds)} ({kind}: {self.source})"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Bounds that hold together. A proof under a declared-only bound is conditional on it."""

    bounds: tuple[Bound, ...]

    def __post_init__(self) -> None:
        """Refuse what is not a tuple of bounds: a forgotten comma makes one bound of it."""
        given: object = self.bounds
        if not isinstance(given, tuple) or not all(isinstance(one, Bound) for one in given):
            raise ModelError(f"an envelope takes a tuple of bounds, got {given!r}")

    @property
    def admits(self) -> Bool:
        """The condition that a state lies inside."""
        return all_of(*(bound.holds for bound in self.bounds))

    @property
    def declared_only(self) -> tuple[Bound, ...]:
        """The bounds that nothing enforces: what a proof under this envelope is conditional on."""
        return tuple(bound for bound in self.bounds if not bound.enforced)
