"""Phase-2a: scores and a fixed GEMM area of `com.microsoft` Attention.

Source: the CUDA Attention kernel of onnx-genai at #753 (d74ca938d). The product of extents
saturates; the rounding behind it is unchecked, and panics in a checked build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Adapter, Function, Source
from routeproof.spec.recipe import SIZE_MAX
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import FALSE, TRUE, Bool, Enum, Int, align_up, any_of, integer, minimum

from .vocabulary import ALIGNMENT, DTYPE, U64, dtype_size

__all__ = ["GEMM_BYTES", "Layout", "LayoutInput", "function", "layout"]

GEMM_BYTES = 33_554_432
_ZERO = integer(0)


@dataclass(frozen=True, slots=True)
class LayoutInput(Record):
    """The problem; any element type is accepted."""

    dtype: Annotated[Enum, DTYPE]
    batch: U64
    num_heads: U64
    sq: U64
    sk: U64


@dataclass(frozen=True, slots=True)
class Layout(Record):
    """Offsets and sizes (bytes), or a panic."""

    panics: Bool = FALSE
    scores_off: Int = _ZERO
    scores_bytes: Int = _ZERO
    workspace_off: Int = _ZERO
    total_bytes: Int = _ZERO


def layout(given: LayoutInput) -> Layout:
    """The layout; a checked build panics where the rounding or the sum does not fit."""
    elements = given.batch * given.num_heads * given.sq * given.sk
    scores = minimum(elements * dtype_size(given.dtype), SIZE_MAX)
    start = align_up(scores, ALIGNMENT)
    total = start + GEMM_BYTES
    panics = any_of(scores + (ALIGNMENT - 1) > SIZE_MAX, total > SIZE_MAX)
    return select(panics, Layout(panics=TRUE), Layout(FALSE, _ZERO, scores, start, total))


def _write(_: Any, __: str, found: Any) -> Any:  # noqa: ANN401 - JSON
    if found["panics"]:
        return {"panic": True}
    return {key: value for key, value in found.items() if key != "panics"}


def function() -> Function:
    """`genai.phase2a.layout`."""
    inputs = symbols(LayoutInput)
    return Function(
        "genai.phase2a.layout",
        "Scores and GEMM area of com.microsoft Attention",
        Source("onnx-genai, CUDA plugin, com.microsoft Attention", "Phase-2a layout", "d74ca938d"),
        inputs,
        {"out": layout(inputs)},
        adapter=Adapter(lambda data, _: data, _write),
    )
