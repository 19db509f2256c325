"""Values of a symbol that nothing in some terms tells apart, so that one is tried for all of them.

What terms see of a symbol are the largest parts that mention it and no other symbol; parts inside
a search are seen once per candidate. Two values on which all of these agree are the same to the
terms, whatever the other symbols are. Flash's heuristic sees of 16,130 counts of KV blocks which of
128 splits are eligible, which leaves 4,239.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from routeproof.spec.terms import (
    SEARCHES,
    Bool,
    Int,
    Op,
    Term,
    free_symbols,
    integer,
    minimum,
    substitute,
    topological,
)

from .readings.intervals import Interval, intervals
from .readings.vectorised import Column, Grid

__all__ = ["Axis", "grouped"]

_MOST_BYTES = 1 << 23
"""What may be noted down of all values of a symbol: beyond, every value is tried."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of a symbol that are tried, in order, and how many values each stands for."""

    values: Column
    counts: Column

    @classmethod
    def of(cls, values: Column) -> Axis:
        """Every value for itself."""
        return cls(values, np.ones(len(values), np.int64))

    def __len__(self) -> int:
        """How many values are tried."""
        return len(self.values)

    def __getitem__(self, part: slice) -> Axis:
        """A part of it."""
        return Axis(self.values[part], self.counts[part])


def grouped(roots: Sequence[Term], symbol: Int, ranges: Mapping[Term, range]) -> Axis:
    """The first of all values in the symbol's range that the terms do not tell apart.

    Other symbols take any value of theirs; what they are within `ranges` limits searches.
    """
    values = np.array(ranges[symbol], np.int64)
    views = _views(roots, symbol, ranges) if all(ranges.values()) else [symbol]
    width = sum(1 if isinstance(one, Bool) else 8 for one in views)
    if any(one is symbol for one in views) or len(values) * width > _MOST_BYTES:
        return Axis.of(values)
    seen = Grid(views, {symbol: values})({symbol: values})
    if any(column.dtype == object for column in seen):  # integers beyond 64 bits
        return Axis.of(values)
    # By their bytes: floats that compare equal may still differ, as 0.0 and -0.0 do.
    bytes_of = [one.view(np.uint8).reshape(len(values), -1) for one in seen]
    notes = np.hstack([np.empty((len(values), 0), np.uint8), *bytes_of])
    groups: dict[bytes, list[int]] = {}
    for place, note in enumerate(notes):
        groups.setdefault(note.tobytes(), []).append(place)
    first, counts = zip(*((group[0], len(group)) for group in groups.values()), strict=True)
    return Axis(values[list(first)], np.array(counts, np.int64))


def _views(roots: Sequence[Term], symbol: Int, ranges: Mapping[Term, range]) -> list[Term]:
    """All that the roots see of the symbol, with each candidate in place of a search's variable."""
    box = {one.name: Interval(span[0], span[-1]) for one, span in ranges.items()}
    order, known = topological(tuple(roots)), intervals(roots, box)
    alone: set[Term] = {symbol}
    mixed: set[Term] = set()
    seen = dict.fromkeys(roots)
    for node in order:
        if (node.op is Op.SYMBOL and node is not symbol) or not mixed.isdisjoint(node.args):
            mixed.add(node)
            seen |= dict.fromkeys(_capped(node, alone, known) if node.op is Op.MIN else node.args)
        elif not alone.isdisjoint(node.args):
            alone.add(node)
    candidates = _candidates(order, known)
    views = (one for one in seen if {*free_symbols(one)} == {symbol})
    return list(dict.fromkeys(new for one in views for new in _instances(one, candidates)))


def _capped(node: Term, alone: Container[Term], known: Mapping[Term, Interval]) -> list[Term]:
    """What a minimum sees of its arguments: nothing beyond the most that the other may be."""
    one, two = cast("tuple[Int, Int]", node.args)
    tops = {one: known[two].hi, two: known[one].hi}
    return [
        arg if top is None or arg not in alone else minimum(arg, top) for arg, top in tops.items()
    ]


def _candidates(order: Sequence[Term], known: Mapping[Term, Interval]) -> dict[Term, int]:
    """The last candidate that any search tries, per variable."""
    last: dict[Term, int] = {}
    for node in order:
        if node.op in SEARCHES:
            limit, variable = known[node.args[0]].hi, node.args[1]
            top = min(cast("int", node.value), math.inf if limit is None else limit)
            last[variable] = max(last.get(variable, 0), int(top))
    return last


def _instances(view: Term, candidates: Mapping[Term, int]) -> list[Term]:
    variables = list(view.bound)
    tried = itertools.product(*(range(1, candidates[one] + 1) for one in variables))
    return [
        substitute((view,), dict(zip(variables, map(integer, values), strict=True)))[0]
        for values in tried
    ]
