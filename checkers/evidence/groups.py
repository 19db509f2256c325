"""Which values of a symbol some conditions tell apart: the checker's own reading.

From the conditions downwards, up to the parts that mention the symbol and nothing else; on what
they are, once per candidate where they lie in a search, everything above depends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from routeproof.spec.program import Program
from routeproof.spec.terms import (
    SEARCHES,
    Bool,
    Int,
    Op,
    Term,
    integer,
    minimum,
    substitute,
    topological,
)

from .columns import Column, Columns
from .ranges import Range, range_of
from .refused import shown

__all__ = ["told_apart"]

_MOST_NOTES = 1 << 23


def told_apart(
    conditions: Sequence[Bool], symbol: Int, tried: Mapping[Term, range]
) -> tuple[Column, Column]:
    """The first value of each group that the conditions do not tell apart, and its size."""
    values = np.array(tried[symbol], np.int64)
    parts = [
        instance
        for part, last in _parts(conditions, symbol, tried)
        for instance in _written_out(part, last)
    ]
    shown(len(parts) * len(values) <= _MOST_NOTES, f"too much depends on {symbol.name}")
    with np.errstate(all="ignore"):
        columns = Program(parts, Columns())({symbol.name: values})
    notes = [_note(np.broadcast_to(one, values.shape)) for one in columns]
    sizes: dict[tuple[object, ...], int] = {}
    first: list[int] = []
    for value, *seen in zip(tried[symbol], *notes, strict=True):
        note = tuple(seen)
        first += [] if note in sizes else [value]
        sizes[note] = sizes.get(note, 0) + 1
    return np.array(first, np.int64), np.array(list(sizes.values()), np.int64)


def _note(column: Column) -> list[object]:
    """The column's values; floats by their bits, as 0.0 and -0.0 are different values."""
    if column.dtype.kind == "f":
        column = np.ascontiguousarray(column).view(f"i{column.dtype.itemsize}")
    return cast("list[object]", column.tolist())


def _parts(
    conditions: Sequence[Bool], symbol: Int, tried: Mapping[Term, range]
) -> Iterator[tuple[Term, Mapping[Term, int]]]:
    """The largest parts that mention the symbol alone, and the last candidate per variable."""
    box: dict[str, Range] = {one.name: (span[0], span[-1]) for one, span in tried.items()}
    mentions: dict[Term, frozenset[Term]] = {}
    ranges: dict[Term, Range] = {}
    last: dict[Term, int] = {}
    for node in topological(tuple(conditions)):
        own = frozenset((node,) if node.op is Op.SYMBOL else ())
        mentions[node] = own.union(*(mentions[arg] for arg in node.args))
        if isinstance(node, Int):
            ranges[node] = range_of(node, ranges, box)
        if node.op in SEARCHES:
            limit, variable = node.args[:2]
            top = int(min(cast("int", node.value), ranges[limit][1]))
            last[variable] = max(top, last.get(variable, 0))
    todo, seen = list[Term](conditions), set[Term]()
    while todo:
        node = todo.pop()
        if node in seen or symbol not in mentions[node]:
            continue
        seen.add(node)
        if len(mentions[node]) == 1:
            yield node, last
        elif node.op is Op.MIN:  # beyond the most that the other is, the other is the least
            one, two = cast("tuple[Int, Int]", node.args)
            for arg, (_, most) in ((one, ranges[two]), (two, ranges[one])):
                is_part = isinstance(most, int) and mentions[arg] == {symbol}
                capped = minimum(arg, cast("int", most)) if is_part else arg
                mentions.setdefault(capped, mentions[arg])
                todo.append(capped)
        else:
            todo += node.args


def _written_out(part: Term, last: Mapping[Term, int]) -> Iterator[Term]:
    """The part with each candidate in place of the variables of the searches around it."""
    variables = tuple(part.bound)
    for candidates in itertools.product(*(range(1, last[one] + 1) for one in variables)):
        values = dict(zip(variables, map(integer, candidates), strict=True))
        yield substitute((part,), values)[0]
