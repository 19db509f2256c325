"""What the bound obligations quantify over: an envelope, and an invocation inside it.

Batch, query length, head size and capacity are at most their bounds, over all int32 values; heads,
KV heads, device, element sizes, cache layout and flags are exact facts that both share; the total
KV length lies within the capacity that the backend sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from routeproof.models.ort.gqa import bounds as level1
from routeproof.models.ort.gqa import complete, preparation
from routeproof.models.ort.gqa.complete import CompleteLayout
from routeproof.models.ort.gqa.problem import (
    BACKEND,
    INT32_MAX,
    PREPROCESS_MODE,
    BoundsProblem,
    CompleteRoute,
    FlashConfig,
    PreparationConfig,
    Problem,
    UnfusedConfig,
    XqaConfig,
)
from routeproof.models.ort.gqa.sizing import Sizing
from routeproof.spec.records import symbols
from routeproof.spec.terms import (
    TRUE,
    Bool,
    Int,
    IntDomain,
    all_of,
    any_of,
    boolean,
    integer,
    symbol_int,
)

__all__ = ["Admitted", "admitted", "configured"]

INT64 = IntDomain(-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Admitted:
    """An invocation of one route inside an envelope, its need and the envelope's bound (bytes)."""

    envelope: BoundsProblem
    problem: Problem
    kv_length: Int
    need: Sizing[CompleteLayout]
    bound: level1.Aggregate
    assuming: Mapping[str, Bool]


def _facts(envelope: BoundsProblem) -> dict[str, Any]:
    """The fields of an invocation that are exact facts of its envelope."""
    return {
        name: getattr(envelope, name)
        for name in (
            "qkv_element_size",
            "cache_element_size",
            "num_heads",
            "kv_num_heads",
            "kv_cache_bit_width",
            "k_quantization",
            "v_quantization",
            "is_windowed_kv_cache",
            "do_rotary",
            "is_packed_qkv",
            "use_qk_norm",
        )
    }


def _envelope(windowed: bool, packed: bool | None, local_window: bool | None) -> BoundsProblem:
    envelope = replace(symbols(BoundsProblem, "bound"), is_windowed_kv_cache=boolean(windowed))
    if packed is False:
        envelope = replace(envelope, kv_cache_bit_width=integer(0))
    if local_window is False:
        envelope = replace(envelope, local_window_size=integer(-1))
    return envelope


@cache
def _aggregate(windowed: bool, packed: bool | None, local_window: bool | None) -> level1.Aggregate:
    """The bound of an envelope, which many obligations share."""
    return level1.aggregate(_envelope(windowed, packed, local_window))


def configured(envelope: BoundsProblem, route: str, kv_length: Int) -> CompleteRoute:
    """A route (`flash_fast_decode` included) on the envelope's device, over so many KV tokens."""
    fast, backend = boolean(route == "flash_fast_decode"), route.removesuffix("_fast_decode")
    device = envelope.multi_processor_count
    return CompleteRoute(
        BACKEND[backend],
        PreparationConfig(PREPROCESS_MODE[backend], fast),
        XqaConfig(
            envelope.device_major,
            envelope.device_minor,
            device,
            envelope.xqa_kv_type,
            envelope.xqa_head_sink_storage,
            envelope.is_bf16,
        ),
        FlashConfig(kv_length, envelope.local_window_size, device, fast),
        UnfusedConfig(kv_length),
    )


def admitted(  # noqa: PLR0913 - what tells one obligation from another
    route: str,
    phase: str,
    *,
    windowed: bool = False,
    separate: bool = False,
    packed: bool | None = None,
    local_window: bool | None = None,
    head_size: int | None = None,
    one_token_bound: bool = False,
) -> Admitted:
    """An admitted invocation of a route (`flash_fast_decode` included) in a phase.

    The phases: `first`, a first prompt; `single`, one of a single token; `chunk`, several tokens
    with past; `decode`, one with past; `prompt`, of either kind, for routes that need the same in
    both. A bound of several tokens sizes a windowed prompt with staging, one of a single token
    (`one_token_bound`) without: each is an obligation by itself.
    """
    envelope = _envelope(windowed, packed, local_window)
    free = symbols(Problem)
    one_token = phase in ("single", "decode")
    problem = replace(
        free,
        **_facts(envelope),
        sequence_length=integer(1) if one_token else free.sequence_length,
        head_size=free.head_size if head_size is None else integer(head_size),
        is_first_prompt=free.is_first_prompt
        if phase == "prompt"
        else boolean(phase in ("first", "single")),
        requires_separate_past_buffer=boolean(separate),
        past_kv_cache_capacity=free.past_kv_cache_capacity if separate else integer(0),
    )
    kv_length = symbol_int("total_sequence_length", INT64)
    config = configured(envelope, route, kv_length)
    need, bound = complete.layout(problem, config), _aggregate(windowed, packed, local_window)
    return Admitted(
        envelope,
        problem,
        kv_length,
        need,
        bound,
        {
            "the bound is ok": bound.ok,
            **_inside(envelope, problem, kv_length),
            **({"a local window": envelope.local_window_size >= 1} if local_window else {}),
            **({"packed rows": envelope.kv_cache_bit_width.is_in(4, 8)} if packed else {}),
            **_permitted(route, phase, envelope, problem, one_token_bound=one_token_bound),
        },
    )


def _inside(envelope: BoundsProblem, problem: Problem, kv_length: Int) -> dict[str, Bool]:
    """The invocation is valid and at most the bounds, component by component."""
    most = {
        "batch": (problem.batch_size, envelope.batch_size_bound),
        "query length": (problem.sequence_length, envelope.sequence_length_bound),
        "head size": (problem.head_size, envelope.head_size_bound),
        "capacity": (problem.present_kv_cache_capacity, envelope.present_kv_cache_capacity_bound),
    }
    window = envelope.local_window_size
    found = {
        f"{name} within its bound": all_of(n >= 1, n <= top) for name, (n, top) in most.items()
    }
    found["head size is a multiple of 8"] = problem.head_size % 8 == 0
    found["KV length within the capacity"] = all_of(
        kv_length >= 1, kv_length <= preparation.effective_capacity(problem)
    )
    some = all_of(window >= 1, window <= INT32_MAX)
    found["window is none or positive"] = all_of(any_of(window == -1, some), window >= -1)
    if envelope.is_windowed_kv_cache is TRUE:
        rows = preparation.cache_row_bytes(problem)
        found["windowed rows are multiples of 16 bytes"] = rows % 16 == 0
    if problem.requires_separate_past_buffer is TRUE:
        past = problem.past_kv_cache_capacity
        found["past capacity is a positive int32"] = all_of(past >= 1, past <= INT32_MAX)
    return found


def _permitted(
    route: str, phase: str, envelope: BoundsProblem, problem: Problem, *, one_token_bound: bool
) -> dict[str, Bool]:
    """The policy lets the route run in the phase, and the route serves the invocation."""
    k, v = envelope.k_quantization, envelope.v_quantization
    unquantised = all_of(k == "none", v == "none")
    found = {"the route is reachable": envelope.reachable_backends.has(route)}
    windowed = envelope.is_windowed_kv_cache is TRUE
    if phase != "decode" and route != "flash_fast_decode":
        found["prompts are reachable"] = envelope.prompt_reachable
    elif route not in ("xqa", "flash_fast_decode"):  # sized whatever the phases
        found["decode is reachable"] = envelope.decode_reachable
    if one_token_bound:
        found["the bound admits one token"] = envelope.sequence_length_bound == 1
    elif phase == "single":
        found["the bound admits several tokens"] = envelope.sequence_length_bound >= 2
    if phase == "chunk" or (windowed and phase in ("first", "prompt")):
        found["several tokens"] = problem.sequence_length >= 2
    match route:
        case "flash":
            found["Flash serves the head size"] = problem.head_size <= 256
        case "flash_fast_decode":
            served = all_of(problem.head_size <= 256, unquantised, ~envelope.use_qk_norm)
            found["fast decode serves the node"] = served
        case "memory_efficient":
            found["MEA serves the node"] = all_of(problem.head_size <= 1024, unquantised)
        case "unfused":
            found["unfused serves the node"] = all_of(problem.head_size <= INT32_MAX, unquantised)
        case "xqa":
            found |= _xqa_serves(envelope, problem)
    return found


def _xqa_serves(envelope: BoundsProblem, problem: Problem) -> dict[str, Bool]:
    """XQA's device, cache type and grid, which the bound does not look at."""
    major, minor = envelope.device_major, envelope.device_minor
    k, v, kv_type = envelope.k_quantization, envelope.v_quantization, envelope.xqa_kv_type
    quantised = any_of(k != "none", v != "none")
    fp8 = any_of(major >= 9, all_of(major == 8, minor == 9))
    return {
        "device 8.0 or newer": all_of(major >= 8, minor >= 0),
        "fewer than 2^32 multiprocessors": envelope.multi_processor_count < 2**32,
        "within the grid": all_of(problem.batch_size <= 65_535, problem.kv_num_heads <= 65_535),
        "cache type fits": all_of(kv_type != "invalid", (kv_type != "none") == quantised),
        "quantised: 8 bits, no QK-norm": any_of(
            ~quantised, all_of(envelope.kv_cache_bit_width == 8, ~envelope.use_qk_norm)
        ),
        "FP8 on FP8 devices": any_of(kv_type != "fp8", fp8),
        "head sink is valid": envelope.xqa_head_sink_storage != "invalid",
    }
