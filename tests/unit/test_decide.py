"""Deciding a claim: the verdict that trying every state gives, on executed and minimal evidence."""

import math

import pytest
from differential.strategies import WITHOUT_FLOATS, terms
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness.claims import (
    SOURCE,
    by_enumeration,
    decide,
    every_state,
    small,
    small_conditions,
    values_of,
    verdict,
)

from routeproof.checkers import decide as engine
from routeproof.checkers.counterexample import Replayer
from routeproof.spec.envelope import Bound, Envelope
from routeproof.spec.errors import ModelError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.obligation import Claim
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    EnumSort,
    Int,
    IntDomain,
    all_of,
    any_of,
    ceil_div,
    first,
    float32,
    float64,
    free_symbols,
    implies,
    ite,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    wrap_signed,
)

INT32 = IntDomain(-(2**31), 2**31 - 1)
POSITIVE = IntDomain(1, 2**31 - 1)
x, y = symbol_int("x", IntDomain(0, 100)), symbol_int("y", IntDomain(1, 100))
heads, length = symbol_int("heads", IntDomain(1, 32)), symbol_int("length", POSITIVE)
p, q = symbol_bool("p"), symbol_bool("q")
number = symbol_float("number", 32)


def assert_minimal(claim, counterexample, failing):
    """Assert that no symbol of a small state can move towards rest and still fail."""
    state = dict(counterexample.state)
    assert state in failing
    assert not counterexample.movable
    for symbol in free_symbols(*claim.conditions.values(), *claim.goals.values()):
        values = values_of(symbol)
        for nearer in values[: values.index(state[symbol.name])]:
            assert {**state, symbol.name: nearer} not in failing


def assert_as_enumerated(claim):
    """Assert the verdict that every state gives, and a minimal counterexample."""
    expected, failing = by_enumeration(claim)
    decision = decide(claim)
    assert decision.verdict == expected
    assert (decision.counterexample is not None) == (expected == "refuted")
    if decision.counterexample:
        assert_minimal(claim, decision.counterexample, failing)


@settings(max_examples=200)
@given(small_conditions, small_conditions, small_conditions)
def test_the_verdict_is_what_every_state_says(assumed, goal, other):
    """Proved, refuted or vacuous, exactly as enumeration finds; goals may have parts."""
    assert_as_enumerated(Claim({"one": goal, "two": other}, assuming={"given": assumed}))


@settings(max_examples=120)
@given(terms(WITHOUT_FLOATS).map(small), small_conditions, st.integers(-1, 0))
def test_a_bound_is_proved_exactly_from_the_maximum_on(term, assumed, slack):
    """One byte less than the maximum is refuted."""
    if isinstance(term, Int):
        program = compile_terms([term, assumed])
        reached = [
            value for value, admitted in map(program, every_state(term, assumed)) if admitted
        ]
        most = max(reached, default=0)
        assert_as_enumerated(Claim(term <= most + slack, assuming={"given": assumed}))


@settings(max_examples=60)
@given(small_conditions, st.sampled_from(("auto", "smt", "sampling")), st.integers(0, 3))
def test_no_engine_and_no_seed_contradicts_the_states(goal, engine, seed):
    """Each may give up, sampling always does where nothing fails; none is wrong."""
    claim = Claim(goal)
    expected, failing = by_enumeration(claim)
    decision = decide(claim, engine=engine, seed=seed)
    assert decision.verdict in (expected, "unknown")
    if engine == "sampling":
        assert decision.verdict != "proved"
    if decision.counterexample:
        assert_minimal(claim, decision.counterexample, failing)


def test_a_product_that_overflows_is_found_and_shrunk():
    """`heads * length * length` bytes in int32: one head suffices, 46341 tokens are needed."""
    claim = Claim(heads * length * length <= 2**31 - 1, shows={"bytes": heads * length * length})
    found = decide(claim).counterexample
    assert found.state == {"heads": 1, "length": 46341}
    assert found.shows == {"bytes": 46341**2}
    assert found.broken == ("goal",)
    assert not found.movable


def test_a_wrapped_stride_is_found_and_shrunk():
    """A stride computed in int32 turns negative: the smallest factors that do it."""
    batch, size = symbol_int("batch", POSITIVE), symbol_int("size", IntDomain(8, 256, 8))
    stride = wrap_signed(batch * length * size, 32)
    state = decide(stride >= 0).counterexample.state
    fits = 2**31 - 1
    assert state["batch"] * state["length"] * state["size"] > fits
    for name, less in (("batch", 1), ("length", 1), ("size", 8)):
        if state[name] > less:
            smaller = math.prod({**state, name: state[name] - less}.values())
            assert smaller <= fits


@pytest.mark.parametrize("divisor", [1, 3, 256])
def test_ceiling_division_and_its_twin(divisor):
    """`(n + d - 1) // d` is the ceiling; `n // d + 1` is not, where d divides n."""
    n = symbol_int("n", IntDomain(0, 2**63 - 1))
    assert verdict((n + divisor - 1) // divisor == ceil_div(n, divisor)) == "proved"
    twin = decide(n // divisor + 1 == ceil_div(n, divisor))
    assert twin.counterexample.state == {"n": 0}


def test_nan_is_found():
    """The only float that is neither above nor at most."""
    state = decide(any_of(number > float32(1.0), number <= float32(1.0))).counterexample.state
    assert math.isnan(state["number"])


def test_the_sign_of_zero_is_found():
    """Two equal floats whose reciprocals differ."""
    other = symbol_float("other", 32)
    one = float32(1.0)
    goal = implies(number == other, any_of(one / number == one / other, other != float32(0.0)))
    state = decide(goal).counterexample.state
    assert {math.copysign(1, state["number"]), math.copysign(1, state["other"])} == {-1.0, 1.0}


def test_a_negative_zero_is_away_from_rest():
    """Its sign tells, so it is shown."""
    x64 = symbol_float("x64", 64)
    claim = Claim(float64(1.0) / x64 == float64(math.inf), {"zero": x64 == float64(0.0)})
    assert decide(claim).counterexample.moved == ("x64",)


def test_multiples_are_respected():
    """A counterexample lies in its domain, also the minimal one."""
    aligned = symbol_int("aligned", IntDomain(-64, 2**20, 16))
    assert decide(aligned <= 100).counterexample.state == {"aligned": 112}
    assert decide(aligned != -48).counterexample.state == {"aligned": -48}
    assert verdict(aligned % 8 == 0) == "proved"


def test_a_counterexample_says_what_is_broken_and_shows_values():
    """Every condition as executed, the broken goals by name, the terms to show by label."""
    claim = Claim(
        {"low": x >= 3, "high": x <= 50, "other": y >= 1},
        assuming={"even": x % 2 == 0},
        shows={"half": x // 2, "elsewhere": symbol_int("elsewhere", IntDomain(4, 9))},
    )
    found = decide(claim).counterexample
    assert found.state == {"x": 0, "y": 1, "elsewhere": 4}
    assert found.conditions == {"even": True}
    assert found.broken == ("low",)
    assert found.shows == {"half": 0, "elsewhere": 4}


def test_a_decision_states_its_domain_and_its_conditions():
    """Axes as the conditions narrow them; what nothing enforces is conditional."""
    kind = symbol_enum("kind", EnumSort("kind", ("none", "int8")))
    envelope = Envelope(
        (
            Bound(x, 2, 30, enforced=False, source=SOURCE),
            Bound(y, 1, 9, enforced=True, source=SOURCE),
        )
    )
    goal = any_of(x * y <= 270, kind == "none", p, number < float32(0.0))
    decision = decide(Claim(goal, assuming={"even": x % 2 == 0}, envelope=envelope))
    assert decision.verdict == "proved"
    assert decision.assumptions == ("even",)
    (condition,) = decision.conditional_on
    assert "declared only" in condition
    assert decision.axes["kind"] == "{none, int8}"
    assert decision.axes["p"] == "bool"
    assert decision.axes["number"] == "float32"
    assert decision.axes["y"] == "1..9"
    assert decision.evidence["admitted_state"]["x"] >= 2
    assert verdict(x * y <= 270) == "refuted"


def test_an_abstraction_says_what_it_abstracted():
    """A proof over free symbols names what each stood for."""
    found = first("c", x, lambda c: c * c > y, otherwise=0, at_most=64)
    decision = decide(found <= 64)
    assert decision.verdict == "proved"
    (stands_for,) = decision.evidence["stands_for"]
    assert "first" in stands_for


def test_a_spurious_state_is_never_a_counterexample():
    """What only the abstraction admits is settled by the exact query."""
    found = first("c", x, lambda c: c * c > y, otherwise=7, at_most=12)
    assert verdict(implies(all_of(x >= 12, y < 100), found <= 10)) == "proved"
    assert verdict(implies(all_of(x >= 12, y < 100), found <= 9)) == "refuted"


def test_parts_are_decided_where_the_whole_is_too_hard(monkeypatch):
    """A goal that exhausts the quick attempt is proved part by part; the queries are counted."""
    monkeypatch.setattr(engine, "_QUICK_RESOURCES", 1)
    claim = Claim({"one": x * y <= 10_000, "two": x * y >= 0, "three": x + y <= 200})
    decision = decide(claim, second=True)
    assert decision.verdict == "proved"
    assert decision.evidence["queries"] == 3
    assert decision.second_solver.endswith("agrees")
    assert decide(Claim({**claim.goals, "four": x * y != 35})).counterexample.broken == ("four",)


def test_a_part_that_fails_counts_beside_one_that_stays_open(monkeypatch):
    """Whichever comes first."""
    monkeypatch.setattr(engine, "_QUICK_RESOURCES", 1)
    a, b, c = (symbol_int(name, IntDomain(1)) for name in "abc")
    parts = {"open": a * a * a + b * b * b != c * c * c, "false": a * b != 35}
    for goals in (parts, dict(reversed(parts.items()))):
        assert decide(Claim(goals), resources=100_000).verdict == "refuted"
    assert decide(Claim(parts["open"]), resources=100_000).verdict == "unknown"


def test_a_resource_limit_is_unknown_and_never_proved():
    """With what ran out as the reason, where there are too many states to try them all."""
    a, b = symbol_int("a", POSITIVE), symbol_int("b", POSITIVE)
    for goal in (a * b <= 2**62, a // b <= 2**31, all_of(a * b >= 0, a % b < 2**31)):
        decision = decide(goal, resources=1)
        assert decision.verdict == "unknown"
        assert decision.reason


@settings(max_examples=40)
@given(small_conditions, small_conditions, st.integers(1, 2000))
def test_any_resource_limit_is_safe(assumed, goal, resources):
    """However early the solver stops, the verdict is right or unknown."""
    claim = Claim(goal, assuming={"given": assumed})
    assert decide(claim, resources=resources).verdict in (by_enumeration(claim)[0], "unknown")


def test_what_the_solver_cannot_decide_is_unknown():
    """Cubes of any size, of which no enumeration and no rule says that they never add up."""
    a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
    assert verdict(a * a * a + b * b * b != c * c * c, resources=100_000) == "unknown"


def test_sampling_says_that_it_proves_nothing():
    """A goal without a failing state stays unknown, and so do assumptions without a state."""
    for claim in (Claim(x >= 0), Claim(x >= 0, assuming={"never": x > 100})):
        decision = decide(claim, engine="sampling")
        assert decision.verdict == "unknown"
        assert "proves nothing" in decision.reason
    assert verdict(x * y <= 9_000, engine="sampling") == "refuted"


def test_claims_without_symbols_are_decided():
    """A constant goal holds or fails of the empty state, for every engine."""
    assert verdict(TRUE) == "proved"
    assert verdict(TRUE, assuming=FALSE) == "vacuous"
    for word in ("auto", "smt", "sampling"):
        assert verdict(FALSE, engine=word) == "refuted"
    assert verdict(TRUE, engine="sampling") == "unknown"


def test_a_claim_without_a_goal_is_refused():
    """It would hold of anything."""
    with pytest.raises(ModelError, match="without a goal"):
        decide(Claim({}))


def test_the_second_solver_agrees():
    """Its name and word stand beside the proof; it is asked about proofs only."""
    assert decide(x * y <= 10_000, second=True).second_solver.startswith("cvc5 ")
    assert decide(x * y <= 10_000, second=True).second_solver.endswith(" agrees")
    assert decide(x * y <= 10_000).second_solver is None
    assert decide(x <= 99, second=True).second_solver is None


@pytest.mark.parametrize(
    ("answer", "expected", "word"),
    [("sat", "disagreement", "disagrees"), ("unknown", "proved", "gave up")],
)
def test_what_the_second_solver_says_counts(monkeypatch, answer, expected, word):
    """A state that only one solver finds is a verdict of its own; silence is not."""
    monkeypatch.setattr(engine, "second_opinion", lambda *_: (answer, "other 1.0"))
    decision = decide(x * y <= 10_000, second=True)
    assert decision.verdict == expected
    assert decision.second_solver == f"other 1.0 {word}"


def test_names_of_the_models_choice_change_no_verdict():
    """Symbols called like the engine's own are different symbols."""
    for name in ("@0", "@", "n0", "floor_div", "div", "taken"):
        taken = symbol_int(name, IntDomain(0, 10_000))
        assert verdict(x * y == taken) == "refuted"
        assert verdict(implies(x * y == taken, taken <= 10_000)) == "proved"


def test_equal_runs_give_equal_decisions():
    """The counterexample and the resources spent repeat exactly."""
    claim = Claim({"one": heads * length <= 10**9, "two": ite(p, x, y) + 2 * x >= 1})
    one, two = decide(claim), decide(claim)
    assert (one.counterexample, one.evidence) == (two.counterexample, two.evidence)


def test_a_replayer_refuses_what_is_not_admitted():
    """A state outside a domain, or against an assumption, fails nothing."""
    replayer = Replayer(Claim(x < 50, assuming={"even": x % 2 == 0}))
    assert replayer.fails({"x": 60})
    assert not replayer.fails({"x": 61})
    assert not replayer.fails({"x": 102})
    assert not replayer.fails({"x": 40})
    assert not replayer.admits({"x": 102})
