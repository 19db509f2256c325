"""Test vectors: rows as `routeproof eval` reads and prints them, by input and output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.values import Json, read_value
from routeproof.spec.errors import refuse
from routeproof.spec.function import Function
from routeproof.spec.interpret import Value
from routeproof.spec.records import leaves
from routeproof.spec.terms import Term

from .plan import Plan

__all__ = ["Vector", "read_vectors"]


@dataclass(frozen=True, slots=True)
class Vector:
    """A value per input to pass, and the value that each output must have."""

    inputs: Mapping[Term, Value]
    outputs: Mapping[str, Value]


def read_vectors(plan: Plan, rows: Sequence[Json]) -> list[Vector]:
    """The rows, checked: what a table looks up must be what the row was computed with."""
    evaluator = Evaluator(plan.function)
    return [_vector(plan, evaluator, row, f"row {at}") for at, row in enumerate(rows, 1)]


def _vector(plan: Plan, evaluator: Evaluator, row: Json, where: str) -> Vector:
    state = evaluator.state(row, where)
    for one in plan.look_ups:
        given, found = state[one.symbol.name], one.table.at(cast("int", state[one.by.name]))
        if given != found:
            refuse(where, f"{one.symbol.name} is {given}, its table has {found}")
    inputs = {field.term: state[field.term.name] for field in plan.inputs}
    return Vector(inputs, dict(_outputs(plan.function, row, where)))


def _outputs(function: Function, row: Json, where: str) -> Iterator[tuple[str, Value]]:
    """Every output by its path, as the plan names it."""
    for key, record in function.outputs.items():
        if key not in row:
            refuse(where, f"output {key!r} is missing")
        prefix = f"{key}." if len(function.outputs) > 1 else ""
        for path, term in leaves(record).items():
            at = f"{where}: output {path!r}"
            yield prefix + path, read_value(term, _inside(row[key], path, at), at)


def _inside(data: Json, path: str, at: str) -> Json:
    """The value at the path; a set is a list of the members that are in it."""
    for part in path.split("."):
        if isinstance(data, list):
            return part in data
        if not isinstance(data, Mapping) or part not in data:
            refuse(at, "no value")
        data = data[part]
    return data
