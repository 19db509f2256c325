"""Decision tables: "some Run takes it", as rows of which each is prime and none is redundant."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness.claims import A, B, C, K, P, every_state, values_of

from routeproof.checkers.evidence.refused import RefusedError
from routeproof.checkers.evidence.tables import check_table
from routeproof.checkers.reach import Table, decide_reach, possible, prove_table
from routeproof.checkers.solver import Limits, Options, UndecidedError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.ladder import Ladder, Rung
from routeproof.spec.obligation import Reach, Verdict
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    IntDomain,
    all_of,
    any_of,
    float32,
    free_symbols,
    symbol_bool,
    symbol_float,
    symbol_int,
)

Q, R = symbol_bool("q"), symbol_bool("r")
N = symbol_int("n", IntDomain(-2, 4))
STATIC, RUNTIME = (A, P, K), (B, Q, N)


def ladder(*guards, admitted=None, static=STATIC, runtime=RUNTIME):
    """Return a ladder with outcomes r0, r1, ... and an error at the end."""
    rungs = [Rung(f"r{index}", guard) for index, guard in enumerate(guards)]
    return Ladder(
        "small",
        (*rungs, Rung("none", TRUE, runs=False)),
        static,
        runtime,
        {"given": admitted} if admitted is not None else {},
    )


def table(rungs, outcome="r0"):
    """Return the proved table of an outcome, which the evidence checker confirms."""
    found, _, decision = prove_table(rungs, outcome, Options())
    assert decision.verdict == "proved", decision
    evidence = decide_reach(Reach(rungs, outcome), Options()).evidence
    assert evidence["table"] == found.texts
    assert check_table(rungs, outcome, evidence, 5) == len(found.rows)
    return found


def texts(rungs, outcome="r0"):
    """Return the rows of a proved table as text, each row and all of them sorted."""
    return sorted(" and ".join(sorted(row)) for row in table(rungs, outcome).texts)


def reachable(rungs, outcome):
    """Return, per state of the static facts that some Run is admitted in, whether one takes it."""
    conditions = (all_of(*rungs.admitted.values()), rungs.takes(outcome))
    program = compile_terms(conditions)
    names = [fact.name for fact in rungs.static]
    runs = [dict(zip([f.name for f in rungs.runtime], combination, strict=True))
            for combination in itertools.product(*map(values_of, rungs.runtime))]  # fmt: skip
    found = {}
    for facts in itertools.product(*map(values_of, rungs.static)):
        state = dict(zip(names, facts, strict=True))
        admitted = [
            taken for is_admitted, taken in (program(state | run) for run in runs) if is_admitted
        ]
        if admitted:
            found[facts] = any(admitted)
    return found


def covered(row, rungs, among):
    """Return the static states among those given that meet every fact of a row."""
    program = compile_terms([all_of(*row)])
    names = [fact.name for fact in rungs.static]
    return {facts for facts in among if program(dict(zip(names, facts, strict=True)))[0]}


def assert_exact(rungs, outcome, rows):
    """Assert that rows cover exactly what is taken, each prime, none redundant."""
    taken = reachable(rungs, outcome)
    yes = {facts for facts, is_taken in taken.items() if is_taken}
    parts = [covered(row, rungs, taken) for row in rows]
    assert set().union(*parts) == yes
    for index, row in enumerate(rows):
        others = set().union(*(part for at, part in enumerate(parts) if at != index))
        assert not parts[index] <= others
        for left_out in range(len(row)):
            assert not covered(row[:left_out] + row[left_out + 1 :], rungs, taken) <= yes


_FACTS = (
    *(P, ~P, K == "none", K != "none", K == "fp8", A == 0, A <= 1, A > 2, A != 3, A % 2 == 1),
    *(Q, ~Q, N == 1, N > 1, N <= -1, B >= 2, B == N, any_of(Q, N < A)),
)
guards = st.lists(
    st.lists(st.sampled_from(_FACTS), min_size=1, max_size=3).map(lambda facts: all_of(*facts)),
    min_size=1,
    max_size=3,
).map(lambda ways: any_of(*ways))


@settings(max_examples=40)
@given(guards, guards, st.one_of(st.none(), guards), st.sampled_from(("r0", "r1", "none")))
def test_a_proved_table_is_exact(one, two, admitted, outcome):
    """Over every state; what the instances miss is unknown, never a table."""
    rungs = ladder(one, two, admitted=admitted)
    decision = decide_reach(Reach(rungs, outcome), Options())
    assert decision.verdict in ("proved", "unknown", "vacuous")
    if decision.verdict == "proved":
        assert_exact(rungs, outcome, table(rungs, outcome).rows)
    elif decision.verdict == "vacuous":
        assert not reachable(rungs, outcome)


_FLAGS = tuple(symbol_bool(name) for name in "stuv")
_MINTERMS = [
    all_of(*(flag if value else ~flag for flag, value in zip(_FLAGS, values, strict=True)))
    for values in itertools.product((False, True), repeat=len(_FLAGS))
]


@settings(max_examples=40)
@given(st.sets(st.sampled_from(_MINTERMS), min_size=3))
def test_any_function_of_flags_has_an_exact_table(minterms):
    """Also where some of the prime rows are covered by others."""
    rungs = ladder(any_of(*minterms), static=_FLAGS, runtime=())
    assert_exact(rungs, "r0", table(rungs).rows)


def test_a_small_table():
    """Static facts stay, run-time facts go, earlier rungs are negated."""
    rungs = ladder(P & Q, any_of(A == 3, all_of(K == "fp8", N == 1)))
    assert texts(rungs) == ["p"]
    assert texts(rungs, "r1") == ["a == 3", "k == fp8"]
    assert texts(rungs, "none") == ["a != 3"]


def test_never_and_always():
    """No row at all, and a row without a fact."""
    rungs = ladder(all_of(Q, ~Q), any_of(P, Q))
    assert table(rungs).rows == ()
    assert table(rungs).condition is FALSE
    assert table(rungs, "r1").rows == ((),)
    assert table(rungs, "r1").condition is TRUE


def test_a_run_that_is_not_admitted_takes_nothing():
    """Only admitted values of a run-time fact count."""
    assert table(ladder(all_of(P, N <= 0), admitted=N >= 1)).rows == ()
    assert texts(ladder(all_of(P, N <= 1), admitted=N >= 1)) == ["p"]


def test_admitted_states_shorten_the_rows():
    """What every state of interest satisfies is not repeated."""
    assert texts(ladder(all_of(A >= 2, P, Q), admitted=P)) == ["a >= 2"]


def test_runtime_integers_beyond_the_constants_are_tried_at_their_ends():
    """A guard that compares twice the fact needs a value that no constant names."""
    far = symbol_int("far", IntDomain(10, 30))
    rungs = ladder(all_of(P, far * 2 >= 50), static=(P,), runtime=(far,))
    assert texts(rungs) == ["p"]
    assert texts(ladder(all_of(P, far > 3), static=(P,), runtime=(far,))) == ["p"]


def test_a_missed_run_adds_its_instance():
    """A run-time fact that no constant names is found where the equivalence fails."""
    far, size = symbol_int("far", IntDomain(0, 100)), symbol_int("size", IntDomain(0, 100))
    rungs = ladder(all_of(far == size, far * far == 2500), static=(size,), runtime=(far,))
    assert texts(rungs) == ["size == 50"]
    assert texts(ladder(all_of(P, (far + 1) // 2 >= 30), static=(P,), runtime=(far,))) == ["p"]


def test_not_numbers_are_not_merged():
    """`x >= y and x != y` is no `y < x` where one of them may be NaN."""
    x, y = symbol_float("x", 32), symbol_float("y", 32)
    guard = all_of(~(x < y), x != y)
    assert texts(ladder(guard, static=(x, y), runtime=())) == ["not x < y and x != y"]


def test_what_the_instances_miss_is_unknown():
    """A run-time fact compared with a static one has a value for each of that."""
    far, size = symbol_int("far", IntDomain(0, 100)), symbol_int("size", IntDomain(0, 100))
    rungs = ladder(far == size, static=(size,), runtime=(far,))
    decision = decide_reach(Reach(rungs, "r0"), Options())
    assert (decision.verdict, decision.counterexample) == (Verdict.UNKNOWN, None)
    assert "miss a Run" in decision.reason


def test_runtime_floats_are_refused():
    """Rather than left out: no list of instances stands for every float."""
    scale = symbol_float("scale", 32)
    rungs = ladder(scale > float32(1.0), static=(P,), runtime=(scale,))
    with pytest.raises(UndecidedError, match="scale"):
        possible(rungs, "r0")
    decision = decide_reach(Reach(rungs, "r0"), Options())
    assert decision.verdict == "unknown"
    assert "scale" in decision.reason


def test_a_resource_limit_is_unknown():
    """Half a table is no table."""
    rungs = ladder(all_of(A * A + B * C == 7, P), static=(A, P), runtime=(B, C))
    decision = decide_reach(Reach(rungs, "r0"), Options(Limits(resources=1)))
    assert decision.verdict == "unknown"
    assert "table" not in decision.evidence


def test_contradictory_admitted_states_are_vacuous():
    """They prove no table."""
    decision = decide_reach(Reach(ladder(P & Q, admitted=all_of(A < 1, A > 2)), "r0"), Options())
    assert decision.verdict == "vacuous"


def test_facts_called_like_the_engines_own_are_different_facts():
    """A flag `f0` or `taken` is a fact like any other."""
    flags = [symbol_bool(name) for name in ("f0", "f1", "taken", "r0", "@f0")]
    rungs = ladder(
        all_of(flags[2], any_of(flags[0], Q)), flags[1], static=tuple(flags), runtime=(Q,)
    )
    assert texts(rungs) == ["taken"]
    assert texts(rungs, "none") == ["not f0 and not f1", "not f1 and not taken"]


def test_instances_are_what_a_run_can_do():
    """Each is an instance of the condition, so their disjunction is at most it."""
    rungs = ladder(all_of(P, N == 2), any_of(N < 0, Q))
    for state in every_state(P):
        assert compile_terms([possible(rungs, "r0")])(state) == [state["p"]]
    assert possible(rungs, "r1") is TRUE
    assert not {fact.name for fact in free_symbols(possible(rungs, "none"))} & {"n", "q"}


def test_a_table_reads_as_one_condition():
    """A disjunction of conjunctions."""
    found = Table("r0", ((P, A == 1), (K == "fp8",)))
    assert found.condition is any_of(all_of(P, A == 1), K == "fp8")
    assert found.texts == [["p", "a == 1"], ["k == fp8"]]


RUNGS = ladder((A <= 2) & (B > 1) & P, admitted=B <= 2)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("rows", []),
        ("rows", [["p"]]),
        ("rows", [[["le", "a", 2]]]),
        ("rows", [[["le", "a", 1], "p"]]),
        ("rows", [[["le", "a", 2], "p", ["lt", 0, "b"]]]),
        ("rows", [[["le", "a", 2], "p"], [["le", "a", 2], "p"]]),
        ("rows", [[["le", "a", 2], "p"], [["le", "a", 1], "p"]]),
        ("rows", [[["le", "a", 2], ["le", "a", 3], "p"]]),
        ("rows", [["a"]]),
        ("rows", [[["le", "a"]]]),
        ("rows", ["p"]),
        ("rows", None),
        ("runs", []),
        ("runs", [{}]),
        ("runs", [{"b": 1}]),
        ("runs", [{"b": 3}]),
        ("runs", [{"b": 4}]),
        ("runs", [{"b": True}]),
        ("runs", [{"a": 2, "b": 2}]),
        ("runs", [2]),
        ("runs", None),
    ],
)
def test_a_table_that_says_more_or_less_is_refused(part, value):
    """Rows that leave a Run out or have none, Runs that are none."""
    evidence = dict(decide_reach(Reach(RUNGS, "r0"), Options()).evidence)
    assert check_table(RUNGS, "r0", evidence, 5) == 1
    with pytest.raises(RefusedError):
        check_table(RUNGS, "r0", {**evidence, part: value}, 5)
