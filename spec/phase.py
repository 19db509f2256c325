"""Phases: how a runtime classifies a Run (prefill, chunk, decode), which has to be a partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from .terms import Bool, all_of, any_of

__all__ = ["Phases"]


@dataclass(frozen=True, slots=True)
class Phases:
    """The condition of each phase by name."""

    conditions: Mapping[str, Bool]

    @property
    def total(self) -> Bool:
        """Every state is in some phase."""
        return any_of(*self.conditions.values())

    @property
    def disjoint(self) -> Bool:
        """No state is in two phases."""
        pairs = combinations(self.conditions.values(), 2)
        return all_of(*(~(one & two) for one, two in pairs))
