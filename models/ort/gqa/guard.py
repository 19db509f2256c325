"""Guards as ordered lists of named conditions, so that each one can be dropped in turn."""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.errors import ModelError
from routeproof.spec.terms import Bool, all_of

__all__ = ["Guard"]


@dataclass(frozen=True, slots=True)
class Guard:
    """A conjunction of named conditions, in the order in which the system tests them."""

    conjuncts: tuple[tuple[str, Bool], ...]

    def __post_init__(self) -> None:
        """Refuse a name used twice: dropping it would be ambiguous."""
        if len(set(self.names)) < len(self.names):
            raise ModelError(f"a guard names a conjunct twice: {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the conjuncts."""
        return tuple(name for name, _ in self.conjuncts)

    @property
    def holds(self) -> Bool:
        """Every conjunct holds."""
        return all_of(*(condition for _, condition in self.conjuncts))

    def without(self, *names: str) -> Guard:
        """The guard with the named conjuncts dropped."""
        unknown = set(names) - set(self.names)
        if unknown:
            raise ModelError(f"no conjunct {', '.join(sorted(unknown))} in {', '.join(self.names)}")
        return Guard(tuple(part for part in self.conjuncts if part[0] not in names))

    def plus(self, *conjuncts: tuple[str, Bool]) -> Guard:
        """The guard with more conjuncts behind its own."""
        return Guard(self.conjuncts + conjuncts)
