"""Intervals contain every value, decide only what is true, and are tight on one operation."""

import itertools
import math
import operator

import pytest
from differential.strategies import INTS, SYMBOLS, states, terms
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.checkers.readings.intervals import Interval, intervals, prune
from routeproof.spec.interpret import compile_terms, evaluate
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Int,
    IntDomain,
    Op,
    align_up,
    all_of,
    ceil_div,
    first,
    ite,
    maximum,
    minimum,
    symbol_bool,
    symbol_int,
    topological,
)

a, b = symbol_int("a"), symbol_int("b")
p = symbol_bool("p")
ends = st.integers(-7, 7)
ranges = st.tuples(ends, ends).map(sorted)
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floor_div": operator.floordiv,
    "mod": operator.mod,
    "ceil_div": ceil_div,
    "align_up": align_up,
    "min": minimum,
    "max": maximum,
}
EXACT = {"add", "sub", "mul", "min", "max", "floor_div", "ceil_div"}


def span(term, **box):
    """Return the ends of a term's range over a box of pairs."""
    found = intervals([term], {name: Interval(*pair) for name, pair in box.items()})[term]
    return found.lo, found.hi


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=150)
@given(ranges, ranges)
def test_one_operation(name, one, two):
    """Every value over the box lies inside; where nothing is lost, the ends are attained."""
    term = BINARY[name](a, b)
    run = compile_terms([term])
    box = itertools.product(range(one[0], one[1] + 1), range(two[0], two[1] + 1))
    found = [run({"a": x, "b": y})[0] for x, y in box]
    lo, hi = span(term, a=one, b=two)
    assert lo <= min(found)
    assert hi >= max(found)
    if name in EXACT:
        assert (lo, hi) == (min(found), max(found))


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=150)
@given(ranges, ranges, st.sampled_from(["lo", "hi", "both"]), st.sampled_from("ab"))
def test_one_operation_without_an_end(name, one, two, end, which):
    """A range with an end taken away still contains what the range did, and what lies beyond."""
    term = BINARY[name](a, b)
    box = {"a": list(one), "b": list(two)}
    low, high = box[which]
    box[which] = [None if end != "hi" else low, None if end != "lo" else high]
    wide = Interval(*span(term, **box))
    beyond = range(low - 40 * (end != "hi"), high + 40 * (end != "lo") + 1)
    other = {"a": two, "b": one}[which]
    run = compile_terms([term])
    for x, y in itertools.product(beyond, range(other[0], other[1] + 1)):
        state = {"a": x, "b": y} if which == "a" else {"a": y, "b": x}
        assert run(state)[0] in wide


@settings(max_examples=300)
@given(terms(), st.lists(states(), min_size=1, max_size=5))
def test_terms(term, some):
    """On the box that some states span, every closed node stays inside its range."""
    names = [symbol.name for symbol in INTS]
    box = {n: Interval(min(s[n] for s in some), max(s[n] for s in some)) for n in names}
    found = intervals([term], box)
    nodes = [node for node in topological((term,)) if isinstance(node, Int) and not node.bound]
    for state in some:
        for node, value in zip(nodes, compile_terms(nodes)(state), strict=True):
            assert value in found[node]


def test_domains_are_the_default_box():
    """Symbols not in the box have their declared range, rounded inwards to multiples."""
    n = symbol_int("n", IntDomain(-3, 21, 8))
    assert span(n) == (0, 16)
    assert span(n, n=(-5, 99)) == (-5, 99)
    assert span(a) == (None, None)
    assert Interval.of(IntDomain(None, 21, 8)) == Interval(None, 16)


def test_huge_ends_are_exact():
    """No end is rounded through a float."""
    assert span(a * b + 1, a=(2**500, 2**600), b=(1, 2**700)) == (2**500 + 1, 2**1300 + 1)
    assert span(a + b, a=(10**400, None), b=(1, 1)) == (10**400 + 1, None)


def test_an_open_end_costs_no_more_than_it_must():
    """Zero times anything is zero, and a quotient tends to 0 from its own side."""
    assert span(a * b, a=(0, 5), b=(0, None)) == (0, None)
    assert span(a // b, a=(-7, -3), b=(2, None)) == (-4, -1)
    assert span(ceil_div(a, b), a=(3, 7), b=(2, None)) == (1, 4)
    assert span(a // b, a=(0, None), b=(1, None)) == (0, None)


def test_machine_wrapping_is_bounded():
    """A remainder is below its divisor, and is the value itself if that is below already."""
    assert span(a % 2**64) == (0, 2**64 - 1)
    assert span(a % 2**64, a=(3, 5)) == (3, 5)
    assert span(a % -8) == (-7, 0)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [((0, 3), (-2, 3)), ((0, 99), (-2, 7)), ((-5, 0), (-2, -2)), ((None, None), (-2, 7))],
)
def test_searches(limit, expected):
    """A candidate, at most the limit and the cap, or the alternative."""
    term = first("c", a, lambda c: c > b, otherwise=-2, at_most=7)
    assert span(term, a=limit) == expected
    (variable,) = (node for node in topological((term,)) if node.bound and node.op == "bound")
    assert intervals([term])[variable] == Interval(1, 7)


def test_choices_join():
    """A choice ranges over both of its sides."""
    assert span(ite(p, a, b), a=(1, 2), b=(5, 9)) == (1, 9)


def test_an_empty_box_is_no_error():
    """A contradictory box has no states, so any range will do."""
    for function in BINARY.values():
        span(function(a, b), a=(1, 2), b=(1, -1))


@settings(max_examples=300)
@given(terms(), st.lists(states(), min_size=1, max_size=5))
def test_pruning_keeps_every_value(term, some):
    """On the box of some states the pruned term is equal, and not larger."""
    names = [symbol.name for symbol in INTS]
    box = {n: Interval(min(s[n] for s in some), max(s[n] for s in some)) for n in names}
    (short,) = prune([term], box)
    assert len(topological((short,))) <= len(topological((term,)))
    for state in some:
        assert repr(evaluate(short, state)) == repr(evaluate(term, state))


@settings(max_examples=300)
@given(ranges, ranges)
def test_pruning_one_operation(one, two):
    """It decides a comparison exactly when all states of the box agree."""
    box = {"a": Interval(*one), "b": Interval(*two)}
    states = [
        {"a": x, "b": y} for x in range(one[0], one[1] + 1) for y in range(two[0], two[1] + 1)
    ]
    for term in (a < b, a <= b, a == b, minimum(a, b), maximum(a, b), a % b):
        (short,) = prune([term], box)
        found = [evaluate(term, state) for state in states]
        assert [evaluate(short, state) for state in states] == found
        if term.sort_name == "bool":
            assert (short.op is Op.CONST) == (len(set(found)) == 1)


def test_pruning_decides():
    """Comparisons, minima, choices, remainders and single values go."""
    box = {"a": Interval(1, 5), "b": Interval(7, 9)}
    terms = [a < b, b <= a, a == b, minimum(a, b), maximum(a, b), a % b, ite(a > 0, a, b)]
    assert prune(terms, box) == (TRUE, FALSE, FALSE, a, b, a, a)
    assert prune([a * b + 1], {"a": Interval(2, 2), "b": Interval(3, 3)})[0].value == 7


def test_pruning_takes_conditions_as_given():
    """Each conjunct is true, and what a conjunct negates is false."""
    q = symbol_bool("q")
    given_condition = all_of(p, ~q, a > b)
    terms = [ite(p, a, b), ite(q, a, b), ite(a > b, a, b), ite(~p | q, a, b)]
    assert prune(terms, given=[given_condition]) == (a, b, a, b)


def test_pruning_keeps_a_search_with_one_candidate():
    """The variable of a search stays a variable, even if it has one value only."""
    term = first("c", a, lambda c: c + b > 3, otherwise=0, at_most=1)
    (short,) = prune([term])
    assert evaluate(short, {"a": 1, "b": 3}) == 1
    assert {symbol.sort_name for symbol in SYMBOLS} == {"int", "bool", "enum", "float"}
    assert math.inf not in intervals([term]).values()
