"""Plausible bounds that are false, each with a small invocation that breaks it.

They say why the aggregate is what it is: why it takes the split ceiling and not a corner's splits,
every XQA head size and not the largest, the capacity and not the KV length; and what it leaves to
the code around it, such as the grid, whole cache rows and a preserved past. All facts but two or
three are fixed, so that a person reads the counterexample at a glance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from routeproof.models.ort.gqa import bounds as level1
from routeproof.models.ort.gqa import flash, memory_efficient, xqa
from routeproof.models.ort.gqa.capabilities import xqa_has_head_size
from routeproof.models.ort.gqa.flash import FlashLayout
from routeproof.models.ort.gqa.preparation import cache_row_bytes, effective_capacity
from routeproof.models.ort.gqa.problem import (
    HEAD_SINK_STORAGE,
    KV_TYPE,
    QUANTIZATION,
    FlashConfig,
    XqaConfig,
)
from routeproof.models.ort.gqa.xqa import XqaLayout
from routeproof.spec.obligation import Claim, Invocation, obligation
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Int,
    IntDomain,
    align_up,
    boolean,
    implies,
    integer,
    maximum,
    symbol_int,
)

from .plain import KV, backends, decode, launch, need, plain_bounds
from .sources import FUNCTION_SOURCES

_SOURCE = FUNCTION_SOURCES["bounds"]


def _flash(
    sequence_length: Int, kv_length: Int, heads: int = 1, *, fast: bool = False
) -> FlashLayout:
    """Flash's layout for one request with one KV head of size 64, on 108 multiprocessors."""
    problem = decode(plain_bounds(), sequence_length=sequence_length, num_heads=integer(heads))
    config = FlashConfig(kv_length, integer(-1), integer(108), boolean(fast))
    return flash.layout(problem, config).layout


def _flash_launch(
    sequence_length: Int, kv_length: Int, heads: int = 1, *, fast: bool = False
) -> Invocation:
    """What `_flash` lays out, as a call of the complete recipe with a full cache."""
    problem = decode(
        plain_bounds(),
        sequence_length=sequence_length,
        num_heads=integer(heads),
        present_kv_cache_capacity=kv_length,
    )
    return launch(plain_bounds(), problem, "flash_fast_decode" if fast else "flash")


def _at_most(
    one: FlashLayout, two: FlashLayout, assuming: Mapping[str, Bool], launches: Invocation
) -> Claim:
    """The first invocation needs no more bytes than the second."""
    return Claim(
        one.total_backend_bytes <= two.total_backend_bytes,
        assuming,
        shows={
            "KV length": one.split_heuristic_kv_length,
            "splits": one.selected_split_count,
            "bytes": one.total_backend_bytes,
            "splits of the other": two.selected_split_count,
            "bytes of the other": two.total_backend_bytes,
        },
        launches=launches,
    )


@obligation(
    "ort.gqa.bound.not.flash-corner",
    "Flash needs most at the longest query, with the splits chosen there (same KV length)",
    source=_SOURCE,
    expect="refuted",
    note="A longer query is more work, hence split less: the bound has to take the ceiling.",
)
def flash_corner() -> Claim:
    """So the corner of an envelope does not bound what lies inside it."""
    length, longest = (
        symbol_int(name, IntDomain(1, 128))
        for name in ("sequence_length", "longest_sequence_length")
    )
    shorter, corner = _flash(length, KV), _flash(longest, KV)
    within = {"query within its bound": length <= longest}
    return _at_most(shorter, corner, within, _flash_launch(length, KV))


@obligation(
    "ort.gqa.bound.not.flash-monotone",
    "one token of KV more, and Flash needs no less (one query token, 2 heads)",
    source=_SOURCE,
    expect="refuted",
    note="One block more can make an efficient split count ineligible.",
)
def flash_monotone() -> Claim:
    """From whole blocks of 256 tokens to one token more."""
    one = integer(1)
    whole, more = _flash(one, KV, 2), _flash(one, KV + 1, 2)
    return _at_most(whole, more, {}, _flash_launch(one, KV, 2))


@obligation(
    "ort.gqa.bound.not.flash-for-fast-decode",
    "what regular decode needs is enough for fast decode (same lengths, 8 heads, 1 KV head)",
    source=_SOURCE,
    expect="refuted",
    note="Fast decode counts KV heads as its work, so it splits more.",
)
def flash_for_fast_decode() -> Claim:
    """One query token; both lay out their buffers for every query head."""
    one = integer(1)
    fast, regular = _flash(one, KV, 8, fast=True), _flash(one, KV, 8)
    return _at_most(fast, regular, {}, _flash_launch(one, KV, 8, fast=True))


@obligation(
    "ort.gqa.bound.not.xqa-monotone",
    "XQA needs no less for a larger batch",
    source=_SOURCE,
    expect="refuted",
    note="One request more can leave multiprocessors without a stretch of the cache.",
)
def xqa_monotone() -> Claim:
    """One head of size 64, no rotary embedding."""
    batch, larger = (symbol_int(name, IntDomain(1, 16)) for name in ("batch_size", "larger_batch"))
    device = symbol_int("multi_processor_count", IntDomain(1, 132))
    one, two = _xqa(batch, device), _xqa(larger, device)
    return Claim(
        one.total_backend_bytes <= two.total_backend_bytes,
        {"a larger batch": batch <= larger},
        shows={
            "stretches": one.subsequence_count,
            "bytes": one.total_backend_bytes,
            "stretches of the larger batch": two.subsequence_count,
            "bytes of the larger batch": two.total_backend_bytes,
        },
        launches=_xqa_launch(batch, device),
    )


def _xqa_launch(batch_size: Int, device: Int) -> Invocation:
    """What `_xqa` lays out, as a call of the complete recipe."""
    bounds = plain_bounds(multi_processor_count=device)
    problem = decode(bounds, batch_size=batch_size, present_kv_cache_capacity=KV)
    return launch(bounds, problem, "xqa")


def _xqa(batch_size: Int, device: Int) -> XqaLayout:
    """XQA's layout for one head of size 64."""
    problem = decode(plain_bounds(), batch_size=batch_size, present_kv_cache_capacity=KV)
    none = KV_TYPE["none"], HEAD_SINK_STORAGE["none"]
    return xqa.layout(problem, XqaConfig(integer(8), integer(0), device, *none, FALSE)).layout


@obligation(
    "ort.gqa.bound.not.xqa-without-vector-padding",
    "XQA's bound without the padding of its output accumulator still holds its scratch",
    source=_SOURCE,
    expect="refuted",
    note="The accumulator starts at a multiple of its vector; multiples of 4 SMs hide the padding.",
)
def xqa_padding() -> Claim:
    """One request and head of size 64."""
    batch, device = integer(1), symbol_int("multi_processor_count", IntDomain(1, 132))
    layout = _xqa(batch, device)
    count, vector = maximum(batch, device), 64 * 8 * 2
    bound = align_up(4 * batch, 128) + 127 + 256 * count + vector * count
    return Claim(
        layout.internal_scratch_bytes <= bound,
        shows={"scratch bytes": layout.internal_scratch_bytes, "bytes without padding": bound},
        launches=_xqa_launch(batch, device),
    )


@obligation(
    "ort.gqa.bound.not.xqa-largest-head-size",
    "without an XQA kernel for the largest head size of an envelope there is none for a smaller",
    source=FUNCTION_SOURCES["eligibility"],
    expect="refuted",
    note="Eligibility is not monotone in the head size.",
)
def xqa_largest_head_size() -> Claim:
    """The largest multiple of 8 within the bound, as for the other routes."""
    head_size, bound = (
        symbol_int(name, IntDomain(8, 256, multiple_of=8))
        for name in ("head_size", "head_size_bound")
    )
    small, large = xqa_has_head_size(head_size), xqa_has_head_size(bound)
    return Claim(
        implies(~large, ~small),
        {"head size within its bound": head_size <= bound},
        shows={"kernel": small, "kernel for the largest": large},
    )


@obligation(
    "ort.gqa.bound.not.xqa-any-grid",
    "where the bound for XQA is ok, XQA serves the largest batch",
    source=_SOURCE,
    expect="refuted",
    note="The grid's limit of 65,535 belongs to the recipe, and the bound does not look at it.",
)
def xqa_any_grid() -> Claim:
    """One head of size 64."""
    batch = symbol_int("batch_size", IntDomain(1, 2**31 - 1))
    bounds = plain_bounds(batch_size_bound=batch, reachable_backends=backends("xqa"))
    recipe, bound = need(bounds, decode(bounds), "xqa"), level1.aggregate(bounds)
    return Claim(
        recipe.ok,
        {"the bound is ok": bound.ok},
        shows={"recipe status": recipe.status, "bound status": bound.output.status},
        launches=launch(bounds, decode(bounds), "xqa"),
    )


@obligation(
    "ort.gqa.bound.not.windowed-any-rows",
    "where the bound is ok, a windowed cache of one byte per element serves every head size",
    source=_SOURCE,
    expect="refuted",
    note="Rows have to be multiples of 16 bytes; the bound checks the largest head size alone.",
)
def windowed_any_rows() -> Claim:
    """Flash with an 8-bit cache."""
    head_size, bound = (
        symbol_int(name, IntDomain(8, 256, multiple_of=8))
        for name in ("head_size", "head_size_bound")
    )
    bounds = plain_bounds(
        head_size_bound=bound,
        is_windowed_kv_cache=TRUE,
        cache_element_size=integer(1),
        kv_cache_bit_width=integer(8),
        k_quantization=QUANTIZATION["per_tensor"],
        v_quantization=QUANTIZATION["per_tensor"],
    )
    problem = decode(bounds, head_size=head_size)
    recipe, aggregate = need(bounds, problem, "flash"), level1.aggregate(bounds)
    return Claim(
        recipe.ok,
        {"the bound is ok": aggregate.ok, "head size within its bound": head_size <= bound},
        shows={
            "row bytes": recipe.layout.preparation.cache_row_bytes,
            "recipe status": recipe.status,
            "bound status": aggregate.output.status,
        },
        launches=launch(bounds, problem, "flash"),
    )


def _preserved(*, with_past: bool) -> Claim:
    """MEA with a preserved past: its need against the bound, with or without the past's bytes."""
    capacity, past_capacity = (
        symbol_int(name, IntDomain(1, 2**31 - 1)) for name in ("capacity", "past_capacity")
    )
    bounds = plain_bounds(
        head_size_bound=integer(8),
        present_kv_cache_capacity_bound=capacity,
        reachable_backends=backends("memory_efficient"),
    )
    problem = decode(
        bounds, requires_separate_past_buffer=TRUE, past_kv_cache_capacity=past_capacity
    )
    past = past_capacity * cache_row_bytes(problem)
    recipe, bound = need(bounds, problem, "memory_efficient"), level1.aggregate(bounds)
    needed, most = recipe.layout.total_workspace_bytes, bound.output.total_workspace_bytes
    return Claim(
        needed <= (past + most if with_past else most),
        {
            "the bound is ok": bound.ok,
            "the recipe is ok": recipe.ok,
            "past within the capacity": past_capacity <= capacity,
        },
        shows={"past bytes": past, "needed bytes": needed, "bound bytes": most},
        launches=launch(bounds, problem, "memory_efficient"),
    )


@obligation(
    "ort.gqa.bound.not.with-preserved-past",
    "the bound covers a preserved past tensor",
    source=_SOURCE,
    expect="refuted",
    note="The adapter adds it; the aggregate sizes shared buffers only.",
)
def without_past() -> Claim:
    """MEA, head size 8: rows of 16 bytes."""
    return _preserved(with_past=False)


@obligation(
    "ort.gqa.bound.not.past-unpadded",
    "the bound plus the bytes of a preserved past tensor, not padded to 256, is enough",
    source=_SOURCE,
    expect="refuted",
    note="What follows the past starts at a multiple of 256.",
)
def past_unpadded() -> Claim:
    """MEA, head size 8: rows of 16 bytes."""
    return _preserved(with_past=True)


@obligation(
    "ort.gqa.bound.not.mea-by-kv-length",
    "MEA's recipe for the valid tokens bounds what it needs (2 heads, 1 KV head)",
    source=FUNCTION_SOURCES["mea"],
    expect="refuted",
    note="K and V are expanded over the whole capacity, however few tokens are valid.",
)
def mea_by_kv_length() -> Claim:
    """One query token, head size 64."""
    kv_length, capacity = (
        symbol_int(name, IntDomain(1, 2**31 - 1)) for name in ("kv_length", "capacity")
    )
    problem = decode(plain_bounds(), num_heads=integer(2))
    needed, by_length = (
        memory_efficient.layout(problem, tokens).layout.total_backend_bytes
        for tokens in (capacity, kv_length)
    )
    return Claim(
        needed <= by_length,
        {"KV length within the capacity": kv_length <= capacity},
        shows={"needed bytes": needed, "bytes for the KV length": by_length},
        launches=launch(
            plain_bounds(), replace(problem, present_kv_cache_capacity=capacity), "memory_efficient"
        ),
    )


@obligation(
    "ort.gqa.bound.not.windowed-by-capacity",
    "a windowed cache never makes a backend see more than its capacity",
    source=FUNCTION_SOURCES["preparation"],
    expect="refuted",
    note="Several tokens are appended to a staged copy: the backend sees C + S.",
)
def windowed_by_capacity() -> Claim:
    """Hence a bound from the capacity alone is too small for MEA and unfused."""
    length, capacity = (
        symbol_int(name, IntDomain(1, 2**31 - 1)) for name in ("sequence_length", "capacity")
    )
    problem = decode(
        plain_bounds(),
        sequence_length=length,
        present_kv_cache_capacity=capacity,
        is_windowed_kv_cache=TRUE,
    )
    seen = effective_capacity(problem)
    return Claim(seen <= capacity, shows={"tokens that the backend sees": seen})
