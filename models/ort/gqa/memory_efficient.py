"""The memory-efficient (MEA) backend's workspace: K and V expanded to query heads, fp32 output.

Source: `GetGQAMemoryEfficientWorkspaceRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_mea_unfused.cc` (f3ecb97e).
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import Enum, Int

from .problem import STATUS, MemoryEfficientInput, Problem
from .sizing import ZERO, Sizing, report, spans
from .validation import require_unquantized

__all__ = ["MemoryEfficientLayout", "MemoryEfficientOutput", "function", "layout"]

_FILE = "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_mea_unfused.cc"


@dataclass(frozen=True, slots=True)
class MemoryEfficientLayout(Record):
    """Regions (bytes, from the backend's start); all are empty for equal heads and D <= 128."""

    effective_kv_cache_capacity: Int = ZERO
    expanded_key_offset_bytes: Int = ZERO
    expanded_key_bytes: Int = ZERO
    expanded_value_offset_bytes: Int = ZERO
    expanded_value_bytes: Int = ZERO
    output_accumulator_offset_bytes: Int = ZERO
    output_accumulator_bytes: Int = ZERO
    total_backend_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEfficientOutput(MemoryEfficientLayout):
    """Output of `ort.gqa.mea`."""

    status: Enum


def layout(problem: Problem, capacity: Int) -> Sizing[MemoryEfficientLayout]:
    """The layout for an effective cache capacity (tokens), however few of them are valid."""
    checks = Checks(STATUS)
    require_unquantized(checks, problem, capacity)
    batch, heads, head_size = problem.batch_size, problem.num_heads, problem.head_size
    expands = heads != problem.kv_num_heads
    accumulates = head_size > 128
    expanded = checks.product(
        problem.qkv_element_size, batch, heads, capacity, head_size, when=expands
    )
    output = checks.product(4, batch, problem.sequence_length, heads, head_size, when=accumulates)
    recipe = Recipe(checks)
    recipe.carve("expanded_key", expanded, when=expands)
    recipe.carve("expanded_value", expanded, when=expands)
    recipe.carve("output_accumulator", output, when=accumulates)
    return Sizing(
        checks,
        MemoryEfficientLayout(
            effective_kv_cache_capacity=capacity,
            total_backend_bytes=recipe.total,
            **spans(recipe),
        ),
    )


def function() -> Function:
    """`ort.gqa.mea`."""
    inputs = symbols(MemoryEfficientInput)
    sizing = layout(inputs.problem, inputs.effective_kv_cache_capacity)
    return Function(
        "ort.gqa.mea",
        "Workspace of the memory-efficient backend",
        Source(_FILE, "GetGQAMemoryEfficientWorkspaceRecipe", "f3ecb97e"),
        inputs,
        {"out": report(MemoryEfficientOutput, sizing)},
    )
