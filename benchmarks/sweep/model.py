"""The model's own answers, by the reference interpreter, for a sample of the states."""

from __future__ import annotations

from typing import Final

from routeproof.checkers.registry import load_function
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.records import leaves
from routeproof.spec.terms import Bool, EnumSort, Term

from .states import FIELDS, STATUSES, Answers, States

__all__ = ["answer"]

_OUTPUTS: Final = ("status", "total_workspace_bytes", "flash.selected_split_count")
_BESIDE_THE_PROBLEM: Final = ("total_sequence_length", "local_window_size")


def answer(states: States, multiprocessors: int) -> Answers:
    """Status, bytes and splits as `ort.gqa.complete` has them."""
    function = load_function("ort.gqa.complete")
    outputs = leaves(function.outputs["out"])
    program = compile_terms([outputs[name] for name in _OUTPUTS])
    symbols = leaves(function.inputs)
    fixed: dict[str, Value] = {name: _default(symbol) for name, symbol in symbols.items()}
    fixed |= {
        "route.backend": "flash",
        "route.preparation.preprocess_mode": "flash",
        "route.flash.multi_processor_count": multiprocessors,
    }
    answers = Answers.empty(len(states))
    columns = {_path(name): getattr(states, name) for name in FIELDS}
    for row in range(len(states)):
        given = {path: _value(symbols[path], int(column[row])) for path, column in columns.items()}
        status, size, splits = program(fixed | given)
        answers.status[row] = STATUSES.index(str(status))
        answers.total_workspace_bytes[row] = size
        answers.selected_split_count[row] = splits
    return answers


def _path(field: str) -> str:
    """The name of the model's symbol for a column."""
    return f"{'route.flash' if field in _BESIDE_THE_PROBLEM else 'problem'}.{field}"


def _default(symbol: Term) -> Value:
    """For what the Flash route does not read."""
    return _value(symbol, 0)


def _value(symbol: Term, number: int) -> Value:
    if isinstance(symbol, Bool):
        return bool(number)
    return symbol.sort.members[number] if isinstance(symbol.sort, EnumSort) else number
