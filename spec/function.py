"""Modelled functions: a name, typed inputs, outputs as terms, and where each fact comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .records import Record

__all__ = ["Adapter", "Function", "Source", "Table"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from: a document or file, a place in it, the revision it speaks of."""

    document: str
    place: str
    revision: str

    def __str__(self) -> str:
        """One line for reports."""
        return f"{self.document}, {self.place} @ {self.revision}"


class Table(NamedTuple):
    """An input that is looked up: `values[i - 1]` for the input `by` = i, else `outside`."""

    by: str
    values: Sequence[int]
    outside: int = 0

    def at(self, index: int) -> int:
        """The value for an index."""
        return self.values[index - 1] if 1 <= index <= len(self.values) else self.outside


@dataclass(frozen=True, slots=True)
class Adapter:
    """How a system's own rows become the inputs of a function, and its outputs the system's own.

    Plain Python in front of the terms, for lists of shapes and texts of errors: what is proved is
    about the function alone. `read` gives the object with a value per input field, `write` takes
    the object under "in", the output key and that output. Both raise `InputError`, with `where`.
    """

    read: Callable[[Any, str], Mapping[str, Any]]
    write: Callable[[Any, str, Mapping[str, Any]], Any]


def _nothing() -> Iterable[Mapping[str, Any]]:
    return ()


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a modelled system.

    `outputs` maps an output key (`out`, or one key per revision) to the record it computes from
    the symbols of `inputs`. `routeproof eval` prints those keys and reads rows of the same shape.
    `tables` are the inputs that a table gives, `attained` inputs on which a bound is proved to be
    needed in full. With an `adapter`, rows are of the system's own shape.
    """

    name: str
    summary: str
    source: Source
    inputs: Record
    outputs: Mapping[str, Record]
    tables: Mapping[str, Table] = field(default_factory=dict)
    attained: Callable[[], Iterable[Mapping[str, Any]]] = _nothing
    adapter: Adapter | None = None
