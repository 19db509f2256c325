"""Default-domain Attention, plan against execution: what one dispatch carves, beside its plan.

The plan knows metadata alone: extents of the past, the mask's width, how many outputs the node has.
Execution knows the tensors: how long the presents are, and whether they alias the past. Source: the
CUDA Attention kernel of onnx-genai, run path at #813 (13f664a0a), #830 (4d4c22732), #1491
(4c1b59428); modelled apart from the planning side.
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record
from routeproof.spec.terms import Bool, Int, all_of, any_of, ite, maximum

from .std_attention import Layout, LayoutInput, layout
from .std_requirement import Revision
from .vocabulary import U64

__all__ = ["Dispatch", "Side", "executed", "is_fixed", "is_frozen", "planned"]


@dataclass(frozen=True, slots=True)
class Dispatch(Record):
    """A problem as both sides see it: extents in elements, `element_bytes` in bytes.

    Past K and V are equally long (planning refuses others); a present that is no output has extent
    0. `mask_width` is the mask's last extent.
    """

    batch: U64
    q_heads: U64
    kv_heads: U64
    q_seq: U64
    head_size: U64
    value_head_size: U64
    element_bytes: U64
    current: U64
    has_past: Bool
    past_extent: U64
    is_causal: Bool
    has_mask: Bool
    mask_width: U64
    output_count: U64
    present_key_extent: U64
    present_value_extent: U64
    aliases_key: Bool
    aliases_value: Bool


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its checks, its layout (bytes), and which of K and V it stages."""

    checks: Checks
    layout: Layout
    stage_key: Bool
    stage_value: Bool

    @property
    def total_bytes(self) -> Int:
        """The end of the last region."""
        return self.layout.total_bytes


def _total(run: Dispatch) -> Int:
    """Tokens after this step."""
    return ite(run.has_past, run.past_extent, 0) + run.current


def is_fixed(run: Dispatch, revision: Revision) -> Bool:
    """The plan takes the cache for one of fixed capacity: nothing is staged."""
    causality = any_of(~run.is_causal, not revision.causal_stages)
    return all_of(causality, run.has_mask, run.mask_width == run.past_extent)


def is_frozen(run: Dispatch) -> Bool:
    """The presents are no longer than the past: the step writes into a cache that stands still."""
    present = all_of(run.present_key_extent > 0, run.present_value_extent > 0)
    within = all_of(
        run.past_extent >= run.present_key_extent, run.past_extent >= run.present_value_extent
    )
    return all_of(run.has_past, run.output_count >= 3, present, within)


def _side(
    run: Dispatch, revision: Revision, lengths: tuple[Int, Int], staged: tuple[Bool, Bool]
) -> Side:
    """The layout of #813 or #830 over the attended lengths of K and V."""
    asked = LayoutInput(
        batch=run.batch,
        q_heads=run.q_heads,
        q_seq=run.q_seq,
        total_seq=lengths[0],
        kv_heads=run.kv_heads,
        key_seq=lengths[0],
        head_size=run.head_size,
        value_seq=lengths[1],
        value_head_size=run.value_head_size,
        element_bytes=run.element_bytes,
        stage_key=staged[0],
        stage_value=staged[1],
        present_key_scratch=run.output_count < 2,
        present_value_scratch=run.output_count < 3,
        control_batch=run.batch,
    )
    checks, found = layout(asked, controlled=revision.controlled)
    return Side(checks, found, *staged)


def planned(run: Dispatch, revision: Revision) -> Side:
    """What metadata lead to."""
    grows = all_of(run.has_past, ~is_fixed(run, revision))
    staged = (all_of(grows, run.output_count >= 2), all_of(grows, run.output_count >= 3))
    return _side(run, revision, (_total(run), _total(run)), staged)


def executed(run: Dispatch, revision: Revision) -> Side:
    """What the dispatch needs: a present that aliases its past is staged if it has no room."""
    total, frozen = _total(run), is_frozen(run)
    lengths = (
        ite(frozen, run.present_key_extent, total),
        ite(frozen, run.present_value_extent, total),
    )

    def stages(outputs: int, aliases: Bool, extent: Int) -> Bool:
        room = any_of(frozen, maximum(extent, total) > total)
        return all_of(run.has_past, run.output_count >= outputs, aliases, ~room)

    staged = (
        stages(2, run.aliases_key, run.present_key_extent),
        stages(3, run.aliases_value, run.present_value_extent),
    )
    return _side(run, revision, lengths, staged)
