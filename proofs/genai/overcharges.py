"""Regions that are charged and never used, and exactly when: IndexShare, and packed GQA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from routeproof.checkers.planning import Pair, overcharge, used_exactly_if
from routeproof.models.genai import gqa, index_share
from routeproof.models.genai.uses import (
    GqaDispatch,
    IndexShareDispatch,
    fuses_preparation,
    uses_frontier,
    uses_present,
)
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import FALSE, TRUE, Bool, Int, all_of, implies

_INDEX_SHARE = Source("onnx-genai, CUDA plugin, IndexShare", "plan and run", "d2db1f5ac")
_GQA = Source("onnx-genai, CUDA plugin, GroupQueryAttention", "plan and run", "39c293565")
_SHARED, _PACKED = symbols(IndexShareDispatch, "step"), symbols(GqaDispatch, "packed")
_ASKED = replace(
    symbols(index_share.LayoutInput, "index_share"),
    has_bias=_SHARED.has_bias,
    want_present=_SHARED.output_count == 3,
)
_LAYOUT = symbols(gqa.LayoutInput, "gqa")


def _pair(planned: Int, executed: Int, assuming: Mapping[str, Bool]) -> Pair:
    return Pair(planned, executed, assuming)


def _index_share(*, present: bool, frontier: bool) -> Pair:
    """The plan beside a layout of what is used, the other regions as planned."""
    used = replace(
        _ASKED,
        want_present=~uses_present(_SHARED) if present else _ASKED.want_present,
        has_bias=uses_frontier(_SHARED) if frontier else _ASKED.has_bias,
    )
    checks, planned = index_share.layout(_ASKED)
    _, executed = index_share.layout(used)
    return _pair(
        planned.bytes,
        executed.bytes,
        {
            "the plan is ok": checks.ok,
            "one to three outputs": all_of(_SHARED.output_count >= 1, _SHARED.output_count <= 3),
        },
    )


@obligation(
    "genai.index-share.overcharge.present",
    "present K and V that are charged are used",
    source=_INDEX_SHARE,
    expect="refuted",
    note="A node with two outputs is charged for both, and builds neither in scratch.",
)
def present() -> Claim:
    """Charged unless the node has all three outputs."""
    pair = _index_share(present=True, frontier=False)
    return overcharge(_SHARED.output_count != 3, uses_present(_SHARED), pair)


@obligation(
    "genai.index-share.overcharge.present.condition",
    "present K and V that are charged are used exactly by nodes with one output",
    source=_INDEX_SHARE,
)
def present_condition() -> Claim:
    """Two outputs are the rest."""
    pair = _index_share(present=True, frontier=False)
    charged = _SHARED.output_count != 3
    return used_exactly_if(charged, uses_present(_SHARED), _SHARED.output_count < 2, pair)


@obligation(
    "genai.index-share.overcharge.frontier",
    "a frontier that is charged is used",
    source=_INDEX_SHARE,
    expect="refuted",
    note="Any bias charges it; only a cache of fixed capacity reads it.",
)
def frontier() -> Claim:
    """Charged wherever there is a bias."""
    pair = _index_share(present=False, frontier=True)
    return overcharge(_SHARED.has_bias, uses_frontier(_SHARED), pair)


@obligation(
    "genai.index-share.overcharge.frontier.condition",
    "a frontier that is charged is used exactly by three outputs over a cache that stands still",
    source=_INDEX_SHARE,
)
def frontier_condition() -> Claim:
    """The bias is there wherever it is charged."""
    pair = _index_share(present=False, frontier=True)
    still = all_of(_SHARED.output_count == 3, _SHARED.present_extent == _SHARED.past_extent)
    return used_exactly_if(_SHARED.has_bias, uses_frontier(_SHARED), still, pair)


@obligation(
    "genai.index-share.covers",
    "the plan covers whichever of its segments is used",
    source=_INDEX_SHARE,
)
def index_share_covers() -> Claim:
    """Segments that are not used only take room away."""
    pair = _index_share(present=True, frontier=True)
    return Claim(pair.executed <= pair.planned, pair.assuming, shows=pair.shown)


def _staging() -> Pair:
    """Packed Q, K and V as planned, beside a dispatch that stages them unless it is fused."""
    asked = replace(_LAYOUT, want_staging=TRUE, q_seq=_PACKED.q_seq)
    checks, planned = gqa.layout(asked)
    _, fused = gqa.layout(replace(asked, want_staging=FALSE))
    return _pair(
        planned.total_bytes,
        fused.total_bytes,
        {
            "the plan is ok": checks.ok,
            "a token at least": all_of(_PACKED.q_seq >= 1, _PACKED.new_keys >= 1),
            "only a past can be aliased": implies(_PACKED.aliases_past, _PACKED.past_extent > 0),
        },
    )


@obligation(
    "genai.gqa.overcharge.staging",
    "staged Q, K and V of a packed node are used",
    source=_GQA,
    expect="refuted",
    note="A fused decode step stages nothing; metadata do not show the aliasing.",
)
def staging() -> Claim:
    """Charged wherever the inputs are packed."""
    return overcharge(TRUE, ~fuses_preparation(_PACKED), _staging())


@obligation(
    "genai.gqa.overcharge.staging.condition",
    "staged Q, K and V of a packed node are used exactly if the step is not a fused decode",
    source=_GQA,
    note="Fused: one row and one new key, an even head size, a shared cache that stands still.",
)
def staging_condition() -> Claim:
    """The complement, condition by condition."""
    run = _PACKED
    several = ~all_of(run.q_seq <= 1, run.new_keys <= 1)
    moves = ~all_of(run.aliases_past, run.past_extent == run.present_extent)
    condition = several | (run.head_size % 2 == 1) | moves
    return used_exactly_if(TRUE, ~fuses_preparation(run), condition, _staging())
