"""Rows: strict JSON in, exact values out, and comparison with recorded rows."""

import gzip
import json
import math
import sys
from dataclasses import dataclass
from typing import Annotated

import pytest

from routeproof.checkers import evaluator as module
from routeproof.checkers.evaluator import Evaluator, write_row
from routeproof.checkers.rows import replay_rows
from routeproof.checkers.values import parse_json, read_value
from routeproof.spec.errors import InputError
from routeproof.spec.function import Function, Source
from routeproof.spec.obligation import Rows
from routeproof.spec.records import EnumSet, Float32, Int32, Record, SizeT, symbols
from routeproof.spec.terms import (
    Bool,
    Enum,
    EnumSort,
    Float,
    Int,
    IntDomain,
    ceil_div,
    ite,
    symbol_float,
    symbol_int,
    widen,
)

KIND = EnumSort("kind", ("none", "int8", "fp8"))
SOURCE = Source("a.cc", "f", "r1")


@dataclass(frozen=True, slots=True)
class Limits(Record):
    """A record inside the input."""

    most: SizeT


@dataclass(frozen=True, slots=True)
class Given(Record):
    """One field of every kind."""

    size: Int32
    aligned: Annotated[Int, IntDomain(0, 64, 8)]
    is_causal: Bool
    kind: Annotated[Enum, KIND]
    allowed: Annotated[EnumSet, KIND]
    cap: Float32
    limits: Limits


@dataclass(frozen=True, slots=True)
class Result(Record):
    """One output of every kind."""

    blocks: Int
    fits: Bool
    kind: Enum
    allowed: EnumSet
    cap: Float
    limits: Limits


def function():
    """Return a function that touches every kind of field."""
    given = symbols(Given)
    result = Result(
        ceil_div(given.size, 64),
        given.size <= given.limits.most,
        ite(given.is_causal, given.kind, KIND["none"]),
        given.allowed,
        widen(given.cap),
        Limits(given.limits.most + 1),
    )
    return Function("own", "all kinds", SOURCE, given, {"out": result, "again": result.limits})


GOOD = {
    "size": -65,
    "aligned": 16,
    "is_causal": True,
    "kind": "fp8",
    "allowed": ["fp8", "int8"],
    "cap": 0.1,
    "limits": {"most": 2**64 - 1},
}
OUT = {
    "blocks": -1,
    "fits": True,
    "kind": "fp8",
    "allowed": ["int8", "fp8"],
    "cap": 0.10000000149011612,
    "limits": {"most": 2**64},
}


def evaluated(**changes):
    """Return the outputs for the good row with some fields changed."""
    return Evaluator(function())({"in": {**GOOD, **changes}}, "row 1")


def refusal(**changes):
    """Return what is said of the good row with some fields changed."""
    with pytest.raises(InputError) as error:
        evaluated(**changes)
    assert str(error.value).startswith("row 1: ")
    return str(error.value)


def test_a_row_is_evaluated_key_by_key():
    """Every output key, fields in declared order, sets in order of the enum, integers exact."""
    result = evaluated()
    assert result == {"out": OUT, "again": {"most": 2**64}}
    assert list(result["out"]) == list(OUT)
    assert json.loads(write_row(result)) == result
    assert " " not in write_row(result)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_json_lacks_are_words(value):
    """In and out: `nan`, `inf`, `-inf`."""
    out = evaluated(cap=repr(value))["out"]["cap"]
    assert out == repr(value)
    assert json.loads(write_row({"cap": out}), parse_constant=pytest.fail) == {"cap": repr(value)}


def test_floats_are_rounded_once_to_their_width():
    """A number is read as C reads the literal; a large integer is exact before it is rounded."""
    number, double = symbol_float("number", 32), symbol_float("double", 64)
    assert read_value(number, 16777217, "here") == 16777216.0
    assert read_value(number, 2**60 + 2**36 + 1, "here") == 2.0**60 + 2.0**37
    assert read_value(double, 0.1, "here") == 0.1
    assert read_value(double, 10**400, "here") == math.inf
    assert read_value(number, -(10**400), "here") == -math.inf
    assert repr(read_value(number, -0.0, "here")) == "-0.0"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("size", True, "expected a number, got true"),
        ("size", 3.0, "expected an integer, got 3.0"),
        ("size", "3", 'expected a number, got "3"'),
        ("size", None, "expected a number, got null"),
        ("size", math.nan, "expected an integer, got NaN"),
        ("size", 2**31, f"{2**31} is outside -2^31..2^31-1"),
        ("size", 10**60, "is outside"),
        ("aligned", 12, "12 is outside 0..64, multiple of 8"),
        ("is_causal", 1, "expected true or false, got 1"),
        ("is_causal", "true", 'expected true or false, got "true"'),
        ("kind", "fp9", "did you mean 'fp8'?"),
        ("kind", 0, "0 is not one of none, int8, fp8"),
        ("kind", ["fp8"], "is not one of none, int8, fp8"),
        ("allowed", "fp8", "expected a list of kind names"),
        ("allowed", ["fp8", "fp8"], "'fp8' is listed twice"),
        ("allowed", ["fp9"], '"fp9" is not one of'),
        ("allowed", [["fp8"]], "is not one of"),
        ("cap", "NaN", "expected a number"),
        ("cap", False, "expected a number, got false"),
        ("limits", [], "expected an object, got []"),
        ("limits", {}, "field 'limits.most' is missing"),
        ("limits", {"most": -1}, "field 'limits.most': -1 is outside"),
        ("limits", {"most": 1, "least": 0}, "unknown field 'least'"),
        ("sise", 3, "unknown field 'sise'; did you mean 'size'?"),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused(field, value, problem):
    """With the row, the field, the value and what was expected."""
    said = refusal(**{field: value})
    assert problem in said
    assert field.split(".")[0] in said
    assert len(said) < 200


@pytest.mark.parametrize("row", [[], "in", 3, None, {}, {"input": GOOD}])
def test_a_row_is_an_object_with_an_input(row):
    """Whatever else it is, the row is named."""
    with pytest.raises(InputError, match='row 7: expected an object with a key "in"'):
        Evaluator(function())(row, "row 7")


@pytest.mark.parametrize("data", [[], None, "x"])
def test_an_input_is_an_object(data):
    """Not a list of values in order."""
    with pytest.raises(InputError, match='row 7: "in": expected an object'):
        Evaluator(function())({"in": data}, "row 7")


def test_an_integer_that_python_will_not_read_is_malformed():
    """Commands read any; this is about processes that kept the limit."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(4_300)
    try:
        with pytest.raises(InputError, match="line 3: malformed JSON"):
            parse_json("1" * 5_000, "rows.jsonl, line 3")
    finally:
        sys.set_int_max_str_digits(before)


def test_every_field_is_needed():
    """A missing field has no default."""
    for name in GOOD:
        row = {"in": {key: value for key, value in GOOD.items() if key != name}}
        with pytest.raises(InputError, match=f"row 1: field '{name}' is missing"):
            Evaluator(function())(row, "row 1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "column 2: malformed JSON"),
        ("", "malformed JSON"),
        ('{"in": 1} trailing', "column 11: malformed JSON: Extra data"),
        ('{"a": {"b": 1, "b": 1}}', "key 'b' is given twice"),
        ("{'a': 1}", "malformed JSON"),
        (b'{"a": "\xff"}', "malformed JSON"),
        ("[" * 100_000, "malformed JSON: nested too deeply"),
    ],
)
def test_malformed_json_names_the_place(text, problem):
    """Line and column, whatever is wrong with the text."""
    with pytest.raises(InputError) as error:
        parse_json(text, "rows.jsonl, line 3")
    assert str(error.value).startswith("rows.jsonl, line 3")
    assert problem in str(error.value)


def test_a_value_names_the_place_it_came_from():
    """Also outside of rows: a saved counterexample reads the same way."""
    size = symbol_int("size", IntDomain(0, 9))
    assert read_value(size, 9, "here") == 9
    with pytest.raises(InputError, match=r"here: 10 is outside 0\.\.9"):
        read_value(size, 10, "here")


@pytest.fixture
def replay(tmp_path, monkeypatch):
    """Return a function that replays recorded lines through a package made for them."""
    package = tmp_path / "recorded_rows"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "recorded_rows", raising=False)
    monkeypatch.setattr(module, "load_function", lambda _: function())

    def replay(*lines):
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (package / "rows.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        return replay_rows(Rows("own", "recorded_rows", "rows.jsonl.gz"))

    return replay


ROW = {"in": GOOD, "out": OUT, "again": {"most": 2**64}}


def test_rows_that_all_match_are_replayed(replay):
    """And counted."""
    decision = replay(ROW, ROW)
    assert decision.verdict == "replayed"
    assert decision.evidence == {"rows": 2, "matched": 2}
    assert decision.counterexample is None


@pytest.mark.parametrize("value", [0, 1.0, "1", None, -2])
def test_one_field_that_differs_refutes(replay, value):
    """The first row that differs is shown, with both values; 1 is neither 1.0 nor true."""
    decision = replay(ROW, {**ROW, "out": {**OUT, "blocks": value}}, ROW)
    assert decision.verdict == "refuted"
    assert decision.reason == "2 of 3 rows match"
    found = decision.counterexample
    assert found.broken == ("out.blocks",)
    assert found.shows == {"out.blocks (recorded)": value, "out.blocks (model)": -1}
    assert found.state["size"] == -65


def test_a_flag_is_not_a_number(replay):
    """A recorded 1 where the model says true is a difference, and is named."""
    decision = replay({**ROW, "out": {**OUT, "fits": 1}})
    assert decision.verdict == "refuted"
    assert decision.counterexample.broken == ("out.fits",)


def test_a_missing_or_an_additional_output_refutes(replay):
    """Recorded rows say all that the function says, and nothing else."""
    for row in ({"in": GOOD, "out": OUT}, {**ROW, "more": {"most": 1}}):
        decision = replay(row)
        assert decision.verdict == "refuted"
        assert "absent" in decision.counterexample.shows.values()


def test_no_rows_are_no_replay(replay):
    """Nothing was compared, so nothing holds."""
    decision = replay()
    assert decision.verdict == "refuted"
    assert decision.reason == "0 of 0 rows match"


@pytest.mark.parametrize("line", ["{", "[]", '{"out": {}}', '{"in": 3}'])
def test_a_malformed_recorded_row_is_bad_input(replay, line):
    """With its number."""
    with pytest.raises(InputError, match="row 2"):
        replay(ROW, line)
