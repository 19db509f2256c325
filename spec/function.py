"""Modelled functions: a name, typed inputs, outputs as terms, and where each fact comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .records import Record

__all__ = ["Function", "Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from: a document or file, a place in it, the revision it speaks of."""

    document: str
    place: str
    revision: str

    def __str__(self) -> str:
        """One line for reports."""
        return f"{self.document}, {self.place} @ {self.revision}"


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a modelled system.

    `outputs` maps an output key (`out`, or one key per revision) to the record it computes from
    the symbols of `inputs`. `routeproof eval` prints those keys and reads rows of the same shape.
    """

    name: str
    summary: str
    source: Source
    inputs: Record
    outputs: Mapping[str, Record]
