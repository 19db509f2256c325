"""The unfused backend's workspace: transposed Q and output, and two score matrices in fp32.

Source: `GetGQAUnfusedWorkspaceRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_mea_unfused.cc` (f3ecb97e).
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import Enum, Int

from .problem import STATUS, Problem, UnfusedInput
from .sizing import ZERO, Sizing, report, spans
from .validation import require_unquantized

__all__ = ["UnfusedLayout", "UnfusedOutput", "function", "layout"]

_FILE = "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_mea_unfused.cc"


@dataclass(frozen=True, slots=True)
class UnfusedLayout(Record):
    """Regions (bytes, from the backend's start), every size a multiple of 256."""

    q_bnsh_offset_bytes: Int = ZERO
    q_bnsh_bytes: Int = ZERO
    y_bnsh_offset_bytes: Int = ZERO
    y_bnsh_bytes: Int = ZERO
    qk_offset_bytes: Int = ZERO
    qk_bytes: Int = ZERO
    softmax_offset_bytes: Int = ZERO
    softmax_bytes: Int = ZERO
    total_backend_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfusedOutput(UnfusedLayout):
    """Output of `ort.gqa.unfused`."""

    status: Enum


def layout(problem: Problem, kv_length: Int) -> Sizing[UnfusedLayout]:
    """The layout for a KV length (tokens)."""
    checks = Checks(STATUS)
    require_unquantized(checks, problem, kv_length)
    rows = (problem.batch_size, problem.num_heads, problem.sequence_length)
    query = checks.align(checks.product(problem.qkv_element_size, *rows, problem.head_size), 256)
    scores = checks.align(checks.product(4, *rows, kv_length), 256)
    recipe = Recipe(checks)
    recipe.carve("q_bnsh", query)
    recipe.carve("y_bnsh", query)
    recipe.carve("qk", scores)
    recipe.carve("softmax", scores)
    return Sizing(checks, UnfusedLayout(total_backend_bytes=recipe.total, **spans(recipe)))


def function() -> Function:
    """`ort.gqa.unfused`."""
    inputs = symbols(UnfusedInput)
    return Function(
        "ort.gqa.unfused",
        "Workspace of the unfused backend",
        Source(_FILE, "GetGQAUnfusedWorkspaceRecipe", "f3ecb97e"),
        inputs,
        {"out": report(UnfusedOutput, layout(inputs.problem, inputs.total_sequence_length))},
    )
