"""The values of all terms of a function at one state, and how they change when one of them does.

A move changes one input; a forced node is given a value that its arguments do not give it. Either
way only what depends on it is computed again, by the operations of the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import cast

from routeproof.spec.interpret import Concrete, State, Value, compile_terms
from routeproof.spec.terms import (
    SEARCHES,
    Enum,
    EnumSort,
    Float,
    Int,
    Op,
    Term,
    substitute,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    topological,
)

__all__ = ["Landscape", "Values", "is_same"]

Values = list[Value]
_ALGEBRA = Concrete()
_Function = Callable[..., Value]
_Step = tuple[int, _Function, list[int]]
"""A slot, and what computes it from which slots."""


def is_same(one: object, two: object) -> bool:
    """Whether two values of one term cannot be told apart: NaN is NaN, -0.0 is not 0.0."""
    if one == two:
        return not isinstance(one, float) or str(one) == str(two)
    return one != one and two != two  # noqa: PLR0124 - NaN alone differs from itself


class Landscape:
    """Every node below the roots that has a value, in a slot of its own, arguments before users."""

    def __init__(self, roots: Sequence[Term]) -> None:
        """Compile each node by itself; what is inside of a search is computed with the search."""
        self.nodes = [node for node in topological(tuple(roots)) if not node.bound]
        self.slot = {node: slot for slot, node in enumerate(self.nodes)}
        self.symbols = [node for node in self.nodes if node.op is Op.SYMBOL]
        self._steps = [self._step(slot) for slot in range(len(self.nodes))]
        self._users: list[list[int]] = [[] for _ in self.nodes]
        for slot, _, args in self._steps:
            for arg in dict.fromkeys(args):
                self._users[arg].append(slot)
        self.above = cache(self._above)
        self.below = cache(self._below)
        self._sweep = cache(self._sweep_of)

    def _step(self, slot: int) -> _Step:
        node = self.nodes[slot]
        if node.op is Op.SYMBOL:
            return slot, _unset, []
        if node.op is Op.CONST:
            value = _ALGEBRA.constant(node)
            return slot, lambda: value, []
        if node.op not in SEARCHES:
            return slot, _ALGEBRA.operation(node), [self.slot[arg] for arg in node.args]
        outer = _outermost_closed(node)
        return slot, _searching(node, outer), [self.slot[one] for one in outer]

    def values(self, state: State) -> Values:
        """The value of every node at a state."""
        found: Values = []
        for node, (_, function, args) in zip(self.nodes, self._steps, strict=True):
            is_input = node.op is Op.SYMBOL
            found.append(state[node.name] if is_input else function(*[found[arg] for arg in args]))
        return found

    def state(self, values: Values) -> State:
        """The inputs among the values."""
        return {symbol.name: values[self.slot[symbol]] for symbol in self.symbols}

    def moved(self, values: Values, settings: Mapping[int, Value]) -> tuple[Values, set[int]]:
        """The values once some inputs have others, and the slots that differ."""
        new, different = values.copy(), set(settings)
        for slot, value in settings.items():
            new[slot] = value
        for slot, function, args in self._sweep(*settings):
            if not different.isdisjoint(args):
                found = function(*[new[arg] for arg in args])
                if not is_same(found, new[slot]):
                    new[slot] = found
                    different.add(slot)
        return new, different

    def reaches(self, values: Values, at: int, value: Value, results: frozenset[int]) -> bool:
        """Whether another value in the slot would change any of the results."""
        if is_same(values[at], value):
            return False
        new = values.copy()
        new[at] = value
        return at in results or any(slot in results for slot in self._spread(new, at))

    def _spread(self, new: Values, at: int) -> Iterator[int]:
        """Compute anew what depends on a changed slot; yields each slot that changes."""
        waiting = self._users[at].copy()  # slots are numbered from arguments to users
        heapify(waiting)
        last = -1
        while waiting:
            slot = heappop(waiting)
            if slot == last:
                continue
            last = slot
            _, function, args = self._steps[slot]
            found = function(*[new[arg] for arg in args])
            if not is_same(found, new[slot]):
                new[slot] = found
                yield slot
                for user in self._users[slot]:
                    heappush(waiting, user)

    def columns(
        self, values: Values, settings: Mapping[int, Sequence[Value]], targets: Iterable[int]
    ) -> dict[int, Sequence[Value]]:
        """The targets, and all between, for a row of settings; what is fixed is left out."""
        found = {**settings}
        for slot, function, args in self._between(settings, targets):
            if found.keys().isdisjoint(args):
                continue
            columns = [found[arg] if arg in found else repeat(values[arg]) for arg in args]
            column = list(map(function, *columns))
            is_fixed = column.count(column[0]) == len(column) and isinstance(column[0], int | str)
            if not is_fixed or column[0] != values[slot]:
                found[slot] = column
        return found

    def along(
        self, values: Values, moving: Iterable[int], targets: Sequence[int]
    ) -> Callable[[Mapping[int, Value]], Values]:
        """The values of the targets as a function of what the moving slots are set to."""
        new = values.copy()
        steps = self._between(moving, targets)

        def at(settings: Mapping[int, Value]) -> Values:
            for slot, value in settings.items():
                new[slot] = value
            for slot, function, args in steps:
                new[slot] = function(*[new[arg] for arg in args])
            return [new[slot] for slot in targets]

        return at

    def _above(self, *slots: int) -> tuple[int, ...]:
        """Some slots and what depends on them, in order."""
        return _reached(slots, lambda one: self._users[one])

    def _below(self, slot: int) -> tuple[int, ...]:
        """A slot and what it depends on, in order."""
        return _reached([slot], lambda one: self._steps[one][2])

    def _sweep_of(self, *slots: int) -> list[_Step]:
        """What to compute once some inputs have moved, in order."""
        return [step for slot in self.above(*slots) if (step := self._steps[slot])[2]]

    def _between(self, moving: Iterable[int], targets: Iterable[int]) -> list[_Step]:
        """Of that, what lies on a way to one of the targets."""
        inside = set[int]().union(*map(self.below, targets))
        return [step for step in self._sweep(*moving) if step[0] in inside]


def _unset() -> Value:
    raise AssertionError("an input has no value of its own")


def _reached(start: Iterable[int], following: Callable[[int], Iterable[int]]) -> tuple[int, ...]:
    stack = [*start]
    found = set(stack)
    while stack:
        new = set(following(stack.pop())) - found
        found |= new
        stack += new
    return tuple(sorted(found))


def _outermost_closed(search: Term) -> list[Term]:
    """The largest parts of a search that do not depend on its variable."""
    found: dict[Term, None] = {}
    stack = list(search.args)
    while stack:
        node = stack.pop()
        if node.bound:
            stack += node.args
        elif node.op is not Op.CONST:
            found[node] = None
    return list(found)


def _searching(search: Term, outer: Sequence[Term]) -> _Function:
    """The search as a function of the values of its closed parts, each result kept."""
    names = [f"part {number}" for number in range(len(outer))]
    symbols = {part: _alike(part, name) for part, name in zip(outer, names, strict=True)}
    program = compile_terms(substitute((search,), symbols))
    known: dict[str, Value] = {}

    def run(*values: Value) -> Value:
        key = repr(values)  # which tells -0.0 from 0.0
        if key not in known:
            known[key] = program(dict(zip(names, values, strict=True)))[0]
        return known[key]

    return run


def _alike(part: Term, name: str) -> Term:
    """A symbol of the same sort."""
    match part:
        case Int():
            return symbol_int(name)
        case Float():
            return symbol_float(name, part.width)
        case Enum():
            return symbol_enum(name, cast("EnumSort", part.sort))
        case _:
            return symbol_bool(name)
