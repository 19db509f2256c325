"""A closed form for Flash's split accumulators, from static facts alone: no search, no float.

Each work item covers at most 64 query tokens of one head, so rows of partial results are at most
64 times the splits of all work items, and those have a maximum on every device: its *split work*,
which `split_work.py` tabulates and `proofs/ort/gqa/accumulators.py` proves. Fast decode counts
work by KV heads, hence the group of query heads that shares one.

The formula is this project's own. What it bounds is `GetGQAFlashWorkspaceRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_xqa_flash.cc` (bcdb68db).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Int64, Record, symbols
from routeproof.spec.terms import Bool, Enum, Int, all_of, any_of, ite, minimum

from .capabilities import FLASH_MAX_HEAD_SIZE
from .flash import rounded_head_size, split_kv_length
from .problem import STATUS
from .sizing import ZERO, Sizing, report
from .split import kv_blocks, most_tokens_per_item, split_ceiling
from .split_work import MOST_MULTIPROCESSORS, SPLIT_WORK, Peak, split_work_table
from .validation import is_positive_int32

__all__ = [
    "AccumulatorsInput",
    "AccumulatorsLayout",
    "AccumulatorsOutput",
    "attained",
    "buffers",
    "function",
    "layout",
    "most_rows",
    "ranges_hold",
]


@dataclass(frozen=True, slots=True)
class AccumulatorsInput(Record):
    """Input of `ort.gqa.flash_accumulators`: upper bounds, and exact facts of node and device.

    A window of -1 is no window; `split_work` is the device's entry in `SPLIT_WORK`.
    """

    batch_size_bound: Int64
    sequence_length_bound: Int64
    num_heads: Int64
    kv_num_heads: Int64
    head_size_bound: Int64
    kv_length_bound: Int64
    multi_processor_count: Int64
    local_window_size: Int64
    fast_decode: Bool
    split_work: Int64


@dataclass(frozen=True, slots=True)
class AccumulatorsLayout(Record):
    """Rows of partial results, and the two regions that hold them (bytes, padding between them)."""

    rows: Int = ZERO
    softmax_lse_accumulator_bytes: Int = ZERO
    output_accumulator_bytes: Int = ZERO
    total_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatorsOutput(AccumulatorsLayout):
    """Output of `ort.gqa.flash_accumulators`."""

    status: Enum


def ranges_hold(bounds: AccumulatorsInput) -> Bool:
    """Every field is one that the recipe could be called with."""
    window = bounds.local_window_size
    extents = is_positive_int32(
        bounds.batch_size_bound,
        bounds.sequence_length_bound,
        bounds.num_heads,
        bounds.kv_num_heads,
        bounds.head_size_bound,
        bounds.kv_length_bound,
    )
    return all_of(
        extents,
        bounds.num_heads % bounds.kv_num_heads == 0,
        bounds.multi_processor_count > 0,
        any_of(window == -1, is_positive_int32(window)),
        bounds.split_work >= 0,
    )


def most_rows(checks: Checks, bounds: AccumulatorsInput) -> Int:
    """The most rows by the device's split work or by the most splits, whichever are fewer."""
    tokens, heads = bounds.sequence_length_bound, bounds.num_heads
    group = ite(bounds.fast_decode, heads // bounds.kv_num_heads, 1)
    by_work = checks.product(group, most_tokens_per_item(tokens), bounds.split_work)
    kv_length = split_kv_length(
        bounds.kv_length_bound, bounds.local_window_size, bounds.fast_decode
    )
    splits = split_ceiling(
        kv_blocks(kv_length, bounds.head_size_bound), bounds.multi_processor_count
    )
    by_splits = checks.product(splits, bounds.batch_size_bound, tokens, heads)
    return ite(splits > 1, minimum(by_work, by_splits), 0)


def buffers(checks: Checks, rows: Int, head_size: Int) -> Recipe:
    """The two regions (bytes) for so many rows, fp32 each."""
    lse = checks.product(4, rows)
    output = checks.product(lse, rounded_head_size(head_size))
    recipe = Recipe(checks)
    recipe.carve("softmax_lse_accumulator", lse)
    recipe.carve("output_accumulator", output)
    return recipe


def layout(bounds: AccumulatorsInput) -> Sizing[AccumulatorsLayout]:
    """The rows, and the regions that hold them."""
    checks = Checks(STATUS)
    checks.require(ranges_hold(bounds), "invalid_argument")
    head_size, device = bounds.head_size_bound, bounds.multi_processor_count
    checks.require((head_size % 8 == 0) & (head_size <= FLASH_MAX_HEAD_SIZE), "unavailable")
    checks.require(device <= MOST_MULTIPROCESSORS, "unavailable")
    rows = most_rows(checks, bounds)
    recipe = buffers(checks, rows, head_size)
    sizes = {f"{name}_bytes": region.size for name, region in recipe.regions.items()}
    return Sizing(checks, AccumulatorsLayout(rows=rows, total_bytes=recipe.total, **sizes))


def attained() -> Iterator[dict[str, Any]]:
    """An input per device on which Flash needs every row of the closed form, in various shapes.

    Work items in the batch or as heads, whole blocks of KV or of a window:
    `ort.gqa.accumulators.split-work.reached` proves it.
    """
    for device, peak in SPLIT_WORK.items():
        if peak.split_work:
            yield {
                "batch_size_bound": peak.work_items,
                "sequence_length_bound": 64,
                "num_heads": 1,
                "kv_num_heads": 1,
                "head_size_bound": 64,
                "kv_length_bound": 256 * peak.kv_blocks,
                "multi_processor_count": device,
                "local_window_size": -1,
                "fast_decode": False,
                "split_work": peak.split_work,
                **_shape(device % 4, peak),
            }


def _shape(kind: int, peak: Peak) -> dict[str, int | bool]:
    """What one kind of input has otherwise; work items are the same."""
    heads = {"batch_size_bound": 1, "kv_num_heads": peak.work_items}
    match kind:
        case 1:
            tokens = {"sequence_length_bound": 5, "head_size_bound": 96}
            return {
                **heads,
                **tokens,
                "num_heads": peak.work_items,
                "kv_length_bound": 128 * peak.kv_blocks,
            }
        case 2:
            grouped = {"num_heads": 7 * peak.work_items, "fast_decode": True}
            return {
                **heads,
                **grouped,
                "head_size_bound": 256,
                "kv_length_bound": 64 * peak.kv_blocks,
            }
        case 3:
            one_token = {"sequence_length_bound": 1, "num_heads": 3, "fast_decode": True}
            window = {"local_window_size": 256 * peak.kv_blocks, "kv_length_bound": 2**20}
            return {**one_token, **window}
        case _:
            return {}


def function() -> Function:
    """`ort.gqa.flash_accumulators`."""
    inputs = symbols(AccumulatorsInput)
    return Function(
        "ort.gqa.flash_accumulators",
        "Closed form for Flash's split accumulators",
        Source("docs/closed-form.md", "the formula", "this project's own"),
        inputs,
        {"out": report(AccumulatorsOutput, layout(inputs))},
        {"split_work": split_work_table("multi_processor_count")},
        attained,
    )
