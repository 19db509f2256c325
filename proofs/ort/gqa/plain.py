"""Plain envelopes and invocations: what twins change in two or three facts.

A person reads a counterexample at a glance only if all else is fixed and small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from routeproof.models.ort.gqa import bounds as level1
from routeproof.models.ort.gqa import complete
from routeproof.models.ort.gqa.bounds import State
from routeproof.models.ort.gqa.complete import CompleteLayout
from routeproof.models.ort.gqa.preparation import effective_capacity
from routeproof.models.ort.gqa.problem import (
    AGGREGATE_BACKEND,
    HEAD_SINK_STORAGE,
    KV_TYPE,
    QUANTIZATION,
    BoundsProblem,
    CompleteInput,
    Problem,
)
from routeproof.models.ort.gqa.sizing import Sizing
from routeproof.spec.obligation import Invocation
from routeproof.spec.records import EnumSet
from routeproof.spec.terms import FALSE, TRUE, IntDomain, Term, boolean, integer, symbol_int

from .envelopes import configured

__all__ = ["KV", "backends", "corner", "decode", "launch", "need", "plain_bounds"]

KV = 256 * symbol_int("kv_blocks", IntDomain(1, 128))
"""Tokens in whole blocks: those of Flash for head size 64 and the cache tiles of XQA."""


def plain_bounds(**changes: Term | EnumSet) -> BoundsProblem:
    """An envelope of one request, head and token, fp16, on 108 multiprocessors; Flash decodes."""
    one = integer(1)
    plain = BoundsProblem(
        qkv_element_size=integer(2),
        cache_element_size=integer(2),
        batch_size_bound=one,
        sequence_length_bound=one,
        num_heads=one,
        kv_num_heads=one,
        head_size_bound=integer(64),
        present_kv_cache_capacity_bound=one,
        kv_cache_bit_width=integer(0),
        k_quantization=QUANTIZATION["none"],
        v_quantization=QUANTIZATION["none"],
        is_windowed_kv_cache=FALSE,
        do_rotary=FALSE,
        is_packed_qkv=FALSE,
        use_qk_norm=FALSE,
        prompt_reachable=FALSE,
        decode_reachable=TRUE,
        reachable_backends=backends("flash"),
        device_major=integer(8),
        device_minor=integer(0),
        multi_processor_count=integer(108),
        is_bf16=FALSE,
        xqa_kv_type=KV_TYPE["none"],
        xqa_head_sink_storage=HEAD_SINK_STORAGE["none"],
        head_sink_may_be_prepacked=FALSE,
        local_window_size=integer(-1),
    )
    given: dict[str, Any] = changes
    return replace(plain, **given)


def backends(*names: str) -> EnumSet:
    """The reachable backends: those named."""
    return EnumSet(AGGREGATE_BACKEND, {n: boolean(n in names) for n in AGGREGATE_BACKEND.members})


def corner(bounds: BoundsProblem, state: State, **changes: Term) -> Problem:
    """The invocation of a state with every size at its bound but those that change."""
    given: dict[str, Any] = changes
    return replace(level1.problem_at(bounds, state, bounds.head_size_bound), **given)


def decode(bounds: BoundsProblem, **changes: Term) -> Problem:
    """One token after the first prompt."""
    return corner(bounds, level1.decode_state(), **changes)


def launch(bounds: BoundsProblem, problem: Problem, route: str) -> Invocation:
    """The complete recipe called for a route, its KV length the whole capacity."""
    config = configured(bounds, route, effective_capacity(problem))
    return Invocation("ort.gqa.complete", CompleteInput(problem, config))


def need(bounds: BoundsProblem, problem: Problem, route: str) -> Sizing[CompleteLayout]:
    """The complete recipe of a route, its KV length the whole capacity."""
    config = configured(bounds, route, effective_capacity(problem))
    return complete.layout(problem, config)
