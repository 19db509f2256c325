"""Exhaustive regimes: finite boxes tried state by state, and why nothing lies outside of them."""

import re

import pytest
from differential import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness.claims import A, B, by_enumeration, conditions, decide, small, small_conditions

from routeproof.checkers.coverage import uncovered
from routeproof.checkers.enumeration import Enumerated, enumerate_states, finite_box
from routeproof.checkers.evidence.enumeration import check_enumeration
from routeproof.checkers.evidence.refused import OpenError, RefusedError
from routeproof.checkers.readings.intervals import Interval
from routeproof.checkers.readings.smtlib import script
from routeproof.checkers.solver import Limits, ask
from routeproof.spec.errors import ModelError
from routeproof.spec.interpret import evaluate
from routeproof.spec.obligation import Claim
from routeproof.spec.terms import (
    IntDomain,
    align_up,
    any_of,
    ceil_div,
    first,
    float32,
    free_symbols,
    greatest,
    implies,
    ite,
    minimum,
    substitute,
    symbol_float,
    symbol_int,
    to_float,
)

n = symbol_int("n", IntDomain(1, 2**62))
m = symbol_int("m", IntDomain(0, 20))
BOX = {"n": Interval(1, 2**62), "m": Interval(0, 20)}


def is_impossible(assertions):
    """Return whether the solver finds no state."""
    return ask(script(assertions), [], Limits()).status == "unsat"


def enumerated(claim, seconds=60):
    """Return what the enumeration of a claim's box finds, and the box."""
    box = finite_box(claim, is_impossible)
    assert not isinstance(box, str), box
    return enumerate_states(claim, box, seconds), box


def evidence_of(claim):
    """Return the evidence of a claim that is proved."""
    found, box = enumerated(claim)
    assert found.failing is None
    return found.evidence(box)


def share(work, device):
    """Return how busy a device is, as Flash computes it."""
    return to_float(work, 32) / to_float(device, 32)


def busiest(blocks):
    """Return the greatest share over the candidates that are eligible for so many blocks."""
    return greatest(
        "c",
        9,
        where=lambda c: any_of(c == 1, ceil_div(blocks, c) != ceil_div(blocks, c - 1)),
        value=lambda c: share(c * m, m + 10),
        start=float32(0.0),
        at_most=9,
    )


@settings(max_examples=200)
@given(small_conditions, small_conditions)
def test_every_state_is_tried(assumed, goal):
    """The verdict is what trying every state in Python gives, and so are the states found."""
    claim = Claim(goal, {"given": assumed})
    expected, failing = by_enumeration(claim)
    found, _ = enumerated(claim)
    if expected == "refuted":
        assert found.failing in failing
    else:
        assert found.failing is None
        assert (found.witness is None) == (expected == "vacuous")


@settings(max_examples=150)
@given(small_conditions, small_conditions)
def test_what_is_proved_is_confirmed_and_what_is_not_is_refused(assumed, goal):
    """The checker repeats it on its own: the same states, counts and digest."""
    claim = Claim(goal, {"given": assumed}, regimes={"kind": ~goal & ~assumed})
    expected, _ = by_enumeration(claim)
    found, box = enumerated(claim)
    if expected == "refuted":
        with pytest.raises(RefusedError):
            check_enumeration(claim, found.evidence(box), 5)
    else:
        assert check_enumeration(claim, found.evidence(box), 5) == box.states


@settings(max_examples=60)
@given(conditions().map(small), conditions().map(small))
def test_floats_are_tried_as_the_interpreter_computes_them(assumed, goal):
    """Wherever no input is a float, states are finite, whatever is computed from them."""
    if all(one.sort_name != "float" for one in free_symbols(assumed, goal)):
        claim = Claim(goal, {"given": assumed})
        expected, failing = by_enumeration(claim)
        found, box = enumerated(claim)
        assert (found.failing in failing) if expected == "refuted" else found.failing is None
        if expected != "refuted":
            assert check_enumeration(claim, found.evidence(box), 5) == box.states


SETTLING = [
    (minimum(n, 7) * m <= 100, 7),
    (ceil_div(n, 6) != ceil_div(n, 5), 26),
    (ite(n > 9, 1, 2) * m <= 10, 10),
    (implies(n < 50, n * n <= m), 50),
    (to_float(n, 32) >= float32(0.8) * to_float(m, 32), 16),
    (first("c", minimum(n, 9), lambda c: c * m > 20, otherwise=0, at_most=9) <= 5, 9),
    (busiest(n) <= float32(3.0), 65),
]


@pytest.mark.parametrize(("condition", "at"), SETTLING, ids=str)
def test_a_symbol_settles_where_it_does(condition, at):
    """From there on it is shown that nothing depends on it; one earlier it is not."""
    assert uncovered((condition,), n, at, BOX, is_impossible) is None
    assert uncovered((condition,), n, at - 1, BOX, is_impossible) is not None


@pytest.mark.parametrize(("condition", "at"), SETTLING, ids=str)
def test_what_settles_is_proved_and_confirmed(condition, at):
    """One value stands for all beyond, for the engine and for the checker; one less does not."""
    (at_end,) = substitute((condition,), {n: minimum(n, at)})
    claim = Claim(condition == at_end, settles={"n": at})
    evidence = evidence_of(claim)
    assert evidence["settles"] == {"n": at}
    assert check_enumeration(claim, evidence, 5) == evidence["states"]
    shorter = {**evidence, "box": {**evidence["box"], "n": [1, at - 1]}, "settles": {"n": at - 1}}
    with pytest.raises((RefusedError, OpenError)):
        check_enumeration(claim, shorter, 5)


@settings(max_examples=80)
@given(conditions(depth=3), st.integers(1, 40), st.data())
def test_what_is_said_to_settle_does(term, at, data):
    """A condition that is shown not to depend on a symbol from some value on never does."""
    (condition,) = substitute((small(term),), {A: n, B: n})
    if uncovered((condition,), n, at, BOX, is_impossible) is None:
        state = {one.name: data.draw(strategies.values(one)) for one in free_symbols(condition)}
        state["n"] = max(at, int(state.get("n", at)))
        assert evaluate(condition, state) == evaluate(condition, {**state, "n": at})


@pytest.mark.parametrize("change", ["box", "settles", "states", "admitted", "regimes", "digest"])
def test_other_evidence_is_refused(change):
    """Whatever is changed in it."""
    claim = Claim(
        minimum(n, 1) * m <= 20, {"odd": m % 2 == 1}, settles={"n": 1}, regimes={"low": m < 5}
    )
    evidence = evidence_of(claim)
    assert check_enumeration(claim, evidence, 5) == 21
    other = {
        "box": {"n": [1, 1], "m": [0, 19]},
        "settles": {},
        "states": 22,
        "admitted": 9,
        "regimes": {"low": 3},
        "digest": "0" * 32,
    }
    for value in (other[change], None, [], {"n": 2}):
        with pytest.raises((RefusedError, OpenError)):
            check_enumeration(claim, {**evidence, change: value}, 5)
    del evidence[change]
    with pytest.raises(RefusedError):
        check_enumeration(claim, evidence, 5)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (Claim(symbol_int("k", IntDomain(1)) >= 1), "the range of k is 1..oo"),
        (Claim(symbol_float("f", 32) <= float32(1.0)), "f is a float"),
        (Claim(n <= 8, settles={"n": 8}), "n is not shown to settle at 8: a comparison may change"),
        (Claim(n * m <= 9, settles={"n": 8}), "n is not shown to settle at 8: n*m <= 9 still"),
    ],
)
def test_there_is_not_always_a_finite_box(claim, why):
    """The reason names the symbol, and what it settles at or not."""
    assert why in str(finite_box(claim, is_impossible))


def test_a_claim_that_does_not_settle_is_unknown_or_refuted_never_proved():
    """With the reason, where the solver gives up too."""
    refuted = decide(Claim(n <= 8, settles={"n": 8}))
    assert (refuted.verdict, refuted.counterexample.state) == ("refuted", {"n": 9})
    unknown = decide(Claim(busiest(n) <= float32(9.0), settles={"n": 8}), resources=10_000)
    assert unknown.verdict == "unknown"
    assert "n is not shown to settle at 8" in unknown.reason


def test_the_first_failing_state_is_minimised_and_executed():
    """What fails at a value that stands for others fails there itself."""
    claim = Claim(minimum(n, 30) * m <= 400, settles={"n": 30})
    decision = decide(claim)
    assert (decision.verdict, decision.engine) == ("refuted", "exhaustive")
    assert decision.counterexample.state == {"n": 21, "m": 20}


def test_states_in_each_regime_are_counted():
    """Over admitted states alone, in the evidence of a proof."""
    regimes = {"low": m < 5, "high": m >= 15, "none": m < 0}
    evidence = evidence_of(Claim(m * m <= 400, {"even": m % 2 == 0}, regimes=regimes))
    assert evidence["regimes"] == {"low": 3, "high": 3, "none": 0}


def test_a_small_box_with_floats_is_decided():
    """What the solver leaves open and sampling cannot prove."""
    decision = decide(Claim(busiest(m) <= float32(6.0)))
    assert (decision.verdict, decision.engine) == ("proved", "exhaustive")
    assert decision.evidence["enumeration"]["states"] == 21


def test_a_box_of_all_machine_integers_is_counted_not_tried():
    """There is no limit to what is counted."""
    i = symbol_int("i", IntDomain(-(2**63), 2**63 - 1))
    assert finite_box(Claim(i <= m), is_impossible).states == 2**64 * 21
    huge = {"box": {"i": [-(2**63), 2**63 - 1], "m": [0, 20]}}
    with pytest.raises(RefusedError, match="too many to be tried again"):
        check_enumeration(Claim(i <= m), huge, 5)


EDGE = symbol_int("edge", IntDomain(2**53, 2**53 + 3))
LEAST = symbol_int("least", IntDomain(-(2**63), -(2**63)))


@pytest.mark.parametrize(
    ("goal", "holds"),
    [
        (minimum(EDGE, 2**64 - 1) % 2 == 0, False),
        (minimum(EDGE, 2**64 - 1) % 2 == EDGE % 2, True),
        (ceil_div(LEAST, 2) >= 0, False),
        (ceil_div(LEAST, 2) == -(2**62), True),
        (LEAST // -1 == 2**63, True),
        ((EDGE + 2**63) % 2**63 == EDGE, True),
        ((2**63 + 1) // EDGE <= 1024, True),
        (ite(EDGE > 0, 2**63 + 1, EDGE) % 2 == 1, True),
        (align_up(LEAST, -3) == -(2**63) - 1, True),
        (to_float(EDGE + 2**64, 32) > to_float(EDGE, 32), True),
    ],
    ids=str,
)
def test_integers_at_the_ends_of_machine_types_are_exact(goal, holds):
    """For the engine and for the checker, which does not confirm what is false."""
    claim = Claim(goal)
    found, box = enumerated(claim)
    assert (found.failing is None) is holds
    evidence = found.evidence(box)
    if holds:
        assert check_enumeration(claim, evidence, 5) == box.states
    else:
        with pytest.raises(RefusedError):
            check_enumeration(claim, {**evidence, "admitted": box.states}, 5)


def test_what_settles_settles_for_admitted_states_and_regimes_too():
    """A box without an admitted state says nothing if there is one beyond it."""
    w = symbol_int("w", IntDomain(0, 2**62))
    assuming = {"big": minimum(w, 31) > ite(w < 21, w, 0)}
    decision = decide(Claim((w >= 18) | (w < 0), assuming, settles={"w": 20}))
    assert decision.verdict in ("proved", "unknown")
    beyond = Claim(minimum(w, 24) <= 24, settles={"w": 24}, regimes={"beyond": w > 1000})
    assert "w is not shown to settle at 24" in finite_box(beyond, is_impossible)


def test_no_value_at_all_is_vacuous():
    """Not a crash."""
    thirds = symbol_int("thirds", IntDomain(0, 2**62, 3))
    claim = Claim(n >= 1, {"eight": thirds == 8}, settles={"n": 20})
    assert decide(claim).verdict == "vacuous"


@pytest.mark.parametrize(
    ("settles", "regimes", "said"),
    [
        ({"nn": 3}, {}, "'nn' settles, but 'nn' is no such symbol of the claim; did you mean 'n'?"),
        ({n: 3}, {}, "did you mean 'n'?"),
        ({"n": 3}, {"other": symbol_int("other") > 3}, "'other' is no such symbol of the claim"),
    ],
)
def test_names_that_the_claim_does_not_know_are_refused(settles, regimes, said):
    """Where they are written, with a guess."""
    with pytest.raises(ModelError, match=re.escape(said)):
        Claim(minimum(n, 3) * m <= 60, settles=settles, regimes=regimes)


def test_a_state_that_the_interpreter_does_not_confirm_is_a_disagreement(monkeypatch):
    """Neither proved nor refuted: one of the two readings is wrong."""
    add = Enumerated.add
    for wrong in ((False, False), (True, False)):

        def misread(self, part, met, holds, *kinds, wrong=wrong):
            add(self, part, met | wrong[0], holds & wrong[1], *kinds)

        monkeypatch.setattr(Enumerated, "add", misread)
        claim = Claim(minimum(n, 3) * m <= 60, {"odd": m % 2 == 1}, settles={"n": 3})
        assert decide(claim).verdict == "disagreement"


def test_time_that_runs_out_is_no_verdict():
    """Not even where nothing failed so far."""
    box = finite_box(Claim(m <= 20), is_impossible)
    assert enumerate_states(Claim(m <= 20), box, -1) is None


@pytest.mark.parametrize("settles", [{"n": 1.0}, {"n": True}, {"n": "1"}, ["n"]])
def test_what_settles_settles_at_an_integer(settles):
    """Anything else is refused where it is written."""
    with pytest.raises(ModelError):
        Claim(n >= 1, settles=settles)
