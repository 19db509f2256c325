"""The bytes of each complete route as they grow with batch, query length and KV length.

What does not grow is a count: Flash's splits, which jump with the work items and the blocks of KV,
and XQA's stretches of the cache per sequence. Each route states the keys of its count and where
they stand still; `routeproof bound` maximises regime by regime.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from routeproof.spec.objective import Held, Objective, Step
from routeproof.spec.records import symbols
from routeproof.spec.terms import (
    TRUE,
    Bool,
    Int,
    IntDomain,
    boolean,
    integer,
    ite,
    symbol_int,
)

from . import complete, flash, xqa
from .problem import (
    BACKEND,
    INT32_MAX,
    PREPROCESS_MODE,
    CompleteInput,
    CompleteRoute,
    PreparationConfig,
    Problem,
    UnfusedConfig,
)
from .split import BLOCK_M, block_n, fills_device, kv_blocks, selected_split_count, work_items

__all__ = ["BATCH", "QUERY", "ROUTES", "TOTAL", "objective"]

ROUTES = ("xqa", "flash", "flash_fast_decode", "memory_efficient", "unfused")

_INPUT = symbols(CompleteInput)
BATCH, QUERY = _INPUT.problem.batch_size, _INPUT.problem.sequence_length
TOTAL = _INPUT.route.flash.total_sequence_length
_ZERO, _ONE, _NO_END = integer(0), integer(1), integer(INT32_MAX)
_POSITIVE = IntDomain(1, 2**63 - 1)


@cache
def objective(
    route: str, phase: str, *, windowed: bool = False, separate: bool = False
) -> Objective:
    """A route's bytes in a phase, behind a preserved past if `separate`.

    The phases: `first`, a first prompt, `chunk` and `decode` after it. A windowed cache is
    compacted for a single token and staged for more: there `first` is one of several tokens, and
    `single` another phase.
    """
    one_token = phase in ("single", "decode")
    problem = replace(
        _INPUT.problem,
        sequence_length=integer(1) if one_token else QUERY,
        is_windowed_kv_cache=boolean(windowed),
        is_first_prompt=boolean(phase in ("first", "single")),
        requires_separate_past_buffer=boolean(separate),
    )
    config = _configured(route)
    sizing = complete.layout(problem, config)
    held = {"flash": _splits, "flash_fast_decode": _splits, "xqa": _stretches}.get(route)
    capacity = problem.present_kv_cache_capacity
    return Objective(
        ".".join((route, phase, *["windowed"] * windowed, *["separate-past"] * separate)),
        (BATCH, TOTAL) if one_token else (BATCH, QUERY, TOTAL),
        sizing.layout.total_workspace_bytes,
        sizing.ok,
        {
            "a row, a token and a capacity": (BATCH >= 1) & (TOTAL >= 1) & (capacity >= 1),
            **({"several tokens": QUERY >= 2} if windowed and not one_token else {}),
            **({} if one_token else {"a token": QUERY >= 1}),
        },
        held(problem, config) if held else None,
    )


def _configured(route: str) -> CompleteRoute:
    """The route's configuration; both backends that read the KV length read the same one."""
    backend, fast = route.removesuffix("_fast_decode"), boolean(route == "flash_fast_decode")
    return replace(
        _INPUT.route,
        backend=BACKEND[backend],
        preparation=PreparationConfig(PREPROCESS_MODE[backend], fast),
        flash=replace(_INPUT.route.flash, fast_decode=fast),
        unfused=UnfusedConfig(TOTAL),
    )


def _splits(problem: Problem, config: CompleteRoute) -> Held:
    """Flash's splits stand still while work and blocks do; they are 1 once work fills the device.

    A windowed cache that stages is as long as its capacity and the query together: there the query
    moves the blocks too.
    """
    fast, window = config.flash.fast_decode, config.flash.local_window_size
    device, tokens = config.flash.multi_processor_count, block_n(problem.head_size)
    length = flash.split_kv_length(complete.kv_length(problem, TOTAL), window, fast)
    work, blocks = symbol_int("work_items", _POSITIVE), symbol_int("kv_blocks", _POSITIVE)
    steps = [
        Step(BATCH, _ONE, _ZERO, _NO_END),
        Step(TOTAL, tokens, _ZERO, ite(fast & (window > 0), window, _NO_END)),
    ]
    if problem.sequence_length is QUERY:
        steps.append(Step(QUERY, integer(BLOCK_M), _ZERO, _NO_END))
        if problem.is_windowed_kv_cache is TRUE:
            steps.append(Step(QUERY, tokens, problem.present_kv_cache_capacity, _NO_END))
    return Held(
        selected_split_count(work, blocks, device),
        {
            work: work_items(BATCH, flash.split_heads(problem, fast), problem.sequence_length),
            blocks: kv_blocks(length, problem.head_size),
        },
        fills_device(work, device),
        tuple(steps),
    )


def _stretches(problem: Problem, config: CompleteRoute) -> Held:
    """XQA's stretches per sequence: 1 once there are as many sequences as multiprocessors."""
    sequences = symbol_int("sequences", _POSITIVE)
    device = config.xqa.multi_processor_count
    settled: Bool = sequences >= device
    count: Int = BATCH * problem.kv_num_heads
    return Held(
        xqa.subsequences_per_sequence(sequences, problem.present_kv_cache_capacity, device),
        {sequences: count},
        settled,
        (Step(BATCH, _ONE, _ZERO, _NO_END),),
    )
