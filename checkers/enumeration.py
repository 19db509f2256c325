"""Exhaustive regimes: a claim evaluated on every state of a finite box.

Where a symbol's range is infinite or long, a coverage lemma lets one value stand for all beyond it;
of values that the claim does not tell apart, the first is evaluated for all. What is kept as
evidence lets `certify` repeat it: the box, where symbols settle, how many groups of values a symbol
has, the number of states, and a digest of which of those evaluated were admitted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

import numpy as np

from routeproof.spec.derivation import Digests
from routeproof.spec.interpret import Value
from routeproof.spec.obligation import Claim
from routeproof.spec.terms import Bool, EnumSort, Int, IntDomain, Term, all_of, free_symbols

from .coverage import uncovered
from .facts import Facts
from .grouping import Axis, grouped
from .readings.intervals import Interval, prune
from .readings.vectorised import Column, Grid, spans, values

__all__ = ["Box", "Enumerated", "enumerate_states", "finite_box"]

_BLOCK = 1 << 17


@dataclass(frozen=True, slots=True)
class Box:
    """The values that each symbol is tried with, and where those that are cut off settle."""

    values: Mapping[Term, range]
    settles: Mapping[str, int]

    @property
    def states(self) -> int:
        """How many states it has."""
        # Not len(), which has no answer beyond 2^63.
        return math.prod((one.stop - one.start - 1) // one.step + 1 for one in self.values.values())

    def axes(self, roots: Sequence[Term]) -> dict[Term, Axis]:
        """What is tried of each symbol for the roots: integers, truth values, members by index."""
        return {
            one: grouped(roots, one, self.values)
            if isinstance(one, Int)
            else Axis.of(np.array(tried, _dtype(one)))
            for one, tried in self.values.items()
        }


def finite_box(claim: Claim, is_impossible: Callable[[Sequence[Bool]], bool]) -> Box | str:
    """A box that has a state of every kind there is; or why there is none that is finite.

    Kinds are: admitted, failing, of a regime.
    """
    conditions, goals = tuple(claim.conditions.values()), tuple(claim.goals.values())
    ranges = Facts(conditions).ranges.box
    tried: dict[Term, range] = {}
    settles: dict[str, int] = {}
    for symbol in free_symbols(*conditions, *goals, *claim.regimes.values()):
        if isinstance(symbol, Int):
            whole = ranges.get(symbol.name) or Interval.of(symbol.domain or IntDomain())
            span = _cut(symbol, whole, claim.settles)
            if span.lo is None or span.hi is None or span.lo < -(2**63) or span.hi >= 2**63:
                return f"the range of {symbol.name} is {span}"
            step = symbol.domain.multiple_of if symbol.domain else 1
            tried[symbol] = range(-(-span.lo // step) * step, span.hi + 1, step)
            settles |= {} if span == whole else {symbol.name: span.hi}
        elif isinstance(symbol, Bool):
            tried[symbol] = range(2)
        elif isinstance(symbol.sort, EnumSort):
            tried[symbol] = range(len(symbol.sort.members))
        else:
            return f"{symbol.name} is a float"
    admits = all_of(*conditions)
    roots = (admits, *(all_of(admits, one) for one in (~all_of(*goals), *claim.regimes.values())))
    for symbol in (one for one in tried if one.name in settles):
        at = settles[symbol.name]
        if why := uncovered(roots, cast("Int", symbol), at, ranges, is_impossible):
            return f"{symbol.name} is not shown to settle at {at:,}: {why}"
    return Box(tried, settles)


def _cut(symbol: Int, whole: Interval, settles: Mapping[str, int]) -> Interval:
    """The range up to where the symbol settles, which is a value that it can have."""
    if symbol.name not in settles or whole.lo is None:
        return whole
    step = symbol.domain.multiple_of if symbol.domain else 1
    at = -(-max(settles[symbol.name], whole.lo) // step) * step
    return whole if whole.hi is not None and whole.hi <= at else Interval(whole.lo, at)


class Enumerated:
    """What an enumeration has found so far: a state that is admitted, one that fails, counts."""

    def __init__(self, groups: Mapping[str, int], regimes: Iterable[str], *names: str) -> None:
        """Nothing is found yet; the names are those of the condition and of the goal."""
        self.witness: dict[str, Value] | None = None
        self.failing: dict[str, Value] | None = None
        self._groups = groups
        self._admitted = 0
        self._regimes = dict.fromkeys(regimes, 0)
        self._digest = blake2b(" ".join(names).encode(), digest_size=16)

    def add(self, part: Mapping[Term, Axis], met: Column, holds: Column, *kinds: Column) -> None:
        """Take up a block of states: which are admitted, keep the goal, lie in each regime."""
        self._digest.update(met.tobytes())
        self._admitted += _stand_for(met, part)
        for name, column in zip(self._regimes, kinds, strict=True):
            self._regimes[name] += _stand_for(met & column, part)
        if self.witness is None and met.any():
            self.witness = _state(part, int(np.argmax(met)))
        broken = met & ~holds
        if broken.any():
            self.failing = _state(part, int(np.argmax(broken)))

    def evidence(self, box: Box) -> dict[str, object]:
        """What `certify` needs to repeat it."""
        spans = {one.name: [tried.start, tried.stop - 1] for one, tried in box.values.items()}
        return {
            "box": spans,
            "settles": box.settles,
            "groups": self._groups,
            "states": box.states,
            "admitted": self._admitted,
            "regimes": self._regimes,
            "digest": self._digest.hexdigest(),
        }


def enumerate_states(claim: Claim, box: Box, seconds: float) -> Enumerated | None:
    """Every state of the box in order, up to the first that fails; None if time runs out."""
    deadline = time.monotonic() + seconds
    admits, goal = all_of(*claim.conditions.values()), all_of(*claim.goals.values())
    roots = (admits, goal, *claim.regimes.values())
    axes = box.axes(roots)
    groups = {
        one.name: len(axes[one]) for one, tried in box.values.items() if len(axes[one]) < len(tried)
    }
    found = Enumerated(groups, claim.regimes, Digests()(admits), Digests()(goal))
    whole = {one: axis.values for one, axis in axes.items()}
    # What the ranges decide, such as that sizes fit the machine, is not computed for every state.
    program = Grid(prune(roots, spans(whole)), whole)
    for block in _blocks([slice(len(axis)) for axis in axes.values()]):
        if time.monotonic() > deadline:
            return None
        part = {one: axis[piece] for (one, axis), piece in zip(axes.items(), block, strict=True)}
        found.add(part, *program({one: axis.values for one, axis in part.items()}))
        if found.failing is not None:
            break
    return found


def _dtype(symbol: Term) -> type[np.generic]:
    return np.bool_ if isinstance(symbol, Bool) else np.int8


def _blocks(axes: list[slice]) -> Iterator[list[slice]]:
    """The product of the axes as products of at most so many points, in the order of the whole."""
    lengths = [axis.stop - (axis.start or 0) for axis in axes]
    if math.prod(lengths) <= _BLOCK:
        yield axes
        return
    at = next(index for index, length in enumerate(lengths) if length > 1)
    start = axes[at].start or 0
    middle = start + lengths[at] // 2
    for part in (slice(start, middle), slice(middle, axes[at].stop)):
        yield from _blocks([*axes[:at], part, *axes[at + 1 :]])


def _stand_for(met: Column, part: Mapping[Term, Axis]) -> int:
    """How many states those that are met stand for, in a block."""
    counted = met.reshape([len(axis) for axis in part.values()])
    for axis in list(part.values())[::-1]:
        counted = counted @ axis.counts
    return int(counted.sum())


def _state(part: Mapping[Term, Axis], point: int) -> dict[str, Value]:
    """The state at a place in a block, as the interpreter reads it."""
    places = np.unravel_index(point, [len(axis) for axis in part.values()])
    return {
        symbol.name: values(symbol, axis.values[[at]])[0]
        for (symbol, axis), at in zip(part.items(), places, strict=True)
    }
