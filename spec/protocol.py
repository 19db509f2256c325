"""Protocols: transition systems with guarded events, refusals as outcomes, and properties.

A state is a value per variable. An event may happen where its guard holds, with any values of its
parameters; the first of its outcomes whose condition holds says what follows. An outcome without
effects is a refusal that changes nothing. Events are atomic: what is not under one lock is two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from .errors import ModelError
from .terms import TRUE, Bool, Int, Term, all_of, any_of, constant, free_symbols, integer, ite
from .text import closest

__all__ = ["Event", "FiniteMap", "Outcome", "Protocol", "Variable", "added", "event"]

Effects = tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A part of the state, and its value at the start (None: any that `starts` admits)."""

    symbol: Term
    initial: int | bool | str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way an event can end: taken where `when` holds and no earlier outcome's did."""

    name: str
    when: Bool
    effects: Effects = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that can happen: parameters are the environment's choice."""

    name: str
    guard: Bool
    outcomes: tuple[Outcome, ...]
    parameters: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an outcome that assigns a variable twice: which value would it take?"""
        for outcome in self.outcomes:
            targets = [target.name for target, _ in outcome.effects]
            if twice := next((one for one in targets if targets.count(one) > 1), None):
                raise ModelError(
                    f"event {self.name!r} assigns {twice!r} twice in {outcome.name!r}: "
                    "choose with ite(), or split the event"
                )

    @property
    def enabled(self) -> Bool:
        """The event can happen, in one way or another."""
        return all_of(self.guard, any_of(*(outcome.when for outcome in self.outcomes)))

    def after(self, variable: Term) -> Term:
        """The variable's value afterwards, where the event happens."""
        value = variable
        for outcome in reversed(self.outcomes):
            named = {target.name: new for target, new in outcome.effects}
            new = named.get(variable.name, variable)
            value = cast("Term", ite(outcome.when, cast("Int", new), cast("Int", value)))
        return value


def event(name: str, guard: Bool, effects: Iterable[tuple[Term, Term]], *parameters: Term) -> Event:
    """An event with one outcome."""
    return Event(name, guard, (Outcome("ok", TRUE, tuple(effects)),), parameters)


@dataclass(frozen=True, slots=True)
class Protocol:
    """The whole system: what never changes is a symbol that no event assigns (`given` limits it).

    `starts` is what a first state satisfies beside the initial values; `invariants` is claimed of
    every state that can be reached.
    """

    name: str
    variables: tuple[Variable, ...]
    events: tuple[Event, ...]
    invariants: Mapping[str, Bool]
    given: Mapping[str, Bool] = field(default_factory=dict)
    starts: Bool = TRUE
    parameters: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        """Refuse symbols that nothing declares, and effects on what is no variable."""
        names = [one.symbol.name for one in self.variables]
        if twice := next((one for one in names if names.count(one) > 1), None):
            raise ModelError(f"{self.name}: variable {twice!r} is declared twice")
        known = {one.name: one for one in (*self.symbols, *self.parameters)}
        for what, part in (*self.invariants.items(), *self.given.items(), ("starts", self.starts)):
            self._check(f"{what!r}", (part,), known)
        for one in self.events:
            inside = known | {parameter.name: parameter for parameter in one.parameters}
            whens = tuple(outcome.when for outcome in one.outcomes)
            effects = [pair for outcome in one.outcomes for pair in outcome.effects]
            terms = (one.guard, *whens, *(value for _, value in effects))
            self._check(f"event {one.name!r}", terms, inside)
            for target, value in effects:
                if target.name not in names:
                    raise ModelError(
                        f"{self.name}: event {one.name!r} assigns {target.name!r}, which is no "
                        f"variable{closest(target.name, names)}"
                    )
                if type(target) is not type(value) or target.sort != value.sort:
                    raise ModelError(
                        f"{self.name}: event {one.name!r} assigns {target.name!r} a value of "
                        "another sort"
                    )

    def _check(self, where: str, terms: tuple[Term, ...], known: Mapping[str, Term]) -> None:
        for symbol in free_symbols(*terms):
            if known.get(symbol.name) is not symbol:
                hint = closest(symbol.name, known)
                raise ModelError(
                    f"{self.name}: {where} speaks of {symbol.name!r}, which is not declared{hint}"
                )

    @property
    def symbols(self) -> tuple[Term, ...]:
        """The variables, in order."""
        return tuple(one.symbol for one in self.variables)

    @property
    def initial(self) -> Mapping[Term, Term]:
        """The variables that start with one value, with it."""
        return {
            one.symbol: constant(one.symbol, one.initial)
            for one in self.variables
            if one.initial is not None
        }


def added(parts: Sequence[Int]) -> Int:
    """The sum; of nothing it is 0."""
    result = integer(0)
    for part in parts:
        result = result + part
    return result


class FiniteMap:
    """A variable per key: a finite map, or an array of fixed length.

    Reading by a term chooses among the cells; writing by one changes the cell that it names.
    """

    def __init__(self, cells: Mapping[int, Term], initial: Mapping[int, int | bool | str]) -> None:
        """`initial` has a value for every key: a map is total."""
        if missing := [key for key in cells if key not in initial]:
            names = ", ".join(repr(cells[key].name) for key in missing)
            raise ModelError(f"the map has no initial value for {names}: give one per key")
        self.cells = dict(cells)
        self.variables = tuple(Variable(cell, initial[key]) for key, cell in cells.items())

    def __getitem__(self, key: int) -> Term:
        """The cell of a key."""
        if key not in self.cells:
            raise ModelError(f"the map has no key {key}: {', '.join(map(str, self.cells))}")
        return self.cells[key]

    def writes(self, key: Int, value: Int | Bool) -> Effects:
        """The effects of writing one cell, whichever the key names."""
        return tuple(
            (cell, cast("Term", ite(key == place, cast("Int", value), cast("Int", cell))))
            for place, cell in self.cells.items()
        )
