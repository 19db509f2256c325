"""What Flash asks for at run time: the same split choice and buffers, sized without any check.

Source: `get_num_splits_and_buffer_sizes` and `is_supported` in
`onnxruntime/contrib_ops/cuda/bert/flash_attention/flash_api.cc` (81fd9888).
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import Bool, Enum, Int

from .capabilities import flash_supports
from .flash import buffers, runtime_splits, split_heads, split_kv_length
from .problem import STATUS, FlashRuntimeInput
from .split import kv_blocks, selected_split_count, work_items

__all__ = ["FlashRuntimeOutput", "flash_runtime", "function"]


@dataclass(frozen=True, slots=True)
class FlashRuntimeOutput(Record):
    """Output of `ort.gqa.flash_runtime`: bytes are given even where Flash is not supported."""

    status: Enum
    num_heads_for_split: Int
    sequence_length_for_split: Int
    num_splits: Int
    softmax_lse_bytes: Int
    softmax_lse_accum_bytes: Int
    out_accum_bytes: Int
    is_supported: Bool


def flash_runtime(run: FlashRuntimeInput) -> FlashRuntimeOutput:
    """Splits and buffer sizes (bytes) of one launch."""
    heads = split_heads(run, run.fast_decode)
    kv_length = split_kv_length(run.total_sequence_length, run.local_window_size, run.fast_decode)
    splits = selected_split_count(
        work_items(run.batch_size, heads, run.sequence_length),
        kv_blocks(kv_length, run.head_size),
        run.multi_processor_count,
    )
    unchecked = Checks(STATUS)
    lse, partial_lse, partial_output = buffers(unchecked, run, splits).regions.values()
    return FlashRuntimeOutput(
        status=STATUS["ok"],
        num_heads_for_split=heads,
        sequence_length_for_split=kv_length,
        num_splits=runtime_splits(splits),
        softmax_lse_bytes=lse.size,
        softmax_lse_accum_bytes=partial_lse.size,
        out_accum_bytes=partial_output.size,
        is_supported=flash_supports(
            run.device_major, run.head_size, run.num_heads, run.kv_num_heads
        ),
    )


def function() -> Function:
    """`ort.gqa.flash_runtime`."""
    inputs = symbols(FlashRuntimeInput)
    return Function(
        "ort.gqa.flash_runtime",
        "Splits and buffers that Flash chooses at run time",
        Source(
            "onnxruntime/contrib_ops/cuda/bert/flash_attention/flash_api.cc",
            "get_num_splits_and_buffer_sizes, is_supported",
            "81fd9888",
        ),
        inputs,
        {"out": flash_runtime(inputs)},
    )
