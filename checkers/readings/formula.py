"""SymPy expressions of terms and their values: the part of `symbolic` that loads SymPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import sympy
from sympy.core.function import AppliedUndef
from sympy.core.symbol import Str
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanFunction
from sympy.printing.precedence import PRECEDENCE

from routeproof.spec.errors import UnsupportedError
from routeproof.spec.interpret import Value
from routeproof.spec.terms import Bool, Enum, Int, Op, Term, topological
from routeproof.spec.text import render

from .intervals import Interval

__all__ = [
    "FloatEq",
    "FloatLe",
    "FloatLt",
    "Formula",
    "Is",
    "Predicate",
    "Translation",
    "evaluated",
    "factored",
    "from_python",
    "to_python",
]

Formula: TypeAlias = sympy.Basic


class Predicate(BooleanFunction):  # type: ignore[misc]
    """A relation about which SymPy knows nothing, not even how to negate it."""

    precedence: ClassVar[int] = PRECEDENCE["Relational"]


class Is(Predicate):
    """An enum term is a member (a `Str`), or two enum terms are the same member."""


class FloatEq(Predicate):
    """IEEE equality; NaN makes it opaque."""


class FloatLt(Predicate):
    """IEEE less than."""


class FloatLe(Predicate):
    """IEEE at most."""


_INTEGERS = {Op.EQ: sympy.Eq, Op.LT: sympy.Lt, Op.LE: sympy.Le}
_FLOATS = {Op.EQ: FloatEq, Op.LT: FloatLt, Op.LE: FloatLe}
_ROUNDED = {
    Op.TO_FLOAT: "float",
    Op.WIDEN: "float",
    Op.FLOAT_MUL: "mul",
    Op.FLOAT_DIV: "div",
    Op.CEILING: "ceil",
}


class Translation:
    """Expressions of terms, each node once; the ranges of integers rule out zero divisors."""

    def __init__(self, ranges: Mapping[Term, Interval]) -> None:
        """Start; `ranges` has every integer node of the terms to come."""
        self._ranges = ranges
        self._done: dict[Term, Formula] = {}

    def of(self, term: Term) -> Formula:
        """The expression of a term."""
        for node in topological((term,)):
            if node not in self._done:
                self._done[node] = self._node(node, [self._done[arg] for arg in node.args])
        return self._done[term]

    def _node(self, node: Term, args: Sequence[Formula]) -> Formula:
        match node.op:
            case Op.CONST:
                return _constant(node)
            case Op.SYMBOL:
                return sympy.Symbol(node.name, **self._assumptions(node))
            case Op.BOUND:  # never equal to a symbol of the same name
                return sympy.Dummy(node.name, dummy_index=0, **self._assumptions(node))
            case Op.FLOOR_DIV | Op.CEIL_DIV | Op.MOD | Op.ALIGN_UP:
                return self._divided(node, *args)
            case Op.ITE:
                return _either(*args) if isinstance(node, Bool) else _cases(*args)
            case Op.EQ | Op.LT | Op.LE:
                return _compared(node, args)
            case Op.FIRST | Op.GREATEST:
                limit, variable, *bodies, start = args
                kind = sympy.Function(str(node.op), integer=True if isinstance(node, Int) else None)
                return kind(variable, *bodies, limit, sympy.Integer(node.value), start)
            case op if op in _ROUNDED:
                return sympy.Function(f"{_ROUNDED[op]}{node.sort}")(*args)
            case _:
                return _plain(node.op, args)

    def _assumptions(self, node: Term) -> dict[str, bool]:
        """What SymPy may assume of a symbol."""
        if not isinstance(node, Int):
            return {}
        low, high = self._ranges[node].lo, self._ranges[node].hi
        signs = {
            "positive": low is not None and low > 0,
            "nonnegative": low is not None and low >= 0,
            "negative": high is not None and high < 0,
            "nonpositive": high is not None and high <= 0,
        }
        return {"integer": True} | {sign: True for sign, known in signs.items() if known}

    def _divided(self, node: Term, value: Formula, divisor: Formula) -> Formula:
        """The operation, and its value for a zero divisor where there may be one."""
        span = self._ranges[node.args[1]]
        at_zero = value if node.op is Op.MOD else sympy.Integer(0)
        if span == Interval(0, 0):
            return at_zero
        result = _division(node.op, value, divisor)
        return _cases(sympy.Ne(divisor, 0), result, at_zero) if 0 in span else result


def _division(op: Op, value: Formula, divisor: Formula) -> Formula:
    plain = not divisor.has(sympy.Piecewise)  # else SymPy moves the reciprocal into each case
    quotient = sympy.Mul(value, sympy.Pow(divisor, -1, evaluate=plain), evaluate=plain)
    match op:
        case Op.FLOOR_DIV:
            return sympy.floor(quotient, evaluate=plain)
        case Op.CEIL_DIV:
            return sympy.ceiling(quotient, evaluate=plain)
        case Op.ALIGN_UP:
            return sympy.ceiling(quotient, evaluate=plain) * divisor
        case _:
            return sympy.Mod(value, divisor, evaluate=False)


def _constant(node: Term) -> Formula:
    match node:
        case Int():
            return sympy.Integer(node.value)
        case Bool():
            return sympy.true if node.value else sympy.false
        case Enum():
            return Str(str(node.value))
        case _:  # a float is a name, with which SymPy cannot compute
            return sympy.Symbol(render(node))


def _plain(op: Op, args: Sequence[Formula]) -> Formula:
    match op:
        case Op.ADD:
            return sympy.Add(*args)
        case Op.SUB:
            return args[0] - args[1]
        case Op.MUL:
            return sympy.Mul(*args)
        case Op.MIN:
            return sympy.Min(*_flat(sympy.Min, args), evaluate=False)
        case Op.MAX:
            return sympy.Max(*_flat(sympy.Max, args), evaluate=False)
        case Op.NOT:
            return sympy.Not(*args)
        case Op.AND:
            return sympy.And(*args)
        case Op.OR:
            return sympy.Or(*args)
        case _:
            raise UnsupportedError(f"SymPy has no operation for {op}")


def _flat(kind: type[Formula], args: Sequence[Formula]) -> Iterable[Formula]:
    for arg in args:
        yield from arg.args if isinstance(arg, kind) else (arg,)


def _compared(node: Term, args: Sequence[Formula]) -> Formula:
    match node.args[0]:
        case Int():
            return _INTEGERS[node.op](*args, evaluate=False)
        case Bool():
            return sympy.Equivalent(*args)
        case Enum():
            return Is(*args)
        case _:
            return _FLOATS[node.op](*args)


def _either(test: Formula, one: Formula, two: Formula) -> Formula:
    return sympy.Or(sympy.And(test, one), sympy.And(sympy.Not(test), two))


def _cases(test: Formula, one: Formula, two: Formula) -> Formula:
    """`Piecewise` as written: its own constructor unfolds cases within cases, without end."""
    if test in (sympy.true, sympy.false):
        return one if test else two
    rest = two.args if isinstance(two, sympy.Piecewise) else [_pair(two, sympy.true)]
    return sympy.Basic.__new__(sympy.Piecewise, _pair(one, test), *rest)


def _pair(one: Formula, test: Formula) -> Formula:
    return sympy.Tuple.__new__(ExprCondPair, one, test)


def factored(formula: Formula) -> Formula:
    """Common factors in front, where there are no cases."""
    opaque = (sympy.Piecewise, AppliedUndef)
    is_plain = isinstance(formula, sympy.Expr) and not formula.has(*opaque)
    return sympy.factor_terms(formula) if is_plain else formula


def from_python(value: Value) -> Formula:
    """The interpreter's value as an expression."""
    return Str(value) if isinstance(value, str) else sympy.sympify(value)


def to_python(value: Formula) -> Value:
    """A constant expression as the interpreter's value."""
    match value:
        case Str():
            return str(value.name)
        case sympy.Integer():
            return int(value)
        case sympy.true | sympy.false:
            return bool(value)
    raise UnsupportedError(f"SymPy did not reduce {value} to a constant")


def evaluated(
    node: Formula, values: Mapping[str, Formula], done: dict[Formula, Formula]
) -> Formula:
    """The expression's value, without a look at cases that do not apply."""
    if node not in done:
        done[node] = _evaluated(node, values, done)
    return done[node]


def _evaluated(
    node: Formula, values: Mapping[str, Formula], done: dict[Formula, Formula]
) -> Formula:
    match node:
        case AppliedUndef() | FloatEq() | FloatLt() | FloatLe():
            raise UnsupportedError(f"SymPy cannot evaluate {node.func.__name__}")
        case sympy.Symbol():
            if node.name not in values:
                raise UnsupportedError(f"SymPy has no value for {node.name}")
            return values[node.name]
        case sympy.Piecewise():
            chosen = (one for one, test in node.args if evaluated(test, values, done) == sympy.true)
            return evaluated(next(chosen), values, done)
        case _ if not node.args:
            return node
    args = [evaluated(arg, values, done) for arg in node.args]
    if isinstance(node, Is):
        return sympy.true if args[0] == args[1] else sympy.false
    return node.func(*args)
