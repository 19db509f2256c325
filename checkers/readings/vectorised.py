"""The NumPy reading: terms compiled once, then evaluated on columns of a million states at a time.

Nothing overflows and nothing is promoted in silence. The range of the input columns decides, per
node, between unchecked int64 and exact Python integers in an object array; floats keep their width,
because every value is an array with its own dtype (a NumPy scalar or a Python number never meets
one). The sweep runs in blocks that fit the cache; a value that is the same for all states is an
array of length 1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routeproof.spec import floats
from routeproof.spec.errors import InputError
from routeproof.spec.interpret import State, Value
from routeproof.spec.program import Program
from routeproof.spec.terms import (
    Bool,
    Enum,
    Float,
    FloatValue,
    Int,
    Op,
    Term,
    Width,
    free_symbols,
)

from .intervals import Interval, intervals

__all__ = ["Column", "Grid", "Vectorised", "columns", "compile_numpy", "spans", "values"]

Column = NDArray[Any]
_Box = tuple[tuple[str, Interval], ...]
_BLOCK = 1 << 14
_DType = np.dtype[Any]
_BOOL: _DType = np.dtype(np.bool_)
_CODE: _DType = np.dtype(np.int8)
_INT64: _DType = np.dtype(np.int64)
_EXACT: _DType = np.dtype(object)
_FLOAT: dict[int, _DType] = {32: np.dtype(np.float32), 64: np.dtype(np.float64)}


def compile_numpy(terms: Sequence[Term]) -> Vectorised:
    """A function from a column per symbol name to a column per term."""
    return Vectorised(terms)


class Vectorised:
    """Compiled terms.

    Columns are one-dimensional, or scalars that hold for every state: integers of any dtype (or
    objects that are Python integers), booleans, enum members as their index, floats that the
    symbol's width represents exactly. Results have one element per state; an integer column is
    int64 or, where its range does not fit, holds Python integers.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        """Note the symbols; code is compiled per range of the inputs, and kept."""
        self._terms = tuple(terms)
        self._symbols = free_symbols(*terms)
        self._program = lru_cache(maxsize=32)(self._compile)

    def __call__(self, columns: Mapping[str, ArrayLike]) -> list[Column]:
        """One column per term; a missing or misfit column is an `InputError`."""
        states = _length(columns)
        inputs = {symbol.name: _column(symbol, columns) for symbol in self._symbols}
        box = tuple((s.name, _span(inputs[s.name])) for s in self._symbols if isinstance(s, Int))
        program = self._program(box)
        with np.errstate(all="ignore"):
            blocks = [
                _block(program, inputs, slice(start, min(start + _BLOCK, states)))
                for start in range(0, max(states, 1), _BLOCK)
            ]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def _compile(self, box: _Box) -> Program[Column]:
        return Program(self._terms, _Columns(intervals(self._terms, dict(box))))


class Grid:
    """Compiled terms on the product of one axis of values per symbol.

    A part of a term is computed once per combination of the symbols that it mentions, not once per
    state. Axes are as the columns of `Vectorised`, each within those it was compiled for.
    """

    def __init__(self, terms: Sequence[Term], axes: Mapping[Term, Column]) -> None:
        """Compile for the ranges of the axes."""
        self._program = Program(tuple(terms), _Columns(intervals(terms, spans(axes))))

    def __call__(self, axes: Mapping[Term, Column]) -> list[Column]:
        """One flat column per term, the last axis moving fastest."""
        shape = tuple(len(axis) for axis in axes.values())
        opened = np.ix_(*map(np.arange, shape))
        inputs = {s: axis[at] for (s, axis), at in zip(axes.items(), opened, strict=True)}
        return [np.broadcast_to(one, shape or (1,)).ravel() for one in self.opened(inputs)]

    def opened(self, axes: Mapping[Term, Column]) -> list[Column]:
        """The same for axes that already have the shapes in which they meet, results unexpanded."""
        with np.errstate(all="ignore"):
            return self._program({one.name: axis for one, axis in axes.items()})


def spans(axes: Mapping[Term, Column]) -> dict[str, Interval]:
    """The range of every integer symbol's values."""
    return {one.name: _span(axis) for one, axis in axes.items() if isinstance(one, Int)}


def columns(terms: Sequence[Term], states: Sequence[State]) -> dict[str, Column]:
    """The interpreter's states as columns for the terms, one per symbol."""
    return {symbol.name: _gathered(symbol, states) for symbol in free_symbols(*terms)}


def values(term: Term, column: Column) -> list[Value]:
    """A result as the interpreter would give it: Python numbers, and enum members by name."""
    if isinstance(term, Enum):
        return [term.members.members[code] for code in column]
    return cast("list[Value]", column.tolist())


def _gathered(symbol: Term, states: Sequence[State]) -> Column:
    if any(symbol.name not in state for state in states):
        raise InputError(f"no value for {symbol.name!r} in some state")
    found = [state[symbol.name] for state in states]
    match symbol:
        case Int():
            return np.array(found, dtype=_EXACT)
        case Enum():
            return np.array([_code(symbol, str(one)) for one in found], dtype=_CODE)
        case Float():
            return np.array(found, dtype=_FLOAT[64])
        case _:
            return np.array(found, dtype=_BOOL)


def _code(symbol: Enum, member: str) -> int:
    members = symbol.members.members
    if member not in members:
        raise InputError(f"{symbol.name}: {member!r} is not one of {', '.join(members)}")
    return members.index(member)


def _length(columns: Mapping[str, ArrayLike]) -> int:
    try:
        (length,) = np.broadcast_shapes((1,), *map(np.shape, columns.values()))
    except ValueError as error:
        shapes = ", ".join(f"{name}: {np.shape(column)}" for name, column in columns.items())
        raise InputError(f"columns need one length, these have shapes {shapes}") from error
    return int(length)


def _block(program: Program[Column], inputs: Mapping[str, Column], part: slice) -> list[Column]:
    """The results on a slice of the states, each with one element per state."""
    short = {name: one if len(one) == 1 else one[part] for name, one in inputs.items()}
    return [np.broadcast_to(one, part.stop - part.start) for one in program(short)]


def _span(column: Column) -> Interval:
    return Interval(int(column.min()), int(column.max())) if column.size else Interval(0, 0)


def _fits(span: Interval) -> bool:
    return all(end is not None and -(2**63) <= end < 2**63 for end in (span.lo, span.hi))


def _column(symbol: Term, columns: Mapping[str, ArrayLike]) -> Column:
    """The column of a symbol, checked, in the dtype that the program expects."""
    if symbol.name not in columns:
        raise InputError(f"no column for {symbol.name!r}")
    given = np.atleast_1d(np.asarray(columns[symbol.name]))
    match symbol:
        case Int() if given.dtype.kind in "iuO":
            return _integers(symbol.name, given)
        case Bool() if given.dtype.kind == "b":
            return given
        case Enum() if given.dtype.kind in "iu":
            return _codes(symbol, given)
        case Float() if given.dtype.kind == "f":
            return _floats(symbol, given)
    raise InputError(f"{symbol.name}: a column of {symbol.sort_name} cannot be {given.dtype}")


def _integers(name: str, given: Column) -> Column:
    if given.dtype.kind == "O":
        try:
            given = _elementwise(lambda value: int(operator.index(value)))(given)
        except TypeError as error:
            raise InputError(f"{name}: {error}") from error
    return given.astype(_INT64 if _fits(_span(given)) else _EXACT, copy=False)


def _codes(symbol: Enum, given: Column) -> Column:
    count = len(symbol.members.members)
    if not ((given >= 0) & (given < count)).all():
        raise InputError(f"{symbol.name}: a member index is not in 0..{count - 1}")
    return given.astype(_CODE, copy=False)


def _floats(symbol: Float, given: Column) -> Column:
    with np.errstate(all="ignore"):
        rounded = given.astype(_FLOAT[symbol.width], copy=False)
    if not np.array_equal(rounded, given, equal_nan=True):
        raise InputError(f"{symbol.name}: some value is not a float{symbol.width}")
    return rounded


class _Columns:
    """The algebra of columns, for inputs within a box that gives every integer node its range."""

    def __init__(self, ranges: Mapping[Term, Interval]) -> None:
        self._ranges = ranges

    def constant(self, node: Term) -> Column:
        """The constant as an array of length 1."""
        raw = node.value.number if isinstance(node.value, FloatValue) else node.value
        if isinstance(node, Enum):
            raw = node.members.members.index(str(raw))
        return np.array([raw], self._dtype(node))

    def operation(self, node: Term) -> Callable[..., Column]:
        """One ufunc or two, unless some integer does not fit int64."""
        if node.op is Op.TO_FLOAT:
            return self._to_float(node)
        if not all(self._fits(one) for one in (node, *node.args)):
            return self._exact(node)
        if node.op is Op.WIDEN:
            return lambda value: value.astype(np.float64)
        if node.op in _AT_ZERO and 0 in self._ranges[node.args[1]]:
            return _AT_ZERO[node.op]
        return _PLAIN[node.op]

    def search(
        self, node: Term, limit: Column, fallback: Column, body: Callable[[Column], list[Column]]
    ) -> Column:
        """The loop over candidates, each tried on every state at once."""
        last = max(0, min(int(limit.max(initial=0)), cast("int", node.value)))
        # Counts of candidates, not integers of the model: bytes, where the memory read is the cost.
        narrow = np.min_scalar_type(last)
        within, dtype = limit.clip(0, last).astype(narrow), self._dtype(node.args[1])
        tried = ((np.array([c], narrow), body(np.array([c], dtype))) for c in range(1, last + 1))
        if node.op is Op.GREATEST:
            return _greatest(tried, within, fallback)
        found = _first(tried, within)
        return np.where(found > 0, found.astype(self._dtype(node)), fallback)

    def _fits(self, node: Term) -> bool:
        return not isinstance(node, Int) or _fits(self._ranges[node])

    def _dtype(self, node: Term) -> _DType:
        match node:
            case Int():
                return _INT64 if self._fits(node) else _EXACT
            case Enum():
                return _CODE
            case Float():
                return _FLOAT[node.width]
            case _:
                return _BOOL

    def _to_float(self, node: Term) -> Callable[..., Column]:
        dtype, width = self._dtype(node), cast("Width", node.sort)
        if self._fits(node.args[0]):
            return lambda value: value.astype(dtype)
        rounded = _elementwise(lambda value: floats.from_integer(value, width))
        return lambda value: rounded(value).astype(dtype)

    def _exact(self, node: Term) -> Callable[..., Column]:
        """The operation on Python integers; a result that fits is int64 again."""
        function, dtype = _PYTHON.get(node.op) or _PLAIN[node.op], self._dtype(node)
        kinds = [_EXACT if isinstance(arg, Int) else self._dtype(arg) for arg in node.args]

        def apply(*args: Column) -> Column:
            exact = (arg.astype(kind, copy=False) for arg, kind in zip(args, kinds, strict=True))
            return function(*exact).astype(dtype, copy=False)

        return apply


def _first(tried: Iterable[tuple[Column, list[Column]]], limit: Column) -> Column:
    """The first candidate within the limit whose body holds, 0 where there is none."""
    pending, found, least = limit > 0, np.zeros_like(limit), _least(limit)
    if not pending.any():
        return found
    for candidate, (holds,) in tried:
        hit = pending & holds
        if hit.any():
            found = _filled(found, candidate, hit)
            pending = pending > hit
        if candidate[0] >= least:
            pending = pending & (limit > candidate)
        if not pending.any():
            break
    return found


def _greatest(tried: Iterable[tuple[Column, list[Column]]], limit: Column, best: Column) -> Column:
    best, least = best.copy(), _least(limit)
    for candidate, (eligible, value) in tried:
        within = eligible & (limit >= candidate) if candidate[0] > least else eligible
        best = _filled(best, value, within & (value > best))
    return best


def _least(limit: Column) -> int:
    """The candidates up to here are within every limit, which need not be compared with them."""
    return int(limit.min()) if limit.size else 0


def _filled(column: Column, value: Column, where: Column) -> Column:
    """The column with the value at some places: written over, once it has the shape of all."""
    if column.shape != where.shape:
        return np.where(where, value, column)
    np.copyto(column, value, where=where)
    return column


def _elementwise(function: Callable[..., float]) -> Callable[..., Column]:
    """A function of Python numbers on object arrays."""
    count = function.__code__.co_argcount
    return cast("Callable[..., Column]", np.frompyfunc(function, count, 1))


def _ceil_div(value: Column, divisor: Column) -> Column:
    """Right even where a product wraps: both sides of `!=` differ by less than the divisor."""
    quotient = np.floor_divide(value, divisor)
    return cast("Column", quotient + (quotient * divisor != value))


def _align_up(value: Column, step: Column) -> Column:
    return _ceil_div(value, step) * step


# The arguments' dtypes decide what these compute; NumPy's x // 0 and x % 0 are 0 for integers.
_PLAIN: dict[Op, Callable[..., Column]] = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.FLOOR_DIV: np.floor_divide,
    Op.CEIL_DIV: _ceil_div,
    Op.MOD: np.remainder,
    Op.ALIGN_UP: _align_up,
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
_AT_ZERO: dict[Op, Callable[..., Column]] = {
    Op.CEIL_DIV: lambda one, two: _ceil_div(one, two) * (two != 0),
    Op.MOD: lambda one, two: np.remainder(one, two) + one * (two == 0),
}
_PYTHON: dict[Op, Callable[..., Column]] = {
    Op.FLOOR_DIV: _elementwise(lambda one, two: one // two if two else 0),
    Op.CEIL_DIV: _elementwise(lambda one, two: -(-one // two) if two else 0),
    Op.MOD: _elementwise(lambda one, two: one % two if two else one),
    Op.ALIGN_UP: _elementwise(lambda one, two: -(-one // two) * two if two else 0),
}
