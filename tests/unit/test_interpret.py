"""The reference interpreter, against Python's own arithmetic and loops."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.spec.errors import InputError, ModelError
from routeproof.spec.interpret import compile_terms, evaluate
from routeproof.spec.terms import (
    TRUE,
    EnumSort,
    align_up,
    all_of,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    float64,
    greatest,
    ite,
    maximum,
    minimum,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    to_float,
    widen,
)

a, b, n = (symbol_int(name) for name in "abn")
p, q = symbol_bool("p"), symbol_bool("q")
MODE = EnumSort("mode", ("off", "on"))
mode = symbol_enum("mode", MODE)
numbers = st.integers(-(2**70), 2**70) | st.integers(-9, 9)


@given(numbers, numbers)
def test_integer_arithmetic(one, two):
    """Exact at any size, and total."""
    terms = [a + b, a - b, a * b, a // b, a % b, minimum(a, b), maximum(a, b)]
    quotient, rest = divmod(one, two) if two else (0, one)
    expected = [one + two, one - two, one * two, quotient, rest, min(one, two), max(one, two)]
    assert compile_terms(terms)({"a": one, "b": two}) == expected


@given(numbers, numbers)
def test_rounding_up(one, two):
    """The ceiling is the least integer not below the quotient; alignment is its multiple."""
    up, aligned = compile_terms([ceil_div(a, b), align_up(a, b)])({"a": one, "b": two})
    if two:
        assert (up - 1) * abs(two) < one * (1 if two > 0 else -1) <= up * abs(two)
    assert aligned == up * two


@given(st.booleans(), st.booleans(), st.integers(-3, 3))
def test_conditions(one, two, value):
    """Connectives, comparisons and choices are Python's."""
    terms = [p & q, p | q, ~p, p == q, ite(p, a, -a), all_of(p, q, a > 0), any_of(p, a < 0)]
    expected = [one and two, one or two, not one, one == two, value if one else -value]
    expected += [one and two and value > 0, one or value < 0]
    assert compile_terms(terms)({"p": one, "q": two, "a": value}) == expected


def test_enums_are_member_names():
    """Values of enum terms are strings, as in rows of data."""
    chosen = ite(mode == "on", MODE["off"], mode)
    assert compile_terms([mode, mode == "on", chosen])({"mode": "on"}) == ["on", True, "off"]


@given(st.integers(-2, 12), st.integers(-5, 150), st.integers(1, 8))
def test_first_is_a_loop(limit, bound, at_most):
    """The first candidate in 1..min(limit, at_most), or the alternative."""
    term = first("c", n, lambda c: c * c > b, otherwise=-7, at_most=at_most)
    hits = [c for c in range(1, min(limit, at_most) + 1) if c * c > bound]
    assert evaluate(term, {"n": limit, "b": bound}) == (hits[0] if hits else -7)


@given(st.integers(-2, 12), st.integers(0, 50))
def test_greatest_is_a_loop(limit, bound):
    """The running maximum over eligible candidates, compared with `>`."""
    term = greatest(
        "c",
        n,
        where=lambda c: c % 2 == 1,
        value=lambda c: to_float(b, 32) / to_float(c, 32),
        start=float32(3.0),
        at_most=9,
    )
    best = 3.0
    for c in range(1, min(limit, 9) + 1, 2):
        best = max(best, evaluate(to_float(b, 32) / to_float(n, 32), {"b": bound, "n": c}))
    assert evaluate(term, {"n": limit, "b": bound}) == best


def test_greatest_ignores_nan():
    """NaN is never greater, and a NaN to start with stays."""
    nan, x = float64(math.nan), symbol_float("x", 64)
    parts = {"where": lambda _: TRUE, "at_most": 3}
    skipped = greatest("c", 3, value=lambda _: nan, start=x, **parts)
    stuck = greatest("c", 3, value=lambda _: x, start=nan, **parts)
    assert evaluate(skipped, {"x": 1.5}) == 1.5
    assert math.isnan(evaluate(stuck, {"x": 1.5}))


@given(st.integers(0, 5), st.integers(0, 5))
def test_searches_nest(outer, inner):
    """An inner search sees the candidate of the outer one."""
    term = first(
        "c",
        a,
        lambda c: first("d", b, lambda d: c * d >= 6, otherwise=0, at_most=9) > 0,
        otherwise=0,
        at_most=9,
    )
    hits = [c for c in range(1, outer + 1) if any(c * d >= 6 for d in range(1, inner + 1))]
    assert evaluate(term, {"a": outer, "b": inner}) == (hits[0] if hits else 0)


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 30))
def test_searches_of_one_name_do_not_meet(outer, inner, bound):
    """A closed search in the body of another, with the same variable but another cap."""
    small = first("c", b, lambda c: c * c > n, otherwise=0, at_most=3)
    term = first("c", a, lambda c: c + n > small * 4, otherwise=-1, at_most=9)
    least = next((c for c in range(1, min(inner, 3) + 1) if c * c > bound), 0)
    expected = next((c for c in range(1, outer + 1) if c + bound > least * 4), -1)
    assert evaluate(term, {"a": outer, "b": inner, "n": bound}) == expected


def test_floats_have_their_width():
    """Each operation rounds to the width of its operands."""
    x = symbol_float("x", 32)
    narrow, wide = x * float32(0.1), widen(x) * float64(0.1)
    assert evaluate(narrow, {"x": 3.0}) == 0.30000001192092896
    assert evaluate(wide, {"x": 3.0}) == 3.0 * 0.1
    assert evaluate(ceiling(narrow), {"x": 3.0}) == 1.0


def test_roots_come_in_order():
    """One value per root, repeated roots included; a state may know more symbols."""
    assert compile_terms([b, a, b])({"a": 1, "b": 2, "other": 3}) == [2, 1, 2]
    assert compile_terms([])({}) == []


def test_a_missing_symbol_is_named():
    """A state without a needed symbol is the user's error."""
    with pytest.raises(InputError, match="no value for 'b'") as error:
        compile_terms([a + b])({"a": 1})
    assert str(error.value).endswith("[RP201]")


def test_an_escaped_variable_has_no_value():
    """A bound variable outside its search is refused when the term is compiled."""
    kept = []
    first("c", a, lambda c: kept.append(c) or TRUE, otherwise=0, at_most=4)
    with pytest.raises(ModelError, match="outside its search"):
        compile_terms([kept[0] + 1])


def test_a_compiled_term_keeps_nothing():
    """Calls do not influence each other."""
    run = compile_terms([first("c", n, lambda c: c * a > 6, otherwise=0, at_most=9) + b])
    calls = [{"n": 9, "a": 2, "b": 0}, {"n": 0, "a": 2, "b": 1}, {"n": 9, "a": 7, "b": 0}]
    assert [run(call) for call in calls] == [[4], [1], [1]]


def test_depth_and_sharing_are_no_limit():
    """Cost is linear in distinct nodes: no recursion, no tree."""
    deep = doubled = a
    for _ in range(20_000):
        deep = deep + b
    for _ in range(500):
        doubled = doubled + doubled
    assert compile_terms([deep, doubled])({"a": 1, "b": 1}) == [20_001, 2**500]
