"""What `diff` is made of: counterparts on two ladders, Runs executed on any state, tables."""

import io

import pytest
from rich.console import Console

from routeproof.checkers.bounding.answer import answer
from routeproof.checkers.bounding.executing import execute_run
from routeproof.checkers.diffing import verdicts
from routeproof.checkers.diffing.bounds import bounds_of, compare_bounds, difference, factor
from routeproof.checkers.diffing.report import Diff, print_text
from routeproof.checkers.diffing.sides import Side
from routeproof.checkers.diffing.verdicts import compare_ladders
from routeproof.checkers.discharge import discharge, result_of
from routeproof.checkers.registry import load_question
from routeproof.spec.errors import InputError
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import IntDomain, symbol_int

SOURCE = Source("kernel.cc", "Size", "r1")
LENGTH = symbol_int("length", IntDomain(1, 64))
STATE = {
    "batch_size": 1,
    "sequence_length": 1,
    "total_sequence_length": 9,
    "past_key_shared": True,
    "past_value_shared": True,
    "xqa_shared_memory_ok": True,
    "cudnn_is_stable": True,
    "cudnn_is_supported": True,
}


def claim(name, limit):
    """Return an obligation that holds if the limit is 64 at least."""

    @obligation(name, f"at most {limit}", source=SOURCE)
    def statement():
        return Claim(limit >= LENGTH)

    return statement


@pytest.fixture
def known(monkeypatch):
    """Give some obligations in place of those that the package ships, decided in this process."""
    every = [
        claim("a.older.size", 64),
        claim("a.newest.size", 63),
        claim("a.reach.b.older", 10),
        claim("a.reach.b.newest", 20),
        claim("a.c.newest", 64),
        claim("a.older.d", 64),
        claim("a.oldest.size", 64),
    ]
    monkeypatch.setattr(verdicts, "load_obligations", lambda: {one.id: one for one in every})
    decided = []

    def run(obligations, work, jobs):
        assert (work.files, jobs) == ((), 3)
        for one in reversed(obligations):  # in any order
            decided.append(one.id)
            yield result_of(one, discharge(one, work.options), 0.0)

    monkeypatch.setattr(verdicts, "run", run)
    return decided


def test_counterparts_differ_in_the_name_of_the_revision_alone(known):
    """Each pair is decided on both sides; a verdict that changes keeps its counterexample."""
    found = compare_ladders(("older", "newest"), (), 3)
    assert [(a.id, b.id) for a, b in found.compared] == [
        ("a.older.size", "a.newest.size"),
        ("a.reach.b.older", "a.reach.b.newest"),
    ]
    assert found.only == (("a.older.d",), ("a.c.newest",))
    assert sorted(known) == sorted(one.id for pair in found.compared for one in pair)
    ((before, after),) = found.changed
    assert (before.verdict, after.verdict) == ("proved", "refuted")
    assert after.counterexample.state == {"length": 64}
    assert found.differs


@pytest.mark.parametrize("pattern", ["a.reach.b.newest", "a.reach.b.older", "*.b.*"])
def test_a_pattern_chooses_a_pair_by_either_id(known, pattern):
    """What is refuted on both sides has not changed."""
    found = compare_ladders(("newest", "older"), (pattern,), 3)
    assert [(a.id, b.id) for a, b in found.compared] == [("a.reach.b.newest", "a.reach.b.older")]
    assert not found.differs
    assert len(known) == 2


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (4, 6, (2, 1.5)),
        (6, 0, (-6, 0.0)),
        (0, 6, (6, None)),
        (0, 0, (0, None)),
        (None, 6, (None, None)),
        (6, None, (None, None)),
        (2**60, 2**60 + 1, (1, 1.0)),
    ],
)
def test_differences_are_exact_and_factors_have_a_divisor(before, after, expected):
    """What is unknown has neither."""
    assert (difference(before, after), factor(before, after)) == expected


def question(**facts):
    """Return a question of a small envelope."""
    node = {"num_heads": 8, "kv_num_heads": 2, "head_size": 64, **facts.pop("node", {})}
    document = {
        "node": node,
        "device": {"sm": "9.0", "sms": 8},
        "kernel_options": {"cudnn": "off", "xqa": "off"},
        "envelope": {"query": "1..4", "total": "1..16"},
    }
    return load_question({**document, **facts})


@pytest.mark.parametrize(
    ("facts", "state", "expected"),
    [
        ({}, {}, ("flash_fast_decode", "", "ok")),
        ({}, {"past_key_shared": False}, ("flash", "", "ok")),
        (
            {"ladder": "older"},
            {"past_key_shared": False},
            ("error", "partial_past_present_alias", ""),
        ),
        ({"ladder": "older"}, {"sequence_length": 3}, ("flash_fast_decode", "", "ok")),
        ({"kernel_options": {"cudnn": "on"}}, {}, ("xqa", "", "ok")),
        (
            {"kernel_options": {"cudnn": "on"}},
            {"xqa_shared_memory_ok": False},
            ("cudnn", "", "unavailable"),
        ),
        (
            {"kernel_options": {"cudnn": "on", "xqa": "off"}},
            {"cudnn_is_stable": False},
            ("flash_fast_decode", "", "ok"),
        ),
        ({"node": {"head_size": 2048}}, {}, ("unfused", "", "ok")),
    ],
)
def test_a_run_ends_as_ladder_and_recipe_say(facts, state, expected):
    """Any state, with its probes; bytes where the recipe is ok."""
    found = execute_run(question(**facts), {**STATE, **state})
    assert (found.route, found.error, found.status) == expected
    assert (found.bytes is not None) == (found.status == "ok")
    assert found.outside == ()


@pytest.mark.parametrize(
    ("facts", "state", "outside"),
    [
        ({}, {"batch_size": 2}, ("batch 2 is not in 1",)),
        ({}, {"total_sequence_length": 17}, ("total 17 is not in 1..16",)),
        ({}, {"sequence_length": 4, "total_sequence_length": 2}, ("query above total",)),
        ({"alias": "none"}, {}, ("alias both is not none",)),
        (
            {"envelope": {"query": 1, "total": "1..9", "past_capacity": 0}},
            {},
            ("alias both without a past",),
        ),
    ],
)
def test_what_the_envelope_does_not_admit_is_named(facts, state, outside):
    """The node is executed all the same."""
    found = execute_run(question(**facts), {**STATE, **state})
    assert found.outside == outside
    assert found.bytes is not None


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"batch_size": 2, "sequence_length": 3}, "ort.gqa.classifier gives out.status"),
        ({"batch_size": True}, "state.batch_size"),
        ({"cudnn_is_stable": 1}, "state.cudnn_is_stable"),
        ({"extra": 1}, "state.extra"),
    ],
)
def test_a_state_of_no_run_is_bad_input(state, problem):
    """Such as a file may hold."""
    with pytest.raises(InputError, match=problem):
        execute_run(question(), {**STATE, **state})


def test_a_narrow_console_swallows_no_digit():
    """Tables keep their width; lines break."""
    older, newest = (bounds_of(answer(question(ladder=one))) for one in ("older", "newest"))
    found = compare_bounds(older, newest)
    text = io.StringIO()
    sides = tuple(Side(one, "a revision") for one in ("older", "newest"))
    console = Console(file=text, width=30)
    print_text(console, Diff(sides, None, "none", found))
    assert console.width == 30
    assert "…" not in text.getvalue()
    for one in found.states:
        for end in one.ends:
            assert end.bytes is None or f"{end.bytes:,}" in text.getvalue()
