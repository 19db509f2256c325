"""Vectors as text that people paste into tests of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import load_function
from routeproof.checkers.report import SCHEMA_VERSION, dump
from routeproof.checkers.values import parse_json
from routeproof.spec.errors import InputError
from routeproof.spec.function import Function
from routeproof.spec.interpret import State

from .bases import default_bases
from .boundary import Vectors, vectors_from
from .cpp import write_cpp
from .rust import write_rust

__all__ = ["FORMS", "run_vectors", "write_json"]

Form = Literal["json", "cpp", "rust"]


def run_vectors(name: str, form: Form, base: Path | None = None) -> str:
    """The vectors of a modelled function as text; `base` is a file of rows to start from."""
    function = load_function(name)
    found = vectors_from(function, _bases(function, base) if base else default_bases(function))
    if not found.vectors:
        raise InputError(f"{name}: no vector was found")
    return FORMS[form](found)


def _bases(function: Function, path: Path) -> list[State]:
    """The states of a file of JSON lines, each an object with the key "in"."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error.reason}") from error
    read = Evaluator(function).state
    places = ((f"{path}, line {number}", line) for number, line in enumerate(lines, 1))
    states: list[State] = [
        read(parse_json(line, where), where) for where, line in places if line.strip()
    ]
    if not states:
        raise InputError(f"{path}: no row to start from")
    return states


def write_json(found: Vectors) -> str:
    """One object: the vectors as rows of `routeproof eval`, each with its edges."""
    return dump(
        {
            "schema_version": SCHEMA_VERSION,
            "function": found.function.name,
            "source": str(found.function.source),
            "vectors": [
                {**one.row, "edge": one.edges[0], "also": list(one.edges[1:])}
                for one in found.vectors
            ],
            "uncovered": list(found.uncovered),
        }
    )


FORMS: Mapping[Form, Callable[[Vectors], str]] = {
    "json": write_json,
    "cpp": write_cpp,
    "rust": write_rust,
}
