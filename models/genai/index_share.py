"""IndexShare: the layout of its planned workspace.

Source: the CUDA IndexShare kernel of onnx-genai at #751 (d2db1f5ac).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import TRUE, Bool, Enum, Int, all_of, integer, ite, maximum

from .vocabulary import ALIGNMENT, DTYPE, U64, dtype_size, error_sort, errors, layout_adapter

__all__ = ["ERROR", "MESSAGES", "PREFIX", "Layout", "LayoutInput", "function", "layout"]

PREFIX = "cuda_ep IndexShare: "
MESSAGES = {
    "present_elements": "IndexShare present workspace element count overflow",
    "present_bytes": "IndexShare present workspace byte count overflow",
    "score_rows": "IndexShare score workspace row count overflow",
    "score_elements": "IndexShare score workspace element count overflow",
    "score_bytes": "IndexShare score workspace byte count overflow",
    "size": "IndexShare workspace size overflow",
}
ERROR = error_sort(*MESSAGES)
_ZERO = integer(0)


@dataclass(frozen=True, slots=True)
class LayoutInput(Record):
    """The problem; `want_present` false means that present K and V are placed."""

    batch: U64
    q_heads: U64
    kv_heads: U64
    q_seq: U64
    cache_seq: U64
    head_size: U64
    selected_width: U64
    dtype: Annotated[Enum, DTYPE]
    has_bias: Bool
    want_present: Bool


@dataclass(frozen=True, slots=True)
class Layout(Record):
    """The total and the offsets (bytes); those of absent segments are 0."""

    error: Annotated[Enum, ERROR] = ERROR["none"]
    bytes: Int = _ZERO
    present_key_offset: Int = _ZERO
    present_value_offset: Int = _ZERO
    scores_offset: Int = _ZERO
    frontier_offset: Int = _ZERO


def layout(given: LayoutInput) -> tuple[Checks, Layout]:
    """The checks, and the layout where they hold; every segment is at least a byte long."""
    checks = errors(ERROR)
    elements = checks.product(
        given.batch,
        given.kv_heads,
        given.cache_seq,
        given.head_size,
        failure="present_elements",
    )
    present = checks.product(elements, dtype_size(given.dtype), failure="present_bytes")
    rows = checks.product(given.batch, given.q_heads, given.q_seq, failure="score_rows")
    selected = checks.fits(rows * given.selected_width, failure="score_elements")
    scores = checks.product(selected, 4, failure="score_bytes")
    frontier = checks.product(16, given.batch, when=given.has_bias, failure="size")
    end: Int = _ZERO

    def place(size: Int, when: Bool) -> Int:
        nonlocal end
        start = checks.align(end, ALIGNMENT, when=when, failure="size")
        reached = checks.total(start, maximum(size, 1), when=when, failure="size")
        end = ite(when, reached, end)
        return ite(when, start, 0)

    offsets: dict[str, Any] = {
        "present_key_offset": place(present, ~given.want_present),
        "present_value_offset": place(present, ~given.want_present),
        "scores_offset": place(scores, TRUE),
        "frontier_offset": place(frontier, all_of(given.has_bias, frontier > 0)),
    }
    total = checks.align(end, ALIGNMENT, failure="size")
    return checks, Layout(bytes=total, **offsets)


def function() -> Function:
    """`genai.index_share.layout`."""
    inputs = symbols(LayoutInput)
    checks, found = layout(inputs)
    return Function(
        "genai.index_share.layout",
        "Planned workspace of IndexShare",
        Source("onnx-genai, CUDA plugin, IndexShare", "workspace layout", "d2db1f5ac"),
        inputs,
        {"out": select(checks.ok, found, Layout(error=checks.status))},
        adapter=layout_adapter(PREFIX, MESSAGES, 0),
    )
