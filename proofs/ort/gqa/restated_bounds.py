"""Restates the Level-1 bound: the aggregate over an envelope of shapes and the reachable backends.

Source: group_query_attention_workspace_bounds.h / .cc, ONNX Runtime,
onnxruntime/contrib_ops/cuda/bert/, revision 07a61dfa and the text after it. Sizes are bytes,
bounds are elements. The adapter around it (declared envelope, preserved past) is not part of it.

The aggregate sizes one state after another and stops at the first that fails. Restated without the
loop: a state is sized when it is asked for, is ok, and no state before it is asked for and fails.
What a state needs and what is made of the results are stated apart, so that each is proved by
itself; how preparation is sized, and when it fails, is stated in `restated_preparation`. The bytes
of Flash's buffers for a number of splits are an argument, so that they are compared by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routeproof.models.ort.gqa.problem import (
    AGGREGATE_BACKEND,
    INT32_MAX,
    PREPROCESS_MODE,
    BoundsProblem,
    PreparationConfig,
    PreparationInput,
    Problem,
)
from routeproof.proofs.ort.gqa.restated_common import (
    Fields,
    any_quantized,
    first_match,
    too_large,
)
from routeproof.proofs.ort.gqa.restated_fallback import memory_efficient_total, unfused_total
from routeproof.proofs.ort.gqa.restated_flash import block_n
from routeproof.proofs.ort.gqa.restated_preparation import effective_capacity
from routeproof.proofs.ort.gqa.restated_xqa import (
    accumulator_vector_bytes,
    dynamic_head_sink_bytes,
    rotary_bytes,
)
from routeproof.spec.terms import (
    FALSE,
    Bool,
    Enum,
    Int,
    align_up,
    all_of,
    any_of,
    boolean,
    ceil_div,
    integer,
    ite,
    maximum,
    minimum,
)

Buffers = Callable[[Problem, Int], Int]

__all__ = ["Buffers", "Result", "State", "aggregated", "is_accepted", "states"]


@dataclass(frozen=True, slots=True)
class State:
    """One state of one route: whether it is asked for, its preparation, its backend's bytes.

    `refused` is what the backend does not serve, once preparation is ok.
    """

    wanted: Bool
    preparation: PreparationInput
    backend_bytes: Int
    refused: Bool = FALSE


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a state: its status, and its bytes when that is ok."""

    wanted: Bool
    status: Enum
    total: Int

    @property
    def fails(self) -> Bool:
        """Asked for, and not ok."""
        return self.wanted & (self.status != "ok")


def largest_head_size(bounds: BoundsProblem, limit: int) -> Int:
    """The largest multiple of 8 (elements) within the bound and the route's limit."""
    return minimum(bounds.head_size_bound, limit) // 8 * 8


def problem_at(bounds: BoundsProblem, head_size: Int, tokens: Int, *, first: bool) -> Problem:
    """The invocation with every bound attained, `tokens` query tokens and the given head size."""
    b = bounds
    return Problem(
        qkv_element_size=b.qkv_element_size,
        cache_element_size=b.cache_element_size,
        batch_size=b.batch_size_bound,
        sequence_length=tokens,
        num_heads=b.num_heads,
        kv_num_heads=b.kv_num_heads,
        head_size=head_size,
        present_kv_cache_capacity=b.present_kv_cache_capacity_bound,
        past_kv_cache_capacity=integer(0),
        kv_cache_bit_width=b.kv_cache_bit_width,
        k_quantization=b.k_quantization,
        v_quantization=b.v_quantization,
        is_windowed_kv_cache=b.is_windowed_kv_cache,
        is_first_prompt=boolean(first),
        do_rotary=b.do_rotary,
        is_packed_qkv=b.is_packed_qkv,
        use_qk_norm=b.use_qk_norm,
        requires_separate_past_buffer=FALSE,
    )


def phases(bounds: BoundsProblem, head_size: Int) -> tuple[tuple[Bool, Problem], ...]:
    """When each state is asked for, and its invocation: decode, first prompt, later prompt."""
    b, longest = bounds, bounds.sequence_length_bound
    return (
        (b.decode_reachable, problem_at(b, head_size, integer(1), first=False)),
        (b.prompt_reachable, problem_at(b, head_size, longest, first=True)),
        (b.prompt_reachable, problem_at(b, head_size, longest, first=False)),
    )


def prepared(problem: Problem, mode: str, *, fast: bool = False) -> PreparationInput:
    """What preparation is asked for the route."""
    return PreparationInput(problem, PreparationConfig(PREPROCESS_MODE[mode], boolean(fast)))


def memory_efficient_states(bounds: BoundsProblem) -> tuple[State, ...]:
    """MEA at each phase, head size at most 1,024."""
    reachable = bounds.reachable_backends.has("memory_efficient")
    return tuple(
        State(
            reachable & wanted,
            prepared(p, "memory_efficient"),
            memory_efficient_total(p, effective_capacity(p)),
            any_quantized(p),
        )
        for wanted, p in phases(bounds, largest_head_size(bounds, 1024))
    )


def unfused_states(bounds: BoundsProblem) -> tuple[State, ...]:
    """Unfused at each phase, any head size."""
    reachable = bounds.reachable_backends.has("unfused")
    return tuple(
        State(
            reachable & wanted,
            prepared(p, "unfused"),
            unfused_total(p, effective_capacity(p)),
            any_quantized(p),
        )
        for wanted, p in phases(bounds, largest_head_size(bounds, INT32_MAX))
    )


def split_ceiling(bounds: BoundsProblem, head_size: Int, kv_length: Int) -> Int:
    """The most splits the heuristic could select for a KV length in tokens."""
    blocks = ceil_div(kv_length, block_n(head_size))
    return minimum(128, bounds.multi_processor_count, blocks)


def flash_states(bounds: BoundsProblem, buffers: Buffers) -> tuple[State, ...]:
    """Flash, not fast decode, at each phase, head size at most 256."""
    reachable = bounds.reachable_backends.has("flash")
    head_size = largest_head_size(bounds, 256)
    return tuple(
        State(
            reachable & wanted,
            prepared(p, "flash"),
            buffers(p, split_ceiling(bounds, head_size, effective_capacity(p))),
        )
        for wanted, p in phases(bounds, head_size)
    )


def fast_decode_states(bounds: BoundsProblem, buffers: Buffers) -> tuple[State, ...]:
    """Fast decode, once: the longest query, not a first prompt, whatever phase is reachable."""
    b, head_size = bounds, largest_head_size(bounds, 256)
    capacity, window = b.present_kv_cache_capacity_bound, b.local_window_size
    kv_length = ite(window > 0, minimum(capacity, window), capacity)
    p = problem_at(b, head_size, b.sequence_length_bound, first=False)
    wanted = b.reachable_backends.has("flash_fast_decode")
    need = buffers(p, split_ceiling(b, head_size, kv_length))
    return (State(wanted, prepared(p, "flash", fast=True), need),)


def xqa_ceiling(bounds: BoundsProblem, problem: Problem) -> Int:
    """Bytes XQA can need for one token: max(q, SM) sub-sequences, and the worst padding."""
    b, p = bounds, problem
    sequences, vector = p.batch_size * p.kv_num_heads, accumulator_vector_bytes(p)
    count = maximum(sequences, b.multi_processor_count)
    return (
        align_up(4 * sequences, 128)
        + (127 + 256 * count)
        + (vector - 1 + vector * count)
        + rotary_bytes(p, p.num_heads)
        + rotary_bytes(p, p.kv_num_heads)
        + dynamic_head_sink_bytes(p.num_heads, b.xqa_head_sink_storage)
    )


def xqa_states(bounds: BoundsProblem) -> tuple[State, ...]:
    """XQA, one token, at each head size within the bound, whatever phase is reachable."""
    b = bounds
    reachable, one = b.reachable_backends.has("xqa"), integer(1)
    shapes = [problem_at(b, integer(head_size), one, first=False) for head_size in (64, 128, 256)]
    return tuple(
        State(
            reachable & (p.head_size <= b.head_size_bound),
            prepared(p, "xqa"),
            xqa_ceiling(b, p),
        )
        for p in shapes
    )


def states(bounds: BoundsProblem, buffers: Buffers) -> dict[str, tuple[State, ...]]:
    """By backend, in the order in which the aggregate sizes them."""
    return {
        "memory_efficient": memory_efficient_states(bounds),
        "unfused": unfused_states(bounds),
        "flash": flash_states(bounds, buffers),
        "flash_fast_decode": fast_decode_states(bounds, buffers),
        "xqa": xqa_states(bounds),
    }


def is_invalid(bounds: BoundsProblem) -> Bool:
    """What is rejected before anything is accumulated; int32 limits are not among it."""
    b = bounds
    positive = (
        b.batch_size_bound,
        b.sequence_length_bound,
        b.num_heads,
        b.kv_num_heads,
        b.present_kv_cache_capacity_bound,
        b.multi_processor_count,
    )
    return any_of(
        *(value < 1 for value in positive),
        b.head_size_bound < 8,
        b.num_heads % b.kv_num_heads != 0,
        b.qkv_element_size != 2,
        ~b.cache_element_size.is_in(1, 2),
        ~b.prompt_reachable & ~b.decode_reachable,
    )


def persistent_prepack_bytes(bounds: BoundsProblem) -> Int:
    """Bytes of the fp32 head sink where it is, or may be, converted once; XQA reachable or not."""
    b = bounds
    prepacked = b.head_sink_may_be_prepacked | (b.xqa_head_sink_storage == "prepacked_fp32")
    return ite(prepacked, 4 * b.num_heads, 0)


def is_accepted(bounds: BoundsProblem) -> Bool:
    """The upfront checks pass, cuDNN is not reachable, and the prepacked bytes fit."""
    return all_of(
        ~is_invalid(bounds),
        ~bounds.reachable_backends.has("cudnn"),
        ~too_large(persistent_prepack_bytes(bounds)),
    )


def xqa_has_no_head_size(bounds: BoundsProblem) -> Bool:
    """XQA is reachable but not even its smallest head size is; reported before other failures."""
    return bounds.reachable_backends.has("xqa") & (bounds.head_size_bound < 64)


def aggregated_status(bounds: BoundsProblem, results: Sequence[Result]) -> Enum:
    """The status of the whole aggregate."""
    b = bounds
    return first_match(
        (is_invalid(b), "invalid_argument"),
        (b.reachable_backends.has("cudnn"), "unavailable"),
        (too_large(persistent_prepack_bytes(b)), "overflow"),
        (~any_of(*b.reachable_backends.present.values()), "unavailable"),
        (xqa_has_no_head_size(b), "unavailable"),
        *((one.fails, one.status) for one in results),
    )


def sized(bounds: BoundsProblem, results: Sequence[Result], place: int) -> Bool:
    """The state at a place in the order is sized: asked for, ok, and none before it fails."""
    one, before = results[place], results[:place]
    stopped = any_of(*(earlier.fails for earlier in before))
    return all_of(is_accepted(bounds), one.wanted, ~one.fails, ~stopped)


def aggregated(bounds: BoundsProblem, by_backend: Mapping[str, Sequence[Result]]) -> Fields:
    """Every output field; what was accumulated before a failure is kept.

    The total is that of the largest state that is sized, whatever the status; 0 when none is.
    """
    results = [one for route in by_backend.values() for one in route]
    backends = [name for name, route in by_backend.items() for _ in route]
    flags = [sized(bounds, results, place) for place in range(len(results))]
    prepack, accepted = persistent_prepack_bytes(bounds), is_accepted(bounds)
    bytes_ = (ite(flag, one.total, 0) for flag, one in zip(flags, results, strict=True))
    return {
        "status": aggregated_status(bounds, results),
        "total_workspace_bytes": maximum(0, *bytes_),
        "persistent_prepack_bytes": ite(accepted, prepack, 0),
        "initialization_scratch_bytes": ite(accepted, prepack // 2, 0),
        **{
            f"sized_backends.{name}": any_of(
                *(flag for flag, backend in zip(flags, backends, strict=True) if backend == name)
            )
            for name in AGGREGATE_BACKEND.members
        },
    }
