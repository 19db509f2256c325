"""`list`, `explain`, `replay`, `eval`, `reach`: what they print, and their exit statuses."""

import json
from dataclasses import dataclass

import pytest

from routeproof.checkers import reaching, registry
from routeproof.checkers.cli import commands
from routeproof.checkers.solver import Limits, ask, second_opinion
from routeproof.spec.errors import RouteproofError
from routeproof.spec.function import Function, Source
from routeproof.spec.ladder import Ladder, Rung
from routeproof.spec.records import Float32, Int32, Record, symbols
from routeproof.spec.terms import TRUE, Bool, Float, all_of, symbol_bool, symbol_float


@pytest.mark.parametrize("args", [["--help"], *([name, "-h"] for name in commands.commands)])
def test_help_says_how_to_use_a_command(call, args):
    """Each command explains itself, and that is success."""
    code, out, _ = call(*args)
    assert code == 0
    assert out.startswith("Usage: ")


def test_the_version_is_printed(call):
    """With the name of the program."""
    assert call("--version")[1].startswith("routeproof, version ")


@pytest.mark.parametrize("args", [["prove"], ["explain"], ["eval"], ["reach", "ort.gqa"]])
def test_usage_errors_are_bad_input(call, args):
    """Status 2, usage on standard error."""
    code, out, err = call(*args)
    assert (code, out) == (2, "")
    assert "Usage: " in err


def test_an_error_of_ours_is_internal(call, monkeypatch):
    """Status 70, with the traceback that a report needs."""
    monkeypatch.setattr(registry, "load_obligations", lambda _: 1 // 0)
    code, _, err = call("list")
    assert code == 70
    assert "ZeroDivisionError" in err


def test_list_names_obligations_and_decides_none(own, call, tmp_path):
    """One line each, or JSON."""
    path = own(marks="proved", fails="refuted")
    code, out, _ = call("list", path)
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["proved", "own.marks"],
        ["refuted", "own.fails"],
    ]
    document = json.loads(call("list", path, "own.f*", "--format", "json")[1])
    (one,) = document["obligations"]
    assert (one["id"], one["expected"]) == ("own.fails", "refuted")
    assert document["schema_version"] == 1
    assert not (tmp_path / "ran").exists()


def test_explain_tells_the_whole_story(own, call):
    """Source, place, goal, axes, engine, counterexample, verdict."""
    code, out, _ = call("explain", "own.fails", own(fails="refuted"))
    assert code == 0
    for part in (
        *("own.fails", "fails [/x]", "kernel.cc, Size @ r1", "own.py:11", "refuted"),
        *("heads", "1..32", "46,341", "2,147,488,281", "as expected"),
    ):
        assert part in out


def test_explain_of_a_vacuous_claim_says_why(own, call):
    """The verdict is not that which is expected."""
    code, out, _ = call("explain", "own.empty", own(empty="proved"))
    assert code == 0
    assert "vacuous (expected proved): the assumptions admit no state" in out


@pytest.mark.parametrize(("name", "answer"), [("holds", "unsat"), ("fails", "sat")])
def test_explain_gives_a_query_that_any_solver_reads(own, call, name, answer):
    """Unsatisfiable means that the claim holds."""
    code, out, _ = call("explain", f"own.{name}", "--smtlib", own(holds="proved", fails="refuted"))
    assert code == 0
    assert ask(out, (), Limits()).status == answer
    assert second_opinion(out, Limits())[0] == answer


def test_explain_writes_latex(own, call):
    """Formulas for a paper."""
    code, out, _ = call("explain", "own.fails", "--latex", own(fails="refuted"))
    assert code == 0
    assert r"\mathit{heads}" in out


def error_codes(root=RouteproofError):
    """Return the code of every error the package can raise."""
    return {root.code}.union(*(error_codes(child) for child in root.__subclasses__()))


def test_explain_knows_every_error_code(call):
    """Each that this process has seen, those of the workers too."""
    assert {"RP101", "RP201", "RP202", "RP301", "RP302", "RP900"} <= error_codes()
    for code in error_codes():
        status, out, _ = call("explain", code)
        assert status == 0
        assert out.startswith(f"{code}: ")


def test_explain_suggests_the_closest_name(own, call):
    """Of obligations and error codes alike."""
    code, _, err = call("explain", "own.fail", own(fails="refuted"))
    assert code == 2
    assert "did you mean 'own.fails'?" in err


@pytest.fixture
def report(own, call, tmp_path):
    """Return the path of a report with one counterexample, and its content."""
    path = tmp_path / "report.json"
    assert call("check", own(holds="proved", fails="refuted"), "--output", path)[0] == 0
    return path, json.loads(path.read_text())


def test_replay_confirms_a_report(report, call):
    """The state still breaks its obligation, and every value is shown."""
    code, out, _ = call("replay", report[0], "own.py")
    assert code == 0
    assert "own.fails: the state still breaks it" in out
    assert "2,147,488,281" in out


def test_replay_reads_a_single_counterexample(report, call, tmp_path):
    """As it stands in the report."""
    (found,) = [one["counterexample"] for one in report[1]["obligations"] if one["counterexample"]]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(found))
    assert call("replay", path, "own.py")[0] == 0
    found["state"]["length"] -= 1
    path.write_text(json.dumps(found))
    code, out, _ = call("replay", path, "own.py")
    assert code == 1
    assert "no longer breaks it" in out


def test_replay_notices_that_the_obligation_changed(report, call, tmp_path):
    """The report stays, the claim is another."""
    own = tmp_path / "own.py"
    own.write_text(own.read_text().replace("< 2**31", "< 2**40"))
    assert call("replay", report[0], own)[0] == 1


def test_replay_of_a_report_without_counterexamples_says_so(own, call, tmp_path):
    """Nothing was executed, and nothing failed."""
    path = tmp_path / "report.json"
    call("check", own(holds="proved"), "--output", path)
    code, out, _ = call("replay", path, "own.py")
    assert code == 0
    assert "no counterexample to replay" in out


_STATE = {"heads": 1, "length": 46341}
_SAVED = {"schema_version": 1, "obligation": "own.fails", "state": _STATE}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "malformed JSON"),
        (b"\xff\xfe", "not UTF-8"),
        ([], "expected a JSON object"),
        ({}, "needs 'schema_version'"),
        ({**_SAVED, "schema_version": 2}, "schema_version 2 is not 1"),
        ({**_SAVED, "obligation": "own.fail"}, "did you mean 'own.fails'"),
        ({**_SAVED, "state": {**_STATE, "depth": 1}}, "no input 'depth'; did you mean 'length'?"),
        ({**_SAVED, "state": {"heads": 1}}, "no value for length"),
        ({**_SAVED, "state": {**_STATE, "heads": 33}}, "heads: 33 is outside 1..32"),
        ({**_SAVED, "state": {**_STATE, "heads": True}}, "heads: expected a number, got true"),
        ({"obligations": []}, "needs 'schema_version'"),
        ({"schema_version": 9, "obligations": []}, "schema_version 9 is not 1"),
        ({"schema_version": 1, "obligations": [5, None]}, "not a list of objects"),
        ({**_SAVED, "schema_version": True}, "schema_version True is not 1"),
        ({"schema_version": 1, "obligations": [{}]}, "has a 'counterexample'"),
        ({"schema_version": 1, "obligations": {}}, "not a list of objects"),
        ({"schema_version": 1, "obligations": [{"counterexample": 3}]}, "needs 'schema_version'"),
    ],
)
def test_replay_refuses_a_malformed_file(own, call, tmp_path, content, problem):
    """Status 2, with the file and what is wrong in it."""
    path = tmp_path / "saved.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    code, out, err = call("replay", path, own(fails="refuted"))
    assert (code, out) == (2, "")
    assert problem in err


def test_replay_of_a_missing_file_is_bad_input(own, call):
    """The file is named."""
    code, _, err = call("replay", "nowhere.json", own(fails="refuted"))
    assert code == 2
    assert "nowhere.json" in err


@dataclass(frozen=True, slots=True)
class Given(Record):
    """The input of a small function."""

    size: Int32
    cap: Float32


@dataclass(frozen=True, slots=True)
class Result(Record):
    """Its output."""

    fits: Bool
    cap: Float


@pytest.fixture
def evaluate(call, monkeypatch):
    """Return a function that gives rows to `eval` of a small function."""
    given = symbols(Given)
    small = Function(
        "small",
        "fits",
        Source("a.cc", "f", "r1"),
        given,
        {"out": Result(given.size < 9, given.cap)},
    )
    monkeypatch.setattr(registry, "load_function", lambda _: small)
    return lambda *lines: call("eval", "small", given=b"\n".join(lines))


GOOD = b'{"in": {"size": 3, "cap": 0.5}}'
ANSWER = '{"out":{"fits":true,"cap":0.5}}\n'


def test_eval_answers_each_row(evaluate):
    """In order; blank lines and a missing last newline do not matter."""
    assert evaluate(GOOD, b"", b"  ", GOOD.replace(b"3", b"9")) == (
        0,
        ANSWER + ANSWER.replace("true", "false"),
        "",
    )


def test_eval_of_nothing_is_nothing(evaluate):
    """No row, no answer, no error."""
    assert evaluate() == (0, "", "")


def test_eval_writes_strict_json(evaluate):
    """What JSON cannot say is a word, and reads back."""
    code, out, _ = evaluate(b'{"in": {"size": 3, "cap": "-inf"}}')
    assert (code, json.loads(out, parse_constant=pytest.fail)["out"]["cap"]) == (0, "-inf")


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"in": {"size": 3}}', b"\xff\xfe\xfd", b'{"in": 1, "in": 1}', b"9" * 5000],
)
def test_eval_answers_what_comes_before_a_bad_row(evaluate, line):
    """Whole lines; then the error with the number of the line."""
    code, out, err = evaluate(GOOD, b"", GOOD, line, GOOD)
    assert (code, out) == (2, ANSWER * 2)
    assert err.startswith("routeproof: standard input, line 4")


def test_eval_of_an_unknown_function_suggests_one(call):
    """From the catalogue."""
    code, _, err = call("eval", "ort.gqa.classifer")
    assert code == 2
    assert "did you mean 'ort.gqa.classifier'?" in err


P, Q, R = (symbol_bool(name) for name in "pqr")
SCALE = symbol_float("scale", 32)


@pytest.fixture
def ladders(monkeypatch):
    """Give `reach` two revisions of a small ladder, and one that has no table."""
    end = Rung("none", TRUE, runs=False)
    revisions = {
        "newest": Ladder("small", (Rung("fast", P & (Q | R)), Rung("slow", P), end), (P, Q), (R,)),
        "older": Ladder("small", (Rung("fast", all_of(P, ~P)), end), (P,), (Q,), {"given": P}),
    }
    unclear = {"newest": Ladder("unclear", (Rung("fast", SCALE == SCALE), end), (P,), (SCALE,))}  # noqa: PLR0124
    known = {"small": revisions, "unclear": unclear}
    monkeypatch.setattr(reaching, "load_ladders", known.__getitem__)


@pytest.mark.usefixtures("ladders")
def test_reach_prints_a_proved_table_per_revision(call):
    """Rows of facts; never and always in words."""
    code, out, _ = call("reach", "small", "fast")
    assert code == 0
    assert "1. p" in out
    assert "never" in out
    assert out.count("proved") == 2


@pytest.mark.usefixtures("ladders")
def test_reach_writes_json(call):
    """The rows of the chosen revision, its verdict and what it assumes."""
    code, out, _ = call("reach", "small", "none", "--revision", "older", "--format", "json")
    assert code == 0
    assert json.loads(out) == {
        "schema_version": 1,
        "ladder": "small",
        "outcome": "none",
        "revisions": {
            "older": {"verdict": "proved", "reason": "", "admitted": ["given"], "table": [[]]}
        },
    }


@pytest.mark.usefixtures("ladders")
def test_reach_without_a_proof_is_unknown(call):
    """Status 3, and no table that was not proved."""
    code, out, _ = call("reach", "unclear", "fast")
    assert code == 3
    assert "unknown" in out
    assert "1." not in out


@pytest.mark.usefixtures("ladders")
@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["small", "fats"], "did you mean 'fast'?"),
        (["small", "slow", "--revision", "newst"], "did you mean 'newest'?"),
        (["small", "slow", "--revision", "older"], "unknown outcome 'slow'"),
    ],
)
def test_reach_suggests_the_closest_name(call, args, problem):
    """Of outcomes and revisions."""
    code, _, err = call("reach", *args)
    assert code == 2
    assert problem in err
