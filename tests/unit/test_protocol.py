"""Protocols: the language refuses what is ambiguous, exploration counts, induction proves."""

import itertools

import pytest

from routeproof.checkers.decide import decide_claim
from routeproof.checkers.exploring import explore
from routeproof.checkers.induction import inductive
from routeproof.checkers.solver import Options
from routeproof.models.genai.co_residency import co_residency
from routeproof.models.genai.kv_admission import Pool, kv_admission
from routeproof.spec.errors import InputError, ModelError, UnknownNameError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.protocol import (
    Event,
    FiniteMap,
    Outcome,
    Protocol,
    Variable,
    added,
    event,
)
from routeproof.spec.terms import TRUE, IntDomain, integer, symbol_bool, symbol_int

used = symbol_int("used", IntDomain(0, None))
open_ = symbol_bool("open")
more = symbol_int("more", IntDomain(1, 2))
LEASE = Event(
    "lease",
    open_,
    (Outcome("ok", used + more <= 4, ((used, used + more),)), Outcome("refused", TRUE)),
    (more,),
)
CLOSE = event("close", used == 4, [(open_, ~open_)])
TIER = Protocol(
    "Tier",
    (Variable(used, 0), Variable(open_, initial=True)),
    (LEASE, CLOSE),
    {"within": used <= 4, "odd": used != 3, "weak": used <= 5},
)


def verdict(protocol, *names, using=()):
    """Return what induction says."""
    return decide_claim(inductive(protocol, names, using), Options()).verdict


def test_exploration_finds_every_state_and_a_shortest_trace():
    """A refusal is a transition that changes nothing."""
    found = explore(TIER)
    # 0 to 4 while open, and 4 closed and opened again: closed states have no lease.
    assert (found.states, found.depth) == (6, 3)
    assert found.transitions == 5 * 2 + 2
    assert set(found.traces) == {"odd"}
    steps = [(one.event, dict(one.parameters), one.state["used"]) for one in found.traces["odd"]]
    assert steps == [("start", {}, 0), ("lease", {"more": 1}, 1), ("lease", {"more": 2}, 3)]
    assert found.broken == {"within": 0, "odd": 1, "weak": 0}


def test_induction_proves_what_is_inductive():
    """And needs help, or a fault, for what is not."""
    assert verdict(TIER, "within") == "proved"
    assert verdict(TIER, "odd") == "refuted"
    weak = decide_claim(inductive(TIER, ("weak",)), Options())
    assert weak.verdict == "proved"  # a lease beyond 4 is refused


def test_outcomes_are_taken_in_order():
    """The first whose condition holds."""
    after, enabled = compile_terms((LEASE.after(used), LEASE.enabled))(
        {"used": 3, "open": True, "more": 2}
    )
    assert (after, enabled) == (3, True)


def test_a_map_reads_and_writes_by_key():
    """Whichever key a term names."""
    cells = {key: symbol_int(f"held[{key}]") for key in (1, 2)}
    held = FiniteMap(cells, {1: 0, 2: 5})
    key = symbol_int("key")
    written = dict(held.writes(key, integer(9)))
    values = compile_terms(tuple(written[cell] for cell in cells.values()))
    assert values({"held[1]": 3, "held[2]": 4, "key": 2}) == [3, 9]
    assert held[1] is cells[1]
    with pytest.raises(ModelError, match="the map has no key 3: 1, 2"):
        held[3]


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (
            lambda: event("both", TRUE, [(used, used + 1), (used, used + 2)]),
            "event 'both' assigns 'used' twice in 'ok': choose with ite",
        ),
        (
            lambda: Protocol("P", (Variable(used, 0),), (), {"open": open_}),
            "P: 'open' speaks of 'open', which is not declared",
        ),
        (
            lambda: Protocol("P", (Variable(used, 0),), (LEASE,), {}),
            "P: event 'lease' speaks of 'open', which is not declared",
        ),
        (
            lambda: Protocol("P", (), (event("e", TRUE, [(used, more)], more),), {}),
            "P: event 'e' assigns 'used', which is no variable",
        ),
        (
            lambda: Protocol("P", (Variable(used, 0),), (event("e", TRUE, [(used, TRUE)]),), {}),
            "P: event 'e' assigns 'used' a value of another sort",
        ),
        (
            lambda: Protocol("P", (Variable(used, 0), Variable(used, 1)), (), {}),
            "P: variable 'used' is declared twice",
        ),
        (
            lambda: FiniteMap({1: used, 2: more}, {1: 0}),
            "the map has no initial value for 'more': give one per key",
        ),
    ],
)  # fmt: skip
def test_what_is_ambiguous_is_refused_with_the_fix(build, problem):
    """Where it is written."""
    with pytest.raises(ModelError, match=problem):
        build()


def test_what_cannot_be_explored_says_why():
    """No start, no end, too many."""
    start = Protocol("P", (Variable(used, None),), (), {})
    with pytest.raises(InputError, match="P: used has no initial value"):
        explore(start)
    endless = symbol_int("n", IntDomain(1, None))
    growing = event("grow", TRUE, [(used, used + endless)], endless)
    with pytest.raises(InputError, match="the domain of 'n' has no end"):
        explore(Protocol("P", (Variable(used, 0),), (growing,), {}))
    counting = event("count", TRUE, [(used, used + 1)])
    with pytest.raises(InputError, match="P: more than 50 states"):
        explore(Protocol("P", (Variable(used, 0),), (counting,), {}), 50)


def residency(*, guarded=True):
    """Return the module with the constants of its configuration."""
    footprints = [integer((number - 1) % 3 + 1) for number in range(1, 5)]
    return co_residency(
        4,
        capacity=integer(5),
        footprints=footprints,
        pinned=1,
        requests=integer(2),
        retires_before_evict=guarded,
    )


def admission(count, capacity, *, guarded=True):
    """Return the module with shapes as its configuration has them."""
    numbers = range(count)
    prompts, outputs = ([integer(n % of + add) for n in numbers] for of, add in ((3, 1), (2, 2)))
    size = integer(capacity)
    return kv_admission(Pool(size, capacity, integer(3), integer(3), prompts, outputs, guarded))


def test_co_residency_has_the_states_that_are_published():
    """1,250 distinct, 3,329 transitions, 17 deep; without the guard a residency is wasted."""
    found = explore(residency())
    assert (found.states, found.transitions, found.depth) == (1_250, 3_329, 17)
    assert not found.traces
    unguarded = explore(residency(guarded=False), stops_at_fault=True)
    assert list(unguarded.traces) == ["NoWastedResidency"]
    assert [one.event.split()[0] for one in unguarded.traces["NoWastedResidency"]][-1] == "evict"


def test_kv_admission_has_the_states_that_are_published():
    """6,582 distinct, 38,578 transitions, 12 deep."""
    found = explore(admission(6, 10))
    assert (found.states, found.transitions, found.depth) == (6_582, 38_578, 12)
    assert not found.traces


def test_kv_admission_gets_stuck_without_its_guard():
    """332 of 6,914 states."""
    found = explore(admission(6, 10, guarded=False))
    assert found.states == 6_914
    assert {name for name, count in found.broken.items() if count} >= {"ProgressPossible"}
    assert found.broken["ProgressPossible"] == 332


@pytest.mark.parametrize("guarded", [True, False])
def test_what_induction_proves_no_exploration_breaks(guarded):
    """On every small choice of constants."""
    broken, sizes = set(), [symbol_int(f"size[{n}]", IntDomain(0, None)) for n in range(7)]
    for count, capacity in itertools.product((2, 3), (4, 5)):
        broken |= set(explore(admission(count, capacity, guarded=guarded)).traces)
    general = kv_admission(Pool(sizes[0], None, sizes[1], sizes[2], sizes[3:5], sizes[5:], guarded))
    needs = ("TypeOK", "CapacityRespected", "SafeOrder")
    using = [name for name in needs if guarded or name != "SafeOrder"]
    proved = {
        name for name in general.invariants if verdict(general, name, using=using) == "proved"
    }
    assert not proved & broken
    assert ("ProgressPossible" in proved) is guarded


def test_an_invariant_that_is_not_there_is_named():
    """With the closest."""
    with pytest.raises(UnknownNameError, match="Tier has no invariant 'withn'; did you mean"):
        inductive(TIER, ("withn",))


def test_a_sum_of_nothing_is_zero():
    """And of parts their sum."""
    assert compile_terms((added([]), added([used, more])))({"used": 3, "more": 2}) == [0, 5]
