"""Restates how the Flash kernel sizes itself at run time, and which geometries it supports.

Source: flash_attention/flash_api.cc, ONNX Runtime, onnxruntime/contrib_ops/cuda/bert/, revision
81fd9888. Sizes are bytes; they are given whether or not the geometry is supported, and there is no
failing status.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import STATUS, FlashRuntimeInput
from routeproof.proofs.ort.gqa.restated_common import Fields
from routeproof.proofs.ort.gqa.restated_flash import (
    block_n,
    lse_accumulator_bytes,
    lse_bytes,
    output_accumulator_bytes,
    split_count,
)
from routeproof.spec.terms import Bool, Int, all_of, ceil_div, ite, minimum

__all__ = ["flash_is_supported", "flash_runtime", "flash_runtime_splits"]


def flash_is_supported(major: Int, head_size: Int, num_heads: Int, kv_num_heads: Int) -> Bool:
    """The device generation and the geometry (elements, heads) have a kernel."""
    return all_of(major >= 8, head_size % 8 == 0, head_size <= 256, num_heads % kv_num_heads == 0)


def heads_for_split(inp: FlashRuntimeInput) -> Int:
    """Heads the heuristic counts: KV heads for fast decode, query heads otherwise."""
    return ite(inp.fast_decode, inp.kv_num_heads, inp.num_heads)


def length_for_split(inp: FlashRuntimeInput) -> Int:
    """KV tokens the heuristic counts: T, cut to the window for fast decode only."""
    total, window = inp.total_sequence_length, inp.local_window_size
    return ite(inp.fast_decode & (window > 0), minimum(total, window), total)


def flash_runtime_splits(inp: FlashRuntimeInput) -> Int:
    """The number of splits the heuristic selects for the input."""
    work = inp.batch_size * heads_for_split(inp) * ceil_div(inp.sequence_length, 64)
    blocks = ceil_div(length_for_split(inp), block_n(inp.head_size))
    return split_count(work, blocks, inp.multi_processor_count)


def flash_runtime(inp: FlashRuntimeInput, splits: Int | None = None) -> Fields:
    """Every output field; `splits` replaces the heuristic's own number of splits."""
    count = flash_runtime_splits(inp) if splits is None else splits
    shape = (inp.batch_size, inp.num_heads, inp.sequence_length)
    return {
        "status": STATUS["ok"],
        "num_heads_for_split": heads_for_split(inp),
        "sequence_length_for_split": length_for_split(inp),
        "num_splits": ite(count > 1, count, 0),
        "softmax_lse_bytes": lse_bytes(*shape),
        "softmax_lse_accum_bytes": lse_accumulator_bytes(*shape, count),
        "out_accum_bytes": output_accumulator_bytes(*shape, inp.head_size, count),
        "is_supported": flash_is_supported(
            inp.device_major, inp.head_size, inp.num_heads, inp.kv_num_heads
        ),
    }
