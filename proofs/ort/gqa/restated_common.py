"""What the restatements of the GQA recipes share: validation, first-match status, `size_t`.

Restates the validation that every function of `group_query_attention_workspace.h` / `.cc` begins
with, ONNX Runtime, onnxruntime/contrib_ops/cuda/bert/, revision bcdb68db. Sizes are in bytes,
lengths and head counts in elements.

Overflow needs one remark. At the point where sizes are formed every factor is positive, so every
partial product, every partial sum, every start and every end is at most the exact total. Nor can
rounding alone overflow: `align_up(x, 256) <= 2**64 - 1` gives `align_up(x, 256) <= 2**64 - 256`,
hence `x + 255 <= 2**64 - 1`. "Some checked step overflows" is therefore the same as "the exact
total does not fit in `size_t`".
"""

from __future__ import annotations

from collections.abc import Mapping

from routeproof.models.ort.gqa.problem import INT32_MAX, STATUS, Problem
from routeproof.spec.terms import Bool, Enum, Int, Term, align_up, all_of, any_of, boolean, ite

__all__ = [
    "SIZE_MAX",
    "Fields",
    "any_quantized",
    "first_match",
    "geometry_is_invalid",
    "not_positive_int32",
    "offset_if_present",
    "only_if",
    "padded",
    "too_large",
]

Fields = dict[str, Term]

SIZE_MAX = 2**64 - 1


def first_match(*cases: tuple[Bool, str | Enum]) -> Enum:
    """The status of the first case whose condition holds; `ok` when none does."""
    if not cases:
        return STATUS["ok"]
    (condition, status), *later = cases
    then = STATUS[status] if isinstance(status, str) else status
    return ite(condition, then, first_match(*later))


def only_if(
    condition: Bool, fields: Mapping[str, Int | Bool], otherwise: Mapping[str, int] | None = None
) -> Fields:
    """The fields where the condition holds; elsewhere 0, false or the entry in `otherwise`."""
    default = otherwise or {}
    return {
        name: all_of(condition, value)
        if isinstance(value, Bool)
        else ite(condition, value, default.get(name, 0))
        for name, value in fields.items()
    }


def too_large(*bytes_: Int) -> Bool:
    """Some exact number (bytes or elements) does not fit in `size_t`."""
    return any_of(*(value > SIZE_MAX for value in bytes_))


def not_positive_int32(*values: Int) -> Bool:
    """Some value (elements) lies outside 1..2**31-1."""
    return any_of(*((value < 1) | (value > INT32_MAX) for value in values))


def geometry_is_invalid(problem: Problem) -> Bool:
    """What every raw backend recipe rejects first: dimensions (elements), groups, element bytes."""
    p = problem
    return any_of(
        not_positive_int32(
            p.batch_size, p.sequence_length, p.num_heads, p.kv_num_heads, p.head_size
        ),
        p.num_heads % p.kv_num_heads != 0,
        p.qkv_element_size != 2,
    )


def any_quantized(problem: Problem) -> Bool:
    """K or V is quantised; an invalid enumerator counts as quantised."""
    return (problem.k_quantization != "none") | (problem.v_quantization != "none")


def padded(size: Int) -> Int:
    """Bytes from the start of a region of `size` bytes to where the next one may start."""
    return align_up(size, 256)


def offset_if_present(start: Int, present: Bool | bool) -> Int:
    """The start (bytes) of a region that is present; an absent region reports 0."""
    return ite(boolean(present), start, 0)
