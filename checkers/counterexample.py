"""Concrete replay: a claim compiled for the reference interpreter, and the states that break it.

Nothing is called a counterexample before this module has executed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from routeproof.spec.interpret import State, Value, compile_terms
from routeproof.spec.obligation import Claim
from routeproof.spec.program import Program
from routeproof.spec.terms import Bool, EnumSort, Float, Int, Term, free_symbols

from .readings.intervals import Interval

__all__ = ["Counterexample", "Replayer", "rest_value"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An executed state that meets every condition and breaks the goals named in `broken`.

    `moved` names the inputs away from their rest value; `movable` those for which it could not
    be shown that no value nearer to rest fails.
    """

    state: Mapping[str, Value]
    shows: Mapping[str, Value]
    conditions: Mapping[str, bool]
    broken: tuple[str, ...]
    moved: tuple[str, ...] = ()
    movable: tuple[str, ...] = ()


def rest_value(symbol: Term, box: Mapping[str, Interval] | None = None) -> Value:
    """The value a minimised state prefers: false, the first member, 0.0, the low end admitted."""
    if isinstance(symbol, Bool):
        return False
    if isinstance(symbol.sort, EnumSort):
        return symbol.sort.members[0]
    if isinstance(symbol, Float):
        return 0.0
    rest = symbol.domain.rest if symbol.domain else 0
    within = (box or {}).get(symbol.name, Interval())
    if within.lo is not None and within.lo > rest:
        return within.lo
    return within.hi if within.hi is not None and within.hi < rest else rest


class Replayer:
    """A claim ready to be executed on states."""

    def __init__(self, claim: Claim) -> None:
        """Find the inputs; what is executed is compiled when a state first is."""
        self._claim = claim
        self._conditions = tuple(claim.conditions.values())
        self._goals = tuple(claim.goals.values())
        self.symbols = free_symbols(*self._conditions, *self._goals, *claim.shown.values())

    @cached_property
    def _program(self) -> Program[Value]:
        return compile_terms((*self._conditions, *self._goals))

    @cached_property
    def _shown(self) -> tuple[tuple[Term, ...], tuple[str, ...]]:
        shown = self._claim.shown
        return tuple(shown.values()), tuple(shown)

    def completed(self, state: State) -> dict[str, Value]:
        """The state with a rest value for every symbol it leaves open."""
        return {one.name: state.get(one.name, rest_value(one)) for one in self.symbols}

    def in_domain(self, state: State) -> bool:
        """Whether every integer lies in its declared domain."""
        return all(
            symbol.domain is None or int(state[symbol.name]) in symbol.domain
            for symbol in self.symbols
            if isinstance(symbol, Int)
        )

    def _values(self, state: State) -> tuple[list[Value], list[Value]]:
        values = self._program(state)
        cut = len(self._conditions)
        return values[:cut], values[cut:]

    def admits(self, state: State) -> bool:
        """Whether the state is in the domains and meets every condition."""
        return self.in_domain(state) and all(self._values(state)[0])

    def fails(self, state: State) -> bool:
        """Whether the state is admitted and breaks a goal."""
        if not self.in_domain(state):
            return False
        conditions, goals = self._values(state)
        return all(conditions) and not all(goals)

    def execute(
        self, state: State, movable: tuple[str, ...] = (), *, rests: State | None = None
    ) -> Counterexample:
        """The state with every value a reader needs, whether or not it breaks anything."""
        rests = rests or {one.name: rest_value(one) for one in self.symbols}
        conditions, goals = self._values(state)
        terms, labels = self._shown
        shows = dict(zip(labels, compile_terms(terms)(state), strict=True))
        return Counterexample(
            state,
            shows,
            dict(zip(self._claim.conditions, map(bool, conditions), strict=True)),
            tuple(n for n, holds in zip(self._claim.goals, goals, strict=True) if not holds),
            tuple(
                one.name for one in self.symbols if repr(state[one.name]) != repr(rests[one.name])
            ),
            movable,
        )
