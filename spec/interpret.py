"""The reference interpreter: a term's value on one state, in Python integers and IEEE floats.

Enum values are their member names. This reading is the judge: counterexamples are replayed here
before they are shown, and rows of the real code are compared with it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from . import floats
from .program import Program
from .terms import FloatValue, Op, Term

__all__ = ["State", "Value", "compile_terms", "evaluate"]

Value = int | bool | str | float
State = Mapping[str, Value]


def _floor_div(one: int, two: int) -> int:
    return one // two if two else 0


def _ceil_div(one: int, two: int) -> int:
    return -(-one // two) if two else 0


_PLAIN: dict[Op, Callable[..., Value]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.FLOOR_DIV: _floor_div,
    Op.CEIL_DIV: _ceil_div,
    Op.MOD: lambda one, two: one % two if two else one,
    Op.ALIGN_UP: lambda one, two: _ceil_div(one, two) * two,
    Op.MIN: min,
    Op.MAX: max,
    Op.ITE: lambda test, one, two: one if test else two,
    Op.EQ: operator.eq,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.NOT: operator.not_,
    Op.AND: lambda *parts: all(parts),
    Op.OR: lambda *parts: any(parts),
    Op.WIDEN: lambda value: value,
    Op.CEILING: floats.round_up,
}
_ROUNDED: dict[Op, Callable[..., float]] = {
    Op.TO_FLOAT: floats.from_integer,
    Op.FLOAT_MUL: floats.multiply,
    Op.FLOAT_DIV: floats.divide,
}


class Concrete:
    """The algebra of Python values."""

    def constant(self, node: Term) -> Value:
        return (
            node.value.number if isinstance(node.value, FloatValue) else cast("Value", node.value)
        )

    def operation(self, node: Term) -> Callable[..., Value]:
        if node.op in _PLAIN:
            return _PLAIN[node.op]
        rounded, width = _ROUNDED[node.op], node.sort
        return lambda *args: rounded(*args, width)

    def search(
        self, node: Term, limit: Value, fallback: Value, body: Callable[[Value], list[Value]]
    ) -> Value:
        candidates = range(1, min(cast("int", limit), cast("int", node.value)) + 1)
        if node.op is Op.FIRST:
            return next((c for c in candidates if body(c)[0]), fallback)
        best = fallback
        for candidate in candidates:
            eligible, value = body(candidate)
            if eligible and cast("float", value) > cast("float", best):
                best = value
        return best


def compile_terms(terms: Sequence[Term]) -> Program[Value]:
    """A function from a state (a value per symbol name) to a value per term."""
    return Program(terms, Concrete())


def evaluate(term: Term, state: State) -> Value:
    """The term's value on one state."""
    return compile_terms((term,))(state)[0]
