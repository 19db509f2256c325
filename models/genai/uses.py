"""Which of the regions that IndexShare and GroupQueryAttention charge a dispatch really uses.

Sources: the run paths of the CUDA kernels of onnx-genai, IndexShare at #751 (d2db1f5ac) and
GroupQueryAttention at #806 (39c293565); modelled apart from the planning side.
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.records import Record
from routeproof.spec.terms import Bool, all_of

from .vocabulary import U64

__all__ = [
    "GqaDispatch",
    "IndexShareDispatch",
    "fuses_preparation",
    "uses_frontier",
    "uses_present",
]


@dataclass(frozen=True, slots=True)
class IndexShareDispatch(Record):
    """Outputs of the node, and what execution sees of cache and bias (extents in tokens)."""

    output_count: U64
    past_extent: U64
    present_extent: U64
    has_bias: Bool


def uses_present(run: IndexShareDispatch) -> Bool:
    """Present K and V are built in scratch: the node has no output for them."""
    return run.output_count == 1


def uses_frontier(run: IndexShareDispatch) -> Bool:
    """The frontier serves a cache of fixed capacity, read by way of the bias."""
    fixed = all_of(run.output_count == 3, run.present_extent == run.past_extent)
    return all_of(fixed, run.has_bias)


@dataclass(frozen=True, slots=True)
class GqaDispatch(Record):
    """A packed dispatch: rows of Q and of new keys, head size, cache (extents in tokens)."""

    q_seq: U64
    new_keys: U64
    head_size: U64
    past_extent: U64
    present_extent: U64
    aliases_past: Bool


def fuses_preparation(run: GqaDispatch) -> Bool:
    """One kernel unpacks, rotates and appends: nothing is staged."""
    return all_of(
        run.q_seq == 1,
        run.new_keys == 1,
        run.head_size % 2 == 0,
        run.aliases_past,
        run.past_extent == run.present_extent,
    )
