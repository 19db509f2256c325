"""SMT-LIB text: two solvers read it, and give every term the interpreter's value on every state."""

import itertools
import math
import struct

import pytest
from differential.strategies import states, terms
from hypothesis import given, settings

from routeproof.checkers.readings.smtlib import script, symbol_name
from routeproof.checkers.solver import Answer, Facts, Limits, UndecidedError, ask, second_opinion
from routeproof.checkers.unrolling import unroll
from routeproof.spec.errors import ModelError
from routeproof.spec.interpret import evaluate
from routeproof.spec.terms import (
    Bool,
    EnumSort,
    Float,
    IntDomain,
    align_up,
    all_of,
    ceil_div,
    ceiling,
    first,
    float32,
    float64,
    free_symbols,
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

QUICK = Limits(resources=2_000_000)
x, y = symbol_int("x", IntDomain(0, 10)), symbol_int("y", IntDomain(1, 10))
p = symbol_bool("p")
MODE = EnumSort("mode", ("off", "slow", "fast"))
mode = symbol_enum("mode", MODE)


def is_value(term, value):
    """Return the condition that a term has the value; NaN is a value, the sign of zero counts."""
    if isinstance(term, Float):
        constant = float32 if term.width == 32 else float64
        if math.isnan(value):
            return ~(term <= constant(math.inf))
        if value == 0:
            sign = constant(math.copysign(math.inf, value))
            return all_of(term == constant(0.0), constant(1.0) / term == sign)
        return term == constant(value)
    if isinstance(term, Bool):
        return term if value else ~term
    return term == value


def query(*conditions):
    """Return the script of some conditions, searches written out."""
    return script(unroll(conditions))


def both(*conditions, limits=QUICK):
    """Return what z3 and cvc5 say of the conditions together."""
    text = query(*conditions)
    return ask(text, free_symbols(*conditions), limits).status, second_opinion(text, limits)[0]


def test_integers_have_the_interpreters_value():
    """All of arithmetic over signs, zero divisors and the ends of the machine's types at once."""
    edges = (-(2**63), -7, -1, 0, 1, 3, 8, 2**31, 2**64)
    pinned, right = [], []
    for index, (one, two) in enumerate(itertools.product(edges, repeat=2)):
        a, b = symbol_int(f"a{index}"), symbol_int(f"b{index}")
        state = {a.name: one, b.name: two}
        pinned += [a == one, b == two]
        operations = (a + b, a - b, a * b, a // b, ceil_div(a, b), a % b, align_up(a, b))
        constant = (a // two, ceil_div(a, two), a % two, align_up(a, two), two - a)
        compared = (minimum(a, b), maximum(a, b), a == b, a < b, a <= b, ite(a < b, a, b))
        terms = (*operations, *constant, *compared)
        right += [is_value(term, evaluate(term, state)) for term in terms]
    assert both(*pinned, *right) == ("sat", "sat")
    assert both(*pinned, ~all_of(*right)) == ("unsat", "unsat")


_FLOATS = {
    32: (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.5, 2.0**-149, -(2.0**-149), 2.0**127),
    64: (math.nan, -math.inf, -0.0, 0.8, -3.0, 2.0**-1074, 1.7e308),
}


def bits_of(symbol, value):
    """Return an SMT-LIB assertion that a float symbol is the value, bit by bit."""
    short = symbol.width == 32
    digits = struct.pack(">f" if short else ">d", value).hex()
    sort = "8 24" if short else "11 53"
    return f"(assert (= {symbol_name(symbol)} ((_ to_fp {sort}) #x{digits})))"


def with_bits(text, bits):
    """Return the script with more assertions; a symbol that it does not declare stays free."""
    known = [one for one in bits if f"(declare-fun {one.split()[2]} " in text]
    return text.replace("(check-sat)", "\n".join([*known, "(check-sat)"]))


@pytest.mark.parametrize("width", [32, 64])
def test_floats_have_the_interpreters_value(width):
    """IEEE arithmetic, rounding and comparison: NaN, infinities, -0.0 and subnormals."""
    pinned, right = [], []
    for index, (one, two) in enumerate(itertools.product(_FLOATS[width], repeat=2)):
        a, b = symbol_float(f"a{index}", width), symbol_float(f"b{index}", width)
        state = {a.name: one, b.name: two}
        pinned += [bits_of(a, one), bits_of(b, two)]
        terms = (a * b, a / b, ceiling(a), widen(a), a == b, a < b, a <= b, ite(a < b, a, b))
        right += [is_value(term, evaluate(term, state)) for term in terms]
    for condition, answer in ((all_of(*right), "sat"), (~all_of(*right), "unsat")):
        text = with_bits(query(condition), pinned)
        assert ask(text, (), QUICK).status == answer
        assert second_opinion(text, QUICK)[0] == answer


@pytest.mark.parametrize("width", [32, 64])
def test_integers_become_floats_rounded_to_even(width):
    """Once, from the exact integer; beyond the largest float it is an infinity."""
    edges = (0, 1, 2**24 + 1, 2**24 + 3, 2**53 + 1, -(2**53) - 3, 2**63 - 1, 2**128, -(2**1024))
    for value in edges:
        wanted = evaluate(to_float(x, width), {"x": value})
        number = to_float(symbol_int("n"), width)
        given_value = symbol_int("n") == value
        assert both(given_value, is_value(number, wanted)) == ("sat", "sat")
        assert both(given_value, ~is_value(number, wanted)) == ("unsat", "unsat")


@settings(max_examples=120)
@given(terms(depth=3), states())
def test_terms_have_the_interpreters_value(term, state):
    """On a state, a term can have its value and no other."""
    symbols = free_symbols(term)
    values = [(symbol, state[symbol.name]) for symbol in symbols]
    bits = [bits_of(one, value) for one, value in values if isinstance(one, Float)]
    pinned = [is_value(one, value) for one, value in values if not isinstance(one, Float)]
    right = is_value(term, evaluate(term, state))
    for condition, answer in ((right, "sat"), (~right, "unsat")):
        text = with_bits(query(*pinned, condition), bits)
        assert ask(text, (), QUICK).status == answer
        assert second_opinion(text, QUICK)[0] == answer


@pytest.mark.parametrize(
    "name",
    [
        "and",
        "div",
        "true",
        "floor_div",
        "n0",
        "RNE",
        "fp.mul",
        "@0",
        ".x",
        "a b",
        "é",
        "_",
        '"',
    ],
)
def test_any_name_is_a_symbol_of_its_own(name):
    """A field called `div`, or like one of our own definitions, is neither."""
    number, flag = symbol_int(name, IntDomain(0, 4)), symbol_bool(f"{name}?")
    shared = (number + x) * (number + x)
    text = query(shared // y == 16, shared % 3 == 1, ite(flag, number, x) == 4, x == 0, y < 2)
    answer = ask(text, (number, flag, x, y), QUICK)
    assert answer.status == "sat"
    assert answer.model[number.name] == 4
    assert answer.model[flag.name] is True
    assert second_opinion(text, QUICK)[0] == "sat"


def test_the_text_is_as_long_as_the_term():
    """Whatever is nested in whatever: no argument is written twice."""
    deep = x
    for index in range(200):
        deep = align_up(minimum(maximum(deep, y), symbol_int(f"z{index % 3}")), y)
    text = script([deep == 1])
    assert len(text) < 50_000
    assert ask(text, (), QUICK).status in ("sat", "unknown")


@pytest.mark.parametrize("name", ["a|b", "a\\b", "x| () Int)(assert false)(declare-fun |y"])
def test_a_name_that_cannot_be_quoted_is_refused(name):
    """Rather than read as something else."""
    with pytest.raises(ModelError, match="no SMT-LIB text"):
        script([symbol_bool(name)])


def test_enums_of_one_name_stay_apart():
    """Two recipes may both have a status; their members differ, or are spelled alike."""
    one, two = EnumSort("status", ("ok", "overflow")), EnumSort("status", ("ok", "unavailable"))
    first_status, second_status = symbol_enum("one", one), symbol_enum("two", two)
    flag = symbol_bool("status:ok")
    conditions = [first_status != "ok", second_status != "ok", ~flag]
    answer = ask(query(*conditions), (first_status, second_status, flag), QUICK)
    assert answer.model == {"one": "overflow", "two": "unavailable", "status:ok": False}
    assert both(*conditions, first_status != "overflow") == ("unsat", "unsat")


def test_an_enum_may_have_the_name_that_tells_others_apart():
    """Two of one name, and a third called as the second would be."""
    sorts = [EnumSort("a", ("x", "y")), EnumSort("a", ("x", "y", "z")), EnumSort("a:1", ("x", "y"))]
    one, two, three = (symbol_enum(f"s{index}", sort) for index, sort in enumerate(sorts))
    conditions = [two == "x", three == "y"]
    assert both(*conditions, one == "x") == ("sat", "sat")
    assert both(*conditions, one != "x", one != "y") == ("unsat", "unsat")


def test_an_enum_may_have_the_name_of_a_sort():
    """`Int` is a type of the solver and a fine name for an enum."""
    kind = symbol_enum("kind", EnumSort("Int", ("wide", "narrow")))
    assert both(kind != "wide", x == 3) == ("sat", "sat")


def test_domains_are_part_of_the_query():
    """Bounds on either side, and multiples of a constant also below zero."""
    aligned = symbol_int("aligned", IntDomain(-8, None, 8))
    assert both(aligned < 0, aligned != -8) == ("unsat", "unsat")
    assert both(x > 10) == ("unsat", "unsat")
    assert both(symbol_int("free") < -(2**70)) == ("sat", "sat")


def test_a_search_has_to_be_written_out_first():
    """A search has no SMT-LIB text of its own."""
    with pytest.raises(ModelError, match="unroll"):
        script([first("c", x, lambda c: c * c > y, otherwise=0, at_most=3) == 1])


def test_comments_cannot_leave_their_line():
    """Whatever a comment contains, the assertions stay what they are."""
    text = script([p, ~p], ["harmless", "two\n(reset)\rlines\u2028more"])
    assert ask(text, (p,), QUICK).status == "unsat"
    assert second_opinion(text, QUICK)[0] == "unsat"


def test_shared_parts_are_written_once():
    """The text grows with the number of distinct nodes, not of occurrences."""
    total = x
    for _ in range(40):
        total = total * total + total
    assert len(query(total == 7)) < 4000


def model_of(*conditions):
    """Return the state in which z3 finds the conditions true."""
    answer = ask(query(*conditions), free_symbols(*conditions), Limits())
    assert isinstance(answer, Answer)
    assert answer.status == "sat"
    return answer.model


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, -(2.0**-149)])
def test_models_carry_every_float(width, value):
    """NaN, the infinities and the sign of zero come back as they were."""
    number, constant = symbol_float("number", width), float32 if width == 32 else float64
    exact = constant(value).value.number
    found = model_of(is_value(number, exact))["number"]
    assert (
        math.isnan(found)
        if math.isnan(value)
        else (found, math.copysign(1, found))
        == (
            exact,
            math.copysign(1, exact),
        )
    )


def test_models_carry_integers_booleans_and_members():
    """Of any size and sign."""
    big = symbol_int("big")
    model = model_of(big == -(2**200), p, mode == "fast", x > 9)
    assert model == {"big": -(2**200), "p": True, "mode": "fast", "x": 10}


def test_running_out_of_resources_is_unknown():
    """With the reason, and with what was spent."""
    a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
    hard = query(a * a * a + b * b * b == c * c * c)
    answer = ask(hard, (a, b, c), Limits(resources=1))
    assert (answer.status, answer.model) == ("unknown", {})
    assert answer.reason
    assert answer.resources > 0
    assert second_opinion(hard, Limits(seconds=0.05))[0] == "unknown"


@pytest.mark.parametrize("text", ["(assert", "(check-sat) nonsense", "(assert (= undeclared 1))"])
def test_text_that_a_solver_cannot_read_is_unknown(text):
    """Never an answer, never an exception."""
    assert ask(text, (), QUICK).status == "unknown"
    assert second_opinion(text, QUICK)[0] not in ("sat", "unsat")


def test_equal_queries_spend_equal_resources():
    """Resource units are the limit that repeats on every machine."""
    text = query(x * y > 7, x % 3 == y % 2)
    spent = {ask(text, (x, y), QUICK, seed=5).resources for _ in range(3)}
    assert len(spent) == 1


def facts(**conditions):
    """Return named conditions over `x` and `p`."""
    return Facts([x <= 9], conditions, QUICK)


def test_facts_answer_in_any_combination():
    """A value per condition, or the literals that contradict each other."""
    known = facts(small=x < 3, large=x > 5, flag=p)
    state = known.state(("small", True), ("flag", False))
    assert state == {"small": True, "large": False, "flag": False}
    contradiction = {("small", True), ("large", True)}
    assert known.conflict(("small", True), ("flag", True), ("large", True)) == contradiction
    assert known.state(*contradiction) is None
    assert known.conflict(("small", False), ("large", True)) is None


def test_facts_exclude_what_was_found():
    """Until nothing is left."""
    known = facts(small=x < 3, flag=p)
    found = []
    while answer := known.state():
        found.append(tuple(answer.values()))
        known.exclude(tuple(answer.items()))
    assert sorted(found) == sorted(itertools.product((False, True), repeat=2))


def test_facts_keep_their_names_apart_from_symbols():
    """A condition may be called what a symbol is called, and mean something else."""
    known = Facts([x <= 9], {"p": ~p, "x": x < 3}, QUICK)
    assert known.state(("p", True), ("x", True)) == {"p": True, "x": True}
    assert known.conflict(("p", True), ("x", True)) is None


def test_facts_that_cannot_be_settled_raise():
    """A table is not made of guesses."""
    a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
    hard = a * a * a + b * b * b == c * c * c
    with pytest.raises(UndecidedError):
        Facts([hard], {"f": p}, Limits(resources=1)).state(("f", True))
