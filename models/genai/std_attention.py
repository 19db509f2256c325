"""Default-domain Attention: the layout of its planned workspace, in two revisions.

Sources: the CUDA Attention kernel of onnx-genai at #813 (13f664a0a: scores and staged K and V) and
#830 (4d4c22732: present K and V where the node has no output for them, and two control arrays).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import FALSE, TRUE, Bool, Enum, Int, all_of, integer, ite, maximum

from .vocabulary import ALIGNMENT, U64, error_sort, errors, layout_adapter

__all__ = ["ERROR", "MESSAGES", "Layout", "LayoutInput", "function", "layout"]

_FILE = "onnx-genai, CUDA plugin, Attention"
MESSAGES = {
    "total_length": "total attended length overflow",
    "total_value_length": "total value-cache length overflow",
    "rows": "attention row count overflow",
    "scores": "score scratch size overflow",
    "key": "staged key size overflow",
    "value": "staged value size overflow",
    "staged_bytes": "staged KV byte count overflow",
    "control": "control-array byte count overflow",
    "alignment": "workspace alignment overflow",
}
PREFIX = "Attention: "
ERROR = error_sort(*MESSAGES)
_ZERO = integer(0)


@dataclass(frozen=True, slots=True)
class LayoutInput(Record):
    """Extents (elements), the element's size (bytes), and which regions are wanted."""

    batch: U64
    q_heads: U64
    q_seq: U64
    total_seq: U64
    kv_heads: U64
    key_seq: U64
    head_size: U64
    value_seq: U64
    value_head_size: U64
    element_bytes: U64
    stage_key: Bool
    stage_value: Bool
    present_key_scratch: Bool
    present_value_scratch: Bool
    control_batch: U64


@dataclass(frozen=True, slots=True)
class Layout(Record):
    """Offsets and sizes (bytes) of #813; the end is not padded."""

    error: Annotated[Enum, ERROR] = ERROR["none"]
    scores_offset: Int = _ZERO
    scores_bytes: Int = _ZERO
    has_stage_key: Bool = FALSE
    stage_key_offset: Int = _ZERO
    stage_key_bytes: Int = _ZERO
    has_stage_value: Bool = FALSE
    stage_value_offset: Int = _ZERO
    stage_value_bytes: Int = _ZERO
    total_bytes: Int = _ZERO


@dataclass(frozen=True, slots=True)
class ControlledLayout(Layout):
    """The same since #830: present scratch and two control arrays, before the end."""

    has_present_key: Bool = FALSE
    present_key_offset: Int = _ZERO
    present_key_bytes: Int = _ZERO
    has_present_value: Bool = FALSE
    present_value_offset: Int = _ZERO
    present_value_bytes: Int = _ZERO
    offsets_offset: Int = _ZERO
    offsets_bytes: Int = _ZERO
    pad_limits_offset: Int = _ZERO
    pad_limits_bytes: Int = _ZERO


class Cursor:
    """Regions placed behind each other, each at a multiple of 256; the end is not padded."""

    def __init__(self, checks: Checks, end: Int, failure: str) -> None:
        """`failure` is what an overflow of the cursor is called."""
        self._checks, self._failure = checks, failure
        self.end = end

    def place(self, size: Int, when: Bool = TRUE) -> Int:
        """The region's offset, 0 where it is absent."""
        start = self._checks.align(self.end, ALIGNMENT, when=when, failure=self._failure)
        end = self._checks.total(start, size, when=when, failure=self._failure)
        self.end = ite(when, end, self.end)
        return ite(when, start, 0)


def layout(given: LayoutInput, *, controlled: bool) -> tuple[Checks, Layout]:
    """The checks, and the layout where they hold; `controlled` since #830."""
    checks = errors(ERROR)
    rows = checks.product(given.batch, given.q_heads, given.q_seq, failure="rows")
    scores = checks.fits(rows * given.total_seq, failure="scores")
    score_bytes = checks.product(maximum(scores, 1), 4, failure="scores")
    heads = checks.fits(given.batch * given.kv_heads, failure="key")
    key = checks.product(heads, given.key_seq, given.head_size, failure="key")
    checks.fits(given.batch * given.kv_heads, failure="value")
    value = checks.product(heads, given.value_seq, given.value_head_size, failure="value")
    cursor = Cursor(checks, score_bytes, "alignment")
    found: dict[str, Any] = {"scores_bytes": score_bytes}

    def staged(name: str, elements: Int, when: Bool) -> None:
        size = checks.product(elements, given.element_bytes, when=when, failure="staged_bytes")
        size = maximum(size, 1)
        found[f"has_{name}"] = when
        found[f"{name}_offset"] = cursor.place(size, when)
        found[f"{name}_bytes"] = ite(when, size, 0)

    staged("stage_key", key, given.stage_key)
    staged("stage_value", value, given.stage_value)
    if controlled:
        staged("present_key", key, given.present_key_scratch)
        staged("present_value", value, given.present_value_scratch)
        control = checks.product(8, maximum(given.control_batch, 1), failure="control")
        for name in ("offsets", "pad_limits"):
            found[f"{name}_offset"], found[f"{name}_bytes"] = cursor.place(control), control
    record = ControlledLayout if controlled else Layout
    return checks, record(total_bytes=cursor.end, **found)


def _reported(given: LayoutInput, *, controlled: bool) -> Record:
    checks, found = layout(given, controlled=controlled)
    failed = type(found)(error=checks.status)
    return select(all_of(checks.ok), found, failed)


def function() -> Function:
    """`genai.std_attention.layout`: `out` at #813, `out_head` since #830."""
    inputs = symbols(LayoutInput)
    return Function(
        "genai.std_attention.layout",
        "Planned workspace of default-domain Attention",
        Source(_FILE, "workspace layout", "13f664a0a / 4d4c22732"),
        inputs,
        {
            "out": _reported(inputs, controlled=False),
            "out_head": _reported(inputs, controlled=True),
        },
        adapter=layout_adapter(PREFIX, MESSAGES, None),
    )
