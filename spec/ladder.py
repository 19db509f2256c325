"""Ladders: routes in priority order, each behind a guard; the first whose guard holds runs.

Errors are rungs too, so that "no route" is an outcome like any other and never silently dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import ModelError, UnknownNameError
from .terms import Bool, Term, all_of, any_of, free_symbols

__all__ = ["Ladder", "Rung"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One step: the outcome taken when the guard holds and no earlier guard did.

    `runs` is false for an error: no kernel runs.
    """

    outcome: str
    guard: Bool
    runs: bool = True

    def __post_init__(self) -> None:
        """Refuse a guard that is the same for every state by accident."""
        given: object = self.guard
        if not isinstance(given, Bool):
            raise ModelError(f"the guard of {self.outcome!r} is no condition, got {given!r}")


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs in priority order, and which facts are known before a Run and which only then.

    An outcome may stand on several rungs. `static` facts are fixed when the graph is partitioned,
    `runtime` facts change per Run. `admitted` names what every state of interest satisfies.
    """

    name: str
    rungs: tuple[Rung, ...]
    static: tuple[Term, ...]
    runtime: tuple[Term, ...]
    admitted: Mapping[str, Bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a fact that is both static and run-time."""
        both = {fact.name for fact in self.static} & {fact.name for fact in self.runtime}
        if both:
            raise ModelError(f"{self.name}: static and run-time at once: {', '.join(sorted(both))}")
        guards = (rung.guard for rung in self.rungs)
        declared = set(self.static) | set(self.runtime)
        for symbol in free_symbols(*guards, *self.admitted.values()):
            if symbol not in declared:
                raise ModelError(f"{self.name}: {symbol.name!r} is neither static nor run-time")

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Every outcome once, in order of first appearance."""
        return tuple(dict.fromkeys(rung.outcome for rung in self.rungs))

    @property
    def routes(self) -> tuple[str, ...]:
        """The outcomes in which a kernel runs."""
        return tuple(dict.fromkeys(rung.outcome for rung in self.rungs if rung.runs))

    def takes(self, outcome: str) -> Bool:
        """The exact condition under which the ladder ends in the outcome."""
        if outcome not in self.outcomes:
            raise UnknownNameError(
                f"{self.name} has no outcome {outcome!r}: {', '.join(self.outcomes)}"
            )
        earlier: list[Bool] = []
        ways = []
        for rung in self.rungs:
            if rung.outcome == outcome:
                ways.append(all_of(rung.guard, *(~guard for guard in earlier)))
            earlier.append(rung.guard)
        return any_of(*ways)

    @property
    def total(self) -> Bool:
        """Some rung's guard holds."""
        return any_of(*(rung.guard for rung in self.rungs))
