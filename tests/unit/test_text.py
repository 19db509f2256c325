"""Terms as text: what people read in tables and messages."""

import pytest

from routeproof.spec.terms import (
    EnumSort,
    IntDomain,
    align_up,
    all_of,
    any_of,
    float32,
    float64,
    ite,
    show_range,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
)
from routeproof.spec.text import closest, render

X, Y = symbol_int("x"), symbol_int("y")
FLAG = symbol_bool("flag")
KIND = symbol_enum("kind", EnumSort("kind", ("a", "b", "c")))


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (X + Y * 2, "x + y*2"),
        ((X + Y) * 2, "(x + y)*2"),
        (X * (Y // 8), "x*(y // 8)"),
        (X - (Y - 1), "x - (y - 1)"),
        (align_up(X, 256), "align_up(x, 256)"),
        (X <= 3, "x <= 3"),
        (X > 3, "x > 3"),
        (X >= 3, "x >= 3"),
        (~(X <= 3), "x > 3"),
        (~(X > 3), "x <= 3"),
        (KIND != "b", "kind != b"),
        (~FLAG, "not flag"),
        (all_of(FLAG, any_of(X == 1, X == 2)), "flag and (x == 1 or x == 2)"),
        (ite(FLAG, X, 0), "x if flag else 0"),
    ],
)
def test_infix_text(term, text):
    """Parentheses only where they are needed, comparisons with the constant on the right."""
    assert render(term) == text


def test_float_constants_are_the_shortest_that_mean_the_same():
    """A float32 carries its suffix and no digits that its width does not hold."""
    assert render(float32(0.8)) == "0.8f"
    assert render(float64(0.85)) == "0.85"
    assert render(symbol_float("cap", 32) == float32(0.0)) == "cap == 0f"


def test_comparisons_of_floats_are_not_turned_round():
    """`not a <= b` differs from `a > b` where one is NaN."""
    one, two = symbol_float("a", 32), symbol_float("b", 32)
    assert render(~(one <= two)) == "not a <= b"


def test_deeply_shared_terms_are_cut():
    """Text of a term that doubles a hundred times ends in dots instead of never."""
    term = X
    for _ in range(100):
        term = term + term
    assert render(term).endswith("...")


@pytest.mark.parametrize(
    ("lo", "hi", "text"),
    [
        (1, 2**31 - 1, "1..2^31-1"),
        (-(2**63), 2**63 - 1, "-2^63..2^63-1"),
        (0, 2**64 - 1, "0..2^64-1"),
        (None, 2**40, "-oo..2^40"),
        (8, None, "8..oo"),
    ],
)
def test_ranges_name_machine_limits(lo, hi, text):
    """Limits of machine types are powers of two, everything else digits."""
    assert show_range(lo, hi) == text
    assert str(IntDomain(lo, hi)) == text


def test_an_unknown_name_brings_the_closest_one_or_all():
    """In any case of letters."""
    assert closest("UNFUSD", ["flash", "unfused"]) == "; did you mean 'unfused'?"
    assert closest("zzz", ["b", "a"]) == "; known: a, b"
