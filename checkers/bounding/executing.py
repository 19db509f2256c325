"""Executions by the interpreter: rows of modelled functions, and any one Run of a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import load_function
from routeproof.spec.errors import InputError, InternalError
from routeproof.spec.interpret import Value
from routeproof.spec.objective import Execution, Question

__all__ = ["SIZE", "STATUS", "Executed", "checked", "execute_run", "output_of", "value_at"]

SIZE = "out.total_workspace_bytes"
STATUS = "out.status"


@dataclass(frozen=True, slots=True)
class Executed:
    """Where a Run ends: its route with what the recipe says, or its error; `bytes` if it is ok.

    `outside` names what the question's envelope does not admit of the state.
    """

    route: str
    error: str
    status: str
    bytes: int | None
    outside: tuple[str, ...]


def execute_run(question: Question, state: Mapping[str, Value]) -> Executed:
    """Dispatch and recipe of the question's node on one state.

    Raises:
        InputError: no Run has such a state.
    """
    run = question.run(state)
    outputs = [output_of(one) for one in run.dispatch]
    for execution, output in zip(run.dispatch, outputs, strict=True):
        if wrong := _contradiction(execution, output):
            raise InputError(wrong)
    names = (f"{run.outcome}.{name}" for name in ("route", "error"))
    route, error = (str(value_at(outputs[0], name)) for name in names)
    if route == "error":
        return Executed(route, error, "", None, run.outside)
    output = output_of(run.recipe(route))
    status = str(value_at(output, STATUS))
    size = int(value_at(output, SIZE)) if status == "ok" else None
    return Executed(route, "", status, size, run.outside)


@cache
def _evaluator(function: str) -> Evaluator:
    return Evaluator(load_function(function))


def output_of(execution: Execution) -> dict[str, Any]:
    """What the modelled function gives for the row."""
    return _evaluator(execution.function)({"in": execution.row}, execution.function)


def checked(execution: Execution, name: str) -> dict[str, Any]:
    """The output, which has to answer as the execution says; `name` is what it is about."""
    output = output_of(execution)
    if wrong := _contradiction(execution, output):
        raise InternalError(f"{name}: {wrong}")
    return output


def _contradiction(execution: Execution, output: Mapping[str, Any]) -> str:
    """What the output does not answer as the execution says."""
    for path, value in execution.answers.items():
        if (found := value_at(output, path)) != value:
            where = f"on {dict(execution.row)}"
            return f"{execution.function} gives {path} {found!r}, not {value!r}, {where}"
    return ""


def value_at(output: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value below a dotted path."""
    found: Any = output
    for key in path.split("."):
        found = found[key]
    return found
