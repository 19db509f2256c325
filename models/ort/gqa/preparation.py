"""What lives before and beside the backend: cache staging, lengths, preprocessed Q, K and V.

Source: `GetGQAPreparationRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace.cc` (bcdb68db, the revision with
a separate past).
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import FALSE, Bool, Enum, Int, all_of, any_of, ite

from .capabilities import xqa_has_group_size, xqa_has_head_size
from .problem import INT32_MAX, STATUS, PreparationConfig, PreparationInput, Problem
from .sizing import ZERO, Sizing, report, spans
from .validation import (
    is_positive_int32,
    is_quantized,
    refused_by_fast_decode,
    require_geometry,
)

__all__ = [
    "PreparationLayout",
    "PreparationOutput",
    "cache_row_bytes",
    "effective_capacity",
    "function",
    "layout",
    "uses_staging",
]


@dataclass(frozen=True, slots=True)
class PreparationLayout(Record):
    """Regions (bytes, from the allocation's start); the effective capacity is in tokens."""

    effective_kv_cache_capacity: Int = ZERO
    cache_row_bytes: Int = ZERO
    uses_separate_past_buffer: Bool = FALSE
    separate_past_offset_bytes: Int = ZERO
    separate_past_bytes: Int = ZERO
    uses_staging: Bool = FALSE
    staged_key_offset_bytes: Int = ZERO
    staged_key_bytes: Int = ZERO
    staged_value_offset_bytes: Int = ZERO
    staged_value_bytes: Int = ZERO
    uses_compaction: Bool = FALSE
    compaction_offset_bytes: Int = ZERO
    compaction_bytes: Int = ZERO
    compaction_key_offset_bytes: Int = ZERO
    compaction_key_bytes: Int = ZERO
    compaction_value_offset_bytes: Int = ZERO
    compaction_value_bytes: Int = ZERO
    sequence_length_vector_count: Int = ZERO
    sequence_lengths_offset_bytes: Int = ZERO
    sequence_lengths_bytes: Int = ZERO
    qkv_preprocess_offset_bytes: Int = ZERO
    qkv_preprocess_bytes: Int = ZERO
    total_preparation_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationOutput(PreparationLayout):
    """Output of `ort.gqa.preparation`."""

    status: Enum


def uses_staging(problem: Problem) -> Bool:
    """A windowed cache takes several tokens: they are appended to a copy first."""
    return problem.is_windowed_kv_cache & (problem.sequence_length > 1)


def effective_capacity(problem: Problem) -> Int:
    """The cache capacity (tokens) that the backend sees."""
    capacity = problem.present_kv_cache_capacity
    return ite(uses_staging(problem), capacity + problem.sequence_length, capacity)


def cache_row_bytes(problem: Problem) -> Int:
    """Bytes of one head's K or V for one token in the cache; packed where a bit width is given."""
    head_size, bits = problem.head_size, problem.kv_cache_bit_width
    return ite(bits == 0, head_size * problem.cache_element_size, head_size * bits // 8)


def _require_valid_cache(checks: Checks, problem: Problem) -> None:
    """Shape and storage of the cache; bit width and quantisation need not agree."""
    require_geometry(checks, problem)
    checks.require(is_positive_int32(problem.present_kv_cache_capacity), "invalid_argument")
    element, bits = problem.cache_element_size, problem.kv_cache_bit_width
    checks.require(element.is_in(1, 2), "invalid_argument")
    checks.require(problem.head_size % 8 == 0, "invalid_argument")
    checks.require(bits.is_in(0, 4, 8), "invalid_argument")
    checks.require(element == 1, "invalid_argument", when=bits != 0)
    for quantization in (problem.k_quantization, problem.v_quantization):
        checks.require(quantization != "invalid", "invalid_argument")
    past, separate = problem.past_kv_cache_capacity, problem.requires_separate_past_buffer
    checks.require((past >= 0) & (past <= INT32_MAX), "invalid_argument")
    checks.require(past > 0, "invalid_argument", when=separate)
    # For packed rows this says D % 16 == 0 (8 bits) and D % 32 == 0 (4 bits).
    whole_rows = cache_row_bytes(problem) % 16 == 0
    checks.require(whole_rows, "invalid_argument", when=problem.is_windowed_kv_cache)
    staged = effective_capacity(problem)
    checks.require(staged <= INT32_MAX, "invalid_argument", when=uses_staging(problem))


def _refused_by_xqa(problem: Problem) -> Bool:
    """The invocation is one for which preparation never selects XQA."""
    k_quantized = problem.k_quantization != "none"
    v_quantized = problem.v_quantization != "none"
    quantized = any_of(k_quantized, v_quantized)
    heads, kv_heads = problem.num_heads, problem.kv_num_heads
    return any_of(
        problem.is_first_prompt,
        problem.sequence_length != 1,
        k_quantized != v_quantized,
        quantized & (problem.kv_cache_bit_width != 8),
        quantized & problem.use_qk_norm,
        ~xqa_has_head_size(problem.head_size),
        ~xqa_has_group_size(heads, kv_heads, quantized),
    )


def _require_valid_route(checks: Checks, problem: Problem, route: PreparationConfig) -> None:
    """The route is one of the enumerators and can serve the invocation."""
    mode, fast = route.preprocess_mode, route.use_flash_attention_fast_decode
    xqa = mode == "xqa"
    checks.require(mode != "invalid", "invalid_argument")
    checks.require(mode == "flash", "invalid_argument", when=fast)
    checks.require(~refused_by_fast_decode(problem), "invalid_argument", when=fast)
    checks.require(~_refused_by_xqa(problem), "invalid_argument", when=xqa)
    excluded = any_of(problem.is_windowed_kv_cache, xqa, fast)
    checks.require(~excluded, "invalid_argument", when=problem.requires_separate_past_buffer)


def _preprocess_bytes(checks: Checks, problem: Problem, route: PreparationConfig) -> Int:
    """Bytes of preprocessed Q, of new K and V, and of a cache that Flash reads dequantised."""
    mode, fast = route.preprocess_mode, route.use_flash_attention_fast_decode
    flash, mea = all_of(mode == "flash", ~fast), mode == "memory_efficient"
    rotary, packed = problem.do_rotary, problem.is_packed_qkv
    quantized = is_quantized(problem.k_quantization, problem.v_quantization)
    folds_scale = (mode == "xqa") & (problem.k_quantization == "per_channel")
    dequantizes = all_of(flash, quantized, ~problem.is_first_prompt)
    quantizes = all_of(flash, quantized, problem.is_first_prompt)
    copies_query = any_of(
        all_of(~fast, any_of(rotary, packed, problem.use_qk_norm)),
        folds_scale,
        all_of(flash, quantized),
    )
    new_tensors = ite(quantizes | (mea & packed), 2, ite(mea & rotary, 1, 0))
    cache_tensors = ite(dequantizes, 2, 0)

    batch, sequence, head_size = problem.batch_size, problem.sequence_length, problem.head_size
    # Q is formed, and can overflow, even where it is not copied.
    query = checks.product(batch, sequence, problem.num_heads, head_size, when=~fast)
    kv_rows = (problem.kv_num_heads, head_size)
    new = checks.product(new_tensors, batch, sequence, *kv_rows)
    cache = checks.product(cache_tensors, batch, effective_capacity(problem), *kv_rows)
    elements = checks.total(ite(copies_query, query, 0), new, cache)
    return checks.total(
        checks.product(elements, problem.qkv_element_size), ite(dequantizes, 256, 0)
    )


def _sequence_vectors(problem: Problem, route: PreparationConfig) -> Int:
    """How many int32 vectors of batch size hold lengths; single-token fast decode needs none."""
    none = route.use_flash_attention_fast_decode & (problem.sequence_length == 1)
    return ite(none, 0, ite(problem.is_windowed_kv_cache, 6, 3))


def layout(problem: Problem, route: PreparationConfig) -> Sizing[PreparationLayout]:
    """The layout; every invalid argument is found before the first product is formed."""
    checks = Checks(STATUS)
    _require_valid_cache(checks, problem)
    _require_valid_route(checks, problem, route)

    separate, stages = problem.requires_separate_past_buffer, uses_staging(problem)
    compacts = all_of(problem.is_windowed_kv_cache, ~stages)
    row = cache_row_bytes(problem)
    capacity = effective_capacity(problem)
    heads = (problem.batch_size, problem.kv_num_heads)
    past = checks.product(*heads, problem.past_kv_cache_capacity, row, when=separate)
    tensor = checks.product(*heads, capacity, row, when=problem.is_windowed_kv_cache)
    vectors = _sequence_vectors(problem, route)

    recipe = Recipe(checks)
    recipe.carve("separate_past", past, when=separate)
    recipe.carve("staged_key", tensor, when=stages)
    recipe.carve("staged_value", tensor, when=stages)
    both = recipe.carve("compaction", checks.product(2, tensor, when=compacts), when=compacts)
    recipe.carve("sequence_lengths", checks.product(4, vectors, problem.batch_size))
    recipe.carve("qkv_preprocess", _preprocess_bytes(checks, problem, route))
    half = ite(compacts, tensor, 0)
    return Sizing(
        checks,
        PreparationLayout(
            effective_kv_cache_capacity=capacity,
            cache_row_bytes=row,
            uses_separate_past_buffer=separate,
            uses_staging=stages,
            uses_compaction=compacts,
            compaction_key_offset_bytes=both.offset,
            compaction_key_bytes=half,
            compaction_value_offset_bytes=both.offset + half,
            compaction_value_bytes=half,
            sequence_length_vector_count=vectors,
            total_preparation_bytes=recipe.total,
            **spans(recipe),
        ),
    )


def function() -> Function:
    """`ort.gqa.preparation`."""
    inputs = symbols(PreparationInput)
    return Function(
        "ort.gqa.preparation",
        "Transients alive before and beside the backend",
        Source(
            "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace.cc",
            "GetGQAPreparationRecipe",
            "bcdb68db",
        ),
        inputs,
        {"out": report(PreparationOutput, layout(inputs.problem, inputs.route))},
    )
