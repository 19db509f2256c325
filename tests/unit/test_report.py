"""Reports: strict JSON with stable keys, text that loses nothing, and the exit status of a run."""

import io
import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from routeproof.checkers.counterexample import Counterexample
from routeproof.checkers.decide import Decision
from routeproof.checkers.discharge import Result
from routeproof.checkers.report import (
    dump,
    exit_status,
    print_counterexample,
    print_result,
    print_summary,
    to_json,
)
from routeproof.spec.obligation import Verdict

EXPECTABLE = (Verdict.PROVED, Verdict.REFUTED, Verdict.REPLAYED)
FOUND = Counterexample(
    {"record.size": 46341, "record.flag": False, "x": math.nan, "kind": "[bold]int8"},
    {"bytes": 2**64, "guard": True, "zero": 0},
    {"even": True},
    ("fits",),
    ("record.size", "x"),
    ("record.size",),
)


def result(verdict, expected=Verdict.PROVED, *, found=None, reason="", title="a title", **decided):
    """Return the result of an obligation that never ran."""
    decision = Decision(verdict, "smt", reason, found, **decided)
    return Result("own.one", title, "a.cc, f", "r1", "own.py:3", expected, decision, 1.25)


def text(printer, *args, **options):
    """Return what a printer prints into a pipe."""
    console = Console(file=io.StringIO(), soft_wrap=True, emoji=False)
    printer(console, *args, **options)
    return console.file.getvalue()


@pytest.mark.parametrize(("verdict", "expected"), [*itertools.product(Verdict, EXPECTABLE)])
def test_the_status_of_one_verdict(verdict, expected):
    """0 as expected, 3 unknown, 1 anything else."""
    status = exit_status([result(verdict, expected)])
    assert status == (0 if verdict is expected else 3 if verdict is Verdict.UNKNOWN else 1)


@given(st.lists(st.tuples(st.sampled_from(Verdict), st.sampled_from(EXPECTABLE)), max_size=6))
def test_the_status_of_a_run_is_that_of_its_worst_verdict(pairs):
    """A surprise outweighs an unknown, an unknown all that is as expected."""
    results = [result(verdict, expected) for verdict, expected in pairs]
    statuses = {exit_status([one]) for one in results}
    assert exit_status(results) == (1 if 1 in statuses else 3 if 3 in statuses else 0)
    assert to_json(results)["summary"]["exit_status"] == exit_status(results)


def test_json_has_the_documented_keys():
    """The schema of version 1, with a counterexample as `replay` reads it."""
    document = to_json([result(Verdict.REFUTED, found=FOUND, axes={"x": "0..9"})])
    assert document["schema_version"] == 1
    (one,) = document["obligations"]
    assert set(one) == {
        *("id", "title", "source", "revision", "location", "expected", "verdict", "as_expected"),
        *("reason", "assurance", "engine", "seconds", "axes", "assumptions", "conditional_on"),
        *("counterexample", "evidence", "acceptance", "kind", "malformed"),
    }
    assert set(one["assurance"]) == {
        *("engine", "derivation_checked", "second_solver", "exhaustive", "cached", "envelope"),
    }
    assert one["counterexample"]["schema_version"] == 1
    assert one["counterexample"]["obligation"] == "own.one"
    assert one["counterexample"]["state"]["record.size"] == 46341
    assert document["summary"] == {
        "total": 1,
        "as_expected": 0,
        "surprises": 1,
        "accepted": 0,
        "unknown": 0,
        "malformed": 0,
        "verdicts": {**dict.fromkeys(map(str, Verdict), 0), "refuted": 1},
        "exit_status": 1,
    }


def test_json_is_strict_and_exact():
    """No NaN or infinity outside of strings; integers of any size; a final newline."""
    written = dump(to_json([result(Verdict.REFUTED, found=FOUND, evidence={"most": math.inf})]))
    document = json.loads(written, parse_constant=pytest.fail)
    (one,) = document["obligations"]
    assert one["counterexample"]["state"]["x"] == "nan"
    assert one["counterexample"]["shows"]["bytes"] == 2**64
    assert one["evidence"] == {"most": "inf"}
    assert written.endswith("}\n")


def test_a_declared_envelope_is_visible():
    """A proof that is conditional says so in its assurance."""
    conditional = result(
        Verdict.PROVED,
        axes={"x": "0..3"},
        conditional_on=["x <= 3 (declared only)"],
        enforced=False,
    )
    one, two = to_json([conditional, result(Verdict.PROVED)])["obligations"]
    assert one["assurance"]["envelope"] == "declared only"
    assert two["assurance"]["envelope"] is None
    assert "declared only" in text(print_result, conditional)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_result_says_its_verdict_and_id(verdict):
    """On its first line, whatever the verdict; times are for terminals."""
    line = text(print_result, result(verdict)).splitlines()[0]
    assert str(verdict) in line
    assert "own.one a title" in line
    assert "1.25" not in line


def test_a_surprise_says_where_to_look():
    """What was expected and why not, the source and its revision, the line, the state."""
    said = text(print_result, result(Verdict.REFUTED, found=FOUND, reason="because"))
    for part in ("expected proved: because", "a.cc, f @ r1", "own.py:3", "46,341", "fits"):
        assert part in said


def test_an_unknown_is_marked_and_explained():
    """Neither a pass nor a fail."""
    said = text(print_result, result(Verdict.UNKNOWN, reason="the solver gave up"))
    assert said.startswith("? unknown")
    assert "the solver gave up" in said


def test_an_expected_counterexample_is_one_line():
    """The inputs away from rest."""
    said = text(print_result, result(Verdict.REFUTED, Verdict.REFUTED, found=FOUND))
    assert "at size=46,341, x=nan" in said
    assert "flag" not in said


def test_a_counterexample_loses_nothing():
    """Long names and numbers in full, whatever the width of the terminal; no markup."""
    name = "record." + "a_long_field_name." * 8 + "end"
    state = {name: 3**200, "kind": "[/x][bold]"}
    found = Counterexample(state, {"[red]": 1, ":x:": 2}, {}, ("[/goal]",), tuple(state), ("[y]",))
    said = text(print_counterexample, found)
    for part in (name, f"{3**200:,}", "[/x][bold]", "[red]", ":x:", "[/goal]", "[y]"):
        assert part in said


def test_all_inputs_are_shown_on_request():
    """Or those that moved, with a count of the others."""
    short, full = text(print_counterexample, FOUND), text(print_counterexample, FOUND, full=True)
    assert "2 other inputs at rest" in short
    assert "record.flag" not in short
    assert "zero" not in short
    assert "other inputs" not in full
    for name in (*FOUND.state, *FOUND.shows):
        assert name in full
    assert "not shown to be minimal in: record.size" in short


def test_a_counterexample_without_inputs_says_what_breaks():
    """A constant goal fails of the empty state."""
    said = text(print_counterexample, Counterexample({}, {}, {}, ("goal",), ()))
    assert "breaks  goal" in said


def test_titles_are_not_markup():
    """Square brackets, colons and backslashes stay as they are written."""
    title = r"a [bold]title[/bold] :smile: [/x] C:\path"
    for verdict in (Verdict.PROVED, Verdict.VACUOUS):
        assert title in text(print_result, result(verdict, title=title, reason="[/y]"))


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ((Verdict.PROVED, Verdict.PROVED), "every verdict is as expected"),
        ((Verdict.PROVED, Verdict.UNKNOWN), "1 unknown, nothing else surprising"),
        ((Verdict.UNKNOWN, Verdict.VACUOUS), "1 not as expected"),
        ((), "none"),
    ],
)
def test_the_summary_ends_with_the_outcome(verdicts, words):
    """Totals by verdict, then whether all is as expected."""
    assert words in text(print_summary, [result(verdict) for verdict in verdicts], None)
