"""Layout obligations: where a recipe's status is ok, its regions lie as an allocation has to."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import cast

from routeproof.models.ort.gqa import xqa
from routeproof.models.ort.gqa.problem import XqaInput
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.recipe import SIZE_MAX
from routeproof.spec.records import symbols
from routeproof.spec.terms import Bool, Int, all_of, any_of, implies, integer, wrap_unsigned

from .recipes import RECIPES, Compared, compared
from .sources import FUNCTION_SOURCES

__all__ = ["ALIGNED", "DISJOINT", "INSIDE", "OVERFLOW"]

# The halves of the compaction region: parts of a region, not regions of their own.
_PARTS = ("compaction_key", "compaction_value")
_TITLES = {
    "aligned": "every region starts at its alignment",
    "disjoint": "no two regions overlap",
    "inside": "every region ends inside the allocation and the last one ends it",
}


def _regions(recipe: Compared) -> Mapping[str, tuple[Int, Int]]:
    return {name: span for name, span in recipe.regions.items() if name not in _PARTS}


def _xqa_alignments() -> Mapping[str, Int]:
    """XQA aligns inside its scratch only, and to its vector (bytes)."""
    vector = xqa.vector_bytes(symbols(XqaInput).problem)
    scratch = {name: integer(128) for name in ("semaphore", "row_max", "row_sum")}
    loose = {name: integer(1) for name in ("rotary_q", "rotary_k", "dynamic_head_sink")}
    return {**scratch, "output_accumulator": vector, **loose}


def _aligned(name: str, recipe: Compared) -> Mapping[str, Bool]:
    if name != "xqa":
        return {n: offset % 256 == 0 for n, (offset, _) in _regions(recipe).items()}
    after = recipe.bytes("semaphore_aligned")
    goals = {}
    for region, alignment in _xqa_alignments().items():
        offset = recipe.bytes(f"{region}_offset")
        # The accumulator is aligned relative to the end of the semaphores.
        goals[region] = (
            offset - after if region == "output_accumulator" else offset
        ) % alignment == 0
    return goals


def _disjoint(_: str, recipe: Compared) -> Mapping[str, Bool]:
    pairs = combinations(_regions(recipe).items(), 2)
    return {
        f"{one} before {two}": implies(
            all_of(size > 0, other_size > 0), offset + size <= other_offset
        )
        for (one, (offset, size)), (two, (other_offset, other_size)) in pairs
    }


def _inside(_: str, recipe: Compared) -> Mapping[str, Bool]:
    spans = _regions(recipe)
    ends = [offset + size for offset, size in spans.values()]
    goals = {name: offset + size <= recipe.total for name, (offset, size) in spans.items()}
    return {**goals, "last end is the total": any_of(*(end == recipe.total for end in ends))}


_GOALS = {"aligned": _aligned, "disjoint": _disjoint, "inside": _inside}


def _layout(kind: str, name: str) -> Obligation:
    @obligation(
        f"ort.gqa.layout.{name}.{kind}",
        f"{name}: {_TITLES[kind]}",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        recipe = compared(name)
        return Claim(
            _GOALS[kind](name, recipe),
            assuming={"status is ok": recipe.ok},
            shows=cast("Mapping[str, Int]", dict(recipe.model)),
        )

    return statement


def _overflow(name: str) -> Obligation:
    @obligation(
        f"ort.gqa.overflow.{name}",
        f"{name}: no size that the status reports as ok exceeds size_t",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        recipe = compared(name)
        goals = {n: offset + size <= SIZE_MAX for n, (offset, size) in recipe.regions.items()}
        goals["exact restated total"] = recipe.restated_total <= SIZE_MAX
        goals["size_t arithmetic is exact"] = wrap_unsigned(recipe.total, 64) == recipe.total
        return Claim(goals, assuming=recipe.both_ok)

    return statement


ALIGNED = tuple(_layout("aligned", name) for name in RECIPES)
DISJOINT = tuple(_layout("disjoint", name) for name in RECIPES)
INSIDE = tuple(_layout("inside", name) for name in RECIPES)
OVERFLOW = tuple(map(_overflow, RECIPES))
