"""Minimisation: move every symbol to its rest value as far as the state still fails, and check it.

Symbols go in declared order, flags and enums towards their default, floats to the first of
`SIMPLE` that fails, integers towards their rest from either side, and then those that are equal
together. When no pass changes anything,
the solver is asked for each integer whether a nearer value would still fail with all others fixed;
only its "no" makes the state minimal in that symbol. A float that is none of `SIMPLE` stays open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from routeproof.spec.interpret import State, Value
from routeproof.spec.terms import Bool, EnumSort, Float, Int, Term

__all__ = ["SIMPLE", "Minimiser"]

SIMPLE = (0.0, 1.0, -1.0, 2.0, 0.5, -0.0, math.inf, -math.inf, math.nan)

Probe = Callable[[Int, dict[str, Value], int], "int | Literal['none', 'unknown']"]
_EXHAUSTIVE = 256
_FIRST = 18


@dataclass(frozen=True, slots=True)
class Minimiser:
    """What minimising needs: the failure test, the symbols in order, and a solver's probe.

    `probe(symbol, state, rest)` answers with a value nearer to `rest` that fails with all other
    symbols fixed, or `none` if there is none, or `unknown`.
    """

    fails: Callable[[State], bool]
    symbols: Sequence[Term]
    constants: Sequence[int]
    rests: State
    probe: Probe

    def run(self, state: State) -> tuple[dict[str, Value], tuple[str, ...]]:
        """The minimised state, and the symbols whose minimality stayed open."""
        current, left_open = dict(state), None
        while left_open is None:
            while sum(self._shrink(symbol, current) for symbol in self.symbols) or (
                self._shrink_equal(current)
            ):
                pass
            left_open = self._settle(current)
        return current, left_open

    def _settle(self, current: dict[str, Value]) -> tuple[str, ...] | None:
        """Move one integer that can still move, or name those of which nobody knows."""
        open_symbols: list[str] = []
        for symbol in self.symbols:
            rest, value = self.rests[symbol.name], current[symbol.name]
            if isinstance(symbol, Float) and repr(value) not in map(repr, SIMPLE):
                open_symbols.append(symbol.name)
            if not isinstance(symbol, Int) or value == rest:
                continue
            answer = self._exhaust(symbol, current)
            if answer == "unknown":
                answer = self.probe(symbol, current, int(rest))
            if answer == "unknown":
                open_symbols.append(symbol.name)
            elif answer != "none":
                current[symbol.name] = answer
                return None
        return tuple(open_symbols)

    def _exhaust(self, symbol: Int, state: State) -> int | Literal["none", "unknown"]:
        """Try every nearer value when there are few."""
        rest = int(self.rests[symbol.name])
        distance = abs(int(state[symbol.name]) - rest)
        step = symbol.domain.multiple_of if symbol.domain else 1
        if distance > _EXHAUSTIVE * step:
            return "unknown"
        offsets = range(0, distance, step)
        nearer = (value for offset in offsets for value in (rest + offset, rest - offset))
        return next((n for n in nearer if self.fails({**state, symbol.name: n})), "none")

    def _shrink(self, symbol: Term, state: dict[str, Value]) -> bool:
        for candidate in self._candidates(symbol, state[symbol.name]):
            if self.fails({**state, symbol.name: candidate}):
                state[symbol.name] = candidate
                return True
        return False

    def _shrink_equal(self, state: dict[str, Value]) -> bool:
        """Move integers that are equal together: a claim that compares them keeps each in place."""
        groups: dict[int, list[Int]] = {}
        for symbol in self.symbols:
            if isinstance(symbol, Int) and state[symbol.name] != self.rests[symbol.name]:
                groups.setdefault(int(state[symbol.name]), []).append(symbol)
        for value, group in groups.items():
            rest = max(int(self.rests[symbol.name]) for symbol in group)
            for candidate in self._nearer(group[0], value, rest) if len(group) > 1 else ():
                moved = {**state, **dict.fromkeys((one.name for one in group), candidate)}
                if self.fails(moved):
                    state.update(moved)
                    return True
        return False

    def _candidates(self, symbol: Term, value: Value) -> Iterator[Value]:
        """Values nearer to rest, the nearest first."""
        rest = self.rests[symbol.name]
        if isinstance(symbol, Bool):
            yield from () if value == rest else (rest,)
        elif isinstance(symbol.sort, EnumSort):
            yield from symbol.sort.members[: symbol.sort.members.index(str(value))]
        elif isinstance(symbol, Float):
            yield from itertools.takewhile(lambda one: repr(one) != repr(value), SIMPLE)
        elif value != rest:
            yield from self._nearer(symbol, int(value), int(rest))

    def _nearer(self, symbol: Term, value: int, rest: int) -> Iterator[int]:
        """Small steps from rest, the claim's constants, then halvings of the distance."""
        step = symbol.domain.multiple_of if symbol.domain else 1
        count = -(-abs(value - rest) // step)
        offsets = [*range(_FIRST // 2), *(count >> shift for shift in range(63, 0, -1))]
        offsets += [count - (count >> shift) for shift in range(2, 64)]
        sign = step if value > rest else -step
        near = (n for n in self.constants if abs(n - rest) < abs(value - rest))
        marks = sorted(near, key=lambda n: abs(n - rest))
        points = [
            point
            for offset in offsets
            if offset < count
            for point in (rest + sign * offset, rest - sign * offset)
        ]
        yield from dict.fromkeys([*points[:_FIRST], *marks, *points[_FIRST:]])
