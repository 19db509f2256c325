"""Ranges of integer terms over a box, and what the box decides: the checker's own reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Int,
    Op,
    Term,
    integer,
    rebuild,
    topological,
)

__all__ = ["Range", "declared", "range_of", "simplified"]

Range = tuple[float, float]
"""Both ends, exact integers or infinite."""

_INFINITE = float("inf")


def declared(symbol: Int) -> Range:
    """The range of the symbol's domain."""
    domain = symbol.domain
    lo = -_INFINITE if domain is None or domain.lo is None else domain.lo
    hi = _INFINITE if domain is None or domain.hi is None else domain.hi
    return lo, hi


def range_of(node: Int, known: Mapping[Term, Range], box: Mapping[str, Range]) -> Range:
    """The range of a node, those of its arguments being known."""
    ends = [known[arg] for arg in node.args if isinstance(arg, Int)]
    match node.op:
        case Op.CONST:
            return cast("int", node.value), cast("int", node.value)
        case Op.SYMBOL | Op.BOUND:
            return declared(node) if node.op is Op.BOUND else box.get(node.name, declared(node))
        case Op.ITE:
            return min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])
        case Op.FIRST:
            (_, last), _, otherwise = ends
            top = min(last, cast("int", node.value))
            return (min(1, otherwise[0]), max(top, otherwise[1])) if top >= 1 else otherwise
        case Op.ADD:
            return _plus(ends[0][0], ends[1][0]), _plus(ends[0][1], ends[1][1])
        case Op.SUB:
            return _plus(ends[0][0], -ends[1][1]), _plus(ends[0][1], -ends[1][0])
        case Op.MIN:
            return min(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
        case Op.MAX:
            return max(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])
        case Op.MUL:
            values = [_times(one, two) for one in ends[0] for two in ends[1]]
            return min(values), max(values)
        case _:
            return _divided(node.op, *ends)


def _plus(one: float, two: float) -> float:
    """The sum; Python would make a float of an integer beside an infinite end."""
    if isinstance(one, int) and isinstance(two, int):
        return one + two
    return two if isinstance(one, int) else one


def _times(one: float, two: float) -> float:
    if isinstance(one, int) and isinstance(two, int):
        return one * two
    if not one or not two:
        return 0
    return _INFINITE if (one > 0) == (two > 0) else -_INFINITE


def _divided(op: Op, value: Range, divisor: Range) -> Range:
    """Division, remainder and padding by any divisor: a negative one is the opposite of both."""
    parts = []
    if divisor[0] <= 0 <= divisor[1]:
        parts.append(value if op is Op.MOD else (0, 0))
    if divisor[1] >= 1:
        parts.append(_rounded(op, value, (max(divisor[0], 1), divisor[1])))
    if divisor[0] <= -1:
        opposite = (max(1, -divisor[1]), -divisor[0])
        low, high = _rounded(op, (-value[1], -value[0]), opposite)
        parts.append((low, high) if op in (Op.FLOOR_DIV, Op.CEIL_DIV) else (-high, -low))
    return min(low for low, _ in parts), max(high for _, high in parts)


def _floor(value: float, divisor: float) -> float:
    if isinstance(divisor, int):
        return value // divisor if isinstance(value, int) else value
    return 0 if value >= 0 else -1


def _rounded(op: Op, value: Range, divisor: Range) -> Range:
    """Division, remainder and padding by a positive divisor."""
    if op is Op.FLOOR_DIV:
        quotients = [_floor(one, two) for one in value for two in divisor]
        return min(quotients), max(quotients)
    if op is Op.CEIL_DIV:
        quotients = [-_floor(-one, two) for one in value for two in divisor]
        return min(quotients), max(quotients)
    if op is Op.ALIGN_UP and divisor[0] == divisor[1]:
        lo, hi = (-_floor(-one, divisor[0]) for one in value)
        return _times(lo, divisor[0]), _times(hi, divisor[0])
    if op is Op.ALIGN_UP:
        hi = _plus(value[1], _plus(divisor[1], -1))
        return value[0], min(hi, 0) if value[1] <= 0 else hi
    if value[0] < 0:
        return 0, divisor[1] - 1
    return (value[0] if value[1] < divisor[0] else 0), min(value[1], divisor[1] - 1)


def simplified(
    roots: Sequence[Bool], flags: Sequence[Bool], box: Mapping[str, Range]
) -> tuple[Bool, ...]:
    """The roots without what the flags and the box decide."""
    done: dict[Term, Term] = dict.fromkeys(flags, TRUE)
    done |= {flag.args[0]: FALSE for flag in flags if flag.op is Op.NOT}
    ranges: dict[Term, Range] = {}
    for node in topological(tuple(roots)):
        if node in done:
            continue
        new = _settled(rebuild(node, tuple(done[arg] for arg in node.args)), ranges)
        if isinstance(new, Int) and new not in ranges:
            ranges[new] = range_of(new, ranges, box)
            lo, hi = ranges[new]
            if lo == hi and new.op is not Op.BOUND:
                new = integer(cast("int", lo))
                ranges[new] = (lo, hi)
        done[node] = new
    return tuple(cast("Bool", done[root]) for root in roots)


def _settled(node: Term, ranges: Mapping[Term, Range]) -> Term:
    ops = (Op.LT, Op.LE, Op.EQ, Op.MIN, Op.MAX, Op.MOD)
    if node.op not in ops or not isinstance(node.args[0], Int):
        return node
    one, two = node.args
    (lo, hi), (lower, higher) = ranges[one], ranges[two]
    match node.op:
        case Op.LT:
            return TRUE if hi < lower else FALSE if lo >= higher else node
        case Op.LE:
            return TRUE if hi <= lower else FALSE if lo > higher else node
        case Op.EQ:
            return FALSE if hi < lower or lo > higher else node
        case Op.MIN:
            return one if hi <= lower else two if lo >= higher else node
        case Op.MAX:
            return one if lo >= higher else two if hi <= lower else node
        case _:
            return one if lo >= 0 and hi < lower else node
