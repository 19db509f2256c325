"""GroupQueryAttention of onnx-genai: the layout of its planned workspace.

Source: the CUDA GroupQueryAttention kernel at #810 (d7db6f2c4: packed staging, transposes and
scores in one layout).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import Bool, Enum, Int, all_of, integer, ite, maximum

from .vocabulary import ALIGNMENT, U64, error_sort, errors, layout_adapter

__all__ = ["ERROR", "MESSAGES", "PREFIX", "Layout", "LayoutInput", "function", "layout"]

PREFIX = "cuda_ep GroupQueryAttention: "
MESSAGES = {
    "staging": "packed QKV staging byte count overflow",
    "rows": "attention row count overflow",
    "scores": "score scratch size overflow",
    "score_bytes": "score scratch byte count overflow",
}
ERROR = error_sort(*MESSAGES)
_ZERO = integer(0)


@dataclass(frozen=True, slots=True)
class LayoutInput(Record):
    """Extents (elements), the element's size (bytes), and which regions are wanted."""

    batch: U64
    num_heads: U64
    q_seq: U64
    q_hidden: U64
    k_hidden: U64
    element_size: U64
    want_staging: Bool
    want_q_bnsh: Bool
    want_out_bnsh: Bool
    scores_kv_capacity: U64
    want_scores: Bool


@dataclass(frozen=True, slots=True)
class Layout(Record):
    """Offsets and sizes (bytes); sizes are not padded, and neither are scores at the end."""

    error: Annotated[Enum, ERROR] = ERROR["none"]
    packed_q_offset: Int = _ZERO
    packed_q_bytes: Int = _ZERO
    packed_k_offset: Int = _ZERO
    packed_k_bytes: Int = _ZERO
    packed_v_offset: Int = _ZERO
    packed_v_bytes: Int = _ZERO
    q_bnsh_offset: Int = _ZERO
    q_bnsh_bytes: Int = _ZERO
    out_bnsh_offset: Int = _ZERO
    out_bnsh_bytes: Int = _ZERO
    scores_offset: Int = _ZERO
    scores_bytes: Int = _ZERO
    total_bytes: Int = _ZERO


class _Padded:
    """Regions behind each other, the cursor rounded up behind each."""

    def __init__(self, checks: Checks) -> None:
        self._checks, self.end = checks, _ZERO

    def place(self, size: Int, when: Bool) -> Int:
        """The region's offset, 0 where it is absent."""
        start = self.end
        end = self._checks.total(start, size, when=when, failure="staging")
        padded = self._checks.align(end, ALIGNMENT, when=when, failure="staging")
        self.end = ite(when, padded, self.end)
        return ite(when, start, 0)


def layout(given: LayoutInput) -> tuple[Checks, Layout]:
    """The checks, and the layout where they hold; only wanted regions are computed."""
    checks = errors(ERROR)
    staging = given.want_staging

    def bytes_of(hidden: Int, when: Bool) -> Int:
        rows_ = checks.fits(given.batch * given.q_seq, when=when, failure="staging")
        return checks.product(rows_, hidden, given.element_size, when=when, failure="staging")

    cursor = _Padded(checks)
    found: dict[str, Any] = {}
    for name, hidden in (("q", given.q_hidden), ("k", given.k_hidden), ("v", given.k_hidden)):
        size = bytes_of(hidden, staging)
        found[f"packed_{name}_offset"] = cursor.place(size, staging)
        found[f"packed_{name}_bytes"] = ite(staging, size, 0)
    # With one row the transposed Q is the packed Q: the two share a region.
    shares = all_of(staging, given.q_seq == 1)
    query = bytes_of(given.q_hidden, given.want_q_bnsh)
    offset = cursor.place(query, all_of(given.want_q_bnsh, ~shares))
    found["q_bnsh_offset"] = ite(
        given.want_q_bnsh, ite(shares, found["packed_q_offset"], offset), 0
    )
    found["q_bnsh_bytes"] = ite(given.want_q_bnsh, query, 0)
    output = bytes_of(given.q_hidden, given.want_out_bnsh)
    found["out_bnsh_offset"] = cursor.place(output, given.want_out_bnsh)
    found["out_bnsh_bytes"] = ite(given.want_out_bnsh, output, 0)
    wants = given.want_scores
    heads = checks.product(given.batch, given.num_heads, given.q_seq, when=wants, failure="rows")
    elements = checks.fits(heads * given.scores_kv_capacity, when=wants, failure="scores")
    scores = checks.product(maximum(elements, 1), 4, when=wants, failure="score_bytes")
    end = checks.total(cursor.end, scores, when=wants, failure="staging")
    return checks, Layout(
        scores_offset=ite(wants, cursor.end, 0),
        scores_bytes=ite(wants, scores, 0),
        total_bytes=ite(wants, end, cursor.end),
        **found,
    )


def _reported(checks: Checks, found: Layout) -> Layout:
    return select(checks.ok, found, Layout(error=checks.status))


def function() -> Function:
    """`genai.gqa.layout`."""
    inputs = symbols(LayoutInput)
    return Function(
        "genai.gqa.layout",
        "Planned workspace of GroupQueryAttention",
        Source("onnx-genai, CUDA plugin, GroupQueryAttention", "workspace layout", "d7db6f2c4"),
        inputs,
        {"out": _reported(*layout(inputs))},
        adapter=layout_adapter(PREFIX, MESSAGES, 0),
    )
