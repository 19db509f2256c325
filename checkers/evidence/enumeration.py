"""Enumerations repeated: every state of the box again, and why no state lies outside of it.

The box may be cut off where a symbol settles. Then, from that value on, each comparison that
mentions the symbol must keep one truth value: ranges decide it, or a solver that is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from routeproof.spec import floats
from routeproof.spec.derivation import Digests
from routeproof.spec.interpret import evaluate
from routeproof.spec.obligation import Claim
from routeproof.spec.program import Program
from routeproof.spec.terms import (
    Bool,
    Float,
    FloatValue,
    Int,
    Op,
    Term,
    Width,
    all_of,
    any_of,
    boolean,
    free_symbols,
    substitute,
    topological,
)

from .conditions import Facts
from .ranges import Range, declared, range_of, simplified
from .reasking import ask_again, written_out
from .refused import require, shown

__all__ = ["check_enumeration"]

Column = NDArray[Any]
_BLOCK = 1 << 17
_MOST_STATES = 1 << 26
_COMPARISONS = (Op.LT, Op.LE, Op.EQ)


def check_enumeration(claim: Claim, found: Mapping[str, Any], seconds: float) -> int:
    """Repeat the enumeration that the evidence tells of; how many states it has."""
    conditions, goals = tuple(claim.conditions.values()), tuple(claim.goals.values())
    terms = (*conditions, *goals, *claim.regimes.values())
    symbols = {one.name: one for one in free_symbols(*terms)}
    box = found.get("box")
    require(isinstance(box, dict) and box.keys() == symbols.keys(), "the box has other symbols")
    tried = {
        symbols[name]: _tried(symbols[name], span)
        for name, span in cast("dict[str, Any]", box).items()
    }
    states = math.prod((one.stop - one.start - 1) // one.step + 1 for one in tried.values())
    require(states <= _MOST_STATES, f"{states:,} states are too many to be tried again")
    admits, goal = all_of(*conditions), all_of(*goals)
    kinds = (admits, *(admits & one for one in (~goal, *claim.regimes.values())))
    settles = _settling(kinds, tried, Facts(conditions, {}).box(), seconds)
    (admitted, *counts), digest = _evaluated(admits, goal, claim.regimes.values(), tried)
    repeated = {
        "box": box,
        "settles": settles,
        "states": states,
        "admitted": admitted,
        "regimes": dict(zip(claim.regimes, counts, strict=True)),
        "digest": digest,
    }
    require(found == repeated, "the enumeration was another one")
    return states


def _tried(symbol: Term, span: Any) -> range:  # noqa: ANN401 - JSON
    """The values that a range of the evidence stands for."""
    is_pair = isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)
    require(is_pair and -(2**63) <= span[0] <= span[1] < 2**63, "a range of the box is malformed")
    step = _step(symbol)
    values = range(-(-span[0] // step) * step, span[1] + 1, step)
    require(values.start < values.stop, f"{symbol.name} is not tried at all")
    return values


def _step(symbol: Term) -> int:
    return symbol.domain.multiple_of if isinstance(symbol, Int) and symbol.domain else 1


# Coverage


def _settling(
    kinds: Sequence[Bool], tried: Mapping[Term, range], ranges: Mapping[str, Range], seconds: float
) -> dict[str, int]:
    """No state outside the box is of a kind that none inside is; the symbols that are cut off."""
    found: dict[str, int] = {}
    for symbol, values in tried.items():
        if isinstance(symbol, Bool):
            require(values == range(2), f"{symbol.name} is not tried both ways")
        elif not isinstance(symbol, Int):
            members = getattr(symbol.sort, "members", ())
            require(values == range(len(members)), f"{symbol.name} has other members")
        else:
            least, most = ranges.get(symbol.name, declared(symbol))
            require(values[0] < least + _step(symbol), f"{symbol.name} may lie below the box")
            if values[-1] + _step(symbol) <= most:
                beyond = {**ranges, symbol.name: (values[-1], most)}
                _settles(kinds, symbol, values[-1], beyond, seconds)
                found[symbol.name] = values[-1]
    return found


def _settles(
    kinds: Sequence[Bool], symbol: Int, at: int, beyond: Mapping[str, Range], seconds: float
) -> None:
    """Nothing in the conditions depends on the symbol from a value on."""
    rest = _simplified(written_out(kinds), beyond)
    while comparisons := _innermost(rest, symbol):
        kept: dict[Term, Bool] = {}
        for one in comparisons:
            shown(len(free_symbols(one)) == 1, f"{symbol.name} does not settle alone")
            kept[one] = boolean(evaluate(one, {symbol.name: at}))
        changes = any_of(*(cast("Bool", one) != value for one, value in kept.items()))
        answer = ask_again((symbol >= at, changes), seconds)
        shown(answer == "unsat", f"{symbol.name} is not shown to settle at {at}: {answer}")
        rest = _simplified(cast("tuple[Bool, ...]", substitute(rest, kept)), beyond)
    names = {one.name for one in free_symbols(*rest)}
    shown(symbol.name not in names, f"{symbol.name} is not shown to settle at {at}")


def _innermost(conditions: Sequence[Bool], symbol: Int) -> list[Bool]:
    """The comparisons that mention the symbol and hold no other that does."""
    mentions: set[Term] = set()
    outside: set[Term] = set()
    found: list[Bool] = []
    for node in topological(tuple(conditions)):
        if node is not symbol and mentions.isdisjoint(node.args):
            continue
        mentions.add(node)
        compares = node.op in _COMPARISONS and not isinstance(node.args[0], Bool)
        if not outside.isdisjoint(node.args):
            outside.add(node)
        elif compares:
            outside.add(node)
            found.append(cast("Bool", node))
    return found


def _simplified(conditions: tuple[Bool, ...], box: Mapping[str, Range]) -> tuple[Bool, ...]:
    """The conditions without what the ranges of integers and floats decide."""
    while True:
        conditions = simplified(conditions, (), box)
        decided = _decided_floats(conditions, box)
        if not decided:
            return conditions
        conditions = cast("tuple[Bool, ...]", substitute(conditions, decided))


def _decided_floats(conditions: Sequence[Bool], box: Mapping[str, Range]) -> dict[Term, Bool]:
    known: dict[Term, Range] = {}
    decided: dict[Term, Bool] = {}
    for node in topological(tuple(conditions)):
        if isinstance(node, Int):
            known[node] = range_of(node, known, box)
        elif isinstance(node, Float) and (ends := _float_range(node, known)):
            known[node] = ends
        elif node.op in (Op.LT, Op.LE) and isinstance(node.args[0], Float):
            if not all(arg in known for arg in node.args):
                continue
            (low, high), (lower, higher) = (known[arg] for arg in node.args)
            strict = node.op is Op.LT
            if high < lower or (high == lower and not strict):
                decided[node] = boolean(True)
            elif low > higher or (low == higher and strict):
                decided[node] = boolean(False)
    return decided


def _float_range(node: Float, known: Mapping[Term, Range]) -> Range | None:
    """The range of a float that is never NaN, from ends that are rounded as it is."""
    dtype: type[np.floating[Any]] = np.float32 if node.sort == 32 else np.float64
    ends = [known.get(arg) for arg in node.args if isinstance(arg, Int | Float)]
    if None in ends:
        return None
    match node.op, cast("list[Range]", ends):
        case Op.CONST, _:
            value = cast("FloatValue", node.value).number
            return None if math.isnan(value) else (value, value)
        case Op.TO_FLOAT, [(low, high)] if low >= -(2**63) and high < 2**63:
            rounded = np.array([low, high], np.int64).astype(dtype)
            return float(rounded[0]), float(rounded[1])
        case Op.WIDEN, [one]:
            return one
        case Op.CEILING, [(low, high)]:
            return float(np.ceil(dtype(low))), float(np.ceil(dtype(high)))
        case Op.FLOAT_MUL, [(low, high), (lower, higher)] if low >= 0 <= lower:
            ends_of = (dtype(low) * dtype(lower), dtype(high) * dtype(higher))
            return _finite(*ends_of) if max(high, higher) < math.inf else None
        case Op.FLOAT_DIV, [(low, high), (lower, higher)] if low >= 0 < lower:
            ends_of = (dtype(low) / dtype(higher), dtype(high) / dtype(lower))
            return _finite(*ends_of) if high < math.inf else None
    return None


def _finite(low: np.floating[Any], high: np.floating[Any]) -> Range | None:
    return (float(low), float(high)) if np.isfinite(high) else None


# Evaluation


def _evaluated(
    admits: Bool, goal: Bool, regimes: Iterable[Bool], tried: Mapping[Term, range]
) -> tuple[list[int], str]:
    """How many states are admitted, in all and per regime, and the digest of which.

    None of them breaks the goal.
    """
    names = Digests()
    digest = blake2b(f"{names(admits)} {names(goal)}".encode(), digest_size=16)
    kinds = tuple(regimes)
    program, counts = Program((admits, goal, *kinds), _Columns()), [0] * (1 + len(kinds))
    for axes in _blocks([_axis(symbol, values) for symbol, values in tried.items()]):
        shape = tuple(map(len, axes)) or (1,)
        inputs = {
            symbol.name: column.reshape([-1 if at == place else 1 for at in range(len(axes))])
            for place, (symbol, column) in enumerate(zip(tried, axes, strict=True))
        }
        with np.errstate(all="ignore"):
            met, holds, *inside = (np.broadcast_to(one, shape) for one in program(inputs))
        require(not (met & ~holds).any(), "a state of the box breaks it")
        digest.update(met.tobytes())
        counts = [
            count + int(np.count_nonzero(met & kind))
            for count, kind in zip(counts, (met, *inside), strict=True)
        ]
    return counts, digest.hexdigest()


def _axis(symbol: Term, values: range) -> Column:
    return np.array(values, bool if isinstance(symbol, Bool) else np.int64)


def _blocks(axes: list[Column]) -> Iterator[list[Column]]:
    """The box in pieces, in the order of the whole."""
    if math.prod(map(len, axes)) <= _BLOCK:
        yield axes
        return
    at = next(index for index, axis in enumerate(axes) if len(axis) > 1)
    for part in np.array_split(axes[at], 2):
        yield from _blocks([*axes[:at], part, *axes[at + 1 :]])


class _Columns:
    """The meaning of each operation on arrays; integers are exact, floats have their width."""

    def constant(self, node: Term) -> Column:
        value = node.value
        if isinstance(value, FloatValue):
            return np.array([value.number], _dtype(node))
        members = getattr(node.sort, "members", None)
        return _exact(np.array([members.index(value) if members else value], object))

    def operation(self, node: Term) -> Callable[..., Column]:
        match node.op:
            case Op.TO_FLOAT | Op.WIDEN:
                return lambda one: _to_float(one, node)
            case op if op in _EXACT:
                return lambda one, two: _checked(_EXACT[op], one, two)
            case op:
                return _OPERATIONS[op]

    def search(
        self, node: Term, limit: Column, fallback: Column, body: Callable[[Column], list[Column]]
    ) -> Column:
        found, result = np.zeros(np.shape(limit), bool), fallback
        for candidate in range(1, min(int(np.max(limit)), cast("int", node.value)) + 1):
            here, (eligible, *value) = candidate <= limit, body(np.array([candidate]))
            if node.op is Op.GREATEST:
                result = np.where(here & eligible & (value[0] > result), value[0], result)
            else:
                result = np.where(here & eligible & ~found, candidate, result)
                found = found | (here & eligible)
        return result


def _dtype(node: Term) -> type[np.floating[Any]]:
    return np.float32 if node.sort == 32 else np.float64


def _checked(function: Callable[..., Any], one: Column, two: Column) -> Column:
    """The operation, in Python's integers if its extremes do not fit 64 bits."""
    corners = [
        function(int(left), int(right))
        for left in (np.min(one), np.max(one))
        for right in (np.min(two), np.max(two))
    ]
    if not all(-(2**63) <= corner < 2**63 for corner in corners):
        one, two = one.astype(object), two.astype(object)
    result: Column = np.asarray(function(one, two))
    return result


def _to_float(one: Column, node: Term) -> Column:
    if one.dtype == object:  # beyond 64 bits: rounded once, by the language's own rule
        width = cast("Width", node.sort)
        one = np.frompyfunc(lambda value: floats.from_integer(value, width), 1, 1)(one)
    return one.astype(_dtype(node))


def _exact(column: Column) -> Column:
    """Python's integers as they are where they do not fit 64 bits, truth values too."""
    if not all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in column.ravel()):
        return column
    return column.astype(bool if isinstance(column.flat[0], bool) else np.int64)


def _opened(column: Column) -> Column:
    """The column, in Python's integers where one has no opposite in 64 bits."""
    smallest = column.dtype == np.int64 and int(np.min(column)) == -(2**63)
    return column.astype(object) if smallest else column


def _divided(one: Column, two: Column) -> Column:
    one, zero = _opened(one), two == 0
    quotient: Column = np.where(zero, 0, one // np.where(zero, 1, two))
    return quotient


def _rounded_up(one: Column, two: Column) -> Column:
    return -_divided(-_opened(one), two)


def _padded(one: Column, two: Column) -> Column:
    return _checked(_EXACT[Op.MUL], _rounded_up(one, two), two)


_EXACT: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: lambda one, two: one + two,
    Op.SUB: lambda one, two: one - two,
    Op.MUL: lambda one, two: one * two,
}
_OPERATIONS: Mapping[Op, Callable[..., Column]] = {
    Op.FLOOR_DIV: _divided,
    Op.CEIL_DIV: _rounded_up,
    Op.ALIGN_UP: _padded,
    Op.MOD: lambda one, two: one - two * _divided(one, two),
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
    Op.ITE: np.where,
    Op.EQ: np.equal,
    Op.LT: np.less,
    Op.LE: np.less_equal,
    Op.NOT: np.logical_not,
    Op.AND: lambda *parts: reduce(np.logical_and, parts),
    Op.OR: lambda *parts: reduce(np.logical_or, parts),
    Op.FLOAT_MUL: np.multiply,
    Op.FLOAT_DIV: np.divide,
    Op.CEILING: np.ceil,
}
