"""Ladders: the first rung whose guard holds, compared with a loop."""

import itertools

import pytest

from routeproof.spec.errors import ModelError, UnknownNameError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.ladder import Ladder, Rung
from routeproof.spec.terms import TRUE, symbol_bool

p, q, r = (symbol_bool(name) for name in "pqr")
RUNGS = (
    Rung("error", p & ~q, runs=False),
    Rung("fast", p),
    Rung("slow", q),
    Rung("fast", r),
)
LADDER = Ladder("example", RUNGS, static=(p, q), runtime=(r,))


def test_the_first_guard_that_holds_decides():
    """In every state exactly the outcome of the first satisfied rung is taken, or none."""
    takes = compile_terms([LADDER.takes(outcome) for outcome in LADDER.outcomes])
    guards = compile_terms([rung.guard for rung in RUNGS])
    for bits in itertools.product((False, True), repeat=3):
        state = dict(zip("pqr", bits, strict=True))
        holding = [rung.outcome for rung, holds in zip(RUNGS, guards(state), strict=True) if holds]
        expected = [outcome == holding[0] if holding else False for outcome in LADDER.outcomes]
        assert takes(state) == expected


def test_outcomes_and_routes():
    """Outcomes in order of first appearance; an error is no route."""
    assert LADDER.outcomes == ("error", "fast", "slow")
    assert LADDER.routes == ("fast", "slow")


def test_total_when_some_guard_always_holds():
    """A last rung without a condition makes the ladder total."""
    assert LADDER.total is not TRUE
    rungs = (*RUNGS, Rung("none", TRUE, runs=False))
    closed = Ladder("closed", rungs, static=LADDER.static, runtime=LADDER.runtime)
    assert closed.total is TRUE


def test_an_unknown_outcome_is_refused():
    """The message lists what there is."""
    with pytest.raises(UnknownNameError, match="error, fast, slow") as error:
        LADDER.takes("medium")
    assert error.value.code == "RP202"


def test_a_fact_is_static_or_runtime():
    """Never both."""
    with pytest.raises(ModelError, match="static and run-time at once: p"):
        Ladder("wrong", RUNGS, static=(p,), runtime=(p, r))
