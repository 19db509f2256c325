"""The Flash backend's workspace: log-sum-exp rows, and partial results where KV is split.

Source: `GetGQAFlashWorkspaceRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_xqa_flash.cc` (bcdb68db). Fast
decode is the same kernel reading the cache in place, with its splits chosen by KV heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import (
    FALSE,
    Bool,
    Enum,
    Int,
    align_up,
    any_of,
    ite,
    minimum,
)

from .capabilities import FLASH_MAX_HEAD_SIZE
from .problem import STATUS, FlashConfig, FlashInput, FlashRuntimeInput, Problem
from .sizing import ONE, ZERO, Sizing, report, spans
from .split import kv_blocks, selected_split_count, work_items
from .validation import is_positive_int32, refused_by_fast_decode, require_geometry

__all__ = [
    "FlashLayout",
    "FlashOutput",
    "buffers",
    "function",
    "layout",
    "rounded_head_size",
    "runtime_splits",
    "split_heads",
    "split_kv_length",
]

_FILE = "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_xqa_flash.cc"


@dataclass(frozen=True, slots=True)
class FlashLayout(Record):
    """Regions (bytes, from the backend's start) and the split choice behind them."""

    fast_decode: Bool = FALSE
    split_heuristic_head_count: Int = ZERO
    split_heuristic_kv_length: Int = ZERO
    selected_split_count: Int = ONE
    runtime_num_splits: Int = ZERO
    rounded_head_size: Int = ZERO
    softmax_lse_offset_bytes: Int = ZERO
    softmax_lse_bytes: Int = ZERO
    softmax_lse_accumulator_offset_bytes: Int = ZERO
    softmax_lse_accumulator_bytes: Int = ZERO
    output_accumulator_offset_bytes: Int = ZERO
    output_accumulator_bytes: Int = ZERO
    total_backend_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashOutput(FlashLayout):
    """Output of `ort.gqa.flash`."""

    status: Enum


def rounded_head_size(head_size: Int) -> Int:
    """The head size (elements) that accumulators are laid out for."""
    return align_up(head_size, 32)


def split_heads(shape: Problem | FlashRuntimeInput, fast_decode: Bool) -> Int:
    """The heads by which splits are chosen; the buffers always hold every query head."""
    return ite(fast_decode, shape.kv_num_heads, shape.num_heads)


def split_kv_length(kv_length: Int, window: Int, fast_decode: Bool) -> Int:
    """The KV length (tokens) by which splits are chosen; only fast decode looks at the window."""
    return ite(fast_decode & (window > 0), minimum(kv_length, window), kv_length)


def runtime_splits(splits: Int) -> Int:
    """The count handed to the kernel, which calls an undivided KV length 0."""
    return ite(splits > 1, splits, 0)


def buffers(checks: Checks, shape: Problem | FlashRuntimeInput, splits: Int) -> Recipe:
    """The three regions (bytes) for a split count, fp32 each."""
    batch, sequence, heads = shape.batch_size, shape.sequence_length, shape.num_heads
    is_split = splits > 1
    lse = checks.product(4, batch, heads, sequence)
    partial_lse = checks.product(4, splits, batch, sequence, heads, when=is_split)
    partial_output = checks.product(partial_lse, rounded_head_size(shape.head_size), when=is_split)
    recipe = Recipe(checks)
    recipe.carve("softmax_lse", lse)
    recipe.carve("softmax_lse_accumulator", partial_lse, when=is_split)
    recipe.carve("output_accumulator", partial_output, when=is_split)
    return recipe


def _require_valid(checks: Checks, problem: Problem, config: FlashConfig) -> None:
    """The recipe's own checks; S > T, T > C and any device size are accepted."""
    require_geometry(checks, problem)
    window = config.local_window_size
    checks.require(is_positive_int32(config.total_sequence_length), "invalid_argument")
    checks.require(config.multi_processor_count > 0, "invalid_argument")
    checks.require(any_of(window == -1, is_positive_int32(window)), "invalid_argument")
    refused = refused_by_fast_decode(problem)
    checks.require(~refused, "invalid_argument", when=config.fast_decode)
    head_size = problem.head_size
    checks.require((head_size % 8 == 0) & (head_size <= FLASH_MAX_HEAD_SIZE), "unavailable")


def layout(problem: Problem, config: FlashConfig) -> Sizing[FlashLayout]:
    """The layout for the splits that the heuristic selects; T is used as given, windowed or not."""
    checks = Checks(STATUS)
    _require_valid(checks, problem, config)
    heads = split_heads(problem, config.fast_decode)
    kv_length = split_kv_length(
        config.total_sequence_length, config.local_window_size, config.fast_decode
    )
    # The work needs no check of its own: four bytes of log-sum-exp per item or more are checked.
    work = work_items(problem.batch_size, heads, problem.sequence_length)
    blocks = kv_blocks(kv_length, problem.head_size)
    splits = selected_split_count(work, blocks, config.multi_processor_count)
    recipe = buffers(checks, problem, splits)
    return Sizing(
        checks,
        FlashLayout(
            fast_decode=config.fast_decode,
            split_heuristic_head_count=heads,
            split_heuristic_kv_length=kv_length,
            selected_split_count=splits,
            runtime_num_splits=runtime_splits(splits),
            rounded_head_size=rounded_head_size(problem.head_size),
            total_backend_bytes=recipe.total,
            **spans(recipe),
        ),
    )


def function() -> Function:
    """`ort.gqa.flash`."""
    inputs = symbols(FlashInput)
    return Function(
        "ort.gqa.flash",
        "Workspace of the Flash backend, regular and fast decode",
        Source(_FILE, "GetGQAFlashWorkspaceRecipe", "bcdb68db"),
        inputs,
        {"out": report(FlashOutput, layout(inputs.problem, inputs.config))},
    )
