"""The XQA backend's workspace (single-token decode): partial softmax per stretch of the cache.

Source: `GetGQAXqaWorkspaceRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_xqa_flash.cc` (bcdb68db).
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import Enum, Int, all_of, ceil_div, ite, maximum, minimum

from .capabilities import has_fp8, xqa_has_group_size, xqa_has_head_size
from .problem import STATUS, Problem, XqaConfig, XqaInput
from .sizing import ZERO, Sizing, report, spans
from .validation import is_positive_int32, is_quantized, require_geometry

__all__ = [
    "XqaLayout",
    "XqaOutput",
    "append_transients",
    "function",
    "layout",
    "subsequences_per_sequence",
    "tile_size",
    "vector_bytes",
]

_FILE = "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_xqa_flash.cc"
_CACHE_TILE = 256
_GRID_LIMIT = 65_535


@dataclass(frozen=True, slots=True)
class XqaLayout(Record):
    """Regions (bytes, from the backend's start) and the counts behind them.

    The internal scratch ends with the output accumulator; rotary Q and K and the converted head
    sink follow it without alignment.
    """

    sequence_count: Int = ZERO
    subsequences_per_sequence: Int = ZERO
    subsequence_count: Int = ZERO
    m_tile_size: Int = ZERO
    semaphore_offset_bytes: Int = ZERO
    semaphore_bytes: Int = ZERO
    semaphore_aligned_bytes: Int = ZERO
    row_max_offset_bytes: Int = ZERO
    row_max_bytes: Int = ZERO
    row_sum_offset_bytes: Int = ZERO
    row_sum_bytes: Int = ZERO
    output_accumulator_offset_bytes: Int = ZERO
    output_accumulator_bytes: Int = ZERO
    internal_scratch_bytes: Int = ZERO
    rotary_q_offset_bytes: Int = ZERO
    rotary_q_bytes: Int = ZERO
    rotary_k_offset_bytes: Int = ZERO
    rotary_k_bytes: Int = ZERO
    dynamic_head_sink_offset_bytes: Int = ZERO
    dynamic_head_sink_bytes: Int = ZERO
    total_backend_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class XqaOutput(XqaLayout):
    """Output of `ort.gqa.xqa`."""

    status: Enum


def subsequences_per_sequence(sequences: Int, capacity: Int, multiprocessors: Int) -> Int:
    """Into how many stretches each sequence's cache (tokens) is divided."""
    return minimum(maximum(1, multiprocessors // sequences), ceil_div(capacity, _CACHE_TILE))


def tile_size(problem: Problem) -> Int:
    """Query rows per tile, by group size."""
    group = problem.num_heads // problem.kv_num_heads
    return ite(group <= 8, 8, ite(group <= 16, 16, 32))


def vector_bytes(problem: Problem) -> Int:
    """Bytes of one tile of 2-byte outputs: size and alignment unit of the accumulator."""
    return problem.head_size * tile_size(problem) * 2


def append_transients(checks: Checks, problem: Problem, sink: Enum, scratch: Int) -> Recipe:
    """Rotary Q and K and a head sink converted per launch, each a multiple of 256 bytes."""
    rotary, converts = problem.do_rotary, sink == "dynamic_conversion"
    batch, row = problem.batch_size, (problem.head_size, problem.qkv_element_size)
    query = checks.product(batch, problem.num_heads, *row, when=rotary)
    key = checks.product(batch, problem.kv_num_heads, *row, when=rotary)
    fp32_sink = checks.product(4, problem.num_heads, when=converts)
    recipe = Recipe(checks, alignment=1, start=scratch)
    recipe.carve("rotary_q", checks.align(query, 256, when=rotary), when=rotary)
    recipe.carve("rotary_k", checks.align(key, 256, when=rotary), when=rotary)
    recipe.carve("dynamic_head_sink", checks.align(fp32_sink, 256, when=converts), when=converts)
    return recipe


def _require_valid(checks: Checks, problem: Problem, config: XqaConfig) -> None:
    """The recipe's own checks; its order decides what a doubly wrong call is told."""
    batch, heads, kv_heads = problem.batch_size, problem.num_heads, problem.kv_num_heads
    major, minor = config.device_major, config.device_minor
    device_size, kv_type = config.multi_processor_count, config.kv_type
    quantized = is_quantized(problem.k_quantization, problem.v_quantization)

    require_geometry(checks, problem)
    checks.require(is_positive_int32(problem.present_kv_cache_capacity), "invalid_argument")
    checks.require(problem.sequence_length == 1, "unavailable")
    checks.require(~problem.is_first_prompt, "invalid_argument")
    checks.require(major >= 8, "unavailable")
    checks.require((batch <= _GRID_LIMIT) & (kv_heads <= _GRID_LIMIT), "unavailable")
    checks.require(all_of(device_size >= 1, device_size < 2**32, minor >= 0), "invalid_argument")
    checks.require(
        all_of(kv_type != "invalid", (kv_type != "none") == quantized), "invalid_argument"
    )
    compatible = all_of(problem.kv_cache_bit_width == 8, ~problem.use_qk_norm)
    checks.require(compatible, "invalid_argument", when=quantized)
    checks.require(has_fp8(major, minor), "unavailable", when=kv_type == "fp8")
    checks.require(config.head_sink_storage != "invalid", "invalid_argument")
    checks.require(xqa_has_head_size(problem.head_size), "unavailable")
    checks.require(xqa_has_group_size(heads, kv_heads, quantized), "unavailable")


def layout(problem: Problem, config: XqaConfig) -> Sizing[XqaLayout]:
    """The layout; the capacity is the cache's own, never a staged one."""
    checks = Checks(STATUS)
    _require_valid(checks, problem, config)
    sequences = checks.product(problem.batch_size, problem.kv_num_heads)
    each = subsequences_per_sequence(
        sequences, problem.present_kv_cache_capacity, config.multi_processor_count
    )
    count = checks.product(sequences, each)
    semaphores = checks.product(4, sequences)
    after = checks.align(semaphores, 128)
    rows = Recipe(checks, alignment=128)
    row_max = rows.carve("row_max", checks.product(128, count))
    row_sum = rows.carve("row_sum", checks.product(128, count))
    vector = vector_bytes(problem)
    accumulator = checks.product(vector, count)
    accumulator_offset = checks.total(after, checks.align(rows.total, vector))
    scratch = checks.total(accumulator_offset, accumulator)
    transients = append_transients(checks, problem, config.head_sink_storage, scratch)
    return Sizing(
        checks,
        XqaLayout(
            sequence_count=sequences,
            subsequences_per_sequence=each,
            subsequence_count=count,
            m_tile_size=tile_size(problem),
            semaphore_bytes=semaphores,
            semaphore_aligned_bytes=after,
            row_max_offset_bytes=after + row_max.offset,
            row_max_bytes=row_max.size,
            row_sum_offset_bytes=after + row_sum.offset,
            row_sum_bytes=row_sum.size,
            output_accumulator_offset_bytes=accumulator_offset,
            output_accumulator_bytes=accumulator,
            internal_scratch_bytes=scratch,
            total_backend_bytes=transients.total,
            **spans(transients),
        ),
    )


def function() -> Function:
    """`ort.gqa.xqa`."""
    inputs = symbols(XqaInput)
    return Function(
        "ort.gqa.xqa",
        "Workspace of the XQA backend",
        Source(_FILE, "GetGQAXqaWorkspaceRecipe", "bcdb68db"),
        inputs,
        {"out": report(XqaOutput, layout(inputs.problem, inputs.config))},
    )
