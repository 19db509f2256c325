"""Recipes: one allocation carved into aligned regions, with the first failing check as its status.

`Checks` is machine arithmetic that does not wrap: every product and sum is formed exactly, and an
ordered predicate says whether it fits. Which failing check comes first is part of the meaning, so
checks are recorded in the order in which the system performs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import ModelError
from .terms import TRUE, Bool, Enum, EnumSort, Int, align_up, all_of, boolean, integer, ite

__all__ = ["SIZE_MAX", "Check", "Checks", "Recipe", "Region", "status_sort"]

SIZE_MAX = 2**64 - 1


def status_sort(*failures: str) -> EnumSort:
    """A status enum: `ok` first, then the ways to fail."""
    return EnumSort("status", ("ok", *failures))


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the condition it needs, when it is performed, and what its failure is called."""

    when: Bool
    needs: Bool
    failure: Enum

    @property
    def fails(self) -> Bool:
        """Performed and not satisfied."""
        return all_of(self.when, ~self.needs)


class Checks:
    """An ordered list of checks under construction; `status` is the first that fails."""

    def __init__(
        self, sort: EnumSort, *, overflow: str = "overflow", limit: int = SIZE_MAX
    ) -> None:
        """`limit` is the largest value a checked intermediate may take (default: size_t)."""
        self._sort = sort
        self._overflow = overflow
        self._limit = limit
        self._checks: list[Check] = []

    @property
    def performed(self) -> tuple[Check, ...]:
        """The checks so far, in order."""
        return tuple(self._checks)

    @property
    def status(self) -> Enum:
        """The first member (`ok`), or the failure of the first check that fails."""
        result = self._sort[self._sort.members[0]]
        for check in reversed(self._checks):
            result = ite(check.fails, check.failure, result)
        return result

    @property
    def ok(self) -> Bool:
        """No check fails."""
        return all_of(*(~check.fails for check in self._checks))

    def require(self, needs: Bool, failure: str, *, when: Bool = TRUE) -> None:
        """Fail with `failure` unless the condition holds (where the check is performed)."""
        self._checks.append(Check(boolean(when), boolean(needs), self._sort[failure]))

    def adopt(self, status: Enum, *, when: Bool = TRUE) -> None:
        """Fail as a part computed before did, if it did."""
        for failure in status.members.members[1:]:
            self.require(status != failure, failure, when=when)

    def include(self, part: Checks, *, when: Bool = TRUE) -> None:
        """Perform the checks of a part here, in their order."""
        self._checks.append(Check(when, part.ok, part.status))

    def fits(self, value: Int, *, when: Bool = TRUE, failure: str = "") -> Int:
        """The exact value, checked against the limit; `failure` names this overflow of its own."""
        self.require(value <= self._limit, failure or self._overflow, when=when)
        return value

    def product(self, *factors: Int | int, when: Bool = TRUE, failure: str = "") -> Int:
        """The exact product, every partial product checked from left to right."""
        result = integer(factors[0])
        for factor in factors[1:]:
            result = self.fits(result * integer(factor), when=when, failure=failure)
        return result

    def total(self, *parts: Int | int, when: Bool = TRUE, failure: str = "") -> Int:
        """The exact sum, every partial sum checked from left to right."""
        result = integer(parts[0])
        for part in parts[1:]:
            result = self.fits(result + integer(part), when=when, failure=failure)
        return result

    def align(
        self, value: Int, alignment: Int | int, *, when: Bool = TRUE, failure: str = ""
    ) -> Int:
        """The value rounded up; `value + alignment - 1` is what has to fit, as in C."""
        self.fits(value + (alignment - 1), when=when, failure=failure)
        return align_up(value, alignment)


@dataclass(frozen=True, slots=True)
class Region:
    """One part of an allocation: offset from its start, size (bytes), alignment (bytes)."""

    name: str
    offset: Int
    size: Int
    alignment: int


class Recipe:
    """An allocation under construction: regions carved in order behind each other.

    An empty region has offset 0 and does not move the cursor. `total` is the end of the last
    region, not rounded up.
    """

    def __init__(self, checks: Checks, *, alignment: int = 256, start: Int | int = 0) -> None:
        """Regions start at multiples of `alignment` (bytes); arithmetic is checked by `checks`."""
        self._checks = checks
        self._alignment = alignment
        self._cursor = integer(start)
        self._regions: dict[str, Region] = {}

    @property
    def regions(self) -> Mapping[str, Region]:
        """The regions so far by name, in order."""
        return self._regions

    @property
    def total(self) -> Int:
        """The end of the last non-empty region (bytes)."""
        return self._cursor

    def carve(self, name: str, size: Int, *, when: Bool = TRUE) -> Region:
        """Place the region after the last one; where `when` fails or the size is 0 it is absent."""
        if name in self._regions:
            raise ModelError(f"region {name!r} is carved twice")
        present = all_of(when, size > 0)
        start = self._checks.align(self._cursor, self._alignment, when=present)
        end = self._checks.total(start, size, when=present)
        region = Region(name, ite(present, start, 0), ite(present, size, 0), self._alignment)
        self._cursor = ite(present, end, self._cursor)
        self._regions[name] = region
        return region
