"""Random typed terms over fixed symbols, and states that sit on the edges of the machine's types.

`terms()` draws a term of any sort, `states()` a value for each of `SYMBOLS`. A `Grammar` leaves out
what a reading cannot express.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from routeproof.spec.interpret import State, Value
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Enum,
    EnumSort,
    Float,
    Int,
    IntDomain,
    Term,
    Width,
    align_up,
    all_of,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    float64,
    greatest,
    integer,
    ite,
    maximum,
    minimum,
    substitute,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    to_float,
    widen,
    wrap_signed,
    wrap_unsigned,
)

KIND = EnumSort("kind", ("none", "int8", "fp8"))
INTS = (
    symbol_int("i64", IntDomain(-(2**63), 2**63 - 1)),
    symbol_int("j64", IntDomain(-(2**63), 2**63 - 1)),
    symbol_int("size", IntDomain(0, 2**64 - 1)),
    symbol_int("count", IntDomain(1, 2**31 - 1)),
    symbol_int("small", IntDomain(-8, 8)),
    symbol_int("aligned", IntDomain(-64, 2**20, 8)),
)
BOOLS = (symbol_bool("p"), symbol_bool("q"))
ENUMS = (symbol_enum("kind", KIND), symbol_enum("other_kind", KIND))
FLOATS32 = (symbol_float("x32", 32), symbol_float("y32", 32))
FLOATS64 = (symbol_float("x64", 64),)
SYMBOLS: tuple[Term, ...] = (*INTS, *BOOLS, *ENUMS, *FLOATS32, *FLOATS64)

_POWERS = [2**n + d for n in (6, 8, 24, 31, 32, 53, 63, 64, 128) for d in (-1, 0, 1)]
EDGES = sorted({sign * value for value in (0, 1, 2, 3, 7, 10, *_POWERS) for sign in (1, -1)})
_NUMBERS = (0.0, 0.5, 0.8, 0.85, 1.0, 1.5, 2.0**24 - 1, 2.0**24, 2.0**24 + 2, 2.0**53, 1e30)
_SPECIAL = {
    32: (2.0**-149, 2.0**-126, float(np.finfo(np.float32).max), float(np.float32(0.8) * 132)),
    64: (2.0**-1074, 2.0**-1022, float(np.finfo(np.float64).max), 0.8 * 132, 2.0**53 + 2),
}


_Scope = tuple[Int, ...]
_NAMES = st.sampled_from(("c", "d"))  # searches inside each other share names


@dataclass(frozen=True)
class Grammar:
    """What terms may contain."""

    floats: bool = True
    searches: bool = True


ALL = Grammar()
EXACT = Grammar(floats=False, searches=False)
WITHOUT_FLOATS = Grammar(floats=False)


@st.composite
def terms(draw: DrawFn, grammar: Grammar = ALL, depth: int = 4) -> Term:
    """A term of any sort that the grammar has, with operators nested to the depth."""
    writer = _Writer(draw, grammar)
    kinds = [writer.integer, writer.boolean, writer.enum]
    if grammar.floats:
        kinds += [partial(writer.float, 32), partial(writer.float, 64)]
    return draw(st.sampled_from(kinds))(draw(st.integers(1, depth)))


def states(symbols: Sequence[Term] = SYMBOLS) -> SearchStrategy[State]:
    """A value for each symbol, often an extreme one."""
    return st.fixed_dictionaries({symbol.name: values(symbol) for symbol in symbols})


def values(symbol: Term) -> SearchStrategy[Value]:
    """A value in the symbol's domain."""
    match symbol:
        case Int(domain=IntDomain() as domain):
            return _in_domain(domain)
        case Enum():
            return st.sampled_from(symbol.members.members)
        case Float():
            return numbers(symbol.width)
        case _:
            return st.booleans()


def numbers(width: Width) -> SearchStrategy[float]:
    """A float of the width: special ones, neighbours of thresholds, any."""
    exact = [float(np.float32(one)) if width == 32 else one for one in _NUMBERS]
    special = [*exact, *_SPECIAL[width], math.inf, math.nan]
    any_bits = st.binary(min_size=width // 8, max_size=width // 8)
    unpacked = any_bits.map(lambda bits: struct.unpack(">f" if width == 32 else ">d", bits)[0])
    return st.sampled_from([*special, *(-one for one in special)]) | unpacked


def _in_domain(domain: IntDomain) -> SearchStrategy[int]:
    step = domain.multiple_of
    lo, hi = -(-(domain.lo or 0) // step), (domain.hi or 0) // step
    edges = [edge for edge in EDGES if edge in domain]
    near = st.integers(max(lo, -20), min(hi, 20)) | st.integers(lo, hi)
    return st.sampled_from(edges) | near.map(lambda value: value * step)


_INTEGERS = st.integers(-9, 9) | st.sampled_from(EDGES)
_BITS = st.sampled_from((8, 32, 64))
_NUMBERS32, _NUMBERS64 = numbers(32), numbers(64)
_BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(ceil_div, align_up, minimum, maximum),
)
_RELATIONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


class _Writer:
    """Writes one term, top down; `scope` has the bound variables that may be used."""

    def __init__(self, draw: DrawFn, grammar: Grammar) -> None:
        self._draw = draw
        self._grammar = grammar

    def _pick(self, options: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(options))

    def integer(self, depth: int, scope: _Scope = ()) -> Int:
        """An integer term."""
        kinds = ["binary", "binary", "binary", "wrap", "choice"]
        kinds += ["first"] if self._grammar.searches else []
        match self._pick(kinds) if depth > 0 else self._pick(("symbol", "symbol", "constant")):
            case "symbol":
                return self._pick([*INTS, *scope, *scope])
            case "constant":
                return integer(self._draw(_INTEGERS))
            case "binary":
                return self._pick(_BINARY)(*self._two(self.integer, depth, scope))
            case "wrap":
                wrap = self._pick((wrap_signed, wrap_unsigned))
                return wrap(self.integer(depth - 1, scope), self._draw(_BITS))
            case "choice":
                test = self.boolean(depth - 1, scope)
                return ite(test, *self._two(self.integer, depth, scope))
        return self._first(depth - 1, scope)

    def boolean(self, depth: int, scope: _Scope = ()) -> Bool:
        """A condition."""
        kinds = ["relation", "relation", "and", "or", "not", "same", "choice", "member"]
        kinds += ["float relation"] if self._grammar.floats else []
        match self._pick(kinds) if depth > 0 else "symbol":
            case "symbol":
                return self._pick((*BOOLS, TRUE, FALSE))
            case "relation":
                return self._pick(_RELATIONS)(*self._two(self.integer, depth, scope))
            case "float relation":
                write = partial(self.float, self._pick((32, 64)))
                return self._pick(_RELATIONS)(*self._two(write, depth, scope))
            case "and":
                return all_of(self.boolean(0), *self._two(self.boolean, depth, scope))
            case "or":
                return any_of(self.boolean(0), *self._two(self.boolean, depth, scope))
            case "not":
                return ~self.boolean(depth - 1, scope)
            case "same":
                return operator.eq(*self._two(self.boolean, depth, scope))
            case "member":
                return operator.eq(*self._two(self.enum, depth, scope))
        test = self.boolean(depth - 1, scope)
        return ite(test, *self._two(self.boolean, depth, scope))

    def enum(self, depth: int, scope: _Scope = ()) -> Enum:
        """A term over `KIND`."""
        if depth <= 0 or not self._draw(st.booleans()):
            return self._pick((*ENUMS, *(KIND[member] for member in KIND.members)))
        return ite(self.boolean(depth - 1, scope), *self._two(self.enum, depth, scope))

    def float(self, width: Width, depth: int, scope: _Scope = ()) -> Float:
        """A float term of the width."""
        write = partial(self.float, width)
        kinds = ["multiply", "divide", "ceiling", "convert", "choice"]
        kinds += ["widen"] if width == 64 else []
        kinds += ["greatest"] if self._grammar.searches else []
        match self._pick(kinds) if depth > 0 else self._pick(("symbol", "constant")):
            case "symbol":
                return self._pick(FLOATS32 if width == 32 else FLOATS64)
            case "constant":
                short = width == 32
                return float32(self._draw(_NUMBERS32)) if short else float64(self._draw(_NUMBERS64))
            case "multiply":
                return operator.mul(*self._two(write, depth, scope))
            case "divide":
                return operator.truediv(*self._two(write, depth, scope))
            case "ceiling":
                return ceiling(write(depth - 1, scope))
            case "convert":
                return to_float(self.integer(depth - 1, scope), width)
            case "widen":
                return widen(self.float(32, depth - 1, scope))
            case "choice":
                return ite(self.boolean(depth - 1, scope), *self._two(write, depth, scope))
        return self._greatest(width, depth - 1, scope)

    def _two(self, write: Callable[..., Any], depth: int, scope: _Scope) -> tuple[Any, Any]:
        """Two operands; one of them may be shallow."""
        depths = self._pick(((1, 1), (1, depth), (depth, 1)))
        one, two = (write(depth - less, scope) for less in depths)
        return one, two

    def _first(self, depth: int, scope: _Scope) -> Int:
        return first(
            self._draw(_NAMES),
            self.integer(depth // 2, scope),
            lambda c: self.boolean(depth, (*scope, c)),
            otherwise=self.integer(0, scope),
            at_most=self._draw(st.integers(1, 6)),
        )

    def _greatest(self, width: Width, depth: int, scope: _Scope) -> Float:
        return greatest(
            self._draw(_NAMES),
            self.integer(depth // 2, scope),
            where=lambda c: self.boolean(depth, (*scope, c)),
            value=lambda c: self.float(width, depth, (*scope, c)),
            start=self.float(width, 0),
            at_most=self._draw(st.integers(1, 6)),
        )


@st.composite
def nested_searches(draw: DrawFn) -> tuple[Int, Callable[[int], int]]:
    """A term over `limit` of searches in searches, and the same as loops of Python.

    Names repeat; some searches are made over a symbol and put in place by substitution.
    """
    build, run = draw(_nested(3))
    return build(()), lambda limit: run(limit, ())


_Nested = tuple[Callable[[_Scope], Int], Callable[[int, tuple[int, ...]], int]]


@st.composite
def _nested(draw: DrawFn, depth: int) -> _Nested:
    name, at_most = draw(_NAMES), draw(st.integers(1, 3))
    factor, goal, looks = (
        draw(st.sampled_from((1, -1, 2))),
        draw(st.integers(0, 6)),
        draw(st.integers(1, 4)),
    )
    inner = draw(_nested(depth - 1)) if depth and draw(st.booleans()) else None
    moves = draw(st.booleans())
    limit, moved = symbol_int("limit"), symbol_int(f"moved {depth}")  # one per search

    def build(scope: _Scope) -> Int:
        def body(c: Int) -> Bool:
            total = sum((*scope, c)[-looks:], c * factor)
            if inner and moves:
                total += substitute((inner[0]((*scope, moved)),), {moved: c})[0]
            elif inner:
                total += inner[0]((*scope, c))
            return total >= goal

        return first(name, limit, body, otherwise=0, at_most=at_most)

    def run(limit: int, scope: tuple[int, ...]) -> int:
        for c in range(1, min(limit, at_most) + 1):
            total = sum((*scope, c)[-looks:], c * factor)
            if inner:
                total += inner[1](limit, (*scope, c))
            if total >= goal:
                return c
        return 0

    return build, run
