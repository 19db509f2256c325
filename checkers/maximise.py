"""The exact maximum of a size over an envelope, with a state that attains it.

The axes are cut where the held part jumps, so that on each box of the product, a regime, it is
constant; then the size is largest at the box's corner, and the largest corner is the maximum. That
rests on lemmas over all facts, decided once: a larger state with no smaller held part needs no
less, the keys grow with the axes, and once settled the held part is 1. That the cuts are right is
checked for the case at hand: on every box the keys are equal at both ends, or it has settled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from typing import cast

import numpy as np

from routeproof.spec.errors import UnsupportedError
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.objective import Case, Held, Lemma, Objective
from routeproof.spec.obligation import Claim
from routeproof.spec.program import Program
from routeproof.spec.terms import (
    Bool,
    Enum,
    Int,
    IntDomain,
    Term,
    all_of,
    free_symbols,
    substitute,
    symbol_int,
    topological,
)

from .coverage import uncovered
from .readings.intervals import Interval, prune
from .readings.vectorised import Column, Grid, spans

__all__ = ["Maximum", "lemmas", "maximise"]

_MOST_REGIMES = 1 << 23
_MOST_STRETCHES = 1 << 18
_BLOCK = 1 << 16
_COUNT = IntDomain(1, 2**63 - 1)

State = Mapping[Int, int]


@dataclass(frozen=True, slots=True)
class Maximum:
    """The most bytes and a state that needs them; a state whose size fails; regimes looked at."""

    size: int
    state: State
    failing: State | None
    regimes: int


@cache
def lemmas(objective: Objective) -> tuple[Lemma, ...]:
    """What the maximum rests on, for all facts at once."""
    lower, corner = _named(objective, "lower"), _named(objective, "corner")
    plain, held = _without_held(objective), objective.held
    (lower_ok, lower_size), (corner_ok, corner_size) = (
        substitute((plain.ok, plain.size), side) for side in (lower, corner)
    )
    within = all_of(*objective.within.values())
    given = {
        "lower is at most corner, axis by axis": all_of(
            *(cast("Int", lower[one]) <= cast("Int", corner[one]) for one in plain.symbols)
        ),
        **{name: _bool(one, lower) for name, one in objective.within.items()},
    }
    found = {
        "the corner needs most": Claim(
            {
                "the lower recipe is ok": cast("Bool", lower_ok),
                "the lower needs no more": cast("Int", lower_size) <= cast("Int", corner_size),
            },
            {**given, "the corner's recipe is ok": cast("Bool", corner_ok)},
        ),
        "larger states are its own": Claim(_bool(within, corner), given),
    }
    if held:
        ends = (substitute(tuple(held.keys.values()), side) for side in (lower, corner))
        pairs = zip(held.keys, *ends, strict=True)
        grow = {key.name: cast("Int", one) <= cast("Int", two) for key, one, two in pairs}
        found["the keys grow"] = Claim(
            grow, {**given, "the corner's recipe is ok": cast("Bool", corner_ok)}
        )
        found["settled, it is 1"] = Claim(
            held.value == 1, {"settled": held.settled, **objective.within}
        )
    return tuple(Lemma(f"{objective.name}: {name}", claim) for name, claim in found.items())


def maximise(case: Case) -> Maximum | None:
    """The maximum over the case's domain; None if it has no state.

    Raises:
        UnsupportedError: there are too many regimes, or the stated ones do not fit.
    """
    regimes = _Regimes(case)
    plain = _without_held(case.objective)
    corner, exists = regimes.corner, regimes.exists
    inputs = {**regimes.facts, **corner}
    if plain.count is not None:
        inputs[plain.count] = regimes.held()
    shape = np.broadcast_shapes(exists.shape, *(one.shape for one in inputs.values()))
    # What the ranges decide, which are most of the checks, is not computed for every regime.
    terms = prune((plain.size, plain.ok), spans(inputs))
    size, ok = (np.broadcast_to(one, shape) for one in Grid(terms, inputs).opened(inputs))
    exists = np.broadcast_to(exists, shape)
    if not exists.any():
        return None

    def state(at: int) -> State:
        axes = case.objective.axes
        return {one: int(np.broadcast_to(corner[one], shape).reshape(-1)[at]) for one in axes}

    wrong = exists & ~ok
    best = int(np.argmax(np.where(exists, size, -1)))
    return Maximum(
        int(size.reshape(-1)[best]),
        state(best),
        state(int(np.argmax(wrong))) if wrong.any() else None,
        int(np.count_nonzero(exists)),
    )


@dataclass(frozen=True, slots=True)
class _Plain:
    """An objective whose held part is a symbol like any other."""

    size: Int
    ok: Bool
    count: Int | None
    symbols: tuple[Int, ...]


@cache
def _without_held(objective: Objective) -> _Plain:
    held, axes = objective.held, objective.axes
    if held is None:
        return _Plain(objective.size, objective.ok, None, axes)
    part, count = held.part, symbol_int("the held part", _COUNT)
    if not any(node is part for node in topological((objective.size,))):
        raise UnsupportedError(f"{objective.name}: the held part does not occur in the size")
    _must_be_new(objective, count.name)
    size, ok = substitute((objective.size, objective.ok), {part: count})
    return _Plain(cast("Int", size), cast("Bool", ok), count, (*axes, count))


def _named(objective: Objective, prefix: str) -> dict[Term, Term]:
    """Another name for every axis and for the held part."""
    old = _without_held(objective).symbols
    new: dict[Term, Term] = {one: symbol_int(f"{prefix} {one.name}", one.domain) for one in old}
    _must_be_new(objective, *(one.name for one in new.values()))
    return new


def _must_be_new(objective: Objective, *names: str) -> None:
    """Symbols are known by their names: one of the objective's own would be taken for another."""
    taken = {one.name for one in (*_static(objective), *objective.axes)}
    if clash := taken.intersection(names):
        raise UnsupportedError(f"{objective.name}: the name {min(clash)!r} is needed here")


def _bool(condition: Bool, mapping: Mapping[Term, Term]) -> Bool:
    return cast("Bool", substitute((condition,), mapping)[0])


@cache
def _settles_at(objective: Objective) -> Program[Value]:
    """Whether a state of axes and facts has settled."""
    held = cast("Held", objective.held)
    return compile_terms(substitute((held.settled,), {**held.keys}))


class _Regimes:
    """The boxes of one case: per axis the ends of its stretches, shaped to meet the others'."""

    def __init__(self, case: Case) -> None:
        """Cut the axes, and check that the held part is constant on every box."""
        self._case, self._held = case, case.objective.held
        self._axes = case.objective.axes
        self._places = {axis: place for place, axis in enumerate(self._axes)}
        if case.domain.equal:  # two that are equal lie along the same dimension
            one, two = case.domain.equal
            self._places[two] = self._places[one]
        self.facts = _columns(case)
        self._check_states()
        tops = _tops(case)
        self.bottoms: dict[Term, Column] = {}
        self.tops: dict[Term, Column] = {}
        for axis, place in self._places.items():
            low = np.array([case.domain.ranges[axis][0]])
            shape = [-1 if place == other else 1 for other in range(len(self._axes))]
            self.bottoms[axis] = np.concatenate([low, tops[axis][:-1] + 1]).reshape(shape)
            self.tops[axis] = tops[axis].reshape(shape)
        count = math.prod(np.broadcast_shapes(*(one.shape for one in self.tops.values())))
        if count > _MOST_REGIMES:
            raise UnsupportedError(f"{case.objective.name}: {count:,} regimes are too many")
        self.corner, self.exists = self._corners()
        if self._held:
            self._keys = self._checked(self._held)

    def _check_states(self) -> None:
        """The lemmas speak of declared domains, and of states that lie within.

        That larger states are its own is one of them: what holds of the least holds of all.
        """
        ranges, within = self._case.domain.ranges, self._case.objective.within
        facts = ((one, self._case.facts[one.name]) for one in self.facts)
        values = ((one, value) for one, value in facts if isinstance(one, Int))
        for symbol, value in (*ranges.items(), *((one, (value, value)) for one, value in values)):
            self._must_fit(symbol, *value)
        least = {**self._case.facts, **{one.name: ranges[one][0] for one in self._axes}}
        for name, condition in within.items():
            if not _compiled(condition)(least)[0]:
                raise UnsupportedError(f"{self._case.objective.name}: not every state has {name}")

    def _must_fit(self, symbol: Term, low: object, high: object) -> None:
        """The values are of the symbol's declared domain."""
        whole = Interval.of(symbol.domain or IntDomain())
        step = symbol.domain.multiple_of if symbol.domain else 1
        ends = [end for end in (low, high) if isinstance(end, int)]
        if not all(end in whole and end % step == 0 for end in ends):
            name = self._case.objective.name
            raise UnsupportedError(f"{name}: {symbol.name} is declared {whole}, not {low}..{high}")

    def _corners(self) -> tuple[dict[Term, Column], Column]:
        """The largest state of every box, and whether the box has any state."""
        corner: dict[Term, Column] = dict(self.tops)
        if not self._case.domain.less:
            return corner, np.ones((1,) * len(self._axes), np.bool_)
        one, two = self._case.domain.less
        corner[one] = np.minimum(self.tops[one], self.tops[two] - 1)
        return corner, corner[one] >= self.bottoms[one]

    def _checked(self, held: Held) -> list[Column]:
        """The keys of every box, with all that has settled as one key.

        On a box the held part is constant: its keys are equal at the bottom and at the corner, and
        they grow; or it has settled at the bottom, and stays so. A box without a state counts for
        its bottom.
        """
        terms, first = tuple(held.keys.values()), next(iter(held.keys))
        program = Grid(terms, {**self.facts, **_whole(self._case)})
        lower, upper = (
            program.opened({**self.facts, **ends}) for ends in (self.bottoms, self.corner)
        )
        upper = [np.where(self.exists, two, one) for one, two in zip(lower, upper, strict=True)]
        for key, *ends in zip(held.keys, lower, upper, strict=True):
            self._must_fit(
                key, min(int(one.min()) for one in ends), max(int(one.max()) for one in ends)
            )
        inputs = {**self.facts, first: lower[0]}
        (settled,) = Grid((held.settled,), inputs).opened(inputs)
        equal = reduce(np.logical_and, (one == two for one, two in zip(lower, upper, strict=True)))
        if not (settled | equal).all():
            raise UnsupportedError(f"{self._case.objective.name}: the stated regimes do not fit")
        if not settled.any():
            return upper
        at = int(lower[0][settled].min())
        facts = ((one, self._case.facts.get(one.name)) for one in free_symbols(held.settled))
        known = tuple((one.name, value) for one, value in facts if isinstance(value, int))
        if why := _unsettled(held, at, known):
            raise UnsupportedError(f"{self._case.objective.name}: settled at {at:,}, but {why}")
        return [np.where(settled, at, upper[0]), *upper[1:]]

    def held(self) -> Column:
        """The held part of every box, computed once for each combination of keys."""
        held = cast("Held", self._held)
        keys = map(_narrow, self._keys)
        found = [np.unique(key, return_inverse=True) for key in keys]
        inputs: dict[Term, Column] = dict(zip(held.keys, (one for one, _ in found), strict=True))
        used = free_symbols(held.value)
        inputs |= {one: self.facts[one] for one in used if one in self.facts}
        columns = tuple(one.tobytes() for one in inputs.values())
        if any(one.dtype == object for one in inputs.values()):
            raise UnsupportedError(f"{self._case.objective.name}: keys beyond 64 bits")
        table = _table(held.value, len(held.keys), tuple(inputs), columns)
        if table.min() < 1:
            raise UnsupportedError(f"{self._case.objective.name}: the held part is not a count")
        places = (at.reshape(key.shape) for (_, at), key in zip(found, self._keys, strict=True))
        found_at: Column = table[tuple(places)]
        return found_at


def _narrow(column: Column) -> Column:
    """Exact integers as 64-bit ones, if they fit."""
    fits = column.dtype == object and column.min() >= -(2**63) and column.max() < 2**63
    return column.astype(np.int64) if fits else column


@lru_cache(maxsize=256)
def _unsettled(held: Held, at: int, facts: tuple[tuple[str, int], ...]) -> str | None:
    """Why what has settled may not stay so for larger keys."""
    box = {name: Interval(value, value) for name, value in facts}
    return uncovered((held.settled,), cast("Int", next(iter(held.keys))), at, box, lambda _: False)


def _tops(case: Case) -> dict[Int, Column]:
    """Where the stretches of each axis end; axes that are equal are cut alike."""
    found = {axis: _axis_tops(case, axis) for axis in case.objective.axes}
    if case.domain.equal:
        one, two = case.domain.equal
        found[one] = found[two] = np.union1d(found[one], found[two])
    return found


def _axis_tops(case: Case, axis: Int) -> Column:
    """By the steps that are stated, up to where all has settled: that is one stretch."""
    low, high = case.domain.ranges[axis]
    held = case.objective.held
    steps = [one for one in held.steps if one.axis is axis] if held else []
    parts = [np.array([high], np.int64)]
    for step in steps:
        every, at, up_to = (_fact(case, one) for one in (step.every, step.at, step.up_to))
        start = low + -(low + at) % every
        stop = min(high, up_to, _last_unsettled(case, axis) + every)
        if (stop - start) // every > _MOST_STRETCHES:
            raise UnsupportedError(f"{case.objective.name}: too many regimes along {axis.name}")
        parts.append(np.arange(start, stop, every, dtype=np.int64))
    return np.unique(np.concatenate(parts))


def _last_unsettled(case: Case, axis: Int) -> int:
    """The last place on the axis that has not settled with all others at their least."""
    ranges = case.domain.ranges
    state = dict(case.facts) | {one.name: ranges[one][0] for one in case.objective.axes}
    equal = case.domain.equal or ()
    together = equal if axis in set(equal) else (axis,)
    settled = _settles_at(case.objective)
    low, high = ranges[axis][0] - 1, ranges[axis][1]
    while low < high:
        middle = (low + high + 1) // 2
        (has,) = settled(state | {one.name: middle for one in together})
        low, high = (low, middle - 1) if has else (middle, high)
    return low


def _whole(case: Case) -> dict[Term, Column]:
    """The two ends of every axis."""
    return {axis: np.array(ends) for axis, ends in case.domain.ranges.items()}


def _fact(case: Case, term: Int) -> int:
    return cast("int", _compiled(term)(case.facts)[0])


@cache
def _compiled(term: Term) -> Program[Value]:
    return compile_terms((term,))


@lru_cache(maxsize=16)
def _table(value: Int, keys: int, symbols: tuple[Term, ...], columns: tuple[bytes, ...]) -> Column:
    """The held part on the product of its keys, the first symbols, in parts that fit the cache.

    Kept for the next phase, whose work and blocks are often the same.
    """
    inputs = {
        one: np.frombuffer(column, _dtype(one))
        for one, column in zip(symbols, columns, strict=True)
    }
    shape = tuple(len(inputs[one]) for one in symbols[:keys])
    program = Grid((value,), inputs)
    # Along the longest axis, so that what depends on it alone is computed once.
    place = int(np.argmax(shape))
    longest, length = symbols[place], shape[place]
    step = max(1, _BLOCK * length // math.prod(shape))
    parts = []
    for at in range(0, length, step):
        part = {**inputs, longest: inputs[longest][at : at + step]}
        size = [len(part[one]) for one in symbols[:keys]]
        parts.append(program(part)[0].reshape(size))
    return np.concatenate(parts, axis=place)


def _columns(case: Case) -> dict[Term, Column]:
    """The facts that the objective reads, each a column of one value."""
    return {
        one: np.array([_coded(one, case.facts[one.name])], _dtype(one))
        for one in _static(case.objective)
    }


@cache
def _static(objective: Objective) -> tuple[Term, ...]:
    """The symbols that are neither axes nor keys."""
    terms = [objective.size, objective.ok, *objective.within.values()]
    inner: set[Term] = {*objective.axes}
    if objective.held:
        terms += [objective.held.value, objective.held.settled, *objective.held.keys.values()]
        inner |= {*objective.held.keys}
    return tuple(one for one in free_symbols(*terms) if one not in inner)


def _coded(symbol: Term, value: Value) -> Value:
    return symbol.members.members.index(str(value)) if isinstance(symbol, Enum) else value


def _dtype(symbol: Term) -> type[np.generic]:
    return (
        np.bool_ if isinstance(symbol, Bool) else np.int8 if isinstance(symbol, Enum) else np.int64
    )
