"""Reports for other programs: their own validators take them, and nothing is smuggled in."""

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
import xmlschema
from formats.kinds import NASTY, WORSE, every_kind, result
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped

from routeproof.checkers.formats.table import FORMATS, format_of, written
from routeproof.checkers.report import Shard, to_json, visible
from routeproof.spec.obligation import Verdict

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def schema():
    """Give the published schema of a report, which is one itself."""
    file = resources.files("routeproof.checkers.formats") / "report-1.schema.json"
    found = json.loads(file.read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("shard", [None, Shard(1, 2, 19, "digest", "another")])
def test_json_meets_its_schema(schema, shard):
    """Every kind of result, in every state."""
    schema.validate(json.loads(written("json", every_kind(), shard)))


def test_the_schema_allows_nothing_else(schema):
    """A field more, a field less, or another type is no report."""
    report = to_json(every_kind())
    schema.validate(report)
    for place in (report, report["obligations"][4], report["obligations"][4]["counterexample"]):
        for name in list(place):
            kept = place.pop(name)
            assert not schema.is_valid(report), name
            place[name] = [] if isinstance(kept, dict) else {}
            assert not schema.is_valid(report), name
            place[name] = kept
        place["more"] = 1
        assert not schema.is_valid(report)
        del place["more"]
    schema.validate(report)


def test_junit_meets_the_schema_of_jenkins():
    """As the XML parser reads it."""
    xmlschema.XMLSchema(DATA / "junit-10.xsd").validate(written("junit", every_kind()))


def test_junit_is_what_junitparser_reads():
    """A case per obligation; failures, errors and skipped ones are told apart."""
    suite = next(iter(JUnitXml.fromstring(written("junit", every_kind()).encode())))
    cases = {f"{case.classname}.{case.name}": case.result for case in suite}
    kinds = {name: [type(one) for one in outcome] for name, outcome in cases.items()}
    assert kinds == {
        "own.proved": [],
        "own.refuted": [],
        "own.replayed": [],
        "own.table": [],
        "own.surprise": [Failure],
        "own.accepted": [Skipped],
        "own.expired": [Failure],
        "own.vacuous": [Failure],
        "own.open": [Error],
        "own.broken": [Error],
    }
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (10, 3, 2, 1)
    assert "breaks  fits" in re.sub(r" +", " ", cases["own.surprise"][0].text).replace(
        "breaks fits", "breaks  fits"
    )
    assert NASTY in cases["own.surprise"][0].text


@pytest.fixture
def sarif():
    """Give the run of a SARIF log that meets the schema."""
    log = json.loads(written("sarif", every_kind()))
    kind = jsonschema.Draft4Validator
    kind(json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text())).validate(log)
    return log["runs"][0]


def test_sarif_has_a_rule_per_kind_and_a_result_per_surprise(sarif):
    """At the line of the statement; what is accepted is suppressed, with the reason."""
    rules = [rule["id"] for rule in sarif["tool"]["driver"]["rules"]]
    found = {
        one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].partition(".")[2]: one
        for one in sarif["results"]
    }
    assert list(found) == list(WORSE)
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in found.values())
    assert found["broken"]["ruleId"] == "statement"
    assert {name: one["level"] for name, one in found.items()} == {
        "surprise": "error",
        "accepted": "note",
        "expired": "error",
        "vacuous": "error",
        "open": "warning",
        "broken": "error",
    }
    assert [name for name, one in found.items() if "suppressions" in one] == ["accepted"]
    assert sarif["invocations"] == [{"executionSuccessful": True, "exitCode": 2}]
    where = found["surprise"]["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "proofs/own%20file.py", "uriBaseId": "%SRCROOT%"}
    assert where["region"] == {"startLine": 3}


def test_sarif_outside_of_the_working_directory_is_a_file_address():
    """There is no root that it is relative to."""
    one = result("far", Verdict.REFUTED)
    log = json.loads(written("sarif", [replace(one, location="/opt/a b/own.py:7")]))
    (found,) = log["runs"][0]["results"]
    where = found["locations"][0]["physicalLocation"]["artifactLocation"]
    assert where == {"uri": "file:///opt/a%20b/own.py"}


@pytest.mark.parametrize("location", ["own.py:7", "{here}/own.py:7"])
def test_files_are_where_the_checkout_has_them(tmp_path, monkeypatch, location):
    """GitHub looks for them from its root, wherever the command runs."""
    inner = tmp_path / "a b"
    inner.mkdir()
    monkeypatch.chdir(inner)
    one = replace(result("one", Verdict.REFUTED), location=location.format(here=inner))
    for root, file, uri in (
        (tmp_path, "a b/own.py", "a%20b/own.py"),
        (inner, "own.py", "own.py"),
        (tmp_path / "elsewhere", location.partition(":")[0].format(here=inner), None),
    ):
        monkeypatch.setenv("GITHUB_WORKSPACE", str(root))
        assert f"::error file={file},line=7," in written("github", [one])
        (found,) = json.loads(written("sarif", [one]))["runs"][0]["results"]
        where = found["locations"][0]["physicalLocation"]["artifactLocation"]
        assert uri is None or where == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_fingerprints_stay_when_lines_move():
    """And differ between obligations, and between verdicts."""

    def fingerprints(*results):
        log = json.loads(written("sarif", results))
        return [one["partialFingerprints"]["obligation/v1"] for one in log["runs"][0]["results"]]

    one = result("one", Verdict.REFUTED)
    moved = replace(one, location="elsewhere.py:99", title="another", seconds=9.0)
    assert fingerprints(one) == fingerprints(moved)
    others = [result("two", Verdict.REFUTED), result("one", Verdict.VACUOUS)]
    assert len(set(fingerprints(one, *others))) == 3


def commands(text):
    """Read workflow commands as a runner does: name, properties, message."""
    for line in text.split("\n"):
        if match := re.fullmatch(r"::([a-z]+) ([^:]*)::(.*)", line):
            name, properties, message = match.groups()
            pairs = (pair.partition("=") for pair in properties.split(","))
            yield name, {key: unescaped(value, ":,") for key, _, value in pairs}, unescaped(message)


def unescaped(text, more=""):
    """Undo the escapes of a workflow command."""
    for character in (*more, "\r", "\n", "%"):
        text = text.replace(f"%{ord(character):02X}", character)
    return text


def test_github_annotates_what_is_not_as_expected():
    """One command per line; whatever a text holds, no other command comes of it."""
    text = written("github", every_kind())
    found = list(commands(text))
    assert len(found) == len(WORSE)
    assert len(text.splitlines()) == len(WORSE) + 1
    assert [name for name, _, _ in found] == [
        *("error", "notice", "error", "error", "warning", "error")
    ]
    _, properties, message = found[0]
    assert properties == {
        "file": "proofs/own file.py",
        "line": "3",
        "title": "own.surprise is refuted, expected proved",
    }
    assert NASTY in message
    assert "breaks  fits" in re.sub(r"breaks +", "breaks  ", message)
    assert text.splitlines()[-1].startswith("10 obligations: 2 proved, 4 refuted")


def test_markdown_tells_the_surprises_first():
    """A table, then each with its counterexample in a block that nothing in it can close."""
    text = written("markdown", every_kind())
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == len(WORSE) + 2
    assert all(row.count(" | ") == 4 for row in rows)
    assert "| until 2027-03-31: issue 12" in rows[3]
    assert text.count("<details>") == len(WORSE)
    assert "\n````text\n" in text  # one of them has a fence in it
    assert written("markdown", every_kind()[:4]).endswith("Every verdict is as expected.\n")


def test_a_long_summary_is_cut_visibly():
    """A step summary has a limit."""
    text = written("markdown", [result(f"n{number}", Verdict.REFUTED) for number in range(60)])
    assert text.endswith("\n10 more are not shown.\n")


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_repeats(form):
    """Equal results, equal bytes; none at all is a report too; no terminal codes anywhere."""
    assert written(form, every_kind()) == written(form, every_kind())
    assert written(form, [])
    assert "\x1b" not in written(form, every_kind()).replace("\\u001b", "")


@given(text=st.text(st.characters(codec=None)))
def test_any_text_is_fit_for_xml(text):
    """Nothing is dropped but what XML cannot hold, and that is marked."""
    from xml.etree import ElementTree as ET

    kept = visible(text)
    assert len(kept) == len(text)
    element = ET.Element("a")
    element.text = kept
    again = ET.fromstring(ET.tostring(element, encoding="utf-8")).text or ""  # noqa: S314 - ours
    assert again == kept


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.json", "json"),
        ("a.xml", "junit"),
        ("a.sarif", "sarif"),
        ("a.md", "markdown"),
        ("a", "text"),
    ],
)
def test_the_ending_of_a_file_names_its_format(name, form):
    """Unless the option names it."""
    assert format_of(Path(name)) == form
