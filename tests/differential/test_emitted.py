"""Emitted code gives the value that the reference interpreter gives, or in C++ and Rust none."""

import subprocess
from dataclasses import make_dataclass

from differential.strategies import BOOLS, ENUMS, EXACT, INTS, states, terms
from emitted import built, imported
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from routeproof.checkers.emit import emit
from routeproof.spec.errors import InputError, UnsupportedError
from routeproof.spec.function import Function, Source
from routeproof.spec.interpret import evaluate
from routeproof.spec.records import Record
from routeproof.spec.terms import Term

SYMBOLS = (*INTS, *BOOLS, *ENUMS)
some_terms = st.lists(terms(EXACT, depth=5), min_size=1, max_size=3)
some_states = st.lists(states(SYMBOLS), min_size=1, max_size=8)


def record(named):
    """Build a record of the terms."""
    kind = make_dataclass("Some", [(name, Term) for name in named], bases=(Record,), frozen=True)
    return kind(**named)


def written(roots, states, language, name="made"):
    """Emit the terms as the outputs of a function, with a vector per state."""
    outputs = {f"out{at}": root for at, root in enumerate(roots)}
    inputs = record({symbol.name: symbol for symbol in SYMBOLS})
    function = Function(name, "Terms", Source("", "", ""), inputs, {"out": record(outputs)})
    rows = [
        {"in": state, "out": {key: evaluate(root, state) for key, root in outputs.items()}}
        for state in states
    ]
    try:
        return emit(function, language, rows)
    except (UnsupportedError, InputError):  # no input, or a number that no type has
        assume(condition=False)


def test_python(tmp_path_factory):
    """Integers are exact: each vector is reproduced."""
    folder = tmp_path_factory.mktemp("python")

    @settings(max_examples=200)
    @given(some_terms, some_states)
    def agrees(roots, states):
        module = imported(written(roots, states, "python"), folder)
        module.Vectors("test_vectors").debug()

    agrees()


def collected(language, count):
    """Draw that many functions of one output each."""
    texts = []

    @settings(max_examples=count, phases=[Phase.generate], database=None)
    @given(terms(EXACT, depth=5), some_states)
    def collect(root, states):
        texts.append(written([root], states, language, f"f{len(texts)}"))

    collect()
    return texts


def test_cpp(tmp_path):
    """All functions in one program; a value that does not fit is no difference."""
    texts = collected("cpp", 40)
    lines = ["#include <iostream>"]
    for at, text in enumerate(texts):
        tolerant = text.replace("      failed = true;\n", "")
        assert tolerant != text
        lines += [f"#define F{at}_TEST", f"#define main test_{at}", tolerant, "#undef main"]
    calls = " + ".join(f"test_{at}()" for at in range(len(texts)))
    program = built("cpp", "\n".join([*lines, f"int main() {{ return {calls}; }}"]), tmp_path)
    done = subprocess.run([program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rust(tmp_path):
    """All functions in one crate; a value that does not fit is no difference."""
    parts = []
    for at, text in enumerate(collected("rust", 40)):
        strict = f"assert_eq!(f{at}(input).as_ref(), Some(want)"
        assert strict in text
        tolerant = f"assert!(f{at}(input).map_or(true, |got| got == *want)"
        parts.append(f"pub mod m{at} {{\n{text.replace(strict, tolerant)}\n}}")
    program = built("rust", "\n".join(parts), tmp_path)
    done = subprocess.run([program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
