"""Ways to move a state: one input alone, or a divisor together with what it divides.

Points lie ever farther from where a state is. Between two points of different answers bisection
finds neighbours of different answers, however often the answer turns in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import cast

from routeproof.spec.interpret import Value
from routeproof.spec.terms import Bool, EnumSort, Float, Int, IntDomain, Op, Term

from .landscape import Landscape, Values, is_same

__all__ = ["Axis", "Move", "axes_of", "edges_between", "turns"]

_MOST_TURNS = 3
_DENSE, _FARTHEST = 12, 64
_FLOATS = {
    32: (0.0, -0.0, 2.0**-149, -(2.0**-149), 1.0, -1.0, (2 - 2.0**-23) * 2.0**127),
    64: (0.0, -0.0, 2.0**-1074, -(2.0**-1074), 1.0, -1.0, (2 - 2.0**-52) * 2.0**1023),
}
_NOT_FINITE = (float("inf"), float("-inf"), float("nan"))
Way = tuple[int, list[int]]
"""A stride, and the places of points that are whole strides apart, from a start on."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An input and its slot, the slots of what moves in proportion, and those of divisors.

    Steps as wide as a divisor leave remainders by it as they are.
    """

    symbol: Term
    slot: int
    others: Mapping[int, Term]
    divisors: tuple[int, ...]

    def settings(self, values: Values, value: Value) -> dict[int, Value]:
        """What the slots become once the input has a value."""
        own, new = cast("tuple[int, int]", (values[self.slot], value))
        moved = {slot: cast("int", values[slot]) // own * new for slot in self.others}
        return {self.slot: value, **moved}

    def applies(self, values: Values) -> bool:
        """Whether what moves in proportion is in proportion."""
        own = values[self.slot]
        return all(
            own and cast("int", values[slot]) % cast("int", own) == 0 for slot in self.others
        )

    def strides(self, values: Values) -> list[int]:
        """One step of an integer, and the steps that leave a remainder as it is."""
        if not isinstance(self.symbol, Int):
            return []
        step = (self.symbol.domain or IntDomain()).multiple_of
        divisors = (abs(cast("int", values[slot])) for slot in self.divisors)
        return sorted({step * (one or 1) for one in (1, *divisors)})

    def neighbours(self, values: Values) -> list[Value]:
        """The integers one stride away; of a flag, an enum or a float every other value."""
        value = values[self.slot]
        if isinstance(self.symbol, Int):
            near = (int(value) + way * one for one in self.strides(values) for way in (-1, 1))
            return [one for one in near if self._admits(values, one)]
        return [one for one in _values(self.symbol) if not is_same(one, value)]

    def points(self, values: Values) -> list[Value]:
        """The start, and values on the way from it to either end; all values where there are few.

        Every point is whole strides from the start, of one of the strides.
        """
        if not isinstance(self.symbol, Int):
            return list(_values(self.symbol))
        domain, start = self.symbol.domain or IntDomain(), cast("int", values[self.slot])
        powers = [*range(_DENSE), *range(_DENSE, _FARTHEST, 2)]
        found = {start}
        for stride in self.strides(values):
            found |= {start + way * (stride << power) for power in powers for way in (-1, 1)}
            found |= {start + (end - start) // stride * stride for end in _ends(domain)}
        return sorted(one for one in found if self._admits(values, one))

    def ways(self, values: Values, points: Sequence[Value]) -> list[Way]:
        """How to walk an integer's points: for each stride from the start to either end."""
        if not isinstance(self.symbol, Int):
            return []
        start, found = cast("int", values[self.slot]), []
        for stride in self.strides(values):
            on = [at for at, one in enumerate(points) if (int(one) - start) % stride == 0]
            here = on.index(points.index(start))
            found += [(stride, on[here:]), (stride, on[here::-1])]
        return found

    def _admits(self, values: Values, value: int) -> bool:
        symbols = {self.slot: self.symbol, **self.others}
        return all(
            cast("int", new) in (cast("Int", symbols[slot]).domain or IntDomain())
            for slot, new in self.settings(values, value).items()
        )


@dataclass(frozen=True, slots=True)
class Move:
    """From one state to another along an axis: the input's values here and there."""

    axis: Axis
    here: Value
    there: Value

    @property
    def back(self) -> Move:
        """The way back."""
        return Move(self.axis, self.there, self.here)

    def __str__(self) -> str:
        """The step, as a reader repeats it."""
        names = ", ".join(other.name for other in self.axis.others.values())
        change = f"{self.axis.symbol.name} {shown(self.here)} -> {shown(self.there)}"
        return f"{change}, and {names} in proportion" if names else change


def shown(value: Value) -> str:
    """A value as a reader writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def axes_of(land: Landscape) -> list[Axis]:
    """Each input alone, and each that divides another together with it."""
    slot = land.slot
    divisions = [node.args for node in land.nodes if node.op is Op.MOD]

    def axis(symbol: Term, *others: Term) -> Axis:
        moving = set(land.above(*(slot[one] for one in (symbol, *others))))
        kept = [
            slot[two] for one, two in divisions if slot[one] in moving and slot[two] not in moving
        ]
        return Axis(symbol, slot[symbol], {slot[one]: one for one in others}, tuple(kept))

    whole = [pair for pair in divisions if all(one.op is Op.SYMBOL for one in pair)]
    return [*map(axis, land.symbols), *(axis(two, one) for one, two in dict.fromkeys(whole))]


def turns(keys: Sequence[object], ways: Sequence[Way]) -> Iterator[tuple[int, int, int]]:
    """Two places between which the key changes, and a stride: on each way the first few.

    Without ways every two places are next to each other.
    """
    for stride, way in ways:
        changes = (pair for pair in pairwise(way) if not is_same(keys[pair[0]], keys[pair[1]]))
        yield from ((*pair, stride) for pair in islice(changes, _MOST_TURNS))
    for at, key in enumerate(() if ways else keys):
        others = (to for to, other in enumerate(keys) if not is_same(other, key))
        yield from ((at, to, 0) for to in islice(others, 1))


def edges_between(move: Move, stride: int, key: Callable[[Value], object]) -> list[Move]:
    """The first and the last step across which the key changes on a move between different keys."""
    if not stride:
        return [move]
    here, there = cast("tuple[int, int]", (move.here, move.there))
    first = Move(move.axis, *_bisected(here, there, stride, key))
    last = Move(move.axis, *_bisected(there, here, stride, key)).back
    return [first] if first == last else [first, last]


def _bisected(near: int, far: int, stride: int, key: Callable[[Value], object]) -> tuple[int, int]:
    answer = key(near)
    while abs(far - near) > stride:
        middle = near + (far - near) // stride // 2 * stride
        if is_same(key(middle), answer):
            near = middle
        else:
            far = middle
    return near, far


def _ends(domain: IntDomain) -> list[int]:
    return [end for end in (domain.lo, domain.hi) if end is not None]


def _values(symbol: Term) -> Sequence[Value]:
    if isinstance(symbol, Bool):
        return (False, True)
    if isinstance(symbol, Float):
        return (*_FLOATS[symbol.width], *_NOT_FINITE)
    return cast("EnumSort", symbol.sort).members
