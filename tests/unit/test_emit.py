"""Emitted code: compiled without warnings, equal to the model, and with tests that can fail."""

import copy
import gzip
import json
import random
import subprocess
import sys
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated

import pytest
from emitted import LANGUAGES, built, imported, run_test
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.checkers.emit import emit
from routeproof.checkers.emitting.plan import plan
from routeproof.checkers.emitting.text import camel
from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import load_function
from routeproof.spec.errors import InputError, RouteproofError, UnsupportedError
from routeproof.spec.function import Function, Source, Table
from routeproof.spec.interpret import compile_terms
from routeproof.spec.records import EnumSet, Int64, Record, SizeT, leaves, symbols
from routeproof.spec.terms import (
    Bool,
    Enum,
    EnumSort,
    Int,
    IntDomain,
    Term,
    align_up,
    ceil_div,
    first,
    integer,
    ite,
    maximum,
    minimum,
)

ROWS = Path(__file__).parents[1] / "golden" / "rows"
WRITTEN = ("unfused", "mea", "preparation", "xqa", "classifier", "bounds")
LEAST, MOST = -(2**63), 2**63 - 1
EDGES = (LEAST, LEAST + 1, -(2**31), -1, 0, 1, 2, 4, 8, 2**16, 2**31 - 1, 2**31, 2**62, MOST)
SOURCE = Source("f.cu", "f()", "v1")


def golden(stem):
    """Read every row of the real code."""
    lines = gzip.decompress((ROWS / f"{stem}.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def changed(function, row, rng):
    """Take a row's input and give up to four of its parts any value, often an extreme one."""
    data = copy.deepcopy(row["in"])
    for path, symbol in rng.sample(list(leaves(function.inputs).items()), rng.randint(1, 4)):
        *above, last = path.split(".")
        part = data
        for name in above:
            part = part[name]
        if isinstance(part, list):  # a set
            part[:] = sorted({last} ^ set(part))
        elif isinstance(symbol, Int):
            part[last] = rng.choice((*EDGES, rng.randint(LEAST, MOST)))
        else:
            members = symbol.members.members if isinstance(symbol, Enum) else (False, True)
            part[last] = rng.choice(members)
    return {"in": data}


def answered(function, rows):
    """Return the rows with what the interpreter makes of them."""
    evaluate = Evaluator(function)
    return [{**row, **evaluate(row, "row")} for row in rows]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("stem", WRITTEN)
def test_rows_of_the_real_code_and_extreme_ones(stem, language, tmp_path):
    """Without a warning, the emitted test passes: on recorded rows, and on the model's beside."""
    function, rows, rng = load_function(f"ort.gqa.{stem}"), golden(stem), random.Random(stem)  # noqa: S311 - not for secrets
    beside = answered(function, [changed(function, rng.choice(rows), rng) for _ in range(200)])
    some = rows if language == "python" else rows[:200]
    text = emit(function, language, [*some, *beside])
    status, said = run_test(language, text, tmp_path, function.name)
    assert status == 0, said


@pytest.mark.parametrize("stem", WRITTEN)
def test_any_machine_integer(stem, tmp_path_factory):
    """The emitted Python and the interpreter give one answer, whatever the machine integers."""
    function, rows = load_function(f"ort.gqa.{stem}"), golden(stem)
    planned, evaluator = plan(function), Evaluator(function)
    module = imported(emit(function, "python", []), tmp_path_factory.mktemp(stem))
    program = compile_terms(
        [root for one in function.outputs.values() for root in leaves(one).values()]
    )

    def value(field, state):
        given = state[field.term.name]
        kind = isinstance(field.term, Enum) and getattr(module, camel(field.term.members.name))
        return kind(given) if kind else given

    @settings(max_examples=100)
    @given(st.randoms(use_true_random=False))
    def agree(rng):
        state = evaluator.state(changed(function, rng.choice(rows), rng), "row")
        got = getattr(module, stem)(**{one.name: value(one, state) for one in planned.inputs})
        outputs = [getattr(got, one.name.replace(".", "_")) for one in planned.outputs]
        assert [getattr(one, "value", one) for one in outputs] == program(state)

    agree()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_vector_fails(language, tmp_path):
    """An emitted test names the vector that the function does not reproduce."""
    function, rows = load_function("ort.gqa.classifier"), golden("classifier")[:3]
    rows[1]["out"]["present_kv_sequence_length"] += 1
    status, said = run_test(language, emit(function, language, rows), tmp_path, function.name)
    assert status != 0
    assert "vector 2" in said
    assert "vector 3" not in said


@dataclass(frozen=True, slots=True)
class Pair(Record):
    """Two machine integers and two flags."""

    a: Int64
    b: Int64
    p: Bool
    q: Bool


pair = symbols(Pair)


def made(record, **outputs):
    """Build a function `test.made` of the outputs."""
    kind = make_dataclass(
        "Outputs", [(name, Term) for name in outputs], bases=(Record,), frozen=True
    )
    return Function("test.made", "A test", SOURCE, record, {"out": kind(**outputs)})


def pairs(*values):
    """Return an input for each pair of the values, as rows."""
    return [{"in": {"a": a, "b": b, "p": a > b, "q": b > 0}} for a in values for b in values]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_operation(language, tmp_path):
    """Division by zero and negative numbers, both roundings, the least and the greatest integer."""
    a, b = pair.a, pair.b
    numbers = {
        "total": a + b,
        "difference": a - b,
        "product": a * b,
        "floor": a // b,
        "ceil": ceil_div(a, b),
        "modulo": a % b,
        "aligned": align_up(a, b),
        "least": minimum(a, b, -5),
        "greatest": maximum(a, b, 2**40),
        "constants": (a // -7) % 5 - ceil_div(b, 3),
        "chosen": ite(pair.p, ite(a == b, 3, 4), 5) * ite(pair.q, a, b),
    }
    conditions = {
        "same": pair.p == pair.q,
        "either": ite(pair.p, a * b > 2**64 - 1, ~pair.q),
        "neither": ~ite(pair.p, a < b, a >= 3) | (pair.q & (b >= 5)),
        "far": a * b <= -(2**70),
    }
    outputs = {name: one % 1_000_003 for name, one in numbers.items()} | conditions
    function = made(pair, **outputs)
    rows = answered(function, pairs(LEAST, -9, -1, 0, 1, 3, 7, 64, MOST))
    status, said = run_test(language, emit(function, language, rows), tmp_path, function.name)
    assert status == 0, said


def outcome(language, function, given, folder):
    """Run the function once: exit status 0 for an answer, 3 for none of the documented kind."""
    text = emit(function, language, [])
    if language == "python":
        call = ", ".join(f"{name}={value}" for name, value in given.items())
        (folder / "text.py").write_text(text)
        program = f"import text\ntry: text.made({call})\nexcept ValueError: raise SystemExit(3)"
        command = [sys.executable, "-c", program]
    elif language == "cpp":
        literals = [f"{one}U" if one >= 2**63 else str(one).lower() for one in given.values()]
        call = f"test::made::made({{{', '.join(literals)}}})"
        catches = "catch (const std::domain_error&) { return 3; }"
        catches += " catch (const std::overflow_error&) { return 3; }"
        program = f"int main() {{ try {{ {call}; }} {catches} return 0; }}"
        command = [str(built(language, text + program, folder))]
    else:
        call = ", ".join(f"{name}: {value}" for name, value in given.items()).lower()
        program = f"#[test] fn answers() {{ assert_ne!(made(&Input {{ {call} }}), None); }}"
        command = [str(built(language, text + program, folder))]
    status = subprocess.run(command, check=False, capture_output=True, cwd=folder).returncode
    return {101: 3}.get(status, status) if language == "rust" else status


FIFTH = pair.a * pair.a * pair.a * pair.a * pair.a
SHARED = (FIFTH > 7) & (pair.b != 5)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("outputs", "a", "exact"),
    [
        ({"x": ite(FIFTH > 7, 1, 2)}, 2**25, True),
        ({"x": ite(FIFTH > 7, 1, 2)}, 2**26, False),
        ({"x": FIFTH - FIFTH + pair.b}, 2**26, False),
        ({"x": FIFTH}, 2**12, True),
        ({"x": FIFTH}, 2**13, False),
        ({"x": ite(pair.p, FIFTH, 0), "y": ite(pair.p & (FIFTH > 7), 1, 2)}, 2**62, True),
        ({"x": ite(pair.p & SHARED, 1, 2), "y": ite(pair.q | SHARED, 1, 2)}, 2**62, True),
        (
            {"x": ite(pair.p, ite(SHARED, 1, 2), 3), "y": pair.q | (ite(SHARED, 1, 2) > 1)},
            2**62,
            True,
        ),
        ({"x": ite(SHARED, 1, 2) + ite(SHARED, pair.b, 0), "y": SHARED}, 2**62, False),
    ],
)
def test_what_exceeds_128_bits(outputs, a, exact, language, tmp_path):
    """A value that decides is needed, one that does not is not; Python knows every value."""
    given = {"a": a, "b": 1, "p": False, "q": True}
    function = made(pair, **outputs)
    used = {field.name: given[field.name] for field in plan(function).inputs}
    status = outcome(language, function, used, tmp_path)
    assert status == (0 if exact or language == "python" else 3)


@dataclass(frozen=True, slots=True)
class Narrow(Record):
    """Inputs with domains of their own."""

    rows: Annotated[Int, IntDomain(8, 64, 8)]
    bytes: SizeT


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rows", [8, 64, 0, 72, 12, -8])
def test_an_input_outside_its_domain_is_refused(rows, language, tmp_path):
    """The model says nothing there, so neither does the function."""
    narrow = symbols(Narrow)
    function = made(narrow, x=narrow.rows + narrow.bytes % 7)
    status = outcome(language, function, {"rows": rows, "bytes": 2**63 + 5}, tmp_path)
    assert status == (0 if rows in (8, 64) else 3)


WORDS = EnumSort("type", ("None", "default", "self", "per-tensor", "per_tensor", "Ok"))


@dataclass(frozen=True, slots=True)
class Inner(Record):
    """A name that is another's."""

    rows: Int64


@dataclass(frozen=True, slots=True)
class Odd(Record):
    """Names that languages or the emitted text have for themselves."""

    class_: Int64
    K: Int64
    k: Int64
    t1: Int64
    Int: Int64
    fn: Int64
    lambda_: Int64
    type: Annotated[Enum, WORDS]
    match: Annotated[EnumSet, WORDS]
    rows: Int64
    inner: Inner


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_that_are_taken(language, tmp_path):
    """Keywords, names that differ in case alone, and those of the text itself are renamed."""
    odd = symbols(Odd)
    words = [
        odd.class_,
        odd.K,
        odd.k,
        odd.t1,
        odd.Int,
        odd.fn,
        odd.lambda_,
        odd.rows,
        odd.inner.rows,
    ]
    total = integer(0)
    for at, word in enumerate(words, 1):
        total += word * at
    kept = ite(odd.match.has("self") & (odd.type != "None"), odd.type, WORDS["Ok"])
    outputs = {
        "int": total,
        "static": total > 9,
        "out": kept,
        "K": total * 2,
        "k": odd.type == "default",
    }
    function = made(odd, **outputs)
    given = {
        name: at
        for at, name in enumerate(("class_", "K", "k", "t1", "Int", "fn", "lambda_", "rows"))
    }
    rows = [
        {"in": {**given, "type": word, "match": match, "inner": {"rows": 5}}}
        for word in WORDS.members
        for match in ([], ["self", "Ok"])
    ]
    text = emit(function, language, answered(function, rows))
    status, said = run_test(language, text, tmp_path, function.name)
    assert status == 0, said


SQUARES = Table("b", [n * n for n in range(1, 257)], outside=-1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_input_that_is_looked_up(language, tmp_path):
    """It is not passed; outside the table it has the value that was given for that."""
    function = made(pair, x=ite(pair.a < 0, -7, pair.a * 2))
    keys = (LEAST, -1, 0, 1, 2, 255, 256, 257, MOST)
    given = [{"a": SQUARES.at(b), "b": b, "p": False, "q": False} for b in keys]
    rows = answered(function, [{"in": one} for one in given])
    assert [row["out"]["x"] for row in rows] == [-7, -7, -7, 2, 8, 130050, 131072, -7, -7]
    function = replace(function, tables={"a": SQUARES})
    text = emit(function, language, rows)
    assert [field.name for field in plan(function).inputs] == ["b"]
    status, said = run_test(language, text, tmp_path, function.name)
    assert status == 0, said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_closed_form_is_needed_in_full_on_every_device(language, tmp_path):
    """Its own table, and an input for each of 256 devices but the one that splits nothing."""
    function = load_function("ort.gqa.flash_accumulators")
    rows = answered(function, [{"in": dict(row)} for row in function.attained()])
    assert len(rows) == 255
    status, said = run_test(language, emit(function, language, rows), tmp_path, function.name)
    assert status == 0, said


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"c": SQUARES}, "two integer inputs are needed"),
        ({"p": SQUARES}, "two integer inputs are needed"),
        ({"b": SQUARES}, "two integer inputs are needed"),
        ({"a": Table("p", [1])}, "two integer inputs are needed"),
        ({"a": Table("b", [1, 2**63])}, "9223372036854775808 is outside -2^63..2^63-1"),
        ({"a": Table("b", [1], outside=2**63)}, "is outside"),
    ],
)
def test_tables_that_do_not_fit(tables, complaint):
    """A table speaks of two integer inputs, and its values are in the domain."""
    with pytest.raises(InputError, match="table of") as error:
        emit(replace(made(pair, x=pair.a), tables=tables), "cpp", [])
    assert complaint in str(error.value)


def test_a_vector_must_agree_with_the_table():
    """A row computed with another value says nothing of the emitted function."""
    function = made(pair, x=pair.a)
    rows = answered(function, [{"in": {"a": 5, "b": 2, "p": False, "q": False}}])
    with pytest.raises(InputError, match=r"row 1: a is 5, its table has 4"):
        emit(replace(function, tables={"a": SQUARES}), "cpp", rows)


@pytest.mark.parametrize(
    ("name", "construct"),
    [
        ("flash", "needs a float"),
        ("complete", "needs a float"),
        ("eligibility", "needs a float"),
        ("ladder", "needs a float"),
    ],
)
def test_what_cannot_be_written(name, construct):
    """Searches and floats are refused by one line that names the function and the construct."""
    with pytest.raises(UnsupportedError, match=construct) as error:
        emit(load_function(f"ort.gqa.{name}"), "cpp", [])
    assert str(error.value).startswith(f"ort.gqa.{name}: output ")
    assert "\n" not in str(error.value)


@dataclass(frozen=True, slots=True)
class Unbounded(Record):
    """An input that no machine type holds."""

    n: Annotated[Int, IntDomain(0)]


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (
            made(pair, x=first("c", 9, lambda c: c > pair.a, otherwise=0, at_most=9)),
            "needs the search 'first'",
        ),
        (made(pair, x=ite(pair.a > 2**130, 1, pair.b)), None),
        (made(pair, x=pair.a * 2**130), "too large"),
        (made(symbols(Unbounded), x=symbols(Unbounded).n), "no 64-bit type"),
        (made(pair, x=integer(5)), "no output depends on an input"),
    ],
)
def test_the_limits_of_a_language(function, complaint):
    """What has no 64-bit type or exceeds 128 bits is refused, unless it decides nothing."""
    if complaint is None:
        assert "1361129467683753853853498429727072845824" not in emit(function, "cpp", [])
        return
    with pytest.raises(RouteproofError, match=complaint):
        emit(function, "cpp", [])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"in": {"a": 1}}, "missing"),
        ({"in": {"a": 1, "b": 1, "p": True, "q": True}}, "output 'out' is missing"),
        ({"in": {"a": 1, "b": 1, "p": True, "q": True}, "out": {}}, "row 1: output 'x': no value"),
        ({"in": {"a": 1, "b": 1, "p": True, "q": True}, "out": {"x": True}}, "expected a number"),
        ({"in": {"a": 2**63, "b": 1, "p": True, "q": True}, "out": {"x": 1}}, "is outside"),
    ],
)
def test_malformed_vectors(row, complaint):
    """A row that lacks a value, or has one of another type, is refused with its place."""
    with pytest.raises(InputError, match=complaint):
        emit(made(pair, x=pair.a), "rust", [row])


def test_a_vector_that_no_type_holds():
    """Python has every integer, the others have no answer to compare with."""
    function = made(pair, x=pair.a * pair.b)
    rows = answered(function, pairs(MOST))
    assert emit(function, "python", rows)
    with pytest.raises(InputError, match=r"output 'x': .* is outside -2\^63..2\^63-1"):
        emit(function, "rust", rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_text_is_the_same_every_time(language):
    """Another process writes the same text, whatever the order of its sets."""
    program = (
        "import sys; from routeproof.checkers.emit import emit\n"
        "from routeproof.checkers.registry import load_function\n"
        f"sys.stdout.write(emit(load_function('ort.gqa.bounds'), {language!r}, []))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == emit(load_function("ort.gqa.bounds"), language, [])


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_text_says_of_itself(language):
    """Source, revision and units are in the comment; no line is too long."""
    function = load_function("ort.gqa.unfused")
    text = emit(function, language, [])
    head = (
        " ".join(text.split("\n\n")[0:9])
        .replace("\n//! ", " ")
        .replace("\n// ", " ")
        .replace("\n", " ")
    )
    for said in (str(function.source), "(sizes in elements, not bytes)", "Regions (bytes"):
        assert said in head
    assert max(map(len, text.splitlines())) <= 100
