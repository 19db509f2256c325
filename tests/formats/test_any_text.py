"""Whatever a report says, no line of it is another one, and reading it back loses nothing."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import xmlschema
from formats.kinds import every_kind, result
from hypothesis import example, given, settings
from hypothesis import strategies as st

from routeproof.checkers.counterexample import Counterexample
from routeproof.checkers.discharge import Acceptance
from routeproof.checkers.formats.reading import read_report
from routeproof.checkers.formats.table import FORMATS, written
from routeproof.checkers.report import Shard
from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Verdict

DATA = Path(__file__).parents[1] / "data"
XSD = xmlschema.XMLSchema(DATA / "junit-10.xsd")
SARIF = jsonschema.Draft4Validator(json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text()))
TEXTS = st.text(st.characters(codec=None) | st.sampled_from("\n\r\x00\x1b\ud800%:,<&>]`|\\[#"))
HOSTILE = "\n::error::x\r\n##[error]y\x1b[31m\x00]]>\udcff\n```\n::add-mask::z"


def of_text(text):
    """Return results whose every text is that one: a surprise, an accepted one, an unknown."""
    found = Counterexample({"x": text, text: 1}, {text: text}, {text: True}, (text,), (text,))
    surprise = replace(
        result("one", Verdict.REFUTED, reason=text, counterexample=found, axes={text: text}),
        title=text,
        source=text,
        revision=text,
        location=f"{text}:7",
    )
    known = Acceptance(text, "2027-03-31", expired=False)
    unknown = replace(surprise.decision, verdict=Verdict.UNKNOWN, counterexample=None)
    return [
        surprise,
        replace(surprise, id="own.two", acceptance=known),
        replace(surprise, id="own.three", acceptance=replace(known, expired=True)),
        replace(surprise, id="own.four", decision=unknown),
        replace(surprise, id="own.five", decision=replace(unknown, malformed=True)),
    ]


@settings(max_examples=60, deadline=None)
@example(text=HOSTILE)
@example(text="\n")
@example(text="\udcff")
@given(text=TEXTS)
def test_any_text_is_valid_in_every_format(tmp_path_factory, text):
    """By the validators of others, in UTF-8; read back, it is written the same."""
    results = of_text(text)
    XSD.validate(written("junit", results))
    SARIF.validate(json.loads(written("sarif", results)))
    path = tmp_path_factory.mktemp("any") / "report.json"
    path.write_text(written("json", results), encoding="utf-8")
    again = read_report(path).results
    for form in FORMATS:
        one = written(form, results)
        assert one.encode("utf-8").decode("utf-8") == one
        assert written(form, again) == one


@settings(max_examples=60, deadline=None)
@example(text=HOSTILE)
@example(text="\n")
@example(text="\udcff")
@given(text=TEXTS)
def test_no_text_begins_a_line_of_its_own(text):
    """So that a CI system takes none of it for a command, whatever the format of its log."""
    plain = of_text("plain")
    for form in ("text", "github"):
        lines = written(form, of_text(text)).split("\n")
        assert len(lines) == len(written(form, plain).split("\n")) or text == ""
        assert "\r" not in "".join(lines)
    commands = re.findall(r"^\s*::\w+", written("github", of_text(text)), re.MULTILINE)
    assert len(commands) == len(plain)


def test_a_hostile_text_is_seen_as_text():
    """It stays legible where it is, and commands nothing."""
    text = written("text", of_text(HOSTILE))
    assert "::add-mask::z" in text
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    markdown = written("markdown", of_text(HOSTILE))
    assert markdown.count("<details>") == markdown.count("</details>") == 5


def places(data, path=()):
    """Yield the path of every part of a document."""
    yield path
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


TELLING = ("own.proved", "own.accepted", "own.broken")
CHOSEN = [one for one in every_kind() if one.id in TELLING]
DOCUMENT = written("json", CHOSEN, Shard(1, 4, 10, "digest", "another"))
OTHERS = (None, True, 0, -1, 1.5, math.nan, "", "x", [], {}, [[]], {"a": 1})


def read_or_refused(path, document):
    """Whether a document is read; then what is read is all of it."""
    path.write_text(document)
    try:
        report = read_report(path)
    except InputError:
        return False
    assert json.loads(written("json", report.results, report.shard)) == json.loads(document)
    return True


@pytest.mark.parametrize("place", [one for one in places(json.loads(DOCUMENT)) if one])
def test_a_changed_report_is_refused_or_says_so(tmp_path, place):
    """Whatever is changed: nothing is overlooked, and nothing is an error of ours."""
    for other in OTHERS:
        data = json.loads(DOCUMENT)
        *inner, last = place
        at = data
        for key in inner:
            at = at[key]
        at[last] = other
        if place != ("routeproof",):
            read_or_refused(tmp_path / "report.json", json.dumps(data))
    assert read_or_refused(tmp_path / "report.json", DOCUMENT)


@pytest.mark.parametrize("depth", [100, 200, 300, 400, 500, 700, 900, 100_000])
def test_a_deep_report_is_read_or_refused(tmp_path, depth):
    """As deep as its reader can."""
    deep = f'"evidence": {{"deep": {"[" * depth}{"]" * depth},'
    document = DOCUMENT.replace('"evidence": {', deep, 1)
    assert read_or_refused(tmp_path / "report.json", document) or depth > 200


def test_every_kind_comes_back_from_every_kind(tmp_path):
    """Field by field, as it was."""
    path = tmp_path / "report.json"
    path.write_text(written("json", every_kind()))
    for one, again in zip(every_kind(), read_report(path).results, strict=True):
        assert replace(one, decision=again.decision) == again
        assert one.decision.verdict is again.decision.verdict
        assert one.decision.counterexample == again.decision.counterexample
