"""Coverage lemmas: from some value on, nothing in some conditions depends on an integer symbol.

Searches are written out, ranges decide what they can, and a solver decides the comparisons that are
left: each has to keep one truth value from there on. What then remains must not mention the symbol,
so that the one value stands for all beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from routeproof.spec import floats
from routeproof.spec.interpret import evaluate
from routeproof.spec.terms import (
    Bool,
    Float,
    FloatValue,
    Int,
    Op,
    Term,
    Width,
    any_of,
    boolean,
    free_symbols,
    substitute,
    topological,
)
from routeproof.spec.text import shortened

from .readings.intervals import Interval, Ranges, prune
from .unrolling import unroll

__all__ = ["uncovered"]

Ends = tuple[float, float]
Refute = Callable[[Sequence[Bool]], bool]
_ORDERS = (Op.LT, Op.LE)
_COMPARISONS = (*_ORDERS, Op.EQ)


def uncovered(
    conditions: Sequence[Bool],
    symbol: Int,
    at: int,
    box: Mapping[str, Interval],
    is_impossible: Refute,
) -> str | None:
    """Why a condition may depend on the symbol from `at` on; None if it is shown that none does.

    The box gives every symbol's range; `is_impossible` asks a solver about a conjunction.
    """
    beyond = {**box, symbol.name: Interval(at, box.get(symbol.name, Interval()).hi)}
    simple = _simplified(cast("tuple[Bool, ...]", unroll(conditions)), beyond)
    while left := _innermost(simple, symbol):
        for one in left:
            if len(free_symbols(one)) > 1:
                return f"{shortened(one)} still depends on it"
        kept: dict[Term, Bool] = {o: boolean(evaluate(o, {symbol.name: at})) for o in left}
        changes = any_of(*(one != kept[one] for one in left))
        if not is_impossible((symbol >= at, changes)):
            return f"a comparison may change beyond it, such as {shortened(left[-1])}"
        decided = cast("tuple[Bool, ...]", substitute(simple, kept))
        simple = _simplified(decided, beyond)
    depending = _depending(simple, symbol)
    return f"{shortened(depending[-1])} still depends on it" if depending else None


def _innermost(conditions: Sequence[Bool], symbol: Int) -> list[Bool]:
    """The comparisons that mention the symbol and have no such comparison inside."""
    outer: set[Term] = set()
    found: list[Bool] = []
    for node in _depending(conditions, symbol):
        is_outer = any(arg in outer for arg in node.args)
        if is_outer or _is_comparison(node):
            outer.add(node)
            found += [] if is_outer else [cast("Bool", node)]
    return found


def _depending(roots: Sequence[Term], symbol: Int) -> list[Term]:
    """The nodes below that mention the symbol, arguments before users."""
    found: dict[Term, None] = {}
    for node in topological(tuple(roots)):
        if node is symbol or any(arg in found for arg in node.args):
            found[node] = None
    return list(found)


def _simplified(conditions: tuple[Bool, ...], box: Mapping[str, Interval]) -> tuple[Bool, ...]:
    """The conditions without what ranges decide, those of floats included."""
    while True:
        conditions = cast("tuple[Bool, ...]", prune(conditions, box))
        decided = _decided_floats(conditions, box)
        if not decided:
            return conditions
        conditions = cast("tuple[Bool, ...]", substitute(conditions, decided))


def _is_comparison(node: Term) -> bool:
    return node.op in _COMPARISONS and not isinstance(node.args[0], Bool)


def _decided_floats(conditions: Sequence[Bool], box: Mapping[str, Interval]) -> dict[Term, Bool]:
    """The float comparisons that ranges decide."""
    ranges, known, decided = Ranges(box), dict[Term, Ends | None](), dict[Term, Bool]()
    for node in topological(tuple(conditions)):
        if isinstance(node, Float):
            known[node] = _float_range(node, ranges, known)
        elif node.op in _ORDERS and isinstance(node.args[0], Float):
            one, two = (known[arg] for arg in node.args)
            if one and two:
                strict = node.op is Op.LT
                if one[1] < two[0] or (not strict and one[1] == two[0]):
                    decided[node] = boolean(True)
                elif one[0] > two[1] or (strict and one[0] == two[1]):
                    decided[node] = boolean(False)
    return decided


def _float_range(node: Float, ranges: Ranges, known: Mapping[Term, Ends | None]) -> Ends | None:
    """The range of a float that is never NaN; rounding keeps order, so that the ends tell it."""
    if node.op is Op.CONST:
        value = cast("FloatValue", node.value).number
        return None if math.isnan(value) else (value, value)
    if node.op is Op.TO_FLOAT:
        ends = ranges.ends(cast("Int", node.args[0]))
        width = cast("Width", node.sort)
        low, high = (e if math.isinf(e) else floats.from_integer(int(e), width) for e in ends)
        return low, high
    parts = [known[arg] for arg in node.args if isinstance(arg, Float)]
    if not parts or None in parts:
        return None
    return _computed(node, cast("list[Ends]", parts))


def _computed(node: Float, parts: Sequence[Ends]) -> Ends | None:
    one, two, width = parts[0], parts[-1], cast("Width", node.sort)
    match node.op:
        case Op.WIDEN:
            return one
        case Op.CEILING:
            return floats.round_up(one[0]), floats.round_up(one[1])
        case Op.ITE:
            return min(one[0], two[0]), max(one[1], two[1])
        case Op.FLOAT_MUL if one[0] >= 0 and two[0] >= 0 and max(one[1], two[1]) < math.inf:
            low, high = (floats.multiply(one[end], two[end], width) for end in (0, 1))
            return low, high
        case Op.FLOAT_DIV if one[0] >= 0 and two[0] > 0 and one[1] < math.inf:
            low, high = (floats.divide(one[end], two[1 - end], width) for end in (0, 1))
            return low, high
    return None
