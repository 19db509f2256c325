"""Asking again: no simpler form of a condition loses a state of it."""

import pytest
from hypothesis import given, settings
from soundness.claims import conditions, every_state, small, small_conditions

from routeproof.checkers.evidence.products import without_products
from routeproof.checkers.evidence.reasking import ask_again, written_out
from routeproof.spec.interpret import compile_terms
from routeproof.spec.terms import (
    IntDomain,
    all_of,
    first,
    integer,
    ite,
    minimum,
    symbol_bool,
    symbol_int,
)

a, b, c = (symbol_int(name, IntDomain(0, 2**31 - 1)) for name in "abc")
p = symbol_bool("p")


def is_met(*given):
    """Return whether some state of the small symbols meets the conditions."""
    program = compile_terms(given)
    return any(all(program(state)) for state in every_state(*given))


@settings(max_examples=150)
@given(small_conditions, small_conditions)
def test_an_answer_is_what_every_state_says(one, two):
    """Searches, products and all."""
    assert ask_again((one, two), 5) in ("sat" if is_met(one, two) else "unsat", "unknown")


@settings(max_examples=150)
@given(small_conditions, small_conditions)
def test_what_some_state_meets_is_met_without_products(one, two):
    """New symbols take the values of the products that they stand for."""
    if is_met(one, two):
        assert ask_again(without_products((one, two)), 5) != "unsat"


@settings(max_examples=60)
@given(conditions().map(small))
def test_a_search_written_out_is_the_search(condition):
    """On every state."""
    if all(one.sort_name != "float" for one in compile_terms((condition,)).symbols):
        both = compile_terms((condition, *written_out((condition,))))
        for state in every_state(condition):
            one, other = both(state)
            assert one == other


MANY = sum((symbol_int(f"a{i}", IntDomain(0, 9)) for i in range(49)), start=integer(0))
NEGATIVE = symbol_int("negative", IntDomain(-100, 100))


@pytest.mark.parametrize(
    "conditions",
    [
        ((a // 8 * 8) * b > (a // 8) * b,),
        ((NEGATIVE // -3 * -3) * b < 0, NEGATIVE // -3 >= 0),
        ((3 * c) * MANY > c * MANY,),
    ],
    ids=("padded", "negative", "many"),
)
def test_a_multiple_of_a_product_is_not_the_product(conditions):
    """A factor that is a multiple by a constant stays one factor."""
    assert ask_again(without_products(conditions), 5) != "unsat"
    assert ask_again(conditions, 5) != "unsat"


@pytest.mark.parametrize(
    "goal",
    [
        (a * b) * c == c * (b * a),
        a * ite(p, b, c) == ite(p, a * b, a * c),
        (a * b * c <= 2**40) | (b < 2**10) | (a * b * c >= a * c),
        (a * b * c > 5) | (a * b * c <= 5),
        first("x", minimum(a, b), lambda x: x * c > 9, otherwise=1, at_most=64)
        <= minimum(a, 64) + 1,
        ite(p, 1, first("x", a, lambda x: x * c > 9, otherwise=1, at_most=64))
        == first("y", ite(p, 1, a), lambda y: y * c > 9, otherwise=1, at_most=64),
    ],
    ids=str,
)
def test_products_and_searches_are_no_obstacle(goal):
    """Equal products are one, whatever their order; equal searches too, case by case."""
    assert ask_again((~goal,), 10) == "unsat"
    assert ask_again((goal, all_of(a > 1, b > 1, c > 1)), 10) != "unsat"
