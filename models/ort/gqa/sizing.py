"""What every workspace recipe of this package returns: a layout, and the checks it depends on.

A layout is computed everywhere, also where a check fails; what the system reports there is the
layout's defaults (0, false). Composite recipes read `layout`, outputs are made from `result`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Record, select
from routeproof.spec.terms import Bool, Enum, Int, integer

__all__ = ["ONE", "ZERO", "Sizing", "report", "spans"]

ZERO: Int = integer(0)
ONE: Int = integer(1)

L = TypeVar("L", bound=Record)
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Sizing(Generic[L]):
    """A layout as computed; it means something where `ok` holds."""

    checks: Checks
    layout: L

    @property
    def status(self) -> Enum:
        """`ok`, or the failure of the first check that fails."""
        return self.checks.status

    @property
    def ok(self) -> Bool:
        """No check fails."""
        return self.checks.ok

    @property
    def result(self) -> L:
        """The layout where every check holds, else its defaults."""
        return select(self.ok, self.layout, type(self.layout)())


def spans(recipe: Recipe) -> dict[str, Int]:
    """Offset and size (bytes) of every region, under the names that layouts give them."""
    named: dict[str, Int] = {}
    for name, region in recipe.regions.items():
        named |= {f"{name}_offset_bytes": region.offset, f"{name}_bytes": region.size}
    return named


def report(output: Callable[..., R], sizing: Sizing[L]) -> R:
    """The output record: the status beside the fields of the resulting layout."""
    result = sizing.result
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return output(status=sizing.status, **values)
