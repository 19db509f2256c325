"""Restates the preparation recipe: what is allocated before, and lives beside, the backend.

Source: group_query_attention_workspace.h / .cc, the preparation recipe and its structures, ONNX
Runtime, onnxruntime/contrib_ops/cuda/bert/, revision bcdb68db (with the separate past). Sizes and
offsets are bytes from the start of the allocation.

Each region starts where the rounded sizes before it end, so a start is the plain sum of those
rounded sizes; an absent region has size 0 and adds nothing.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import INT32_MAX, PreparationInput, Problem
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
from routeproof.spec.terms import Bool, Enum, Int, any_of, integer, ite

__all__ = [
    "effective_capacity",
    "preparation",
    "preparation_sizes",
    "preparation_status",
    "preparation_total",
    "qkv_preprocess_bytes",
    "row_bytes",
    "xqa_preparation_is_invalid",
]


def is_staged(problem: Problem) -> Bool:
    """A windowed cache and several query tokens: K and V are staged."""
    return problem.is_windowed_kv_cache & (problem.sequence_length > 1)


def is_compacted(problem: Problem) -> Bool:
    """A windowed cache and one query token: the cache is compacted."""
    return problem.is_windowed_kv_cache & (problem.sequence_length == 1)


def effective_capacity(problem: Problem) -> Int:
    """KV positions (tokens) the backend sees: C + S when staged, else C."""
    capacity = problem.present_kv_cache_capacity
    return ite(is_staged(problem), capacity + problem.sequence_length, capacity)


def row_bytes(problem: Problem) -> Int:
    """Bytes of one cache row of one head: packed bits, or unpacked elements."""
    p = problem
    packed = p.head_size * p.kv_cache_bit_width // 8
    return ite(p.kv_cache_bit_width != 0, packed, p.head_size * p.cache_element_size)


def query_elements(problem: Problem) -> Int:
    """Elements of Q: B*S*N*D."""
    return problem.batch_size * problem.sequence_length * problem.num_heads * problem.head_size


def kv_elements(problem: Problem, tokens: Int) -> Int:
    """Elements of K and V together over `tokens` positions: 2*B*tokens*Nk*D."""
    return 2 * problem.batch_size * tokens * problem.kv_num_heads * problem.head_size


def cache_is_invalid(problem: Problem) -> Bool:
    """Cache facts outside what preparation accepts: capacities, element bytes, bit width."""
    p = problem
    bits, past = p.kv_cache_bit_width, p.past_kv_cache_capacity
    return any_of(
        not_positive_int32(p.present_kv_cache_capacity),
        ~p.cache_element_size.is_in(1, 2),
        ~bits.is_in(0, 4, 8),
        (bits != 0) & (p.cache_element_size != 1),
        (p.k_quantization == "invalid") | (p.v_quantization == "invalid"),
        (past < 0) | (past > INT32_MAX),
        p.requires_separate_past_buffer & (past == 0),
        p.is_windowed_kv_cache & (row_bytes(p) % 16 != 0),
        is_staged(p) & (p.present_kv_cache_capacity + p.sequence_length > INT32_MAX),
    )


def fast_decode_is_invalid(inp: PreparationInput) -> Bool:
    """Flash fast decode with a mode, phase, cache or norm it does not serve."""
    p = inp.problem
    return inp.route.use_flash_attention_fast_decode & any_of(
        inp.route.preprocess_mode != "flash",
        p.is_first_prompt,
        p.is_windowed_kv_cache,
        any_quantized(p),
        p.use_qk_norm,
        p.requires_separate_past_buffer,
    )


def xqa_preparation_is_invalid(problem: Problem) -> Bool:
    """What preparation refuses to prepare for XQA (the mode itself is not read here)."""
    p = problem
    group = p.num_heads // p.kv_num_heads
    k_quantized, v_quantized = p.k_quantization != "none", p.v_quantization != "none"
    return any_of(
        p.is_first_prompt | (p.sequence_length != 1),
        k_quantized != v_quantized,
        k_quantized & ((p.kv_cache_bit_width != 8) | p.use_qk_norm),
        ~p.head_size.is_in(64, 128, 256),
        ite(k_quantized, ~group.is_in(4, 8, 16, 32), ~group.is_in(1, 2, 4, 5, 8, 16, 32)),
        p.requires_separate_past_buffer,
    )


def preparation_is_invalid(inp: PreparationInput) -> Bool:
    """Everything that is checked before any arithmetic."""
    p, mode = inp.problem, inp.route.preprocess_mode
    return any_of(
        geometry_is_invalid(p),
        p.head_size % 8 != 0,
        cache_is_invalid(p),
        mode == "invalid",
        p.requires_separate_past_buffer & p.is_windowed_kv_cache,
        fast_decode_is_invalid(inp),
        (mode == "xqa") & xqa_preparation_is_invalid(p),
    )


def xqa_preprocess_elements(problem: Problem) -> Int:
    """XQA: Q (elements) when it is rotated, unpacked, normed or rescaled per channel."""
    p = problem
    changed = p.do_rotary | p.is_packed_qkv | p.use_qk_norm | (p.k_quantization == "per_channel")
    return ite(changed, query_elements(p), 0)


def plain_preprocess_elements(problem: Problem) -> Int:
    """Flash on an unquantised cache, and unfused: Q (elements) when it is changed at all."""
    p = problem
    return ite(p.do_rotary | p.is_packed_qkv | p.use_qk_norm, query_elements(p), 0)


def memory_efficient_preprocess_elements(problem: Problem) -> Int:
    """MEA: Q, K and V (elements) when packed, Q and K when rotated, Q alone when normed."""
    p = problem
    q, kv = query_elements(p), kv_elements(p, p.sequence_length)
    k = p.batch_size * p.sequence_length * p.kv_num_heads * p.head_size
    return ite(p.is_packed_qkv, q + kv, ite(p.do_rotary, q + k, ite(p.use_qk_norm, q, 0)))


def flash_preprocess_bytes(problem: Problem) -> Int:
    """Flash, not fast decode (bytes): a quantised cache adds K and V as they are attended to."""
    p = problem
    q, e = query_elements(p), p.qkv_element_size
    prompt = (q + kv_elements(p, p.sequence_length)) * e
    later = (q + kv_elements(p, effective_capacity(p))) * e + 256
    quantized = ite(p.is_first_prompt, prompt, later)
    return ite(any_quantized(p), quantized, plain_preprocess_elements(p) * e)


def qkv_preprocess_bytes(inp: PreparationInput) -> Int:
    """Bytes of the QKV preprocess region for the mode."""
    p, mode, e = inp.problem, inp.route.preprocess_mode, inp.problem.qkv_element_size
    others = ite(
        mode == "xqa",
        xqa_preprocess_elements(p) * e,
        ite(
            mode == "memory_efficient",
            memory_efficient_preprocess_elements(p) * e,
            plain_preprocess_elements(p) * e,
        ),
    )
    flash = ite(inp.route.use_flash_attention_fast_decode, 0, flash_preprocess_bytes(p))
    return ite(mode == "flash", flash, others)


def separate_past_bytes(problem: Problem) -> Int:
    """Bytes of the preserved past tensor: B*Nk*P*r when one aliased pair needs it."""
    p = problem
    past = p.batch_size * p.kv_num_heads * p.past_kv_cache_capacity * row_bytes(p)
    return ite(p.requires_separate_past_buffer, past, 0)


def staged_bytes(problem: Problem) -> Int:
    """Bytes of each of the two staged regions: B*Nk*(C+S)*r."""
    p = problem
    tokens = p.present_kv_cache_capacity + p.sequence_length
    return ite(is_staged(p), p.batch_size * p.kv_num_heads * tokens * row_bytes(p), 0)


def compacted_half_bytes(problem: Problem) -> Int:
    """Bytes of the K half, and of the V half, of the compaction region: B*Nk*C*r."""
    p = problem
    half = p.batch_size * p.kv_num_heads * p.present_kv_cache_capacity * row_bytes(p)
    return ite(is_compacted(p), half, 0)


def sequence_length_vectors(inp: PreparationInput) -> Int:
    """How many int32 vectors of B: 6 windowed, 3 otherwise, none for one-token fast decode."""
    p = inp.problem
    none = inp.route.use_flash_attention_fast_decode & (p.sequence_length == 1)
    return ite(none, 0, ite(p.is_windowed_kv_cache, 6, 3))


def sequence_lengths_start(problem: Problem) -> Int:
    """Bytes before the sequence-length vectors."""
    p = problem
    return (
        padded(separate_past_bytes(p))
        + 2 * padded(staged_bytes(p))
        + padded(2 * compacted_half_bytes(p))
    )


def preparation_total(inp: PreparationInput) -> Int:
    """Bytes of the whole preparation: the last region is the preprocess one if there is one.

    Without sequence lengths (one-token fast decode) there is no other region either.
    """
    lengths = 4 * sequence_length_vectors(inp) * inp.problem.batch_size
    start, preprocess = sequence_lengths_start(inp.problem), qkv_preprocess_bytes(inp)
    return start + ite(preprocess > 0, padded(lengths) + preprocess, lengths)


def preparation_status(inp: PreparationInput) -> Enum:
    """Validation first; then the total and, except for fast decode, Q in elements must fit."""
    fast = inp.route.use_flash_attention_fast_decode
    elements = ite(fast, 0, query_elements(inp.problem))
    return first_match(
        (preparation_is_invalid(inp), "invalid_argument"),
        (too_large(elements, preparation_total(inp)), "overflow"),
    )


def cache_sizes(problem: Problem) -> dict[str, Int | Bool]:
    """Offsets and sizes (bytes) of the separate past, the staging and the compaction."""
    p = problem
    past, staged, half = separate_past_bytes(p), staged_bytes(p), compacted_half_bytes(p)
    staging, compacting = is_staged(p), is_compacted(p)
    return {
        "uses_separate_past_buffer": p.requires_separate_past_buffer,
        "separate_past_offset_bytes": integer(0),
        "separate_past_bytes": past,
        "uses_staging": staging,
        "staged_key_offset_bytes": offset_if_present(padded(past), staging),
        "staged_key_bytes": staged,
        "staged_value_offset_bytes": offset_if_present(padded(past) + padded(staged), staging),
        "staged_value_bytes": staged,
        "uses_compaction": compacting,
        "compaction_offset_bytes": offset_if_present(padded(past), compacting),
        "compaction_bytes": 2 * half,
        "compaction_key_offset_bytes": offset_if_present(padded(past), compacting),
        "compaction_key_bytes": half,
        "compaction_value_offset_bytes": offset_if_present(padded(past) + half, compacting),
        "compaction_value_bytes": half,
    }


def preparation_sizes(inp: PreparationInput) -> dict[str, Int | Bool]:
    """Every output field but the status, as it is when the status is ok."""
    p = inp.problem
    vectors, preprocess = sequence_length_vectors(inp), qkv_preprocess_bytes(inp)
    lengths, start = 4 * vectors * p.batch_size, sequence_lengths_start(p)
    after = start + padded(lengths)
    return {
        "effective_kv_cache_capacity": effective_capacity(p),
        "cache_row_bytes": row_bytes(p),
        **cache_sizes(p),
        "sequence_length_vector_count": vectors,
        "sequence_lengths_offset_bytes": offset_if_present(start, vectors > 0),
        "sequence_lengths_bytes": lengths,
        "qkv_preprocess_offset_bytes": offset_if_present(after, preprocess > 0),
        "qkv_preprocess_bytes": preprocess,
        "total_preparation_bytes": preparation_total(inp),
    }


def preparation(inp: PreparationInput) -> Fields:
    """Every output field; on a failure all but the status are 0 or false."""
    status = preparation_status(inp)
    return {"status": status} | only_if(status == "ok", preparation_sizes(inp))
