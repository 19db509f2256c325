"""Reports read back, and parts of a run put together: as if it had been one."""

import json
import math
import random
from dataclasses import replace
from datetime import date

import pytest
from formats.kinds import every_kind, result
from hypothesis import given
from hypothesis import strategies as st

from routeproof.checkers import baseline
from routeproof.checkers.formats.reading import read_report
from routeproof.checkers.formats.table import FORMATS, written
from routeproof.checkers.report import exit_status
from routeproof.checkers.sharding import merged, parse_shard, part_of
from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Verdict


@pytest.fixture
def save(tmp_path):
    """Return a function that writes a report to a file."""

    def save(results, shard=None, name="report.json"):
        path = tmp_path / name
        path.write_text(written("json", results, shard))
        return path

    return save


def test_a_report_comes_back(save):
    """What is written again is the same, in every format."""
    results = every_kind()
    again = read_report(save(results)).results
    for form in FORMATS:
        assert written(form, again) == written(form, results)
    assert exit_status(again) == exit_status(results)


def broken(*path, to=None, drop=False):
    """Return a change of a report: the part at the path is another, or is not there."""

    def change(data):
        *inner, last = path
        for step in inner:
            data = data[step]
        if drop:
            del data[last]
        else:
            data[last] = to

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (broken("schema_version", to=2), "expected a report of schema_version 1"),
        (broken("schema_version", to=True), "schema_version 1, as check writes it"),
        (broken("schema_version", to=1.0), "a report of schema_version 1"),
        (broken("routeproof", drop=True), "'routeproof' is missing or no str"),
        (broken("obligations", to={}), "'obligations' is missing or no list"),
        (broken("obligations", 0, to=3), "obligation 1: expected an object"),
        (broken("obligations", 0, "id", to=3), "obligation 1: 'id' is missing or no str"),
        (broken("obligations", 0, "seconds", to="1"), "(own.proved): 'seconds' is missing"),
        (broken("obligations", 0, "expected", to="unknown"), "'unknown' is never expected"),
        (broken("obligations", 0, "verdict", to="perhaps"), "no verdict 'perhaps'"),
        (broken("obligations", 0, "axes", to=[]), "axes cannot be"),
        (broken("obligations", 0, "as_expected", to=False), "as_expected: false does not agree"),
        (broken("obligations", 0, "as_expected", to=1), "as_expected: 1 does not agree"),
        (broken("obligations", 0, "more", to=1), "'more' is unknown"),
        (broken("obligations", 1, "id", to="own.proved"), "own.proved is there twice"),
        (broken("obligations", 1, "counterexample", "obligation", to="own.x"), '"own.x" does not'),
        (broken("obligations", 1, "counterexample", "state", "scale", to=math.nan), "NaN does not"),
        (broken("summary", drop=True), "'summary' is missing"),
        (broken("summary", "surprises", to=0), "summary: surprises: 0 does not agree"),
        (broken("summary", "exit_status", to=0), "summary: exit_status: 0 does not agree"),
        (broken("obligations", 0, "kind", to="lemma"), "kind cannot be 'lemma'"),
        (broken("obligations", 0, "assurance", "envelope", to="soft"), "no envelope is 'soft'"),
        (broken("obligations", 0, "assurance", "envelope", to=[]), "no envelope is []"),
        (broken("obligations", 4, "counterexample", to=[]), "counterexample: expected an object"),
        (broken("obligations", 4, "counterexample", "state", to=1), "state cannot be 1"),
        (broken("obligations", 5, "acceptance", to=1), "acceptance: expected an object"),
        (broken("obligations", 5, "acceptance", "expired", to=0), "'expired' is missing or no"),
        (broken("shard", to={"index": 3, "count": 2, "total": 9, "selection": ""}), "no part 3"),
        (broken("shard", to={"index": True}), "shard: 'index' is missing or no int"),
    ],
)
def test_what_is_no_report_is_refused(save, change, problem):
    """One line with the file and the place in it."""
    path = save(every_kind())
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as error:
        read_report(path)
    assert str(error.value).startswith(f"{path}")
    assert problem in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"schema_version": 1}'])
def test_what_is_no_document_is_refused(tmp_path, text):
    """Also what is cut off."""
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"report\.json"):
        read_report(path)


def shards(results, count, save):
    """Save the parts of a run; returns their files."""
    return [
        save(*part_of(results, index, count), name=f"part{index}.json")
        for index in range(1, count + 1)
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 14])
def test_parts_make_the_whole(save, count):
    """Whatever their order, and if there are more parts than obligations."""
    results = every_kind()
    parts = [read_report(path) for path in shards(results, count, save)]
    random.Random(1).shuffle(parts)  # noqa: S311 - an order, not a secret
    whole = merged(parts)
    assert written("json", whole) == written("json", results)
    assert exit_status(whole) == exit_status(results)


def test_parts_that_are_no_whole_are_refused(save):
    """One missing, one twice, one of another run, of another version, or with other contents."""
    results = every_kind()
    paths = shards(results, 3, save)
    parts = [read_report(path) for path in paths]
    other = read_report(save(*part_of(results[:9], 2, 3), name="other.json"))
    whole = read_report(save(results, name="whole.json"))
    for chosen, problem in (
        (parts[:2], "part 3 of 3 is missing"),
        ([parts[0], parts[0]], r"part 1, which .*part1\.json is already"),
        ([parts[0], other, parts[2]], r"other\.json: part of another run than .*part1\.json"),
        ([whole], r"whole\.json: no part of a run"),
    ):
        with pytest.raises(InputError, match=problem):
            merged(chosen)
    first, *others = parts[1].results
    for changed, problem in (
        (replace(parts[1], version="9.9"), "made by routeproof 9.9, and this is"),
        (replace(parts[1], results=others), "2 results, 3 are due"),
        (
            replace(parts[1], results=[replace(first, id="own.another"), *others]),
            "do not hold the obligations",
        ),
    ):
        with pytest.raises(InputError, match=problem):
            merged([parts[0], changed, parts[2]])


@given(total=st.integers(0, 40), count=st.integers(1, 12))
def test_each_obligation_is_in_one_part(total, count):
    """None is left out and none is decided twice."""
    everything = [result(f"n{number}", Verdict.PROVED) for number in range(total)]
    found = [
        one.id for index in range(1, count + 1) for one in part_of(everything, index, count)[0]
    ]
    assert sorted(found) == sorted(one.id for one in everything)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "0/2",
        "3/2",
        "-1/2",
        "1/0",
        "a/b",
        "1/2/3",
        "²/3",
        "\u0663/\u0665",
        "1/9999999999999999999",
    ],
)
def test_what_is_no_part_is_refused(text):
    """With an example of one."""
    with pytest.raises(InputError, match="such as 2/4"):
        parse_shard(text)


NOW = date(2027, 1, 1)


@pytest.fixture
def accept(save, tmp_path, monkeypatch):
    """Return a function that accepts what surprises in results, on a day; gives the file."""
    file = tmp_path / "baseline.json"

    def accept(results, *, on=NOW, expires="2027-03-31", reason="issue 12"):
        monkeypatch.setattr(baseline, "today", lambda: on)
        said = baseline.run_baseline(save(results), reason, expires, file)
        return said, baseline.read_baseline(file)

    return accept


def test_what_surprises_is_accepted_for_a_while(accept):
    """Then the run passes; the day after, it fails again and says why."""
    results = [result("one", Verdict.REFUTED), result("two", Verdict.PROVED)]
    said, known = accept(results)
    assert said.endswith("1 added, 0 kept, 0 removed")
    assert list(known) == ["own.one"]
    for day, status in ((NOW, 0), (date(2027, 3, 31), 0), (date(2027, 4, 1), 1)):
        judged = baseline.apply(results, known, day)
        assert exit_status(judged) == status
    assert "no longer accepted, which ended on 2027-03-31: issue 12" in written("text", judged)


def test_another_verdict_is_not_accepted(accept):
    """Somebody accepted that it is refuted, not that the engines disagree."""
    _, known = accept([result("one", Verdict.REFUTED)])
    for verdict in (Verdict.VACUOUS, Verdict.DISAGREEMENT, Verdict.REPLAYED):
        assert exit_status(baseline.apply([result("one", verdict)], known, NOW)) == 1


def test_what_is_unknown_or_malformed_is_never_accepted(accept):
    """Not even by a file that was written by hand."""
    results = [
        result("open", Verdict.UNKNOWN),
        result("broken", Verdict.UNKNOWN, malformed=True),
    ]
    said, known = accept(results)
    assert said.endswith(
        "0 added, 0 kept, 0 removed; 2 unknown or malformed, which cannot be accepted"
    )
    assert known == {}
    _, known = accept([result("open", Verdict.REFUTED), result("broken", Verdict.REFUTED)])
    judged = baseline.apply(results, known, NOW)
    assert [one.is_accepted for one in judged] == [False, False]
    assert exit_status(judged) == 2
    assert exit_status(judged[:1]) == 3


def test_a_baseline_is_brought_up_to_date(accept):
    """What is accepted stays so; what has expired is accepted anew; what is repaired goes."""
    names = ("kept", "repaired", "changed")
    accept([result(name, Verdict.REFUTED) for name in names], expires="2027-02-01")
    results = [
        result("kept", Verdict.REFUTED),
        result("repaired", Verdict.PROVED),
        result("changed", Verdict.VACUOUS),
    ]
    said, known = accept(results, reason="issue 13")
    assert said.endswith("1 added, 1 kept, 1 removed")
    assert {name: (one.verdict, one.reason) for name, one in known.items()} == {
        "own.kept": ("refuted", "issue 12"),
        "own.changed": ("vacuous", "issue 13"),
    }
    said, known = accept(results[:1], on=date(2027, 2, 2), reason="issue 14")
    assert known["own.kept"].reason == "issue 14"
    assert known["own.changed"].reason == "issue 13"  # the report does not speak of it


def test_what_need_not_be_accepted_is_named(accept):
    """So that a baseline shrinks."""
    _, known = accept([result("one", Verdict.REFUTED)])
    assert baseline.needless([result("one", Verdict.PROVED)], known) == ["own.one"]
    assert baseline.needless([result("one", Verdict.REFUTED)], known) == []


@pytest.mark.parametrize(
    ("expires", "reason", "problem"),
    [
        ("2026-12-31", "why", "that day is over"),
        ("31.03.2027", "why", "is no date such as"),
        ("20270331", "why", "is not written as 2027-03-31"),
        ("2027-02-30", "why", "is no date such as"),
        ("2027-03-31", " ", "say why"),
    ],
)
def test_accepting_takes_a_reason_and_a_day_to_come(accept, tmp_path, expires, reason, problem):
    """Nothing is written otherwise."""
    with pytest.raises(InputError, match=problem):
        accept([result("one", Verdict.REFUTED)], expires=expires, reason=reason)
    assert not (tmp_path / "baseline.json").exists()


ENTRY = {"id": "own.one", "verdict": "refuted", "reason": "why", "expires": "2027-03-31"}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "expected a baseline of schema_version 1"),
        ({"schema_version": 2, "accepted": []}, "expected a baseline of schema_version 1"),
        ({"schema_version": 1}, "'accepted' is no list"),
        ({"schema_version": 1, "accepted": [1]}, "entry 1: expected an object of id"),
        ({"schema_version": 1, "accepted": [{**ENTRY, "more": 1}]}, "entry 1: expected an object"),
        ({"schema_version": 1, "accepted": [{**ENTRY, "reason": ""}]}, "reason is no text"),
        ({"schema_version": 1, "accepted": [{**ENTRY, "id": None}]}, "id is no text"),
        (
            {"schema_version": 1, "accepted": [{**ENTRY, "verdict": "unknown"}]},
            "cannot be accepted",
        ),
        ({"schema_version": 1, "accepted": [{**ENTRY, "expires": "soon"}]}, "'soon' is no date"),
        ({"schema_version": 1, "accepted": [ENTRY, ENTRY]}, "entry 2: own.one is accepted twice"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path, document, problem):
    """One line with the file and the entry."""
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=problem):
        baseline.read_baseline(path)
