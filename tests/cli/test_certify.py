"""`certify`: every kind of evidence is confirmed, and none that was changed."""

import json
from pathlib import Path

import pytest

HEAD = """
from routeproof.spec.function import Source
from routeproof.spec.ladder import Ladder, Rung
from routeproof.spec.obligation import Claim, Reach, obligation
from routeproof.spec.terms import TRUE, IntDomain, align_up, minimum, symbol_bool, symbol_int

HERE = Source("kernel.cc", "Size", "r1")
WIDE = IntDomain(1, 2**31 - 1)
n, m = symbol_int("n", WIDE), symbol_int("m", IntDomain(0, 20))
most = symbol_int("most", WIDE)
alias, windowed = symbol_bool("alias"), symbol_bool("windowed")
rungs = (Rung("fast", (m >= 8) & alias & ~windowed), Rung("slow", TRUE))
ladder = Ladder("own", rungs, static=(m, windowed), runtime=(alias,))


@obligation("own.derived", "the size at the bound is enough", source=HERE)
def derived():
    return Claim(align_up(n * m, 256) * n <= align_up(most * m, 256) * most, {"inside": n <= most})


@obligation("own.enumerated", "beyond 30 nothing changes", source=HERE)
def enumerated():
    goal = minimum(n, 30) * m <= 600
    return Claim(goal, settles={"n": 30}, regimes={"few": m < 3})


@obligation("own.asked", "halves are whole", source=HERE)
def asked():
    return Claim(n // 2 * 2 <= n)


@obligation("own.table", "when the fast route runs", source=HERE)
def table():
    return Reach(ladder, "fast")


@obligation("own.refuted", "twice is never 10", source=HERE, expect="refuted")
def refuted():
    return Claim(n * 2 != 10)
"""


@pytest.fixture
def report(tmp_path, monkeypatch, call):
    """Return the report of one obligation of each kind, as JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(HEAD)
    assert call("check", "own.py", "--output", "report.json", "-j", "1")[0] == 0
    return json.loads((tmp_path / "report.json").read_text())


def entry(report, name):
    """Return what a report says of an obligation."""
    return next(one for one in report["obligations"] if one["id"] == name)


def certified(call, report):
    """Return the exit status and the lines for a report."""
    Path("changed.json").write_text(json.dumps(report), encoding="utf-8")
    code, out, _ = call("certify", "changed.json", "own.py")
    return code, out.splitlines()


def test_every_kind_of_evidence_is_confirmed(report, call):
    """One line each, with what was done, and status 0."""
    code, lines = certified(call, report)
    assert code == 0
    assert [line.split()[:3] for line in lines[:5]] == [
        ["✓", "confirmed", f"own.{name}"]
        for name in ("derived", "enumerated", "asked", "table", "refuted")
    ]
    for line, how in zip(
        lines,
        ("steps followed", "630 states tried again", "1 asked again", "1 rows", "executed"),
        strict=False,
    ):
        assert how in line
    assert lines[-1] == "5 certified: 5 confirmed"


def test_an_enumeration_is_part_of_the_report(report):
    """How many states, and where symbols settle, in the assurance; counts in the evidence."""
    one = entry(report, "own.enumerated")
    assert one["engine"] == "exhaustive"
    assert one["assurance"]["exhaustive"] == {
        "states": 630,
        "admitted": 630,
        "settles": {"n": 30},
    }
    assert one["evidence"]["enumeration"]["regimes"] == {"few": 90}


@pytest.mark.usefixtures("report")
def test_explain_tells_of_an_enumeration(call):
    """The box, where one value stands for all, and the states of each regime."""
    _, out, _ = call("explain", "own.enumerated", "own.py")
    for part in ("630 states", "n 1..30; 30 stands for all beyond", "regime few", "14.29%"):
        assert part in out


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("own.derived", {"derivation": [None]}),
        ("own.derived", {"derivation": ['[["fact",[],[]]]']}),
        ("own.derived", {"derivation": ["nonsense"]}),
        ("own.derived", {"derivation": [], "admitted_state": {"n": 2, "m": 1, "most": 1}}),
        ("own.enumerated", {"enumeration": {}}),
        ("own.enumerated", {"enumeration": []}),
        ("own.asked", {"admitted_state": {}}),
        ("own.asked", {"admitted_state": {"n": 0}}),
        ("own.table", {"rows": []}),
        ("own.table", {"rows": [["windowed"]]}),
        ("own.table", {"runs": [{"alias": False}]}),
    ],
)
def test_changed_evidence_is_not_confirmed(report, call, name, change):
    """Refused with status 1, or asked again where nothing but the solver's word is left."""
    entry(report, name)["evidence"] |= change
    code, lines = certified(call, report)
    (line,) = (line for line in lines if name in line)
    if change == {"derivation": [None]}:
        assert "asked again" in line or "unconfirmed" in line
    else:
        assert code == 1
        assert line.startswith("✗ refused")


@pytest.mark.parametrize(
    "change",
    [
        {"derivation": ["[" * 100_000]},
        {"derivation": [json.dumps([["cases", ["0"], [max(0, n - 1)]] for n in range(20_000)])]},
        {"enumeration": {"box": {"n": [2, 1], "m": [0, 20]}}},
        {"admitted_state": [1]},
    ],
    ids=("nested", "chain", "empty", "list"),
)
def test_nothing_in_a_report_ends_the_command_early(report, call, change):
    """Whatever an entry holds, those after it are looked at."""
    for one in report["obligations"][:-1]:
        one["evidence"] |= change
    code, lines = certified(call, report)
    assert code in (1, 3)
    assert len(lines) == 7
    assert "confirmed" in lines[4]


def test_a_counterexample_that_breaks_nothing_is_refused(report, call):
    """It is executed."""
    entry(report, "own.refuted")["counterexample"]["state"]["n"] = 6
    code, lines = certified(call, report)
    assert code == 1
    assert any("refused" in line and "breaks no goal" in line for line in lines)


def test_a_false_claim_is_refused_whatever_the_evidence(report, call, tmp_path):
    """The claim is rebuilt; a report of another is no evidence for it."""
    changed = HEAD.replace("<= align_up(most * m", "< align_up(most * m").replace(
        "<= 600", "<= 599"
    )
    (tmp_path / "own.py").write_text(changed.replace("n // 2 * 2 <= n", "n // 2 * 2 == n"))
    code, lines = certified(call, report)
    assert code == 1
    assert [line.split()[1] for line in lines[:3]] == ["refused"] * 3


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema_version": 2, "obligations": []}'])
def test_what_is_no_report_is_bad_input(call, tmp_path, monkeypatch, text):
    """One line, status 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text(text)
    code, out, err = call("certify", "bad.json")
    assert (code, out) == (2, "")
    assert err.startswith("routeproof: bad.json")
    assert err.count("\n") == 1
