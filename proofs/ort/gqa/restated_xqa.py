"""Restates the XQA recipe: scratch of the single-token decode kernel.

Source: group_query_attention_workspace_xqa_flash.cc, the XQA recipe, ONNX Runtime,
onnxruntime/contrib_ops/cuda/bert/, revision bcdb68db. Sizes and offsets are bytes from the start
of the backend's part. Nothing here can overflow `size_t`: B and Nk are at most 65,535, g at most
32, D at most 256 and the device has fewer than 2**32 multiprocessors.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import Problem, XqaInput
from routeproof.proofs.ort.gqa.restated_common import (
    Fields,
    any_quantized,
    first_match,
    geometry_is_invalid,
    not_positive_int32,
    offset_if_present,
    only_if,
)
from routeproof.spec.terms import (
    Bool,
    Enum,
    Int,
    align_up,
    any_of,
    ceil_div,
    integer,
    ite,
    maximum,
    minimum,
)

__all__ = [
    "accumulator_vector_bytes",
    "dynamic_head_sink_bytes",
    "rotary_bytes",
    "subsequences",
    "xqa",
    "xqa_sizes",
    "xqa_status",
    "xqa_total",
]


def supports_fp8(major: Int, minor: Int) -> Bool:
    """Compute capability 9.0 and later, or exactly 8.9."""
    return (major >= 9) | ((major == 8) & (minor == 9))


def cache_type_is_invalid(inp: XqaInput) -> Bool:
    """The kernel's cache type and the problem's quantisation contradict each other."""
    p, kind = inp.problem, inp.config.kv_type
    quantized = any_quantized(p)
    return any_of(
        kind == "invalid",
        (kind != "none") != quantized,
        quantized & ((p.kv_cache_bit_width != 8) | p.use_qk_norm),
    )


def geometry_is_unavailable(problem: Problem) -> Bool:
    """No kernel is compiled for the head size, or for the group size of this cache."""
    p = problem
    group = p.num_heads // p.kv_num_heads
    served = ite(any_quantized(p), group.is_in(4, 8, 16, 32), group.is_in(1, 2, 4, 5, 8, 16, 32))
    return ~p.head_size.is_in(64, 128, 256) | ~served


def xqa_status(inp: XqaInput) -> Enum:
    """The first check that fails, in the order of the source."""
    p, c = inp.problem, inp.config
    count = c.multi_processor_count
    fp8_missing = (c.kv_type == "fp8") & ~supports_fp8(c.device_major, c.device_minor)
    return first_match(
        (geometry_is_invalid(p), "invalid_argument"),
        (not_positive_int32(p.present_kv_cache_capacity), "invalid_argument"),
        (p.sequence_length != 1, "unavailable"),
        (p.is_first_prompt, "invalid_argument"),
        (c.device_major < 8, "unavailable"),
        ((p.batch_size > 65535) | (p.kv_num_heads > 65535), "unavailable"),
        ((count < 1) | (count > 2**32 - 1) | (c.device_minor < 0), "invalid_argument"),
        (cache_type_is_invalid(inp), "invalid_argument"),
        (fp8_missing, "unavailable"),
        (c.head_sink_storage == "invalid", "invalid_argument"),
        (geometry_is_unavailable(p), "unavailable"),
    )


def tile(problem: Problem) -> Int:
    """Rows of the M tile: the group size rounded up to 8, 16 or 32."""
    group = problem.num_heads // problem.kv_num_heads
    return ite(group <= 8, 8, ite(group <= 16, 16, 32))


def accumulator_vector_bytes(problem: Problem) -> Int:
    """Bytes one sub-sequence accumulates: D * tile half-precision numbers."""
    return problem.head_size * tile(problem) * 2


def subsequences(problem: Problem, multi_processor_count: Int) -> Int:
    """Sub-sequences per sequence: one per idle multiprocessor, at most one per 256 tokens of C."""
    sequences = problem.batch_size * problem.kv_num_heads
    pages = ceil_div(problem.present_kv_cache_capacity, 256)
    return minimum(maximum(1, multi_processor_count // sequences), pages)


def rotary_bytes(problem: Problem, heads: Int) -> Int:
    """Bytes of rotated Q or K of one token, rounded to 256; 0 without rotary."""
    p = problem
    rotated = p.batch_size * heads * p.head_size * p.qkv_element_size
    return ite(p.do_rotary, align_up(rotated, 256), 0)


def dynamic_head_sink_bytes(num_heads: Int, head_sink_storage: Enum) -> Int:
    """Bytes of the fp32 head sink when it is converted per launch, rounded to 256; else 0."""
    converted = head_sink_storage == "dynamic_conversion"
    return ite(converted, align_up(4 * num_heads, 256), 0)


def internal_scratch_bytes(inp: XqaInput) -> Int:
    """Bytes of semaphores, row maxima and sums (256 per sub-sequence), and accumulators."""
    p = inp.problem
    sequences, vector = p.batch_size * p.kv_num_heads, accumulator_vector_bytes(p)
    count = sequences * subsequences(p, inp.config.multi_processor_count)
    return align_up(4 * sequences, 128) + align_up(256 * count, vector) + vector * count


def xqa_total(inp: XqaInput) -> Int:
    """Bytes of the whole backend part; what follows the scratch is not aligned to it."""
    p = inp.problem
    return (
        internal_scratch_bytes(inp)
        + rotary_bytes(p, p.num_heads)
        + rotary_bytes(p, p.kv_num_heads)
        + dynamic_head_sink_bytes(p.num_heads, inp.config.head_sink_storage)
    )


def scratch_sizes(inp: XqaInput) -> dict[str, Int]:
    """Counts, and offsets and sizes (bytes) inside the internal scratch."""
    p = inp.problem
    sequences, vector = p.batch_size * p.kv_num_heads, accumulator_vector_bytes(p)
    per_sequence = subsequences(p, inp.config.multi_processor_count)
    count, semaphores = sequences * per_sequence, align_up(4 * sequences, 128)
    return {
        "sequence_count": sequences,
        "subsequences_per_sequence": per_sequence,
        "subsequence_count": count,
        "m_tile_size": tile(p),
        "semaphore_offset_bytes": integer(0),
        "semaphore_bytes": 4 * sequences,
        "semaphore_aligned_bytes": semaphores,
        "row_max_offset_bytes": semaphores,
        "row_max_bytes": 128 * count,
        "row_sum_offset_bytes": semaphores + 128 * count,
        "row_sum_bytes": 128 * count,
        "output_accumulator_offset_bytes": semaphores + align_up(256 * count, vector),
        "output_accumulator_bytes": vector * count,
        "internal_scratch_bytes": internal_scratch_bytes(inp),
    }


def xqa_sizes(inp: XqaInput) -> dict[str, Int]:
    """Every output field but the status, as it is when the status is ok."""
    p = inp.problem
    scratch = internal_scratch_bytes(inp)
    sink = dynamic_head_sink_bytes(p.num_heads, inp.config.head_sink_storage)
    query, key = rotary_bytes(p, p.num_heads), rotary_bytes(p, p.kv_num_heads)
    return {
        **scratch_sizes(inp),
        "rotary_q_offset_bytes": offset_if_present(scratch, p.do_rotary),
        "rotary_q_bytes": query,
        "rotary_k_offset_bytes": offset_if_present(scratch + query, p.do_rotary),
        "rotary_k_bytes": key,
        "dynamic_head_sink_offset_bytes": offset_if_present(scratch + query + key, sink > 0),
        "dynamic_head_sink_bytes": sink,
        "total_backend_bytes": xqa_total(inp),
    }


def xqa(inp: XqaInput) -> Fields:
    """Every output field; on a failure all but the status are 0."""
    status = xqa_status(inp)
    return {"status": status} | only_if(status == "ok", xqa_sizes(inp))
