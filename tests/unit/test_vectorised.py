"""The NumPy reading: columns in, columns out; no overflow, no promotion, no guess about input."""

import itertools

import numpy as np
import pytest

from routeproof.checkers.readings.vectorised import columns, compile_numpy, values
from routeproof.spec.errors import InputError, ModelError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.terms import (
    EnumSort,
    IntDomain,
    align_up,
    ceil_div,
    first,
    float32,
    float64,
    greatest,
    integer,
    ite,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    to_float,
    widen,
    wrap_unsigned,
)

a, b, n = (symbol_int(name) for name in "abn")
p = symbol_bool("p")
x, y = symbol_float("x", 32), symbol_float("y", 64)
MODE = EnumSort("mode", ("off", "slow", "fast"))
mode = symbol_enum("mode", MODE)


def run(term, **given):
    """Return the one column of a term."""
    (column,) = compile_numpy([term])(given)
    return column


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8", object])
def test_any_integer_dtype_comes_in(dtype):
    """What goes in is a mathematical integer; what fits int64 comes out as int64."""
    column = run(a * 3 - 100, a=np.array([1, 2, 127], dtype=dtype))
    assert column.dtype == np.int64
    assert column.tolist() == [-97, -94, 281]


def test_a_product_that_could_overflow_is_exact():
    """The range of the inputs decides; then the elements are Python integers."""
    column = run(a * a, a=np.array([3, 2**32]))
    assert column.dtype == object
    assert column.tolist() == [9, 2**64]
    assert run(a * a, a=np.array([3, 2**31])).dtype == np.int64


def test_only_the_nodes_that_need_it_are_wide():
    """An exact intermediate returns to int64 as soon as the result fits."""
    column = run(a * a // 2**40 + b, a=np.array([2**40, 3]), b=np.array([1, 1]))
    assert column.dtype == np.int64
    assert column.tolist() == [2**40 + 1, 1]


def test_unsigned_columns_keep_their_values():
    """A uint64 beyond int64 is neither negative nor a float."""
    column = run(a + 1, a=np.array([2**64 - 1, 0], dtype=np.uint64))
    assert column.tolist() == [2**64, 1]


def test_elements_of_object_columns_become_python_integers():
    """NumPy scalars hidden in an object array cannot overflow later."""
    hidden = np.array([np.int64(2**62), np.int64(1)], dtype=object)
    assert run(a * 8, a=hidden).tolist() == [2**65, 8]


def test_wrapping_is_exact():
    """Modular arithmetic is on the exact value, not NumPy's own wrapping."""
    assert run(wrap_unsigned(a * b, 64), a=np.array([2**33]), b=np.array([2**33 + 1])).tolist() == [
        2**33
    ]


LOWEST, LARGEST = -(2**63), 2**63 - 1
DIVISIONS = {
    "floor_div": a // b,
    "ceil_div": ceil_div(a, b),
    "mod": a % b,
    "align_up": align_up(a, b),
}


@pytest.mark.parametrize("term", DIVISIONS.values(), ids=DIVISIONS)
def test_division_at_the_ends_of_int64(term):
    """Zero divisors, negative ones and the lowest int64 are as in the interpreter."""
    values_given = (LOWEST, LOWEST + 1, -7, 0, 7, LARGEST)
    pairs = list(itertools.product(values_given, (-(2**62), -1, 0, 1, 2, 5, LARGEST)))
    expected = [compile_terms([term])({"a": one, "b": two})[0] for one, two in pairs]
    one, two = np.array(pairs).T
    assert run(term, a=one, b=two).tolist() == expected
    assert [run(term, a=one, b=two)[0] for one, two in pairs] == expected


@pytest.mark.parametrize("term", DIVISIONS.values(), ids=DIVISIONS)
def test_division_beyond_int64(term):
    """Exact integers are divided like small ones, also by zero."""
    pairs = list(itertools.product((2**70, -(2**70), 5), (0, 3, -3, 2**65)))
    expected = [compile_terms([term])({"a": one, "b": two})[0] for one, two in pairs]
    one, two = np.array(pairs, dtype=object).T
    assert run(term, a=one, b=two).tolist() == expected


def test_floats_stay_narrow():
    """A float32 column times a float32 constant is float32 arithmetic, not NumPy's guess."""
    column = run(x * float32(0.1), x=np.array([3.0], dtype=np.float32))
    assert column.dtype == np.float32
    assert column[0] == np.float32(3) * np.float32(0.1)
    wide = run(widen(x) * float64(0.1), x=np.array([3.0], dtype=np.float32))
    assert wide.dtype == np.float64
    assert wide[0] == 3.0 * 0.1


def test_integers_round_once_to_floats():
    """From int64 and from exact integers, without a double in between."""
    values_given = [2**24 + 1, 2**54 + 2**30 + 1]
    expected = [2.0**24, 2.0**54 + 2.0**31]
    assert run(to_float(a, 32), a=np.array(values_given)).tolist() == expected
    assert run(to_float(a, 32), a=np.array([*values_given, 2**70], dtype=object)).tolist() == [
        *expected,
        2.0**70,
    ]


def test_special_floats_raise_no_warning():
    """NaN, infinities and division by zero are values (warnings are errors in these tests)."""
    given = {"x": np.array([0.0, -0.0, np.nan, np.inf, 3e38], dtype=np.float32)}
    assert str(run(x / x, **given).tolist()) == "[nan, nan, nan, nan, 1.0]"
    assert str(run(float32(1.0) / x, **given).tolist()[:2]) == "[inf, -inf]"
    assert run(x * x, **given).tolist()[-1] == np.inf
    assert run(x == x, **given).tolist() == [True, True, False, True, True]  # noqa: PLR0124


def test_enums_are_indices():
    """Members go in and come out by their place in the sort."""
    chosen = ite(mode == "off", MODE["fast"], mode)
    column = run(chosen, mode=np.array([0, 1, 2]))
    assert column.tolist() == [2, 1, 2]
    assert values(chosen, column) == ["fast", "slow", "fast"]


def test_searches_stop_at_each_state_s_limit():
    """Limit, cap, hit and alternative are per state."""
    term = first("c", n, lambda c: c * c > b, otherwise=-1, at_most=5)
    given = {"n": np.array([-3, 0, 2, 5, 9, 9]), "b": np.array([0, 0, 4, 24, 24, 25])}
    assert run(term, **given).tolist() == [-1, -1, -1, 5, 5, -1]


def test_a_search_that_fits_no_int64():
    """The alternative may need exact integers, and the body too."""
    term = first("c", n, lambda c: c * a > 2**64, otherwise=a, at_most=5)
    found = run(term, n=np.array([5, 5, 0]), a=np.array([2**62, 1, 7]))
    assert found.tolist() == [5, 1, 7]


def test_greatest_per_state():
    """The running maximum over the candidates of each state."""
    term = greatest(
        "c",
        n,
        where=lambda c: c != b,
        value=lambda c: to_float(c, 32),
        start=float32(0.5),
        at_most=9,
    )
    given = {"n": np.array([0, 1, 3, 3]), "b": np.array([0, 1, 3, 2])}
    assert run(term, **given).tolist() == [0.5, 0.5, 2.0, 3.0]


def test_greatest_keeps_the_first_of_equals():
    """An equal value does not replace: -0.0 after 0.0 leaves 0.0."""
    term = greatest(
        "c", 3, where=lambda c: c > a, value=lambda _: float32(-0.0), start=float32(0.0), at_most=9
    )
    assert str(run(term, a=np.array([0]))) == "[0.]"


def test_scalars_hold_for_every_state():
    """Python numbers, NumPy scalars and arrays of length 1 broadcast."""
    column = run(ite(p, a + b, n), a=np.arange(3), b=5, n=np.int8(1), p=True)
    assert column.tolist() == [5, 6, 7]
    assert run(integer(4), a=np.arange(3)).tolist() == [4, 4, 4]
    assert run(a + 1, a=2**70).tolist() == [2**70 + 1]


def test_no_states_give_no_values():
    """Empty columns are allowed, whatever the term."""
    term = first("c", n, lambda c: c > a, otherwise=0, at_most=5)
    column = run(term, n=np.array([], dtype=np.int64), a=np.array([], dtype=np.int64))
    assert (column.dtype, column.shape) == (np.int64, (0,))


def test_many_states_run_in_blocks():
    """A sweep over several blocks gives each state its own value, in order."""
    many = np.arange(100_003)
    column = run(a * 2 + ite(p, 1, 0), a=many, p=many % 3 == 0)
    assert np.array_equal(column, many * 2 + (many % 3 == 0))


def test_results_belong_to_the_caller():
    """Results can be written to without changing the input or another result."""
    given = np.arange(3)
    one, two = compile_numpy([a, a])({"a": given})
    one[0] = 99
    assert given[0] == two[0] == 0


def test_one_compilation_serves_every_range():
    """The same object runs narrow and wide inputs, in any order."""
    compiled = compile_numpy([a * a])
    for value in (3, 2**40, 4, 2**50):
        assert compiled({"a": [value]})[0].tolist() == [value**2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": None}, "no column for 'a'"),
        ({"a": [1.0]}, "a: a column of int cannot be float64"),
        ({"a": [True]}, "a: a column of int cannot be bool"),
        ({"a": np.array([1.5], dtype=object)}, "a: 'float' object"),
        ({"a": [[1]]}, "columns need one length"),
        ({"a": [1, 2], "p": [True, False, True]}, "columns need one length"),
        ({"p": [1]}, "p: a column of bool cannot be int64"),
        ({"mode": [3]}, r"mode: a member index is not in 0\.\.2"),
        ({"mode": ["off"]}, "mode: a column of enum cannot be"),
        ({"x": [0.1]}, "x: some value is not a float32"),
        ({"x": [1]}, "x: a column of float cannot be int64"),
    ],
    ids=str,
)
def test_misfit_columns_are_refused(given, message):
    """The message names the column and what is wrong with it."""
    columns = {"a": [1], "p": [True], "mode": [0], "x": [0.5]} | given
    with pytest.raises(InputError, match=message):
        compile_numpy([a, p, mode, x])({n: one for n, one in columns.items() if one is not None})


def test_floats_that_fit_may_be_wider():
    """A float64 column is taken for a float32 symbol if every value is one, NaN included."""
    column = run(x, x=np.array([0.5, np.nan, -np.inf]))
    assert column.dtype == np.float32
    assert run(y, y=np.array([0.1], dtype=np.float32)).dtype == np.float64


def test_one_name_has_one_meaning():
    """Two symbols of one name are refused when compiled."""
    with pytest.raises(ModelError, match="declared twice"):
        compile_numpy([a, symbol_int("a", IntDomain(0))])


def test_states_become_columns():
    """The interpreter's states, turned into columns and back, are what they were."""
    states = [
        {"a": 2**70, "p": True, "mode": "fast", "x": 0.5, "y": 0.1},
        {"a": -1, "p": False, "mode": "off", "x": -0.0, "y": np.inf},
    ]
    terms = [a, p, mode, x, y]
    found = compile_numpy(terms)(columns(terms, states))
    back = [values(term, column) for term, column in zip(terms, found, strict=True)]
    names = [term.name for term in terms]
    assert [dict(zip(names, row, strict=True)) for row in zip(*back, strict=True)] == states


def test_misfit_states_are_refused():
    """A state without a symbol, or with a member that the sort has not."""
    with pytest.raises(InputError, match="no value for 'a'"):
        columns([a], [{"a": 1}, {}])
    with pytest.raises(InputError, match="mode: 'none' is not one of off, slow, fast"):
        columns([mode], [{"mode": "none"}])
