"""Restates the Flash recipe, fast decode included, and the split heuristic behind it.

Source: group_query_attention_workspace_xqa_flash.cc, the Flash recipe and its split heuristic, ONNX
Runtime, onnxruntime/contrib_ops/cuda/bert/, revision bcdb68db. Sizes and offsets are bytes from the
start of the backend's part. Every function that needs the number of splits takes it as an argument,
so that bytes can be compared under any number of splits.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import FlashConfig, FlashInput, Problem
from routeproof.proofs.ort.gqa.restated_common import (
    Fields,
    any_quantized,
    first_match,
    geometry_is_invalid,
    not_positive_int32,
    offset_if_present,
    only_if,
    padded,
    too_large,
)
from routeproof.spec.terms import (
    Bool,
    Enum,
    Float,
    Int,
    align_up,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    float64,
    greatest,
    integer,
    ite,
    minimum,
    to_float,
    widen,
)

__all__ = [
    "block_n",
    "flash",
    "flash_sizes",
    "flash_splits",
    "flash_status",
    "flash_total",
    "lse_accumulator_bytes",
    "lse_bytes",
    "output_accumulator_bytes",
    "split_count",
]

MAX_SPLITS = 128


def block_n(head_size: Int) -> Int:
    """KV tokens per block of the kernel for the head size (elements)."""
    return ite(head_size <= 64, 256, ite(head_size <= 128, 128, 64))


def efficiency(work: Int, splits: Int, sm: Int) -> Float:
    """Occupied share of the waves that `work * splits` blocks need on `sm` processors (float32)."""
    waves = to_float(work * splits, 32) / to_float(sm, 32)
    return waves / ceiling(waves)


def is_eligible(kv_blocks: Int, splits: Int) -> Bool:
    """The count gives shorter splits (in KV blocks) than one split fewer does."""
    return (splits == 1) | (ceil_div(kv_blocks, splits) != ceil_div(kv_blocks, splits - 1))


def split_count(work: Int, kv_blocks: Int, sm: Int) -> Int:
    """How many splits are selected for `work` blocks of `kv_blocks` each on `sm` processors.

    One when the work nearly fills the device; otherwise the least eligible count whose efficiency
    is at least 0.85 (a double) of the best eligible one (float32, widened for the product).
    """
    limit = minimum(MAX_SPLITS, sm, kv_blocks)
    best = greatest(
        "candidate",
        limit,
        where=lambda c: is_eligible(kv_blocks, c),
        value=lambda c: efficiency(work, c, sm),
        start=float32(0.0),
        at_most=MAX_SPLITS,
    )
    threshold = float64(0.85) * widen(best)
    selected = first(
        "splits",
        limit,
        lambda c: is_eligible(kv_blocks, c) & (widen(efficiency(work, c, sm)) >= threshold),
        otherwise=1,
        at_most=MAX_SPLITS,
    )
    filled = to_float(work, 32) >= float32(0.8) * to_float(sm, 32)
    return ite(filled, 1, selected)


def split_heads(problem: Problem, config: FlashConfig) -> Int:
    """Heads the heuristic counts: KV heads for fast decode, query heads otherwise."""
    return ite(config.fast_decode, problem.kv_num_heads, problem.num_heads)


def split_kv_length(config: FlashConfig) -> Int:
    """KV tokens the heuristic counts: T, cut to the window for fast decode only."""
    total, window = config.total_sequence_length, config.local_window_size
    return ite(config.fast_decode & (window > 0), minimum(total, window), total)


def flash_splits(inp: FlashInput) -> Int:
    """The number of splits the heuristic selects for the input."""
    p, c = inp.problem, inp.config
    work = p.batch_size * split_heads(p, c) * ceil_div(p.sequence_length, 64)
    blocks = ceil_div(split_kv_length(c), block_n(p.head_size))
    return split_count(work, blocks, c.multi_processor_count)


def lse_bytes(batch: Int, heads: Int, tokens: Int) -> Int:
    """Bytes of the softmax log-sum-exp: one float per row."""
    return 4 * batch * heads * tokens


def lse_accumulator_bytes(batch: Int, heads: Int, tokens: Int, splits: Int) -> Int:
    """Bytes of the log-sum-exp of every split; 0 for a single split."""
    return ite(splits > 1, 4 * splits * batch * tokens * heads, 0)


def output_accumulator_bytes(
    batch: Int, heads: Int, tokens: Int, head_size: Int, splits: Int
) -> Int:
    """Bytes of the output of every split, rows rounded to 32 floats; 0 for a single split."""
    return lse_accumulator_bytes(batch, heads, tokens, splits) * align_up(head_size, 32)


def flash_total(problem: Problem, splits: Int) -> Int:
    """Bytes of the whole backend part for a given number of splits."""
    p = problem
    shape = (p.batch_size, p.num_heads, p.sequence_length)
    lse, lse_accum = lse_bytes(*shape), lse_accumulator_bytes(*shape, splits)
    out_accum = output_accumulator_bytes(*shape, p.head_size, splits)
    return ite(splits > 1, padded(lse) + padded(lse_accum) + out_accum, lse)


def config_is_invalid(config: FlashConfig) -> Bool:
    """T, the window (-1: none) or the multiprocessor count is out of range."""
    c = config
    return any_of(
        not_positive_int32(c.total_sequence_length),
        c.multi_processor_count < 1,
        (c.local_window_size != -1) & not_positive_int32(c.local_window_size),
    )


def flash_status(inp: FlashInput, splits: Int | None = None) -> Enum:
    """The first check that fails, in the order of the source."""
    p, c = inp.problem, inp.config
    not_decoded = p.is_first_prompt | p.is_windowed_kv_cache | any_quantized(p) | p.use_qk_norm
    total = flash_total(p, flash_splits(inp) if splits is None else splits)
    return first_match(
        (geometry_is_invalid(p) | config_is_invalid(c), "invalid_argument"),
        (c.fast_decode & not_decoded, "invalid_argument"),
        ((p.head_size % 8 != 0) | (p.head_size > 256), "unavailable"),
        (too_large(total), "overflow"),
    )


def flash_sizes(inp: FlashInput, splits: Int | None = None) -> dict[str, Int | Bool]:
    """Every output field but the status, as it is when the status is ok."""
    p, c = inp.problem, inp.config
    count = flash_splits(inp) if splits is None else splits
    shape, several = (p.batch_size, p.num_heads, p.sequence_length), count > 1
    lse, lse_accum = lse_bytes(*shape), lse_accumulator_bytes(*shape, count)
    return {
        "fast_decode": c.fast_decode,
        "split_heuristic_head_count": split_heads(p, c),
        "split_heuristic_kv_length": split_kv_length(c),
        "selected_split_count": count,
        "runtime_num_splits": ite(several, count, 0),
        "rounded_head_size": align_up(p.head_size, 32),
        "softmax_lse_offset_bytes": integer(0),
        "softmax_lse_bytes": lse,
        "softmax_lse_accumulator_offset_bytes": offset_if_present(padded(lse), several),
        "softmax_lse_accumulator_bytes": lse_accum,
        "output_accumulator_offset_bytes": offset_if_present(
            padded(lse) + padded(lse_accum), several
        ),
        "output_accumulator_bytes": output_accumulator_bytes(*shape, p.head_size, count),
        "total_backend_bytes": flash_total(p, count),
    }


def flash(inp: FlashInput, splits: Int | None = None) -> Fields:
    """Every output field; on a failure all but the status and the one split are 0 or false.

    `splits` replaces the heuristic's own number of splits.
    """
    status = flash_status(inp, splits)
    fields = only_if(status == "ok", flash_sizes(inp, splits), {"selected_split_count": 1})
    return {"status": status} | fields
