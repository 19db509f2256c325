"""Verdicts from the cache: the same as without it, and none that was not earned."""

import gzip
import json
from dataclasses import replace

import pytest
from differential.strategies import terms
from hypothesis import HealthCheck, given, settings

from routeproof.checkers.announcing import listening
from routeproof.checkers.caching import verdicts
from routeproof.checkers.caching.store import Store
from routeproof.checkers.caching.verdicts import VERDICTS, cached_decision, open_cache, recalled
from routeproof.checkers.decide import Decision
from routeproof.checkers.decisions import decision_to_json
from routeproof.checkers.discharge import decide
from routeproof.checkers.registry import load_obligations
from routeproof.checkers.solver import Limits, Options
from routeproof.spec.errors import ModelError, RouteproofError
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, Obligation, Rows, Verdict
from routeproof.spec.terms import Bool, IntDomain, symbol_float, symbol_int

OPTIONS = Options()
x = symbol_int("x", IntDomain(0, 99))
f = symbol_float("f", 32)
a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
HOLDS = Claim(x * x <= 9801, shows={"square": x * x})
FAILS = Claim(x * x <= 9000, shows={"square": x * x})
NAN = Claim(f <= f, shows={"f": f})  # noqa: PLR0124 - NaN is not


def obligation(claim, expected=Verdict.PROVED):
    """Return an obligation of that claim, or of what a function returns."""
    build = claim if callable(claim) else lambda: claim
    return Obligation("own.it", "it", Source("a.cc", "f", "r1"), expected, build, "own.py:1")


@pytest.fixture
def warned():
    """Collect the warnings."""
    said = []
    with listening(said.append):
        yield lambda: [one.text for one in said if one.kind == "warning"]


@pytest.fixture
def opened(cache):
    """Give the cache of the test."""
    return open_cache(cache, OPTIONS)


@pytest.fixture
def decided(monkeypatch):
    """Collect the statements that an engine was asked about."""
    seen = []

    def counting(statement, options):
        seen.append(statement)
        return decide(statement, options)

    monkeypatch.setattr(verdicts, "decide", counting)
    return seen


@pytest.mark.parametrize("claim", [HOLDS, FAILS, NAN])
def test_the_second_time_nothing_is_decided(opened, decided, warned, claim):
    """And the decision is the same but for saying so."""
    first = cached_decision(obligation(claim), OPTIONS, opened)
    second = cached_decision(obligation(claim), OPTIONS, opened)
    assert decided == [claim]
    assert (first.cached, second.cached) == (False, True)
    assert first.verdict == (Verdict.PROVED if claim is HOLDS else Verdict.REFUTED)
    one, two = (json.dumps(decision_to_json(replace(d, cached=False))) for d in (first, second))
    assert one == two
    assert warned() == []


CONDITIONS = terms().filter(lambda term: isinstance(term, Bool))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(goal=CONDITIONS, assumption=CONDITIONS, shown=terms())
def test_any_claim_is_decided_once(tmp_path_factory, goal, assumption, shown):
    """What is proved or refuted comes back as it was found, floats and searches included."""
    options = Options(Limits(resources=300_000, seconds=2.0))
    place = open_cache(tmp_path_factory.getbasetemp() / "any", options)
    claim = Claim(goal, assuming={"assumed": assumption}, shows={"shown": shown})
    try:
        first, second = (cached_decision(obligation(claim), options, place) for _ in range(2))
    except RouteproofError:  # one symbol with two domains, say
        return
    kept = first.verdict in (Verdict.PROVED, Verdict.REFUTED)
    assert second.cached is kept
    if kept:
        one, two = (json.dumps(decision_to_json(replace(d, cached=False))) for d in (first, second))
        assert one == two


@pytest.mark.parametrize(
    "options",
    [
        Options(seed=1),
        Options(engine="smt"),
        Options(second=True),
        Options(Limits(resources=1_000_000)),
        Options(Limits(seconds=3.0)),
        Options(Limits(megabytes=512)),
    ],
)
def test_other_options_are_another_question(cache, decided, options):
    """Every one of them."""
    for one in (OPTIONS, options):
        cached_decision(obligation(HOLDS), one, open_cache(cache, one))
    assert len(decided) == 2


@pytest.mark.parametrize("part", ["python", "platform", "numpy", "sympy", "z3-solver"])
def test_another_version_is_another_question(opened, decided, part):
    """Of Python, the platform, or a library below."""
    other = replace(opened, environment={**opened.environment, part: "5.4.1.99"})
    for one in (opened, other):
        cached_decision(obligation(HOLDS), OPTIONS, one)
    assert len(decided) == 2


def test_another_tool_is_another_question(opened, decided):
    """As are another statement and another id."""
    other = replace(opened, sources=replace(opened.sources, tool="another"))
    assert not cached_decision(obligation(HOLDS), OPTIONS, opened).cached
    assert not cached_decision(obligation(HOLDS), OPTIONS, other).cached
    assert not cached_decision(obligation(Claim(x <= 99)), OPTIONS, opened).cached
    named = replace(obligation(HOLDS), id="own.other")
    assert not cached_decision(named, OPTIONS, opened).cached
    assert len(decided) == 4


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (Claim(a * a * a + b * b * b != c * c * c), "unknown"),
        (Claim(x >= 0, assuming={"never": x > 99}), "vacuous"),
    ],
)
def test_nothing_else_is_kept(opened, decided, claim, verdict):
    """What was not decided is tried again."""
    options = Options(Limits(resources=100_000, seconds=2.0))
    for _ in range(2):
        assert cached_decision(obligation(claim), options, opened).verdict == verdict
    assert len(decided) == 2
    assert not list(opened.store.entries(VERDICTS))


def test_what_is_no_statement_is_not_kept(opened):
    """The error is the same each time."""
    for _ in range(2):
        with pytest.raises(ModelError, match="ZeroDivisionError"):
            cached_decision(obligation(lambda: 1 // 0), OPTIONS, opened)
    assert not list(opened.store.entries(VERDICTS))


def forge(opened, claim, forged):
    """Keep a decision that nobody made, and return what becomes of it."""
    (entry,) = opened.store.entries(VERDICTS)
    opened.store.put(VERDICTS, entry.document["key"], decision_to_json(forged))
    return cached_decision(obligation(claim), OPTIONS, opened)


@pytest.mark.parametrize(
    "change",
    [
        {"state": {"x": 3}},
        {"state": {"x": 100}},
        {"state": {"x": True}},
        {"state": {"x": 99, "y": 1}},
        {"state": {}},
        {"shows": {"square": 9_999}},
        {"broken": ()},
        {"conditions": {"odd": True}},
    ],
)
def test_a_kept_counterexample_is_executed_again(opened, decided, warned, change):
    """One that does not break the claim, or does not show what it says, is not believed."""
    found = cached_decision(obligation(FAILS), OPTIONS, opened)
    forged = replace(found, counterexample=replace(found.counterexample, **change))
    again = forge(opened, FAILS, forged)
    assert not again.cached
    assert again.counterexample == found.counterexample
    assert decided == [FAILS, FAILS]
    assert warned() == ["cache: the entry of own.it is ignored: the counterexample does not replay"]


@pytest.mark.parametrize(
    "forged",
    [
        Decision(Verdict.REFUTED, "smt"),
        Decision(Verdict.UNKNOWN, "none"),
        Decision(Verdict.REPLAYED, "replay"),
        Decision(Verdict.VACUOUS, "smt"),
    ],
)
def test_a_verdict_that_is_never_kept_is_not_believed(opened, decided, warned, forged):
    """Whatever its checksum says."""
    cached_decision(obligation(HOLDS), OPTIONS, opened)
    assert forge(opened, HOLDS, forged).verdict is Verdict.PROVED
    assert len(decided) == 2
    assert len(warned()) == 1


def test_a_body_of_another_shape_is_not_believed(opened, decided, warned):
    """An entry of a layout that this tool does not write."""
    cached_decision(obligation(HOLDS), OPTIONS, opened)
    (entry,) = opened.store.entries(VERDICTS)
    opened.store.put(VERDICTS, entry.document["key"], {"verdict": "proved"})
    assert not cached_decision(obligation(HOLDS), OPTIONS, opened).cached
    assert len(decided) == 2
    assert "own.it is ignored" in warned()[0]


def test_verifying_finds_what_was_forged(opened, cache, warned):
    """The two are said to disagree, the entry goes, and the next run is right."""
    cached_decision(obligation(FAILS), OPTIONS, opened)
    forged = Decision(Verdict.PROVED, "smt")
    assert forge(opened, FAILS, forged).verdict is Verdict.PROVED  # a checksum is no signature
    verifying = open_cache(cache, OPTIONS, "verify")
    found = cached_decision(obligation(FAILS), OPTIONS, verifying)
    assert found.verdict is Verdict.DISAGREEMENT
    assert found.reason.startswith("the cache said proved, deciding again says refuted")
    assert cached_decision(obligation(FAILS), OPTIONS, opened).verdict is Verdict.REFUTED
    assert warned() == []


def test_verifying_compares_what_a_proof_is_about(opened, cache):
    """A proof of fewer inputs is another proof."""
    found = cached_decision(obligation(HOLDS), OPTIONS, opened)
    forge(opened, HOLDS, replace(found, axes={"x": "0..9"}))
    verifying = open_cache(cache, OPTIONS, "verify")
    assert cached_decision(obligation(HOLDS), OPTIONS, verifying).verdict is Verdict.DISAGREEMENT


def test_verifying_agrees_with_what_is_right(opened, cache, decided):
    """Everything is decided again, and kept where it was not."""
    verifying = open_cache(cache, OPTIONS, "verify")
    for claim in (HOLDS, FAILS):
        for one in (verifying, verifying, opened):
            found = cached_decision(obligation(claim), OPTIONS, one)
            assert found.verdict in (Verdict.PROVED, Verdict.REFUTED)
    assert decided == [HOLDS, HOLDS, FAILS, FAILS]


def test_nothing_is_kept_once_the_tool_has_changed(opened):
    """What runs is then no longer what the key names."""
    changed = replace(opened, sources=replace(opened.sources, stamp="another"))
    assert cached_decision(obligation(HOLDS), OPTIONS, changed).verdict is Verdict.PROVED
    verdicts.remember(changed, {"own.it": "digest"})
    assert not list(opened.store.root.rglob("*.json"))


def test_nothing_is_kept_of_a_solver_that_is_not_the_installed_one(opened, warned):
    """A library from elsewhere: the key would name the wrong one."""
    other = replace(opened, environment={**opened.environment, "z3-solver": "4.8.0.0"})
    assert cached_decision(obligation(HOLDS), OPTIONS, other).verdict is Verdict.PROVED
    assert not list(opened.store.entries(VERDICTS))
    assert "answers where 4.8.0.0 is installed" in warned()[0]


def test_rows_that_change_while_they_are_replayed_are_not_kept(opened, monkeypatch, tmp_path):
    """What was replayed is not what was looked up."""
    (tmp_path / "changing_rows").mkdir()
    (tmp_path / "changing_rows" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "changing_rows" / "rows.jsonl.gz"
    row = b'{"in": {"batch_size": 1, "sequence_length": 1, "num_heads": 1}}'
    file.write_bytes(gzip.compress(row))
    rows = Rows("ort.gqa.classifier", "changing_rows", "rows.jsonl.gz")

    def replaying(*_):
        file.write_bytes(gzip.compress(row + b"\n"))
        return Decision(Verdict.REPLAYED, "replay", kind="rows")

    monkeypatch.setattr(verdicts, "decide", replaying)
    assert cached_decision(obligation(rows), OPTIONS, opened).verdict is Verdict.REPLAYED
    assert not list(opened.store.entries(VERDICTS))
    monkeypatch.setattr(verdicts, "decide", lambda *_: Decision(Verdict.REPLAYED, "replay"))
    cached_decision(obligation(rows), OPTIONS, opened)
    assert len(list(opened.store.entries(VERDICTS))) == 1


def test_stale_bytecode_is_no_ground_for_keeping(cache, monkeypatch, capsys):
    """The warning says what to do."""
    stale = replace(verdicts.read_sources(), stale="spec/terms.py")
    monkeypatch.setattr(verdicts, "read_sources", lambda: stale)
    assert open_cache(cache, OPTIONS) is None
    assert "touch the file" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_not_used(tmp_path, capsys):
    """One warning, and no cache."""
    (tmp_path / "file").touch()
    assert open_cache(tmp_path / "file" / "cache", OPTIONS) is None
    assert capsys.readouterr().err.count("nothing can be written") == 1


def test_a_full_disk_changes_no_verdict(opened, warned, monkeypatch):
    """It is said, and that is all."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "put", full)
    assert cached_decision(obligation(HOLDS), OPTIONS, opened).verdict is Verdict.PROVED
    assert warned()[0].endswith("No space left on device")


NAMES = ("ort.gqa.layout.xqa.disjoint", "ort.gqa.tight.newest")


def test_statements_of_the_package_are_not_built(opened, monkeypatch):
    """As long as their digests are known; a refuted one is, to be executed."""
    known = load_obligations()
    proved = known["ort.gqa.layout.xqa.disjoint"]
    refuted = next(one for one in known.values() if one.expected is Verdict.REFUTED)
    digests = {}
    for one in (proved, refuted):
        assert recalled(one, OPTIONS, opened) is None
        with listening(
            lambda said, name=one.id: (
                digests.update({name: said.text}) if said.kind == "built" else None
            )
        ):
            cached_decision(one, OPTIONS, opened)
    verdicts.remember(opened, digests)
    again = open_cache(opened.store.root, OPTIONS)
    built = []
    monkeypatch.setattr(verdicts, "build", lambda one: built.append(one.id) or one.statement())
    assert recalled(proved, OPTIONS, again).verdict is Verdict.PROVED
    assert built == []
    assert recalled(refuted, OPTIONS, again).verdict is Verdict.REFUTED
    assert built == [refuted.id]
    other = replace(again, sources=replace(again.sources, package="another"))
    assert recalled(proved, OPTIONS, other) is None
