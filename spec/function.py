"""Modelled functions: a name, typed inputs, outputs as terms, and where each fact comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .records import Record

__all__ = ["Function", "Source", "Table"]


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


def _nothing() -> Iterable[Mapping[str, Any]]:
    return ()


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a modelled system.

    `outputs` maps an output key (`out`, or one key per revision) to the record it computes from
    the symbols of `inputs`. `routeproof eval` prints those keys and reads rows of the same shape.
    `tables` are the inputs that a table gives, `attained` inputs on which a bound is proved to be
    needed in full.
    """

    name: str
    summary: str
    source: Source
    inputs: Record
    outputs: Mapping[str, Record]
    tables: Mapping[str, Table] = field(default_factory=dict)
    attained: Callable[[], Iterable[Mapping[str, Any]]] = _nothing
