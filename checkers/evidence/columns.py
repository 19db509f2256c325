"""The meaning of each operation on NumPy arrays: the checker's own, exact for integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from routeproof.spec import floats
from routeproof.spec.terms import FloatValue, Op, Term, Width

__all__ = ["Column", "Columns"]

Column = NDArray[Any]


class Columns:
    """The meaning of each operation on arrays; integers are exact, floats have their width."""

    def constant(self, node: Term) -> Column:
        """The constant as an array of length 1."""
        value = node.value
        if isinstance(value, FloatValue):
            return np.array([value.number], _dtype(node))
        members = getattr(node.sort, "members", None)
        return _exact(np.array([members.index(value) if members else value], object))

    def operation(self, node: Term) -> Callable[..., Column]:
        """The operation on whole arrays."""
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
        """The loop over candidates, each tried on every state at once."""
        last = max(0, min(int(np.max(limit)), cast("int", node.value)))
        within = np.clip(limit, 0, last).astype(np.min_scalar_type(last))
        best, chosen = fallback, np.zeros_like(within)
        for candidate in range(1, last + 1):
            eligible, *value = body(np.array([candidate]))
            here = eligible & (within >= candidate)
            if node.op is Op.GREATEST:
                best = np.where(here & (value[0] > best), value[0], best)
            elif (chosen := np.where(here & (chosen == 0), candidate, chosen)).all():
                break
        return best if node.op is Op.GREATEST else np.where(chosen == 0, fallback, chosen)


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
