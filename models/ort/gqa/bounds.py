"""The Level-1 bound: the most any reachable route can ask for, from upper bounds alone.

Source: `GetGQAWorkspaceAggregateForBounds` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_bounds.cc` (07a61dfa and the
text after it). Unlike a recipe, the aggregate keeps on an error what it accumulated before. The
graph adapter around it (declared envelope, preserved past) is not part of this function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import EnumSet, Record, symbols
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Enum,
    Int,
    all_of,
    any_of,
    boolean,
    integer,
    ite,
    maximum,
    minimum,
)

from . import flash, memory_efficient, preparation, unfused
from .capabilities import FLASH_MAX_HEAD_SIZE, MEA_MAX_HEAD_SIZE, XQA_HEAD_SIZES
from .complete import behind
from .preparation import PreparationLayout
from .problem import (
    AGGREGATE_BACKEND,
    INT32_MAX,
    PREPROCESS_MODE,
    STATUS,
    BoundsInput,
    BoundsProblem,
    PreparationConfig,
    Problem,
)
from .sizing import ONE, ZERO, Sizing
from .split import kv_blocks, split_ceiling
from .xqa import append_transients, vector_bytes

__all__ = [
    "Aggregate",
    "BoundsOutput",
    "FlashSizing",
    "RouteBound",
    "State",
    "Step",
    "accumulated",
    "aggregate",
    "decode_state",
    "flash_bound",
    "flash_state",
    "function",
    "is_valid",
    "largest_head_size",
    "mea_bound",
    "problem_at",
    "prompt_states",
    "route_behind",
    "steps",
    "unfused_bound",
    "xqa_bound",
]


@dataclass(frozen=True, slots=True)
class BoundsOutput(Record):
    """Output of `ort.gqa.bounds` (bytes); the prepack bytes stand beside the maximum."""

    status: Enum
    total_workspace_bytes: Int
    persistent_prepack_bytes: Int
    initialization_scratch_bytes: Int
    sized_backends: Annotated[EnumSet, AGGREGATE_BACKEND]


@dataclass(frozen=True, slots=True)
class RouteBound(Record):
    """Bytes of one complete route in one state, preparation included."""

    total_workspace_bytes: Int = ZERO


@dataclass(frozen=True, slots=True)
class State:
    """One corner that the aggregate sizes: a query length (tokens) in or after the first prompt."""

    sequence_length: Int
    is_first_prompt: Bool


def decode_state() -> State:
    """The only state of decode."""
    return State(ONE, FALSE)


def prompt_states(bounds: BoundsProblem) -> tuple[State, State]:
    """The longest first prompt, then the longest chunk."""
    longest = bounds.sequence_length_bound
    return State(longest, TRUE), State(longest, FALSE)


def largest_head_size(bounds: BoundsProblem, limit: int) -> Int:
    """The largest multiple of 8 within the bound and the route's limit (elements)."""
    return minimum(bounds.head_size_bound, limit) // 8 * 8


def problem_at(bounds: BoundsProblem, state: State, head_size: Int) -> Problem:
    """The invocation that a route is sized for."""
    return Problem(
        qkv_element_size=bounds.qkv_element_size,
        cache_element_size=bounds.cache_element_size,
        batch_size=bounds.batch_size_bound,
        sequence_length=state.sequence_length,
        num_heads=bounds.num_heads,
        kv_num_heads=bounds.kv_num_heads,
        head_size=head_size,
        present_kv_cache_capacity=bounds.present_kv_cache_capacity_bound,
        past_kv_cache_capacity=ZERO,
        kv_cache_bit_width=bounds.kv_cache_bit_width,
        k_quantization=bounds.k_quantization,
        v_quantization=bounds.v_quantization,
        is_windowed_kv_cache=bounds.is_windowed_kv_cache,
        is_first_prompt=state.is_first_prompt,
        do_rotary=bounds.do_rotary,
        is_packed_qkv=bounds.is_packed_qkv,
        use_qk_norm=bounds.use_qk_norm,
        requires_separate_past_buffer=FALSE,
    )


def _prepare(problem: Problem, mode: str, *, fast: bool = False) -> Sizing[PreparationLayout]:
    """Preparation for a mode."""
    return preparation.layout(problem, PreparationConfig(PREPROCESS_MODE[mode], boolean(fast)))


def route_behind(
    prepared: Sizing[PreparationLayout], backend: Checks, need: Int
) -> Sizing[RouteBound]:
    """The backend's bytes behind the preparation."""
    checks = Checks(STATUS)
    checks.include(prepared.checks)
    checks.include(backend)
    allocation, _ = behind(checks, prepared.layout, need)
    return Sizing(checks, RouteBound(allocation.total))


def mea_bound(bounds: BoundsProblem, state: State) -> Sizing[RouteBound]:
    """The MEA recipe in a state."""
    problem = problem_at(bounds, state, largest_head_size(bounds, MEA_MAX_HEAD_SIZE))
    prepared = _prepare(problem, "memory_efficient")
    backend = memory_efficient.layout(problem, prepared.layout.effective_kv_cache_capacity)
    return route_behind(prepared, backend.checks, backend.layout.total_backend_bytes)


def unfused_bound(bounds: BoundsProblem, state: State) -> Sizing[RouteBound]:
    """The unfused recipe in a state, over the whole effective capacity."""
    problem = problem_at(bounds, state, largest_head_size(bounds, INT32_MAX))
    prepared = _prepare(problem, "unfused")
    backend = unfused.layout(problem, prepared.layout.effective_kv_cache_capacity)
    return route_behind(prepared, backend.checks, backend.layout.total_backend_bytes)


def flash_state(
    bounds: BoundsProblem, state: State, *, fast: bool
) -> tuple[Problem, Sizing[PreparationLayout]]:
    """What Flash is sized for in a state, and its preparation."""
    problem = problem_at(bounds, state, largest_head_size(bounds, FLASH_MAX_HEAD_SIZE))
    return problem, _prepare(problem, "flash", fast=fast)


def flash_bound(bounds: BoundsProblem, state: State, *, fast: bool = False) -> Sizing[RouteBound]:
    """Flash's buffers in a state for the most splits that the heuristic considers."""
    problem, prepared = flash_state(bounds, state, fast=fast)
    kv_length = flash.split_kv_length(
        prepared.layout.effective_kv_cache_capacity, bounds.local_window_size, boolean(fast)
    )
    blocks = kv_blocks(kv_length, problem.head_size)
    splits = split_ceiling(blocks, bounds.multi_processor_count)
    checks = Checks(STATUS)
    recipe = flash.buffers(checks, problem, splits)
    return route_behind(prepared, checks, recipe.total)


def xqa_bound(bounds: BoundsProblem, head_size: int) -> Sizing[RouteBound]:
    """XQA's scratch for the most sequences in flight and the worst padding, then its transients.

    The cache's capacity does not cap it, and of the recipe's rules only preparation's apply.
    """
    problem = problem_at(bounds, decode_state(), integer(head_size))
    prepared = _prepare(problem, "xqa")
    checks = Checks(STATUS)
    sequences = checks.product(problem.batch_size, problem.kv_num_heads)
    count = maximum(sequences, bounds.multi_processor_count)
    vector = vector_bytes(problem)
    scratch = checks.total(
        checks.align(checks.product(4, sequences), 128),
        127,
        checks.product(256, count),
        vector - 1,
        checks.product(vector, count),
    )
    transients = append_transients(checks, problem, bounds.xqa_head_sink_storage, scratch)
    return route_behind(prepared, checks, transients.total)


@dataclass(frozen=True, slots=True)
class Step:
    """One complete route in one state, and whether the aggregate reaches it."""

    backend: str
    reached: Bool
    bound: Sizing[RouteBound]


class FlashSizing(Protocol):
    """A way to size Flash, or fast decode, in a state."""

    def __call__(
        self, bounds: BoundsProblem, state: State, *, fast: bool = False
    ) -> Sizing[RouteBound]:
        """The complete route's bytes."""


def steps(bounds: BoundsProblem, flash_sizing: FlashSizing = flash_bound) -> tuple[Step, ...]:
    """Every step, in the order that decides what is kept when one fails."""
    has = bounds.reachable_backends.has
    first_prompt, chunk = prompt_states(bounds)
    states = (
        (decode_state(), bounds.decode_reachable),
        (first_prompt, bounds.prompt_reachable),
        (chunk, bounds.prompt_reachable),
    )
    general = (("memory_efficient", mea_bound), ("unfused", unfused_bound), ("flash", flash_sizing))
    return (
        *(
            Step(backend, has(backend) & when, bound(bounds, state))
            for backend, bound in general
            for state, when in states
        ),
        # Fast decode and XQA are sized for one state each, whatever the phases.
        Step("flash_fast_decode", has("flash_fast_decode"), flash_sizing(bounds, chunk, fast=True)),
        # Rows do not tell the maximum over the head sizes from the largest alone; all are tried.
        *(
            Step("xqa", has("xqa") & (bounds.head_size_bound >= size), xqa_bound(bounds, size))
            for size in XQA_HEAD_SIZES
        ),
    )


def is_valid(bounds: BoundsProblem) -> Bool:
    """What the aggregate asks of its input; int32 limits come later, with each preparation."""
    positive = (
        bounds.batch_size_bound,
        bounds.sequence_length_bound,
        bounds.num_heads,
        bounds.kv_num_heads,
        bounds.present_kv_cache_capacity_bound,
        bounds.multi_processor_count,
    )
    return all_of(
        *(value > 0 for value in positive),
        bounds.num_heads % bounds.kv_num_heads == 0,
        bounds.head_size_bound >= 8,
        bounds.qkv_element_size == 2,
        bounds.cache_element_size.is_in(1, 2),
        any_of(bounds.prompt_reachable, bounds.decode_reachable),
    )


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The output, and the condition under which it promises anything: that its status is `ok`."""

    output: BoundsOutput
    ok: Bool


def aggregate(bounds: BoundsProblem) -> Aggregate:
    """The bound (bytes) with its status, and the routes that it covers."""
    return accumulated(bounds, steps(bounds))


def accumulated(bounds: BoundsProblem, sizes: Sequence[Step]) -> Aggregate:
    """What the aggregate makes of the steps, in their order."""
    reachable = bounds.reachable_backends
    checks = Checks(STATUS)
    checks.require(is_valid(bounds), "invalid_argument")
    checks.require(~reachable.has("cudnn"), "unavailable")
    prepacked = any_of(
        bounds.head_sink_may_be_prepacked, bounds.xqa_head_sink_storage == "prepacked_fp32"
    )
    persistent = checks.product(4, bounds.num_heads, when=prepacked)
    scratch = checks.product(2, bounds.num_heads, when=prepacked)
    prepacks = all_of(prepacked, checks.ok)
    checks.require(any_of(*reachable.present.values()), "unavailable")

    started, total = checks.ok, ZERO
    sized = dict.fromkeys(AGGREGATE_BACKEND.members, FALSE)
    for step in sizes:
        checks.include(step.bound.checks, when=step.reached)
        counted = all_of(step.reached, checks.ok)
        total = maximum(total, ite(counted, step.bound.layout.total_workspace_bytes, 0))
        sized[step.backend] = any_of(sized[step.backend], counted)
    # No head size of XQA's lies within the bound: this replaces even an earlier error of a route.
    too_small = all_of(started, reachable.has("xqa"), bounds.head_size_bound < XQA_HEAD_SIZES[0])
    output = BoundsOutput(
        status=ite(too_small, STATUS["unavailable"], checks.status),
        total_workspace_bytes=total,
        persistent_prepack_bytes=ite(prepacks, persistent, 0),
        initialization_scratch_bytes=ite(prepacks, scratch, 0),
        sized_backends=EnumSet(AGGREGATE_BACKEND, sized),
    )
    return Aggregate(output, all_of(~too_small, checks.ok))


def function() -> Function:
    """`ort.gqa.bounds`."""
    inputs = symbols(BoundsInput)
    return Function(
        "ort.gqa.bounds",
        "Level-1 bound over every reachable route",
        Source(
            "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_bounds.cc",
            "GetGQAWorkspaceAggregateForBounds",
            "07a61dfa and later",
        ),
        inputs,
        {"out": aggregate(inputs.bounds).output},
    )
