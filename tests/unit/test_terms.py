"""Terms: typed, immutable, interned; constructors simplify without changing a value."""

import copy
import enum
import operator
import pickle

import pytest
from differential.strategies import ALL, SYMBOLS, nested_searches, states, terms
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.spec.errors import ModelError
from routeproof.spec.interpret import evaluate
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    EnumSort,
    Int,
    IntDomain,
    Op,
    Term,
    align_up,
    all_of,
    any_of,
    boolean,
    ceil_div,
    first,
    float32,
    float64,
    free_symbols,
    greatest,
    implies,
    integer,
    ite,
    maximum,
    minimum,
    rebuild,
    saturate,
    substitute,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    to_float,
    topological,
    widen,
    wrap_signed,
    wrap_unsigned,
)

a, b = symbol_int("a"), symbol_int("b")
p, q = symbol_bool("p"), symbol_bool("q")
x, y = symbol_float("x", 32), symbol_float("y", 64)
COLOUR = EnumSort("colour", ("red", "green"))
colour = symbol_enum("colour", COLOUR)


def bound_variable(name="c", at_most=4):
    """Return the variable of a search, taken out of it."""
    kept = []
    first(name, a, lambda c: kept.append(c) or TRUE, otherwise=0, at_most=at_most)
    return kept[0]


def search(name, body, at_most=4):
    """Return a search with few distractions."""
    return first(name, a, body, otherwise=0, at_most=at_most)


def test_equal_structure_is_the_same_object():
    """Terms are interned, whatever way they were made."""
    assert (a + 1) * b is (a + 1) * b
    assert all_of(p, all_of(q, p)) is p & q
    assert search("c", lambda c: c * c > b) is search("c", lambda c: c * c > b)


def test_different_payloads_are_different_objects():
    """Neither Python's True == 1 nor IEEE's 0.0 == -0.0 merges constants."""
    assert boolean(True) is not integer(1)
    assert float32(0.0) is not float32(-0.0)
    assert float32(0.5) is not float64(0.5)
    assert symbol_int("a", IntDomain(0, 1)) is not a


def test_an_int_enum_is_an_integer():
    """A constant that is an `IntEnum` member is the plain integer."""
    assert integer(enum.IntEnum("Level", ["LOW"]).LOW) is integer(1)


def test_nan_is_one_constant():
    """Bits, not IEEE equality, decide whether two constants are the same."""
    assert float32(float("nan")) is float32(float("nan"))


def test_terms_cannot_change():
    """Fields can be neither set nor deleted."""
    with pytest.raises(ModelError, match="immutable"):
        a.op = Op.CONST
    with pytest.raises(ModelError, match="immutable"):
        del a.op


@settings(max_examples=30)
@given(terms())
def test_copies_are_the_same_object(term):
    """Copying and pickling preserve identity."""
    assert copy.copy(term) is term
    assert copy.deepcopy(term) is term
    assert pickle.loads(pickle.dumps(term)) is term  # noqa: S301 - our own bytes


@pytest.mark.parametrize("term", [p, a == b, x <= x * x], ids=str)
def test_terms_have_no_truth_value(term):
    """`if`, `and`, `or`, `not` on a term are errors, so that no branch is lost in silence."""
    with pytest.raises(ModelError, match="truth value"):
        bool(term)


def test_terms_are_dictionary_keys():
    """Lookup never falls back to `==`, which would build a term."""
    table = {term: index for index, term in enumerate((a, b, p, x, colour, a == b))}
    assert [table[term] for term in (a == b, colour, p)] == [5, 4, 2]


def test_only_symbols_have_names():
    """Asking another node for its name is an error."""
    assert a.name == "a"
    with pytest.raises(ModelError, match="only symbols"):
        _ = (a + 1).name


MALFORMED = {
    "bool as int": lambda: a + True,
    "float as int": lambda: a + 1.0,
    "int against name": lambda: a == "red",
    "int against None": lambda: a == None,  # noqa: E711 - what is under test
    "int as bool": lambda: p & 1,
    "two widths": lambda: x < y,
    "two widths multiplied": lambda: x * float64(0.5),
    "Python float": lambda: x == 0.5,
    "unknown member": lambda: colour == "blue",
    "unknown constant": lambda: COLOUR["blue"],
    "two enums": lambda: colour == symbol_enum("hue", EnumSort("hue", ("red", "green"))),
    "choice of two sorts": lambda: ite(p, a, q),
    "choice of two widths": lambda: ite(p, x, y),
    "choice by a number": lambda: ite(a, a, b),
    "too large for float32": lambda: float32(1e39),
    "too large for float64": lambda: float64(10**400),
    "search for a number": lambda: search("c", lambda _: a),
    "search without candidates": lambda: search("c", lambda _: TRUE, at_most=0),
    "no multiple in the domain": lambda: IntDomain(1, 3, multiple_of=4),
    "ends the wrong way round": lambda: IntDomain(3, 1),
    "multiples of zero": lambda: IntDomain(multiple_of=0),
}


@pytest.mark.parametrize("build", MALFORMED.values(), ids=MALFORMED)
def test_sorts_never_mix(build):
    """A model that mixes sorts, widths or enums, or has an empty domain, is refused."""
    with pytest.raises(ModelError) as error:
        build()
    assert str(error.value).endswith("[RP101]")


@given(st.integers(-9, 9), st.integers(-9, 9))
def test_division_is_total(value, divisor):
    """By zero: x // 0 is 0, x % 0 is x; else Python's floor, and what follows from it."""
    quotient, rest = divmod(value, divisor) if divisor else (0, value)
    up = quotient + bool(rest) if divisor else 0
    assert integer(value) // divisor is integer(quotient)
    assert integer(value) % divisor is integer(rest)
    assert ceil_div(value, divisor) is integer(up)
    assert align_up(value, divisor) is integer(up * divisor)


BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(ceil_div, align_up, minimum, maximum),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
)


@pytest.mark.parametrize("function", BINARY)
@given(st.integers(-5, 5), st.integers(-5, 5))
def test_folding_changes_no_value(function, one, two):
    """Constants on either side, or on both, give what the interpreter computes of symbols."""
    state = {"a": one, "b": two}
    expected = evaluate(function(a, b), state)
    for left, right in ((integer(one), b), (a, integer(two)), (integer(one), integer(two))):
        assert evaluate(function(left, right), state) == expected


def test_python_numbers_stand_on_either_side():
    """Reflected operators put the constant where it was written."""
    state = {"a": 3}
    shown = [1 + a, 10 - a, 2 * a, 10 // a, 10 % a, -a]
    assert [evaluate(term, state) for term in shown] == [4, 7, 6, 3, 1, -3]


def test_units_vanish():
    """Neutral elements leave the other operand."""
    assert [a + 0, 0 + a, a - 0, a * 1, 1 * a, a // 1, ceil_div(a, 1), align_up(a, 1)] == [a] * 8
    assert a * 0 is integer(0)
    assert minimum(a, a) is a


def test_conditions_simplify():
    """Constants, repeats, double negation and contradictions vanish."""
    assert all_of() is TRUE
    assert any_of() is FALSE
    assert all_of(p, True, p) is p
    assert all_of(p, ~p) is FALSE
    assert any_of(p, q, ~p) is TRUE
    assert ~~p is p
    assert (p == TRUE) is p
    assert (p != TRUE) is ~p
    assert ite(p, TRUE, q) is p | q
    assert ite(p, q, FALSE) is p & q
    assert ite(~p, a, b) is ite(p, b, a)
    assert implies(p, p) is TRUE


def test_equality_to_itself_needs_no_solver():
    """True for integers, booleans and enums, but not for floats, which may be NaN."""
    assert (a == a) is TRUE  # noqa: PLR0124 - what is under test
    assert (a < a) is FALSE  # noqa: PLR0124
    assert (colour == colour) is TRUE  # noqa: PLR0124
    assert (x == x).op is Op.EQ  # noqa: PLR0124


def test_membership():
    """`is_in` is a disjunction of equalities, for integers and enums."""
    assert a.is_in(1, 2) is (a == 1) | (a == 2)
    assert colour.is_in("red") is (colour == "red")
    assert (COLOUR["red"] == "green") is FALSE


def test_a_constant_stands_on_the_right_of_an_equality():
    """Both ways of writing an equality are the same term."""
    assert (integer(3) == a) is (a == 3)
    assert (COLOUR["red"] == colour) is (colour == "red")


@given(st.integers(-(2**70), 2**70), st.sampled_from((8, 32, 64)))
def test_machine_wrapping(value, bits):
    """Wrapping is what the machine's registers do with the exact value."""
    raw = (value % 2**bits).to_bytes(bits // 8, "little")
    unsigned, signed = (int.from_bytes(raw, "little", signed=sign) for sign in (False, True))
    assert wrap_unsigned(integer(value), bits) is integer(unsigned)
    assert wrap_signed(integer(value), bits) is integer(signed)
    assert saturate(integer(value), 2**63 - 1) is integer(min(value, 2**63 - 1))


def test_widening_twice_is_widening_once():
    """A float64 is already wide."""
    assert widen(y) is y
    assert widen(x).width == 64


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 9))
def test_domains(lo, hi, step):
    """A domain holds the multiples between its ends, and rests on one of them."""
    members = [value for value in range(lo, hi + 1) if value % step == 0]
    if not members:
        with pytest.raises(ModelError, match="empty domain"):
            IntDomain(lo, hi, step)
        return
    domain = IntDomain(lo, hi, step)
    assert [value for value in range(-60, 60) if value in domain] == members
    assert domain.rest == members[0]
    assert str(domain).startswith(f"{lo}..{hi}")


@pytest.mark.parametrize(
    ("domain", "rest"),
    [
        (IntDomain(), 0),
        (IntDomain(-(2**63), 2**63 - 1), 0),
        (IntDomain(-(2**63), -5), -(2**63)),
        (IntDomain(None, -5, 4), -8),
        (IntDomain(3, None, 4), 4),
    ],
    ids=str,
)
def test_where_a_counterexample_rests(domain, rest):
    """The low end, or 0 where that is far below; always a member."""
    assert domain.rest == rest
    assert rest in domain


def test_topological_order():
    """Each node once, arguments before users, without recursion."""
    deep = a
    for _ in range(50_000):
        deep = deep + b
    order = topological((deep, b))
    place = {node: index for index, node in enumerate(order)}
    assert len(order) == 50_002
    assert all(place[arg] < place[node] for node in order for arg in node.args)


def test_free_symbols():
    """By order of appearance, each once; one name with two meanings is an error."""
    made = [symbol_int(f"made{index}") for index in range(3)]
    appearing = (made[2], made[0], made[1])
    assert all(map(operator.is_, free_symbols(made[2] * made[0], made[1] + made[2]), appearing))
    with pytest.raises(ModelError, match="declared twice"):
        free_symbols(a + symbol_int("a", IntDomain(0)))


def test_substitution_is_simultaneous():
    """Symbols can trade places, and the result is simplified."""
    assert substitute((a - 2 * b,), {a: b, b: a})[0] is b - 2 * a
    assert substitute((ite(a > 3, a, b),), {a: integer(2)})[0] is b


def test_substitution_replaces_outermost():
    """A key inside a replaced key is not looked at, nor is the replacement."""
    assert substitute(((a + b) * a,), {a + b: a, a: b})[0] is a * b


@settings(max_examples=150)
@given(terms(), terms(), st.data())
def test_substitution_is_evaluation(term, replacement, data):
    """A term in place of a symbol is the term evaluated where the symbol has its value."""
    state = data.draw(states())
    for symbol in free_symbols(term):
        if type(symbol) is type(replacement) and symbol.sort == replacement.sort:
            (changed,) = substitute((term,), {symbol: replacement})
            moved = {**state, symbol.name: evaluate(replacement, state)}
            assert repr(evaluate(changed, state)) == repr(evaluate(term, moved))


@settings(max_examples=100)
@given(terms())
def test_rebuilding_is_the_identity(term):
    """Each node made again of its own arguments is itself, also through the constructors."""
    for node in topological((term,)):
        assert rebuild(node, node.args) is node
    assert substitute((term,), {}) == (term,)


def test_a_name_may_be_used_again_inside():
    """The inner variable of the same name is another variable."""
    nested = search("c", lambda c: search("c", lambda d: d * d > c + b) == 3)
    assert repr(nested) == (
        "first(c_2 in 1..min(a, 4): first(c in 1..min(a, 4): c_2 + b < c*c; else 0) == 3; else 0)"
    )
    assert evaluate(nested, {"a": 4, "b": 0}) == 4


def test_searches_side_by_side_may_share_a_name():
    """A closed search is no obstacle to another one of the same name around it."""
    inner = search("c", lambda c: c * c > b)
    outer = search("c", lambda c: c > inner)
    assert not outer.bound
    assert [evaluate(outer, {"a": 9, "b": n}) for n in (0, 3, 8)] == [2, 3, 4]


ESCAPING = {
    "limit": lambda c: first("c", c, lambda d: d > 1, otherwise=0, at_most=4),
    "alternative": lambda c: first("c", a, lambda d: d > 1, otherwise=c, at_most=4),
    "limit of a maximum": lambda c: greatest(
        "c", c, where=lambda _: TRUE, value=lambda d: to_float(d, 32), start=x, at_most=4
    ),
    "body": lambda c: substitute((search("c", lambda d: d > b),), {b: c})[0],
    "substituted limit": lambda c: substitute((search("c", lambda d: d > 1),), {a: c})[0],
}


@pytest.mark.parametrize("build", ESCAPING.values(), ids=ESCAPING)
def test_nothing_is_captured(build):
    """A variable that escaped from its search does not enter another one of that name."""
    c = bound_variable()
    assert build(c).bound == {c}


def test_a_variable_escaped_into_a_reading_is_an_error():
    """Outside its search a variable has no value, and the message says its name."""
    with pytest.raises(ModelError, match="bound variable c outside"):
        evaluate(bound_variable() + 1, {})


def test_substituting_a_bound_variable_respects_its_search():
    """It is replaced where it is free, and left alone below the search that binds it."""
    closed = search("c", lambda d: d * d > b)
    c = closed.args[1]
    (done,) = substitute((closed + c,), {c: integer(3), b: a})
    assert done is search("c", lambda d: d * d > a) + 3
    (done,) = substitute((closed + ite(c * c > b, c, 0),), {c * c > b: TRUE})
    assert done is closed + c


@settings(max_examples=300)
@given(nested_searches(), st.integers(0, 4))
def test_nested_searches_are_nested_loops(nested, limit):
    """Names that repeat, and terms that are moved under a variable, change no value."""
    term, loops = nested
    assert evaluate(term, {"limit": limit}) == loops(limit)
    for node in topological((term,)):
        if node.op == "first":
            below = [inner for inner in topological(node.args[2:-1]) if inner.op == "first"]
            assert node.args[1].name not in {inner.args[1].name for inner in below}


def test_constructors_give_the_sort_they_say():
    """The class of a term is its sort."""
    assert isinstance(a + 1, Int)
    assert {type(symbol).sort_name for symbol in SYMBOLS} == {"int", "bool", "enum", "float"}
    assert isinstance(TRUE, Term)
    assert ALL.floats


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (a + 1 - b, "a + 1 - b"),
        (a - (b - 1), "a - (b - 1)"),
        ((a + 1) * b // 2, "(a + 1)*b // 2"),
        (~(a <= 3) & p | q, "a > 3 and p or q"),
        (~(x < x * x), "not x < x*x"),
        (a != 3, "a != 3"),
        (ite(p, a, 3) + 1, "(a if p else 3) + 1"),
        (x <= float32(0.5), "x <= 0.5f"),
        (align_up(a, 8), "align_up(a, 8)"),
        (colour == "red", "colour == red"),
    ],
    ids=str,
)
def test_text(term, text):
    """A term prints as one writes it, with no more parentheses than needed."""
    assert repr(term) == text
