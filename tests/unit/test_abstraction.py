"""The abstraction contains every state of the original, and the box every admitted one."""

import itertools
import math

from differential.strategies import EDGES, INTS, SYMBOLS, states
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness.claims import A, B, C, conditions, every_state

from routeproof.checkers.abstraction import abstract, box_of, unused_prefix
from routeproof.checkers.normalise import normalise, push_negations, specialise
from routeproof.checkers.readings.intervals import Interval
from routeproof.spec.interpret import compile_terms, evaluate
from routeproof.spec.terms import (
    Float,
    Int,
    IntDomain,
    Op,
    align_up,
    all_of,
    any_of,
    first,
    float32,
    greatest,
    maximum,
    symbol_bool,
    symbol_float,
    symbol_int,
    to_float,
    topological,
)

x, y = symbol_int("x", IntDomain(0, 10)), symbol_int("y", IntDomain(1, 10))
number, other = symbol_float("number", 32), symbol_float("other", 32)
_FACTORS = (*INTS, INTS[0] // INTS[3], INTS[2] % INTS[3], maximum(INTS[4], INTS[3]))
products = st.lists(st.sampled_from(_FACTORS), min_size=1, max_size=4).map(math.prod)
_ROOM = st.integers(0, 3) | st.sampled_from((2**31, None))


@st.composite
def states_in_boxes(draw):
    """Draw a state and a box that it lies in, some symbols boxed tightly and some not at all."""
    state, box = draw(states()), {}
    for symbol in draw(st.lists(st.sampled_from(INTS), unique_by=hash)):
        value, below, above = state[symbol.name], draw(_ROOM), draw(_ROOM)
        lo, hi = (
            below if below is None else value - below,
            above if above is None else value + above,
        )
        box[symbol.name] = Interval(lo, hi)
    return state, box


@settings(max_examples=400)
@given(conditions(), products, products, states_in_boxes(), st.booleans())
def test_every_state_in_the_box_is_a_state_of_the_abstraction(
    condition, one, two, state_and_box, is_normal
):
    """With each new symbol at the value it stands for, the root keeps its value; lemmas hold."""
    state, box = state_and_box
    root = any_of(condition, one <= two)
    root = normalise([root])[0] if is_normal else root
    abstraction = abstract([root], box)
    new = {fresh.name: evaluate(node, state) for fresh, node in abstraction.stands_for.items()}
    result, *lemmas = compile_terms([*abstraction.roots, *abstraction.lemmas])({**state, **new})
    assert result == evaluate(root, state)
    assert all(lemmas)
    integers = [fresh for fresh in abstraction.stands_for if isinstance(fresh, Int)]
    assert all(new[fresh.name] in fresh.domain for fresh in integers)


@settings(max_examples=100)
@given(conditions(), products)
def test_nothing_hard_is_left(condition, product):
    """No product of unknowns, no division by one, no search, no computed float."""
    abstraction = abstract([any_of(condition, product <= 7)], {})
    for node in topological((*abstraction.roots, *abstraction.lemmas)):
        assert node.op not in (Op.FIRST, Op.GREATEST, Op.BOUND)
        if node.op is Op.MUL:
            assert any(arg.op is Op.CONST for arg in node.args)
        elif node.op in (Op.FLOOR_DIV, Op.CEIL_DIV, Op.MOD, Op.ALIGN_UP):
            assert node.args[1].op is Op.CONST
        elif node.op in (Op.EQ, Op.LT, Op.LE) and isinstance(node.args[0], Float):
            assert all(arg.op in (Op.SYMBOL, Op.CONST) for arg in node.args)


def test_facts_hold_at_their_very_ends():
    """Of each kind of hard term, on every state of small symbols: signs, zeros, equal operands."""
    lists = [first("c", A + 1, lambda c: c >= B, otherwise=fall, at_most=4) for fall in (C, 0)]
    hard = [A * B, A * A * C, A * A, A // (B + 2), B // A, A % (B + 2), B % A, align_up(A, B)]
    for one, two in itertools.product((*hard, *lists), repeat=2):
        root = one * A <= two + B * C
        abstraction = abstract([root], box_of([root]))
        program = compile_terms([*abstraction.lemmas, abstraction.roots[0], root])
        meanings = compile_terms(tuple(abstraction.stands_for.values()))
        names = [fresh.name for fresh in abstraction.stands_for]
        for state in every_state(A, B, C):
            values = dict(zip(names, meanings(state), strict=True))
            *lemmas, result, expected = program({**state, **values})
            assert all(lemmas)
            assert result == expected


@given(conditions(), st.sampled_from(("@", "@0", "@@1")))
def test_new_symbols_are_new(condition, taken):
    """Also when the model already has names of that kind."""
    symbol = symbol_int(taken, IntDomain(0, 100))
    names = {one.name for one in SYMBOLS} | {taken}
    stands_for = abstract([condition, x * y == symbol], {}).stands_for
    assert stands_for
    assert not names & {fresh.name for fresh in stands_for}
    assert not taken.startswith(unused_prefix(symbol))


def test_what_stays_linear_stays_as_it_is():
    """Constants times unknowns, divisions by constants, floats compared as they come in."""
    root = all_of(3 * x <= y // 7, y % 4 == 1, number <= float32(1.0), number < other)
    assert abstract([root], {}).roots == (root,)


def test_equal_subterms_share_a_symbol():
    """Two bounds of one product are about one product."""
    abstraction = abstract([all_of(x * y <= 50, x * y >= 2)], {})
    ((fresh, node),) = abstraction.stands_for.items()
    assert node is x * y
    assert abstraction.roots == (all_of(fresh <= 50, fresh >= 2),)
    assert (fresh.domain.lo, fresh.domain.hi) == (0, 100)


def test_the_box_bounds_the_new_symbols():
    """A search yields a candidate or its fallback; a product the product of its factors' bounds."""
    found = first("c", x, lambda c: c * c > y, otherwise=0, at_most=4)
    (one, two) = abstract([x * y <= found], {"x": Interval(2, 3)}).stands_for
    assert {(s.domain.lo, s.domain.hi) for s in (one, two)} == {(2, 30), (0, 3)}


def test_a_comparison_of_computed_floats_is_one_free_condition():
    """Nothing is assumed of a float that is computed or searched for."""
    best = greatest(
        "c", x, where=lambda c: c < y, value=lambda c: to_float(c, 32), start=number, at_most=4
    )
    for compared in (best < number, to_float(x * y, 32) <= number, number * number == number):
        (root,) = abstract([compared], {}).roots
        assert root.op is Op.SYMBOL
        assert root.sort_name == "bool"


_BOUNDS = (
    lambda symbol, n: symbol <= n,
    lambda symbol, n: symbol < n,
    lambda symbol, n: symbol > n,
    lambda symbol, n: symbol >= n,
    lambda symbol, n: symbol == n,
    lambda symbol, n: symbol % n == 0,
    lambda symbol, n: symbol.is_in(n, n + 1),
)
bounds = st.builds(
    lambda write, symbol, n: write(symbol, n),
    st.sampled_from(_BOUNDS),
    st.sampled_from(INTS),
    st.sampled_from(EDGES),
)


@settings(max_examples=300)
@given(st.lists(bounds | conditions(), min_size=1, max_size=5), states())
def test_every_admitted_state_lies_in_the_box(stated, state):
    """Whichever way round the conditions are written, prepared or not."""
    true = [one if evaluate(one, state) else ~one for one in stated]
    whole = all_of(*true)
    prepared = specialise(push_negations(normalise([whole])[0]))
    for box in (box_of(true), box_of([whole]), box_of([prepared])):
        assert all(state[name] in interval for name, interval in box.items())


def test_bounds_of_every_kind_keep_exactly_what_they_admit():
    """Each relation with each constant, either way round and negated, on a small domain."""
    for n in range(-2, 13):
        for relation in (x <= n, x < n, x >= n, x > n, x == n, n - x <= 0 * x, x % 3 == 0):
            for condition in (relation, ~relation):
                admitted = [value for value in range(11) if evaluate(condition, {"x": value})]
                interval = box_of([condition]).get("x", Interval(0, 10))
                assert all(value in interval for value in admitted)


def test_the_box_reads_bounds_from_either_side():
    """Strict bounds are tightened by one, negated ones turned, multiples rounded inwards."""
    limits = all_of(x > 2, ~(x >= 9), y % 4 == 0, symbol_bool("p"))
    assert box_of([limits]) == {"x": Interval(3, 8), "y": Interval(4, 8)}
    assert box_of([x == 5]) == {"x": Interval(5, 5)}


def test_a_contradiction_is_left_to_the_solver():
    """A symbol without a value has no interval."""
    assert box_of([x < 3, x > 7, y <= 4]) == {"y": Interval(1, 4)}


def test_conditions_below_a_disjunction_bound_nothing():
    """Only what holds in every admitted state counts."""
    assert box_of([any_of(x <= 3, y <= 3)]) == {"x": Interval(0, 10), "y": Interval(1, 10)}
