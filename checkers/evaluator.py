"""A modelled function applied to JSON rows, and the rows that were recorded of the real code.

A row is checked against machine types and enumerators only, never against an envelope: the
function itself says what it accepts.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any, cast

from routeproof.spec.errors import InputError, refuse
from routeproof.spec.function import Function
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.obligation import Rows
from routeproof.spec.records import EnumSet, leaves
from routeproof.spec.terms import Term
from routeproof.spec.text import closest

from .registry import load_function
from .values import Json, parse_json, read_value, shown

__all__ = ["Evaluator", "Replayed", "exactly", "recorded", "write_row"]


class Evaluator:
    """A modelled function ready to be applied to rows."""

    def __init__(self, function: Function) -> None:
        """Compile every output of the function together."""
        self._function = function
        terms = [term for record in function.outputs.values() for term in leaves(record).values()]
        self._program = compile_terms(terms)

    def __call__(self, row: Json, where: str) -> dict[str, Json]:
        """Every output key of the row `{"in": ...}`; `where` names the row in errors."""
        outputs, adapter = self.outputs(self.given(row, where)), self._function.adapter
        if adapter is None:
            return outputs
        return {key: adapter.write(row["in"], key, one) for key, one in outputs.items()}

    def given(self, row: Json, where: str) -> dict[str, Value]:
        """The input of a row of the system's own shape, as a value per symbol."""
        adapter = self._function.adapter
        if adapter and isinstance(row, dict) and "in" in row:
            row = {"in": adapter.read(row["in"], where)}
        return self.state(row, where)

    def state(self, row: Json, where: str) -> dict[str, Value]:
        """The input of a row of the function's own shape, as a value per symbol."""
        if not isinstance(row, dict) or "in" not in row:
            refuse(where, 'expected an object with a key "in"')
        return dict(_read(self._function.inputs, row["in"], "", where))

    def inputs(self, state: Mapping[str, Value]) -> Json:
        """The state as the object under "in" that it is read from."""
        names = (symbol.name for symbol in leaves(self._function.inputs).values())
        return _write(self._function.inputs, iter([state[name] for name in names]))

    def outputs(self, state: Mapping[str, Value]) -> dict[str, Json]:
        """The outputs on a state, as JSON objects in declared order."""
        values = iter(self._program(state))
        return {key: _write(record, values) for key, record in self._function.outputs.items()}


def _read(node: object, data: Json, path: str, where: str) -> Iterator[tuple[str, Value]]:
    at = f"{where}: field {path!r}" if path else f'{where}: "in"'
    if isinstance(node, Term):
        yield node.name, read_value(node, data, at)
    elif isinstance(node, EnumSet):
        present = _members(node, data, at)
        yield from ((term.name, member in present) for member, term in node.present.items())
    else:
        names = [field.name for field in fields(cast("Any", node))]
        if not isinstance(data, dict):
            refuse(at, f"expected an object, got {shown(data)}")
        for key in data:
            if key not in names:
                refuse(at, f"unknown field {key!r}{closest(key, names)}")
        for name in names:
            inner = f"{path}.{name}".lstrip(".")
            if name not in data:
                refuse(where, f"field {inner!r} is missing")
            yield from _read(getattr(node, name), data[name], inner, where)


def _members(node: EnumSet, data: Json, at: str) -> set[str]:
    if not isinstance(data, list):
        refuse(at, f"expected a list of {node.sort.name} names, got {shown(data)}")
    seen: set[str] = set()
    for item in data:
        if not isinstance(item, str) or item not in node.sort.members:
            refuse(at, f"{shown(item)} is not one of {', '.join(node.sort.members)}")
        if item in seen:
            refuse(at, f"{item!r} is listed twice")
        seen.add(item)
    return seen


def _write(node: object, values: Iterator[Value]) -> Json:
    """The record as JSON, consuming one value per leaf in declared order."""
    if isinstance(node, Term):
        value = next(values)
        is_number = not isinstance(value, float) or math.isfinite(value)
        return value if is_number else repr(value)  # as `read_value` takes it
    if isinstance(node, EnumSet):
        flags = {member: next(values) for member in node.present}
        return [member for member, present in flags.items() if present]
    return {
        field.name: _write(getattr(node, field.name), values) for field in fields(cast("Any", node))
    }


@dataclass(frozen=True, slots=True)
class Replayed:
    """One recorded row: its input, the outputs that the real code gave, and those of the model."""

    state: Mapping[str, Value]
    want: Json
    got: Json

    @property
    def matches(self) -> bool:
        """Whether the two are the same, to the type."""
        return exactly(self.got) == exactly(self.want)


def recorded(rows: Rows) -> Iterator[Replayed]:
    """Every recorded row, with what the model makes of it."""
    evaluate = Evaluator(load_function(rows.function))
    for number, line in enumerate(_lines(rows), 1):
        where = f"{rows.resource}, row {number}"
        row = parse_json(line, where)
        state = evaluate.given(row, where)
        want = {key: value for key, value in row.items() if key != "in"}
        yield Replayed(state, want, evaluate(row, where))


def _lines(rows: Rows) -> list[str]:
    try:
        packed = resources.files(rows.package).joinpath(rows.resource).read_bytes()
        return gzip.decompress(packed).decode().splitlines()
    except (ImportError, OSError, EOFError, ValueError, TypeError) as error:
        raise InputError(f"cannot read {rows.resource} of {rows.package}: {error}") from error


def exactly(data: Json) -> str:
    """Text that tells 1, 1.0 and true apart, which `==` does not."""
    return json.dumps(data, sort_keys=True)


def write_row(outputs: Mapping[str, Json]) -> str:
    """The outputs as one compact JSON line."""
    return json.dumps(outputs, separators=(",", ":"))
