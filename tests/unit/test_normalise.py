"""Normal form and its companions keep every value; equal polynomials become one term."""

import itertools
import math

import pytest
from differential.strategies import (
    BOOLS,
    ENUMS,
    INTS,
    WITHOUT_FLOATS,
    nested_searches,
    states,
    terms,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness.claims import conditions, same

from routeproof.checkers.normalise import normalise, push_negations, specialise, split
from routeproof.checkers.unrolling import unroll
from routeproof.spec.interpret import compile_terms
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    EnumSort,
    IntDomain,
    Op,
    align_up,
    all_of,
    any_of,
    ceil_div,
    first,
    float32,
    greatest,
    implies,
    integer,
    ite,
    minimum,
    symbol_bool,
    symbol_enum,
    symbol_int,
    to_float,
    topological,
)

x, y, z = (symbol_int(name) for name in "xyz")
p, q, r = (symbol_bool(name) for name in "pqr")
MODE = EnumSort("mode", ("off", "slow", "fast"))
mode, other = symbol_enum("mode", MODE), symbol_enum("other", MODE)
some_states = st.lists(states(), min_size=1, max_size=5)
factors = st.sampled_from((x, y, z, x // 3, minimum(x, y), ite(p, x, z))) | st.integers(-3, 3)


def normal(term):
    """Return one normal form."""
    return normalise([term])[0]


def agree(one, two, states):
    """Assert that two terms have one value on every state."""
    program = compile_terms([one, two])
    assert all(same(*program(state)) for state in states)


def ops(term):
    """Return the kinds of node below a term."""
    return {node.op for node in topological((term,))}


@settings(max_examples=250)
@given(terms(), some_states)
def test_normal_form_keeps_the_value(term, states):
    """On every state, with divisors of zero and values beyond every machine type."""
    agree(term, normal(term), states)


@settings(max_examples=60)
@given(st.lists(terms(depth=3), min_size=2, max_size=3), some_states)
def test_roots_are_normalised_together_and_stay_apart(roots, states):
    """The result has a root for each root, in order."""
    for root, result in zip(roots, normalise(roots), strict=True):
        agree(root, result, states)


@settings(max_examples=100)
@given(terms(WITHOUT_FLOATS))
def test_normal_form_of_the_same_roots_is_the_same(term):
    """Nothing but the roots decides the order of a sum."""
    assert normal(term) is normal(term)


@given(factors, factors, factors)
def test_a_product_of_sums_is_the_sum_of_products(one, two, three):
    """Factored and expanded polynomials are one term, whatever stands in for the unknowns."""
    one, two, three = map(integer, (one, two, three))
    factored, expanded = (one + two) * (three - one), one * three - one * one + two * three
    assert normal(factored == expanded - two * one) is TRUE
    assert len(set(normalise([factored, expanded - one * two]))) == 1


def test_terms_on_both_sides_of_a_comparison_cancel():
    """Only what differs is compared, with positive coefficients on either side."""
    assert normal(x + 2 * y + 3 <= 5 + y * 2) is normal(x <= 2)
    assert normal(x - y < z - y - 1) is normal(x + 1 < z)
    assert normal(3 - x == 3 - y) is normal(x == y)
    assert normal(x * y < y * x) is FALSE


def test_multiples_of_the_divisor_leave_the_rounding():
    """`(x + 512*y) // 256` is `x // 256 + 2*y`; so for rounding up and aligning."""
    assert normal((x + 512 * y) // 256 == x // 256 + 2 * y) is TRUE
    assert normal(ceil_div(x + 512 * y, 256) == ceil_div(x, 256) + 2 * y) is TRUE
    assert normal(align_up(x + 256 * y, 256) == align_up(x, 256) + 256 * y) is TRUE
    assert (
        normal(align_up(x + align_up(y, 512), 256) == align_up(x, 256) + align_up(y, 512)) is TRUE
    )


def test_what_is_no_multiple_stays_inside():
    """Neither a smaller alignment nor a multiple of a negative divisor leaves the rounding."""
    assert (
        normal(align_up(x + align_up(y, 128), 256) == align_up(x, 256) + align_up(y, 128))
        is not TRUE
    )
    assert normal((x + 3 * y) // -3 == x // -3 + y) is not TRUE


def test_a_constant_divisor_may_be_zero_or_negative():
    """Rounding by it keeps its value, with multiples of it inside and beside others."""
    for divisor in (-3, 0, 3):
        value = x + 3 * y - 5
        rounded = [value // divisor, ceil_div(value, divisor), align_up(value, divisor)]
        program = compile_terms([*rounded, *normalise(rounded)])
        for state in ({"x": one, "y": two} for one in range(-7, 8) for two in range(-2, 3)):
            values = program(state)
            assert values[:3] == values[3:]


def test_a_choice_keeps_outside_what_both_sides_share():
    """Two layouts that differ in one region differ in one term."""
    chosen = ite(p, x * y + z + 1, x * y + z + 5)
    assert normal(chosen == x * y + z + ite(p, integer(1), 5)) is TRUE


def test_a_member_is_compared_with_each_side_of_a_choice():
    """A status is a condition: the comparison moves to the constants."""
    status = ite(p, MODE["slow"], ite(q, MODE["fast"], MODE["off"]))
    assert normal(status == "slow") is p
    compared = topological((normal(status == ite(r, MODE["off"], MODE["fast"])),))
    assert all(node.sort_name == "bool" for node in compared)


def test_two_choices_with_one_symbol_in_each_are_compared_member_by_member():
    """Also where a side is itself unknown."""
    left, right = ite(p, mode, MODE["off"]), ite(q, other, MODE["slow"])
    program = compile_terms([left == right, normal(left == right)])
    for state in (
        {"p": p, "q": q, "mode": one, "other": two}
        for p in (False, True)
        for q in (False, True)
        for one in MODE.members
        for two in MODE.members
    ):
        before, after = program(state)
        assert before == after


@settings(max_examples=150)
@given(conditions(), some_states)
def test_pushed_negations_keep_the_value(condition, states):
    """Of the condition and of its negation."""
    agree(condition, push_negations(condition), states)
    agree(~condition, push_negations(~condition), states)


@given(conditions())
def test_no_negation_is_left_above_a_connective(condition):
    """Negation ends at what is neither a conjunction nor a disjunction."""
    below = topological((push_negations(~condition),))
    reached, stack = set(), [below[-1]]
    while stack:
        node = stack.pop()
        reached.add(node.op if node.op is not Op.NOT else (node.op, node.args[0].op))
        stack += node.args if node.op in (Op.AND, Op.OR) else ()
    assert not reached & {(Op.NOT, Op.AND), (Op.NOT, Op.OR), (Op.NOT, Op.NOT)}


pins = st.sampled_from(
    [
        *(symbol.is_in(*values) for symbol in INTS for values in ((4,), (-8, 0, 8))),
        *(flag for symbol in BOOLS for flag in (symbol, ~symbol)),
        *(symbol.is_in(*members) for symbol in ENUMS for members in (("int8",), ("none", "fp8"))),
    ]
)


@settings(max_examples=150)
@given(conditions(), st.lists(pins, max_size=3), some_states)
def test_a_specialised_condition_keeps_the_value(condition, pinned, states):
    """Inside and outside of what the conjuncts pin, contradictions included."""
    whole = all_of(*pinned, condition)
    agree(whole, specialise(whole), states)


def test_a_pinned_symbol_is_replaced_everywhere_else():
    """A flag disappears; a product with one of two values becomes two linear terms."""
    flagged = specialise(all_of(p, any_of(~p, q), mode == "off", ite(mode == "off", x, y) == 3))
    assert flagged is all_of(p, mode == "off", q, x == 3)
    linear = normal(specialise(all_of(x.is_in(4, 8), x * y <= 100)))
    assert linear is all_of(x.is_in(4, 8), ite(x == 4, 4 * y, 8 * y) <= 100)


@settings(max_examples=150)
@given(conditions(), conditions(), conditions(), some_states)
def test_the_parts_of_a_goal_are_the_goal(one, two, three, states):
    """Conjunctions, equivalences and implications come apart without loss."""
    for goal in (one, all_of(one, two), one == two, implies(one, all_of(two, three))):
        agree(goal, all_of(*split(goal)), states)


def test_a_goal_comes_apart_where_it_can():
    """Each conclusion of an implication, each direction of an equivalence."""
    assert split(implies(p, all_of(q, r))) == [implies(p, q), implies(p, r)]
    assert split(p == q) == [implies(p, q), implies(q, p)]
    assert split(any_of(p, q)) == [any_of(p, q)]
    assert split(any_of(all_of(p, q), all_of(q, r))) == [any_of(all_of(p, q), all_of(q, r))]


@settings(max_examples=150)
@given(terms(), some_states)
def test_a_search_written_out_keeps_the_value(term, states):
    """Every search becomes a chain of choices with the interpreter's value."""
    (result,) = unroll([term])
    agree(term, result, states)
    assert not ops(result) & {Op.FIRST, Op.GREATEST, Op.BOUND}


def test_a_search_ends_at_its_limit_and_at_its_cap():
    """Candidates are 1 to the smaller of the two; none leaves the fallback."""
    found = first("c", x, lambda c: c * c >= y, otherwise=-1, at_most=3)
    best = greatest(
        "c",
        x,
        where=lambda c: c <= y,
        value=lambda c: to_float(c, 32),
        start=float32(0.5),
        at_most=3,
    )
    program = compile_terms([*unroll([found, best]), *normalise([found, best])])
    for limit, bound in ((-1, 1), (0, 0), (2, 9), (3, 9), (4, 16)):
        expected = next((c for c in range(1, min(limit, 3) + 1) if c * c >= bound), -1)
        most = max([0.5, *(float(c) for c in range(1, min(limit, 3) + 1) if c <= bound)])
        assert program({"x": limit, "y": bound}) == [expected, most, expected, most]


def test_a_limit_that_is_a_choice_becomes_a_choice_of_searches():
    """And each search knows which side of the choice it is on."""
    limit = ite(p, integer(1), z)
    found = first("c", limit, lambda c: ite(p, c == 1, c * c > y), otherwise=7, at_most=5)
    program = compile_terms([found, normal(found)])
    for flag in (False, True):
        for bound in range(-1, 30, 3):
            for last in range(7):
                one, two = program({"p": flag, "y": bound, "z": last})
                assert one == two


@settings(max_examples=100)
@given(nested_searches(), st.integers(0, 4))
def test_nested_searches_keep_their_value(nested, limit):
    """Renamed to the normal form's names, or written out."""
    term, loops = nested
    for result in (normal(term), *unroll([term]), *unroll([normal(term)])):
        assert compile_terms([result])({"limit": limit}) == [loops(limit)]


def test_names_of_bound_variables_do_not_matter():
    """Two searches that differ in the name of their variable alone are one."""
    one, two = (first(name, x, lambda c: c * c >= y, otherwise=0, at_most=9) for name in ("c", "d"))
    assert one is not two
    assert normal(one == two) is TRUE


def test_products_of_many_choices_stay_products():
    """Lifted out one by one they would be a choice of 2**30 products."""
    choices = [ite(symbol_bool(f"p{index}"), x + index, y + index) for index in range(30)]
    assert len(topological((normal(math.prod(choices, start=integer(1))),))) < 2_000


@pytest.mark.parametrize("name", ["%", "%_2", "%_3"])
def test_a_variable_may_have_the_normal_forms_name(name):
    """Nested searches keep their meaning, whatever their variables are called."""
    last = {"otherwise": 0, "at_most": 4}
    inner = lambda c, d: first("e", x, lambda e: e * d >= c + y, **last) > 1  # noqa: E731
    nested = first(name, x, lambda c: first("d", x, lambda d: inner(c, d), **last) > 1, **last)
    program = compile_terms((nested, normal(nested)))
    for limit, offset in itertools.product(range(5), range(6)):
        one, two = program({"x": limit, "y": offset})
        assert one == two


def test_domains_are_not_assumed():
    """A comparison that only a domain settles stays: the solver is told of domains itself."""
    bounded = symbol_int("bounded", IntDomain(0, 5))
    assert normal(bounded <= 9) is (bounded <= 9)
