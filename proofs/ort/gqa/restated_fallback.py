"""Restates the memory-efficient (MEA) and unfused recipes, the two routes below Flash.

Source: group_query_attention_workspace_mea_unfused.cc, ONNX Runtime,
onnxruntime/contrib_ops/cuda/bert/, revision f3ecb97e. Sizes and offsets are bytes from the start of
the backend's part.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import MemoryEfficientInput, Problem, UnfusedInput
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
from routeproof.spec.terms import Enum, Int, integer, ite

__all__ = [
    "memory_efficient",
    "memory_efficient_sizes",
    "memory_efficient_status",
    "memory_efficient_total",
    "unfused",
    "unfused_sizes",
    "unfused_status",
    "unfused_total",
]


def fallback_status(problem: Problem, kv_length: Int, total: Int) -> Enum:
    """The checks of both recipes, in order; `kv_length` in tokens, `total` in bytes."""
    return first_match(
        (geometry_is_invalid(problem), "invalid_argument"),
        (any_quantized(problem), "unavailable"),
        (not_positive_int32(kv_length), "invalid_argument"),
        (too_large(total), "overflow"),
    )


def expanded_bytes(problem: Problem, capacity: Int) -> Int:
    """Bytes of K, and of V, repeated for every query head; 0 when there is nothing to repeat."""
    p = problem
    expanded = p.qkv_element_size * p.batch_size * p.num_heads * capacity * p.head_size
    return ite(p.num_heads != p.kv_num_heads, expanded, 0)


def fp32_output_bytes(problem: Problem) -> Int:
    """Bytes of the fp32 output accumulator that heads above 128 elements need."""
    p = problem
    output = 4 * p.batch_size * p.sequence_length * p.num_heads * p.head_size
    return ite(p.head_size > 128, output, 0)


def memory_efficient_total(problem: Problem, capacity: Int) -> Int:
    """Bytes of the MEA part for an effective KV capacity in tokens; 0 is possible."""
    expanded, output = expanded_bytes(problem, capacity), fp32_output_bytes(problem)
    last = ite(output > 0, padded(expanded) + output, expanded)
    return padded(expanded) + last


def memory_efficient_status(inp: MemoryEfficientInput) -> Enum:
    """The first check that fails, in the order of the source."""
    capacity = inp.effective_kv_cache_capacity
    return fallback_status(inp.problem, capacity, memory_efficient_total(inp.problem, capacity))


def memory_efficient_sizes(inp: MemoryEfficientInput) -> dict[str, Int]:
    """Every output field but the status, as it is when the status is ok."""
    p, capacity = inp.problem, inp.effective_kv_cache_capacity
    expanded, output = expanded_bytes(p, capacity), fp32_output_bytes(p)
    return {
        "effective_kv_cache_capacity": capacity,
        "expanded_key_offset_bytes": integer(0),
        "expanded_key_bytes": expanded,
        "expanded_value_offset_bytes": padded(expanded),
        "expanded_value_bytes": expanded,
        "output_accumulator_offset_bytes": offset_if_present(2 * padded(expanded), output > 0),
        "output_accumulator_bytes": output,
        "total_backend_bytes": memory_efficient_total(p, capacity),
    }


def memory_efficient(inp: MemoryEfficientInput) -> Fields:
    """Every output field of MEA; on a failure all but the status are 0."""
    status = memory_efficient_status(inp)
    return {"status": status} | only_if(status == "ok", memory_efficient_sizes(inp))


def query_region(problem: Problem) -> Int:
    """Bytes of Q, and of Y, in BNSH order, rounded to 256."""
    p = problem
    return padded(p.qkv_element_size * p.batch_size * p.num_heads * p.sequence_length * p.head_size)


def score_region(problem: Problem, total_sequence_length: Int) -> Int:
    """Bytes of the fp32 scores, and of their softmax, rounded to 256."""
    p = problem
    return padded(4 * p.batch_size * p.num_heads * p.sequence_length * total_sequence_length)


def unfused_total(problem: Problem, total_sequence_length: Int) -> Int:
    """Bytes of the unfused part for a KV length of T tokens."""
    return 2 * query_region(problem) + 2 * score_region(problem, total_sequence_length)


def unfused_status(inp: UnfusedInput) -> Enum:
    """The first check that fails, in the order of the source."""
    length = inp.total_sequence_length
    return fallback_status(inp.problem, length, unfused_total(inp.problem, length))


def unfused_sizes(inp: UnfusedInput) -> dict[str, Int]:
    """Every output field but the status, as it is when the status is ok."""
    p, length = inp.problem, inp.total_sequence_length
    query, scores = query_region(p), score_region(p, length)
    return {
        "q_bnsh_offset_bytes": integer(0),
        "q_bnsh_bytes": query,
        "y_bnsh_offset_bytes": query,
        "y_bnsh_bytes": query,
        "qk_offset_bytes": 2 * query,
        "qk_bytes": scores,
        "softmax_offset_bytes": 2 * query + scores,
        "softmax_bytes": scores,
        "total_backend_bytes": unfused_total(p, length),
    }


def unfused(inp: UnfusedInput) -> Fields:
    """Every output field of unfused; on a failure all but the status are 0."""
    status = unfused_status(inp)
    return {"status": status} | only_if(status == "ok", unfused_sizes(inp))
