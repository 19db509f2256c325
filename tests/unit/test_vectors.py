"""Boundary-value vectors: edges found and missed, outputs exact, and files that compile and check.

"Right" and "wrong" in the compiled checks are functions of the test's own: the answers looked up by
the input's place, one of them changed, and a toy written by hand in each language.
"""

import json
import math
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest

from routeproof.checkers.evaluator import Evaluator, recorded
from routeproof.checkers.registry import build, function_names, load_function, load_obligations
from routeproof.checkers.vectors import Vector, Vectors, boundary_vectors, run_vectors
from routeproof.checkers.vectors.boundary import cover, paths
from routeproof.checkers.vectors.cpp import write_cpp
from routeproof.checkers.vectors.landscape import Landscape, is_same
from routeproof.checkers.vectors.rust import write_rust
from routeproof.checkers.vectors.searching import Search
from routeproof.checkers.vectors.writing import write_json
from routeproof.spec.errors import InputError
from routeproof.spec.function import Function, Source
from routeproof.spec.interpret import compile_terms, evaluate
from routeproof.spec.obligation import Rows
from routeproof.spec.recipe import status_sort
from routeproof.spec.records import EnumSet, Float32, Int64, Record, SizeT, symbols
from routeproof.spec.terms import (
    Bool,
    Enum,
    EnumSort,
    Int,
    IntDomain,
    Op,
    ceil_div,
    ite,
    minimum,
    substitute,
)

SOURCE = Source("toy.cc", "Toy()", "v1")
STATUS = status_sort("invalid")
KIND = EnumSort("kind", ("narrow", "wide"))
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ToyInput(Record):
    """Rows of a kernel, its kind, and whether there is scratch at all."""

    rows: Annotated[Int, IntDomain(-1000, 1000)]
    kind: Annotated[Enum, KIND]
    scratch: Bool


@dataclass(frozen=True, slots=True)
class ToyOutput(Record):
    """A status and a number of blocks."""

    status: Enum
    blocks: Int


def toy() -> Function:
    """At most 100 rows, in blocks of 16 or 32, and never more than 5 blocks."""
    given = symbols(ToyInput)
    valid = (given.rows >= 1) & (given.rows <= 100)
    blocks = minimum(ceil_div(given.rows, ite(given.kind == "wide", 32, 16)), 5)
    output = ToyOutput(
        ite(valid, STATUS["ok"], STATUS["invalid"]), ite(valid & given.scratch, blocks, 0)
    )
    return Function("toy", "blocks of rows", SOURCE, given, {"out": output})


PARTS = {"low": 1, "high": 100, "most": 5, "narrow": 16, "wide": 32, "sort": min}


def by_hand(given, **slip):
    """The toy in Python; a slip is a part that a careless port gets wrong."""
    parts = PARTS | slip
    if not parts["low"] <= given["rows"] <= parts["high"]:
        return {"status": "invalid", "blocks": 0}
    blocks = parts["sort"](-(-given["rows"] // parts[given["kind"]]), parts["most"])
    return {"status": "ok", "blocks": blocks if given["scratch"] else 0}


@cache
def found_for(name: str) -> Vectors:
    """The vectors of a function of the catalogue."""
    return boundary_vectors(load_function(name))


def values_at(found: Vectors, path: str) -> set[object]:
    """Every value of one input in the vectors."""
    seen = set()
    for vector in found.vectors:
        part = vector.row["in"]
        for key in path.split("."):
            part = part[key]
        seen.add(part)
    return seen


class TestToy:
    """A function whose edges are known by hand."""

    found = boundary_vectors(toy())

    def test_every_edge_is_found(self):
        """Both sides of every condition, step and choice; which sides cannot show is known."""
        edges = {edge.partition(" | ")[0] for one in self.found.vectors for edge in one.edges}
        assert edges >= {
            "rows >= 1",
            "rows < 1",
            "rows <= 100",
            "rows > 100",
            "scratch",
            "not scratch",
            "kind == wide",
            "kind != wide",
            "out.status == ok",
            "out.status == invalid",
            "out.status == ok, next to invalid",
            "out.status == invalid, next to ok",
        }
        assert any(edge.startswith("ceil_div(rows") for edge in edges)
        assert any(edge.startswith("ceil_div(rows") and edge.endswith("> 5") for edge in edges)
        assert self.found.uncovered == ()

    def test_states_lie_right_at_the_edges(self):
        """On the last and the first value of each regime."""
        assert values_at(self.found, "rows") >= {0, 1, 100, 101}

    def test_rows_are_what_the_toy_computes(self):
        """The outputs are those of the function written by hand."""
        for vector in self.found.vectors:
            assert vector.row["out"] == by_hand(vector.row["in"])

    @pytest.mark.parametrize(
        "slip",
        [
            {"low": 0},
            {"low": 2},
            {"high": 99},
            {"high": 101},
            {"most": 4},
            {"most": 6},
            {"sort": max},
            {"wide": 16},
            {"narrow": 32},
            {"narrow": 15},
            {"narrow": 17},
            {"wide": 31},
            {"wide": 33},
        ],
    )
    def test_a_slip_shows(self, slip):
        """Each mistake at an edge changes the answer to some vector."""
        rows = [vector.row for vector in self.found.vectors]
        assert any(by_hand(row["in"], **slip) != row["out"] for row in rows)

    def test_no_vector_is_superfluous(self):
        """Each meets something that no other one does, and together they meet all that was met."""
        search = Search(toy().inputs, paths(toy()))
        search.run([{"rows": 7, "kind": "narrow", "scratch": True}])
        kept = cover(search.found, 300)
        met = set().union(*(one.meets for one in search.found))
        assert set().union(*(one.meets for one in kept)) == met
        for one in kept:
            others = set().union(*(other.meets for other in kept if other is not one))
            assert not one.meets.keys() <= others
        assert len(kept) < len(search.found)

    def test_what_does_not_fit_is_uncovered(self):
        """A limit on the number is kept, and what it costs is said."""
        few = boundary_vectors(toy(), most=3)
        assert len(few.vectors) == 3
        assert few.uncovered

    def test_a_side_without_an_effect_is_uncovered(self):
        """A condition that another one makes pointless has no vector, and is listed."""
        given = symbols(ToyInput)
        pointless = (given.rows >= 5) & (given.rows >= 3)
        output = ToyOutput(ite(pointless, STATUS["ok"], STATUS["invalid"]), ceil_div(1, 1))
        found = boundary_vectors(Function("toy", "twice", SOURCE, given, {"out": output}))
        assert "rows < 3" in found.uncovered
        assert {4, 5} <= values_at(found, "rows")

    def test_steps_may_be_coarse(self):
        """Domains of multiples are kept to; the neighbour is one multiple away."""

        @dataclass(frozen=True, slots=True)
        class Coarse(Record):
            size: Annotated[Int, IntDomain(0, 4096, 8)]

        @dataclass(frozen=True, slots=True)
        class Fits(Record):
            fits: Bool

        given = symbols(Coarse)
        function = Function("c", "c", SOURCE, given, {"out": Fits(given.size <= 250)})
        assert values_at(boundary_vectors(function), "size") == {248, 256}


@pytest.mark.parametrize("name", function_names())
def test_the_catalogue(name):
    """Outputs are the interpreter's, vectors few and distinct, edges and outcomes told."""
    found = found_for(name)
    evaluator = Evaluator(load_function(name))
    assert 0 < len(found.vectors) <= 300
    for vector in found.vectors:
        state = evaluator.state(vector.row, "row")
        assert {"in": vector.row["in"], **evaluator.outputs(state)} == vector.row
        assert vector.edges
    assert len({json.dumps(one.row) for one in found.vectors}) == len(found.vectors)
    replaying = (one for one in load_obligations().values() if one.expected == "replayed")
    rows = [r for r in map(build, replaying) if isinstance(r, Rows) and r.function == name]
    for key, record in load_function(name).outputs.items():
        outcome = next((one for one in ("status", "error") if hasattr(record, one)), None)
        if outcome:
            seen = {one.row[key][outcome] for one in found.vectors}
            states = [row.state for one in rows for row in recorded(one)]
            assert seen >= {evaluator.outputs(state)[key][outcome] for state in states}


@pytest.mark.parametrize(
    ("name", "path", "sides"),
    [
        ("ort.gqa.flash", "problem.head_size", {256, 264}),
        ("ort.gqa.flash", "problem.batch_size", {0, 1, INT32_MAX, INT32_MAX + 1}),
        ("ort.gqa.flash", "config.total_sequence_length", {0, 1, INT32_MAX, INT32_MAX + 1}),
        ("ort.gqa.xqa", "problem.batch_size", {65_535, 65_536}),
        ("ort.gqa.xqa", "problem.kv_num_heads", {65_535, 65_536}),
        ("ort.gqa.xqa", "config.device_major", {7, 8}),
        ("ort.gqa.xqa", "config.multi_processor_count", {0, 1, 2**32 - 1, 2**32}),
        ("ort.gqa.mea", "problem.head_size", {128, 129}),
        ("ort.gqa.unfused", "total_sequence_length", {0, 1, INT32_MAX, INT32_MAX + 1}),
        ("ort.gqa.preparation", "problem.kv_cache_bit_width", {0, 4, 8}),
        ("ort.gqa.eligibility", "device_minor", {8, 9}),
        ("ort.gqa.ladder", "head_size", {256, 264}),
        ("ort.gqa.flash_runtime", "device_major", {7, 8}),
    ],
)
def test_known_edges(name, path, sides):
    """Both sides of edges that the sources name."""
    assert values_at(found_for(name), path) >= sides


def test_every_way_to_fail_is_seen():
    """Status values, overflow among them."""
    for name in ("flash", "mea", "unfused", "complete", "preparation"):
        found = found_for(f"ort.gqa.{name}")
        seen = {one.row["out"]["status"] for one in found.vectors}
        assert seen >= {"ok", "invalid_argument", "overflow"}, name


def test_the_published_drop_of_the_split_count():
    """From a base below it: 13,824 keys give 54 splits, 13,825 give 28."""
    ok = next(one for one in found_for("ort.gqa.flash").vectors if one.row["out"]["status"] == "ok")
    row = json.loads(json.dumps(ok.row))
    row["in"]["problem"] |= {"batch_size": 1, "sequence_length": 1, "head_size": 64}
    row["in"]["problem"] |= {"num_heads": 2, "kv_num_heads": 2}
    row["in"]["config"] |= {"total_sequence_length": 13_000, "local_window_size": -1}
    row["in"]["config"] |= {"multi_processor_count": 108, "fast_decode": False}
    found = boundary_vectors(load_function("ort.gqa.flash"), [row])
    splits = {
        one.row["in"]["config"]["total_sequence_length"]: one.row["out"]["selected_split_count"]
        for one in found.vectors
        if "out.selected_split_count: 54 -> 28" in " ".join(one.edges)
        or "out.selected_split_count: 28 -> 54" in " ".join(one.edges)
    }
    assert splits == {13_824: 54, 13_825: 28}


@pytest.mark.parametrize("name", ["classifier", "eligibility", "ladder", "flash", "mea", "xqa"])
def test_a_mistaken_condition_shows(name):
    """With a covered condition turned round in the model itself, some vector's answer changes."""
    function = load_function(f"ort.gqa.{name}")
    outputs = paths(function)
    search = Search(function.inputs, outputs)
    found = found_for(f"ort.gqa.{name}")
    evaluator = Evaluator(function)
    states = [evaluator.state(one.row, "row") for one in found.vectors]
    want = list(map(compile_terms(tuple(outputs.values())), states))
    tried = 0
    for probe in search.probes:
        node = search.land.nodes[probe.slot]
        sides = {probe.text(side) for side in probe.required}
        if node.op not in (Op.EQ, Op.LT, Op.LE) or sides & {*found.uncovered}:
            continue
        run = compile_terms(substitute(tuple(outputs.values()), {node: ~node}))
        assert any(repr(run(state)) != repr(is_) for state, is_ in zip(states, want, strict=True))
        tried += 1
    assert tried >= 3


def test_moving_an_input_computes_what_a_fresh_start_does():
    """Values carried from state to state are the interpreter's, searches and all."""
    function = load_function("ort.gqa.flash")
    outputs = paths(function)
    land = Landscape(tuple(outputs.values()))
    states = [Evaluator(function).state(one.row, "") for one in found_for("ort.gqa.flash").vectors]
    run = compile_terms(land.nodes)
    values = land.values(states[0])
    for state in states:
        settings = {land.slot[one]: state[one.name] for one in land.symbols}
        values, _ = land.moved(values, settings)
        assert values == run(state)
        assert all(map(is_same, values, land.values(state)))


def test_a_mistake_reaches_what_it_would_change():
    """Forcing a node agrees with putting another term in its place."""
    function = toy()
    term = paths(function)["out.blocks"]
    land = Landscape((term,))
    node = next(one for one in land.nodes if one.op is Op.MIN)
    (forced,) = substitute((term,), {node: node * 0 + 3})
    for rows in (0, 1, 40, 60, 100, 101):
        for scratch in (False, True):
            state = {"rows": rows, "kind": "narrow", "scratch": scratch}
            reaches = land.reaches(
                land.values(state), land.slot[node], 3, frozenset({land.slot[term]})
            )
            assert reaches == (evaluate(forced, state) != evaluate(term, state))


def test_the_same_text_every_time():
    """Neither hashing nor addresses decide anything."""
    code = "import routeproof.checkers.vectors as v; print(v.run_vectors('ort.gqa.ladder', 'json'))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


class TestBases:
    """Rows to start from, given by a user."""

    def test_they_are_where_the_search_starts(self, tmp_path):
        """JSON lines; blank lines are skipped, outputs may be missing."""
        base = {"batch_size": 3, "sequence_length": 5, "total_sequence_length": 5}
        base |= {"total_sequence_length_on_cpu": True, "has_past": True, "past_sequence_length": 0}
        path = tmp_path / "base.jsonl"
        path.write_text(f"\n{json.dumps({'in': base})}\n")
        found = json.loads(run_vectors("ort.gqa.classifier", "json", path))
        assert {3, 1} <= {one["in"]["batch_size"] for one in found["vectors"]}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no row to start from"),
            ("{", "line 1, column 2: malformed JSON"),
            ('\n{"out": {}}', 'line 2: expected an object with a key "in"'),
            ('{"in": {"batch": 1}}', "line 1: \"in\": unknown field 'batch'"),
        ],
    )
    def test_a_bad_row_is_told_in_one_line(self, tmp_path, text, message):
        """The file, the line and what is wrong there."""
        path = tmp_path / "base.jsonl"
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            run_vectors("ort.gqa.classifier", "json", path)
        assert str(caught.value).startswith(str(path))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("name", ["nowhere.jsonl", "."])
    def test_a_file_that_cannot_be_read(self, tmp_path, name):
        """A missing file, or a folder."""
        with pytest.raises(InputError, match="directory"):
            run_vectors("ort.gqa.classifier", "json", tmp_path / name)

    def test_bad_rows_of_a_caller(self):
        """The number of the row."""
        with pytest.raises(InputError, match="base row 2: field 'rows'"):
            boundary_vectors(
                toy(), [{"in": {"rows": 1, "kind": "wide", "scratch": True}}, {"in": {"rows": "1"}}]
            )


HARD = EnumSort("auto", ("int", "new", "match", "8bit"))


@dataclass(frozen=True, slots=True)
class HardInput(Record):
    """Names that are keywords, and numbers at their limits."""

    fn: Int64
    size: SizeT
    cap: Float32
    struct: Annotated[Enum, HARD]
    among: Annotated[EnumSet, HARD]


@dataclass(frozen=True, slots=True)
class HardOutput(Record):
    """What comes in goes out."""

    fn: Int
    size: Int
    cap: Float32
    struct: Enum
    among: EnumSet


CAPS = (0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**-149, float(2**24 - 1) * 2.0**104, 1.1)


def hard() -> Vectors:
    """Vectors, made by hand, of a function that gives back its input."""
    given = symbols(HardInput)
    output = HardOutput(given.fn, given.size, given.cap, given.struct, given.among)
    function = Function("hard.one", 'says "hi" \\', SOURCE, given, {"out": output})
    evaluator = Evaluator(function)
    vectors = []
    for at, cap in enumerate(CAPS):
        state = {"fn": (-(2**63), 2**63 - 1)[at % 2], "size": (2**64 - 1, 0)[at % 2], "cap": cap}
        state["struct"] = HARD.members[at % 4]
        state |= {f"among.{one}": at % (2 + place) == 0 for place, one in enumerate(HARD.members)}
        state["cap"] = struct.unpack("f", struct.pack("f", cap))[0]
        row = {"in": evaluator.inputs(state), **evaluator.outputs(state)}
        vectors.append(Vector(row, ('an "edge" \\ ??/ é',)))
    return Vectors(function, tuple(vectors), ())


def bits(cap: float) -> str:
    """The pattern of a float32."""
    return struct.pack(">f", cap).hex()


class TestJson:
    """The form that keeps everything."""

    def test_integers_and_floats_are_exact(self):
        """All of an integer's digits; a float that is not a number is its name."""
        document = json.loads(write_json(hard()))
        assert document["schema_version"] == 1
        assert document["function"] == "hard.one"
        assert document["source"] == str(SOURCE)
        first, second, third = (one["in"] for one in document["vectors"][:3])
        assert (first["fn"], first["size"]) == (-(2**63), 2**64 - 1)
        assert math.copysign(1, second["cap"]) == -1
        assert third["cap"] == "nan"

    def test_vectors_are_rows(self):
        """`eval` takes them as they are, and gives what they say."""
        document = json.loads(run_vectors("ort.gqa.ladder", "json"))
        evaluator = Evaluator(load_function("ort.gqa.ladder"))
        for one in document["vectors"]:
            assert evaluator({"in": one["in"]}, "row") == {k: one[k] for k in ("out", "out_newest")}
            assert isinstance(one["edge"], str)
        assert document["uncovered"]


def told(command: list[str]) -> str:
    """What a command prints; it must succeed and not warn."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


Compiled = Callable[[str, str], str]


@pytest.fixture
def cpp(tmp_path: Path) -> Compiled:
    """Compile a program around a header, run it, and return what it prints."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ on this machine")

    def run(header: str, main: str) -> str:
        (tmp_path / "vectors.hpp").write_text(header)
        program = tmp_path / "main.cpp"
        program.write_text(f'#include "vectors.hpp"\n#include "vectors.hpp"\n{main}')
        flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        told([compiler, *flags, str(program), "-o", str(tmp_path / "program")])
        return told([str(tmp_path / "program")])

    return run


@pytest.fixture
def rust(tmp_path: Path) -> Compiled:
    """Compile a program around a module, run it, and return what it prints."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("there is no rustc on this machine")

    def run(module: str, main: str) -> str:
        (tmp_path / "vectors.rs").write_text(module)
        program = tmp_path / "main.rs"
        program.write_text(f"mod vectors;\nuse vectors::*;\n{main}")
        flags = ["--edition", "2021", "-D", "warnings"]
        told([compiler, *flags, str(program), "-o", str(tmp_path / "program")])
        return told([str(tmp_path / "program")])

    return run


CPP_LOOKUP = """
using namespace {space};
static Output known(const Input& in) {{
    for (const Vector& one : vectors) if (&one.in == &in) return one.out;
    return Output{{}};
}}
int main() {{
    std::printf("%d\\n", check_{name}(known));
    const auto wrong = [](const Input& in) {{
        Output out = known(in);
        if (&in == &vectors[2].in) {{ {slip} }}
        return out;
    }};
    std::printf("%d\\n", check_{name}(wrong));
}}
"""
RUST_LOOKUP = """
fn known(input: &Input) -> Output {{
    VECTORS.iter().find(|one| std::ptr::eq(&one.input, input)).unwrap().output
}}
fn main() {{
    println!("{{}}", check(known));
    let wrong = |input: &Input| {{
        let mut out = known(input);
        if std::ptr::eq(input, &VECTORS[2].input) {{ {slip} }}
        out
    }};
    println!("{{}}", check(wrong));
}}
"""
SLIPS = [
    ("ort.gqa.flash", "out.total_backend_bytes += 1;", "total_backend_bytes"),
    ("ort.gqa.ladder", "out.out.use_xqa = !out.out.use_xqa;", "out.use_xqa"),
    ("ort.gqa.complete", "out.flash.selected_split_count += 1;", "flash.selected_split_count"),
]


class TestCpp:
    """The C++ header."""

    @pytest.mark.parametrize(("name", "slip", "field"), SLIPS)
    def test_right_and_wrong_are_told_apart(self, cpp, name, slip, field):
        """No mismatch for the answers, one for an answer changed in one field, which is named."""
        plain = name.replace(".", "_")
        main = CPP_LOOKUP.format(space=f"{plain}_vectors", name=plain, slip=slip)
        right, first, second, wrong = cpp(write_cpp(found_for(name)), main).splitlines()
        assert (right, wrong) == ("0", "1")
        assert first.startswith("vector 2: ")
        assert second.startswith(f"  {field}: got ")

    def test_a_port_by_hand(self, cpp):
        """A user's own function is checked as it is."""
        main = """
            using namespace toy_vectors;
            template <int most> Output port(const Input& in) {
                const bool valid = in.rows >= 1 && in.rows <= most;
                const std::int64_t size = in.kind == Kind::wide ? 32 : 16;
                const std::int64_t blocks = (in.rows + size - 1) / size;
                const std::int64_t least = blocks < 5 ? blocks : 5;
                return {valid ? Status::ok : Status::invalid, valid && in.scratch ? least : 0};
            }
            int main() {
                std::printf("%d\\n", check_toy(port<100>));
                std::printf("%d\\n", check_toy(port<101>) > 0);
            }
        """
        lines = cpp(write_cpp(TestToy.found), main).splitlines()
        assert (lines[0], lines[-1]) == ("0", "1")
        assert "  status: got ok, expected invalid" in lines

    def test_numbers_names_and_text_survive(self, cpp):
        """Limits of integers, every kind of float to the bit, keywords, quotes in text."""
        main = """
            using namespace hard_one_vectors;
            int main() {
                for (const Vector& one : vectors) {
                    std::uint32_t pattern;
                    std::memcpy(&pattern, &one.out.cap, 4);
                    std::printf("%08x %lld %llu %d\\n", static_cast<unsigned>(pattern),
                        static_cast<long long>(one.in.fn),
                        static_cast<unsigned long long>(one.in.size),
                        one.in.struct_ == Auto::int_);
                }
                std::printf("%d\\n", check_hard_one([](const Input& in) {
                    return Output{in.fn, in.size, in.cap, in.struct_, in.among}; }));
                std::printf("%d\\n", check_hard_one([](const Input& in) {
                    return Output{in.fn, in.size, in.cap + 0.0f, in.struct_, in.among}; }));
            }
        """
        lines = cpp(write_cpp(hard()), main).splitlines()
        assert [line.split()[0] for line in lines[:8]] == list(map(bits, CAPS))
        assert lines[0].split()[1:] == [str(-(2**63)), str(2**64 - 1), "1"]
        assert lines[8] == "0"
        assert lines[-1] == "1"  # -0.0 + 0.0 is 0.0


class TestRust:
    """The Rust module."""

    @pytest.mark.parametrize(("name", "slip", "field"), SLIPS)
    def test_right_and_wrong_are_told_apart(self, rust, name, slip, field):
        """No mismatch for the answers, one for an answer changed in one field, which is named."""
        lines = rust(write_rust(found_for(name)), RUST_LOOKUP.format(slip=slip)).splitlines()
        right, first, second, wrong = lines
        assert (right, wrong) == ("0", "1")
        assert first.startswith("vector 2: ")
        assert second.startswith(f"  {field}: got ")

    def test_a_port_by_hand(self, rust):
        """A user's own function is checked as it is."""
        main = """
            fn port(most: i64) -> impl Fn(&Input) -> Output {
                move |given| {
                    let valid = given.rows >= 1 && given.rows <= most;
                    let size = if let Kind::wide = given.kind { 32 } else { 16 };
                    let blocks = ((given.rows + size - 1) / size).min(5);
                    Output {
                        status: if valid { Status::ok } else { Status::invalid },
                        blocks: if valid && given.scratch { blocks } else { 0 },
                    }
                }
            }
            fn main() { println!("{} {}", check(port(100)), check(port(101)) > 0); }
        """
        assert rust(write_rust(TestToy.found), main).splitlines()[-1] == "0 true"

    def test_numbers_names_and_text_survive(self, rust):
        """Limits of integers, every kind of float to the bit, keywords, quotes in text."""
        main = """
            fn main() {
                for one in VECTORS {
                    let given = &one.input;
                    let pattern = one.output.cap.to_bits();
                    println!("{:08x} {} {} {:?}", pattern, given.fn_, given.size, given.struct_);
                }
                println!("{}", check(|given| Output { fn_: given.fn_, size: given.size,
                    cap: given.cap, struct_: given.struct_, among: given.among }));
                println!("{}", check(|given| Output { fn_: given.fn_, size: given.size,
                    cap: given.cap + 0.0, struct_: given.struct_, among: given.among }));
            }
        """
        lines = rust(write_rust(hard()), main).splitlines()
        assert [line.split()[0] for line in lines[:8]] == list(map(bits, CAPS))
        assert lines[0].split()[1:] == [str(-(2**63)), str(2**64 - 1), "int"]
        assert lines[8] == "0"
        assert lines[-1] == "1"


@pytest.mark.parametrize("write", [write_cpp, write_rust])
def test_an_integer_beyond_64_bits_is_left_out_and_said(write):
    """JSON keeps such a vector; the others have no type for it."""
    found = hard()
    row = json.loads(json.dumps(found.vectors[0].row))
    row["out"]["size"] = 2**64
    larger = replace(found, vectors=(*found.vectors, Vector(row, ("too large",))))
    assert "Left out are 1 with an integer beyond 64 bits." in write(larger)
    assert "too large" not in write(larger)
    assert "Left out" not in write(found)
    assert str(2**64) in write_json(larger)
