"""The SymPy reading: closed forms that people can read, and that mean what the term means."""

import subprocess
import sys

import pytest
import sympy

from routeproof.checkers.readings.intervals import Interval
from routeproof.checkers.readings.symbolic import (
    closed_form,
    evaluate,
    latex,
    pretty,
    to_sympy,
)
from routeproof.spec.errors import UnsupportedError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.terms import (
    EnumSort,
    IntDomain,
    align_up,
    all_of,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    greatest,
    ite,
    maximum,
    minimum,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    to_float,
)

a, b = symbol_int("a"), symbol_int("b")
n, m = symbol_int("n", IntDomain(1)), symbol_int("m", IntDomain(0))
p, q = symbol_bool("p"), symbol_bool("q")
x, y = symbol_float("x", 32), symbol_float("y", 32)
MODE = EnumSort("mode", ("off", "on"))
mode, other = symbol_enum("mode", MODE), symbol_enum("other", MODE)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (4 * n * (a + 1) + 8 * n * a, "4*n*(3*a + 1)"),
        (a - b * b - 3, "a - b**2 - 3"),
        (a // n, "⌊a/n⌋"),
        (ceil_div(a + 255, 256), "⌈(a + 255)/256⌉"),
        (align_up(a, n) * 3, "3*n*⌈a/n⌉"),
        (a % 7, "(a mod 7)"),
        (a // b, "{⌊a/b⌋ if b ≠ 0; else 0}"),
        (a % b, "{(a mod b) if b ≠ 0; else a}"),
        (minimum(a, b, 3), "min(3, a, b)"),
        (maximum(n, 0), "n"),
        (ite(a > 3, b, ite(p, 1, 2)), "{b if a > 3; 1 if p; else 2}"),
        (a // ite(p, 2, 3), "⌊a/{2 if p; else 3}⌋"),
        (~(a > 3) & (b != 2), "a ≤ 3 and b ≠ 2"),
        (any_of(p, all_of(q, a >= 1)), "p or q and a ≥ 1"),
        (p == q, "p ⇔ q"),
        (mode == "on", "mode = on"),
        (mode != other, "mode ≠ other"),
        (ite(p, MODE["on"], mode), "{on if p; else mode}"),
        (x <= float32(0.5), "x ≤ 0.5f"),
        (~(x < y), "not (x < y)"),
        (~(x == y), "x ≠ y"),
        (ceiling(to_float(a, 32) * x / y), "ceil32(div32(mul32(float32(a), x), y))"),
        (
            first("c", a, lambda c: c * c > b, otherwise=-1, at_most=9),
            "first(c in 1..min(a, 9): b < c**2; else -1)",
        ),
        (
            greatest(
                "c", 5, where=lambda c: c > a, value=lambda c: to_float(c, 32), start=x, at_most=9
            ),
            "greatest(c in 1..min(5, 9): a < c: float32(c); else x)",
        ),
    ],
    ids=str,
)
def test_one_line(term, text):
    """Short formulas are one line of mathematics."""
    assert pretty(term) == text


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (ceil_div(a + 255, 256), r"\left\lceil \frac{a + 255}{256} \right\rceil"),
        (symbol_int("batch_size") * n, r"\mathit{batch\_size} n"),
        (
            (mode == "on") & (p | (a > 2)),
            r"\mathit{mode} = \mathrm{on} \wedge \left(p \vee a > 2\right)",
        ),
        (~(x == float32(0.5)), r"x \neq \mathit{0.5f}"),
        (~(x < y), r"\neg \left(x < y\right)"),
        (ite(p, a // n, 0), None),
    ],
    ids=str,
)
def test_latex(term, text):
    """Names are words, members upright, roundings in brackets."""
    found = latex(term)
    assert found == text if text else r"\begin{cases}" in found and r"\lfloor" in found


def test_a_divisor_that_cannot_be_zero_needs_no_case():
    """The declared domain or the box rules it out."""
    assert not to_sympy(a // n).has(sympy.Piecewise)
    assert to_sympy(a // b).has(sympy.Piecewise)
    assert not to_sympy(a // b, {"b": Interval(None, -1)}).has(sympy.Piecewise)
    assert evaluate(to_sympy(a // (b - b)), {"a": 7, "b": 3}) == 0


def test_the_box_and_the_conditions_shorten():
    """What they decide is gone."""
    bytes_needed = ite((a > 0) & p, align_up(minimum(a, 4096) * n, 256), 0)
    assert pretty(bytes_needed, {"a": Interval(1, 100)}, [p]) == "256*⌈a*n/256⌉"


def test_symbols_know_their_sign():
    """From the domain, or from the box."""
    assert to_sympy(n).is_positive
    assert to_sympy(m).is_nonnegative
    assert to_sympy(a).is_positive is None
    assert to_sympy(a, {"a": Interval(None, -1)}).is_negative
    assert all(to_sympy(symbol).is_integer for symbol in (n, m, a))


def test_shared_and_long_parts_have_names():
    """Each name stands for a part, in terms of those before it; a taken name is left alone."""
    t1 = symbol_int("t1")
    shared = (a * b + n * m - 3) * (t1 + 5)
    form = closed_form(shared * shared + maximum(shared, a))
    assert list(form.parts) == ["t2"]
    assert str(form) == "t2**2 + max(a, t2)\nwhere\n  t2 = (t1 + 5)*(a*b + m*n - 3)"
    assert form.latex.startswith("\\begin{aligned}\n& t_{2}^{2}")
    assert r"t_{2} &= \left(t_{1} + 5\right)" in form.latex


def test_parts_evaluate_like_the_whole():
    """Naming changes no value."""
    term = a
    for step in range(40):
        term = ite(term % 3 == step % 3, term + b * step, maximum(term, b) - term // 2)
    form = closed_form(term)
    assert len(form.parts) > 10
    for state in ({"a": one, "b": two} for one in (-9, 0, 8) for two in (-2, 5)):
        assert evaluate(form, state) == compile_terms([term])(state)[0]


def test_work_is_linear_in_distinct_nodes():
    """A term that is 2**200 nodes as a tree has a closed form, but no single formula."""
    term = a
    for step in range(200):
        term = maximum(term * term, term + step)
    assert len(closed_form(term).parts) <= 201
    with pytest.raises(UnsupportedError, match="use closed_form") as error:
        to_sympy(term)
    assert error.value.code == "RP301"


@pytest.mark.parametrize(
    "term",
    [
        x < y,
        ~(x == y),
        ite(x <= y, a, b),
        to_float(a, 32),
        x,
        first("c", a, lambda c: c > b, otherwise=0, at_most=4),
    ],
    ids=str,
)
def test_opaque_parts_have_no_value(term):
    """Floats and searches can be shown, not computed: the interpreter is there for that."""
    with pytest.raises(UnsupportedError, match="SymPy"):
        evaluate(to_sympy(term), {"a": 1, "b": 2, "x": 0.5, "y": 0.5})


def test_nan_cannot_be_reasoned_away():
    """SymPy does not turn `not (x < y)` into `x >= y`, nor `x == x` into true."""
    assert to_sympy(~(x < y)) != to_sympy(y <= x)
    assert to_sympy(x == x) != sympy.true  # noqa: PLR0124 - what is under test


def test_a_case_that_does_not_apply_is_not_computed():
    """Division by zero in the other case does no harm."""
    term = ite(b == 0, 5, (a % b) * (a // b))
    assert evaluate(to_sympy(term), {"a": 7, "b": 0}) == 5


def test_a_bound_variable_is_not_the_symbol_of_that_name():
    """The variable of a search never equals a free symbol."""
    c = symbol_int("c", IntDomain(1, 4))
    formula = to_sympy(c + first("c", a, lambda d: d > b, otherwise=0, at_most=4))
    assert {symbol for symbol in formula.free_symbols if symbol.name == "c"} == {
        to_sympy(c),
        sympy.Dummy("c", dummy_index=0, integer=True, positive=True, nonnegative=True),
    }


def test_importing_does_not_load_sympy():
    """Only the first call pays for SymPy."""
    code = "import sys, routeproof.checkers.readings.symbolic; print('sympy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == "False"
