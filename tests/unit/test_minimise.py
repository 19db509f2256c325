"""Minimisation: still failing, minimal in every symbol, and honest about what stayed open."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soundness.claims import A, B, C, K, P, every_state, values_of

from routeproof.checkers.counterexample import rest_value
from routeproof.checkers.minimise import Minimiser
from routeproof.spec.terms import IntDomain, symbol_bool, symbol_enum, symbol_float, symbol_int

SMALL = (A, B, C, P, K)
ALL_STATES = every_state(*SMALL)
wide = symbol_int("wide", IntDomain(0, 2**63 - 1))
far = symbol_int("far", IntDomain(0, 2**63 - 1))
number = symbol_float("number", 32)


def never(*_):
    """Stand in for a solver that must not be asked."""
    raise AssertionError("the solver was asked")


def minimised(fails, symbols, state, *, probe=never, constants=()):
    """Return the minimised state and the symbols left open."""
    rests = {symbol.name: rest_value(symbol) for symbol in symbols}
    return Minimiser(fails, symbols, constants, rests, probe).run(state)


@given(st.sets(st.integers(0, len(ALL_STATES) - 1), min_size=1, max_size=40), st.data())
def test_the_result_fails_and_no_single_symbol_can_move(chosen, data):
    """Whatever the failing states are, without asking a solver about small domains."""
    failing = [ALL_STATES[index] for index in sorted(chosen)]
    start = data.draw(st.sampled_from(failing))
    state, left_open = minimised(lambda one: one in failing, SMALL, start)
    assert state in failing
    assert left_open == ()
    for symbol in SMALL:
        values = values_of(symbol)
        for nearer in values[: values.index(state[symbol.name])]:
            assert {**state, symbol.name: nearer} not in failing


def test_the_given_state_is_left_alone():
    """Minimising works on a copy."""
    start = {"wide": 900}
    minimised(lambda state: state["wide"] >= 7, [wide], start, probe=lambda *_: "none")
    assert start == {"wide": 900}


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_a_threshold_is_met_exactly(one, two):
    """With a solver that knows the threshold, whatever the distance."""
    threshold, start = sorted((one, two))

    def probe(_, state, rest):
        nearer = max(threshold, rest)
        return nearer if nearer < state["wide"] else "none"

    state, left_open = minimised(
        lambda state: state["wide"] >= threshold, [wide], {"wide": start}, probe=probe
    )
    assert (state, left_open) == ({"wide": threshold}, ())


def test_a_solver_that_creeps_is_followed_to_the_end():
    """Thousands of small moves are no deeper than one."""
    allowed = {2**40 + 3 * n for n in range(5_000)}

    def probe(_, state, __):
        return state["wide"] - 3 if state["wide"] - 3 in allowed else "none"

    state, left_open = minimised(
        lambda state: state["wide"] in allowed, [wide], {"wide": max(allowed)}, probe=probe
    )
    assert (state, left_open) == ({"wide": 2**40}, ())


def test_what_the_solver_does_not_know_stays_open():
    """The symbol is named; a symbol at rest needs no proof."""
    state, left_open = minimised(
        lambda state: state["wide"] >= 1000,
        [wide, far],
        {"wide": 5000, "far": 8},
        probe=lambda *_: "unknown",
    )
    assert state["far"] == 0
    assert left_open == ("wide",)


def test_a_move_of_one_symbol_lets_another_move():
    """Symbols are tried again until none moves."""
    state, _ = minimised(
        lambda state: state["wide"] >= 3 and state["far"] >= 2 * (state["wide"] > 5),
        [far, wide],
        {"wide": 9, "far": 4},
    )
    assert state == {"far": 0, "wide": 3}


def test_integers_that_have_to_be_equal_move_together():
    """None of them can alone."""

    def fails(state):
        return state["wide"] == state["far"] >= 3

    start = {"wide": 1_881_857, "far": 1_881_857}
    state, _ = minimised(fails, (wide, far), start, probe=lambda *_: "none")
    assert state == {"wide": 3, "far": 3}


def test_constants_of_the_claim_are_tried():
    """A value that only the claim knows is found without a solver."""
    fails = {3**30, 3**30 + 12345}
    state, _ = minimised(
        lambda state: state["wide"] in fails,
        [wide],
        {"wide": 3**30 + 12345},
        constants=(3**30,),
        probe=lambda *_: "none",
    )
    assert state == {"wide": 3**30}


@pytest.mark.parametrize(
    ("start", "fails", "expected"),
    [
        (7.5, lambda _: True, 0.0),
        (1.0, lambda _: True, 0.0),
        (-0.0, lambda _: True, 0.0),
        (math.nan, lambda _: True, 0.0),
        (math.inf, lambda value: value != 0, 1.0),
        (1.0, lambda value: value != 0, 1.0),
        (-0.0, lambda value: math.copysign(1, value) < 0, -1.0),
        (-0.0, lambda value: repr(value) == "-0.0", -0.0),
        (7.5, lambda value: value < 0 or value > 2, -1.0),
        (2.5, lambda value: value > 2, math.inf),
        (2.5, lambda value: 2 < value < 3, 2.5),
    ],
)
def test_floats_move_to_the_simplest(start, fails, expected):
    """And stay what they are where no simple one fails, which is said; the sign of zero counts."""
    state, left_open = minimised(lambda state: fails(state["number"]), [number], {"number": start})
    assert repr(state["number"]) == repr(expected)
    assert left_open == (("number",) if expected == 2.5 else ())


def test_multiples_are_few():
    """A hundred values 256 apart are tried without asking a solver."""
    apart = symbol_int("apart", IntDomain(256, 256 * 128, 256))
    fails = {256 * 99, 256 * 101}
    state, left_open = minimised(lambda one: one["apart"] in fails, [apart], {"apart": 256 * 101})
    assert (state, left_open) == ({"apart": 256 * 99}, ())


@given(st.integers(-600, 600), st.integers(1, 600))
def test_integers_move_from_either_side(start, nearest):
    """What fails on the other side of rest and nearer is found, whatever side it started on."""
    both = symbol_int("both", IntDomain(-(2**31), 2**31 - 1))
    failing = {start, -nearest if start > 0 else nearest}

    def probe(_, state, __):
        return next((n for n in failing if abs(n) < abs(state["both"])), "none")

    state, left_open = minimised(
        lambda state: state["both"] in failing, [both], {"both": start}, probe=probe
    )
    assert abs(state["both"]) == min(map(abs, failing))
    assert left_open == ()


def test_rest_values():
    """False, the first member, zero, the low end; zero inside a signed machine type."""
    assert rest_value(symbol_bool("p")) is False
    assert rest_value(symbol_enum("k", K.members)) == "none"
    assert rest_value(number) == 0.0
    assert rest_value(symbol_int("n", IntDomain(3, 9, 4))) == 4
    assert rest_value(symbol_int("n", IntDomain(-(2**31), 2**31 - 1))) == 0
    assert rest_value(symbol_int("n", IntDomain(-5, 5))) == -5
    assert rest_value(symbol_int("n")) == 0
