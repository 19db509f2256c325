"""GroupQueryAttention of onnx-genai: what it asks for from metadata alone, in two revisions.

Sources: the CUDA GroupQueryAttention kernel at #810 (d7db6f2c4: fast decode up to head size 128)
and at the newest revision (512, since #1438).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Adapter, Function, Source
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import TRUE, Bool, Enum, all_of, any_of, integer, ite, maximum

from .gqa import ERROR, MESSAGES, PREFIX, LayoutInput, layout
from .tensors import Tensor, extent, read_tensors
from .vocabulary import (
    ALIGNMENT,
    LIFETIME,
    U64,
    Requirement,
    dtype_size,
    is_float,
    requirement_text,
)

__all__ = ["PlannedRequirement", "RequirementInput", "function", "requirement", "wanted"]

INPUTS = ("query", "key", "value", "past_key", "past_value")


@dataclass(frozen=True, slots=True)
class RequirementInput(Record):
    """The node's attributes and the metadata of its inputs."""

    num_heads: U64
    kv_num_heads: U64
    do_rotary: Bool
    listed: U64
    query: Tensor
    key: Tensor
    value: Tensor
    past_key: Tensor
    past_value: Tensor


@dataclass(frozen=True, slots=True)
class PlannedRequirement(Requirement):
    """A requirement, or the error that planning ends in."""

    error: Annotated[Enum, ERROR] = ERROR["none"]


def wanted(given: RequirementInput, fast_limit: int) -> tuple[Bool, LayoutInput]:
    """Whether the metadata describe a problem at all, and the layout that they ask for."""
    query, key, past = given.query, given.key, given.past_key
    packed = all_of(~key.present, ~given.value.present)
    hidden = extent(query, 2)
    divisor = ite(packed, given.num_heads + 2 * given.kv_num_heads, given.num_heads)
    is_problem = all_of(
        given.listed > 0, query.rank == 3, hidden != 0, divisor != 0, hidden % divisor == 0
    )
    head_size = hidden // divisor
    sequence = extent(query, 1)
    current = ite(packed, sequence, ite(key.rank == 3, extent(key, 1), 0))
    has_past = all_of(past.present, past.rank == 4)
    capacity = ite(has_past, maximum(extent(past, 2), current), current)
    one_row = sequence == 1
    fast = all_of(one_row, head_size >= 1, head_size <= fast_limit)
    asked = LayoutInput(
        batch=extent(query, 0),
        num_heads=given.num_heads,
        q_seq=sequence,
        q_hidden=given.num_heads * head_size,
        k_hidden=given.kv_num_heads * head_size,
        element_size=dtype_size(query.dtype),
        want_staging=all_of(packed, is_float(query.dtype)),
        want_q_bnsh=any_of(~one_row, packed, given.do_rotary),
        want_out_bnsh=sequence > 1,
        scores_kv_capacity=capacity,
        want_scores=all_of(query.dtype == "f32", ~fast),
    )
    return is_problem, asked


def requirement(given: RequirementInput, fast_limit: int) -> PlannedRequirement:
    """What is planned; `fast_limit` is the largest head size that decodes without scores."""
    is_problem, asked = wanted(given, fast_limit)
    checks, found = layout(asked)
    charged = PlannedRequirement(
        found.total_bytes, integer(ALIGNMENT), LIFETIME["SessionPersistent"]
    )
    none = PlannedRequirement(is_none=TRUE)
    failed = PlannedRequirement(error=checks.status)
    planned = select(found.total_bytes == 0, none, charged)
    return select(is_problem, select(checks.ok, planned, failed), none)


def _read(data: Any, where: str) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(data, dict) or "inputs" not in data:
        return data
    rest = {key: one for key, one in data.items() if key != "inputs"}
    return rest | read_tensors(data["inputs"], INPUTS, f"{where}: inputs")


def _write(_: Any, __: str, found: Any) -> Any:  # noqa: ANN401 - JSON
    if found["error"] != "none":
        return {"err": f"{PREFIX}{MESSAGES[found['error']]}"}
    return requirement_text(found)


def function() -> Function:
    """`genai.gqa.requirement`: `out` at #810, `out_head` at the newest revision."""
    inputs = symbols(RequirementInput)
    return Function(
        "genai.gqa.requirement",
        "What GroupQueryAttention asks for, from metadata",
        Source(
            "onnx-genai, CUDA plugin, GroupQueryAttention", "requirement", "d7db6f2c4 / ac9c7dd06"
        ),
        inputs,
        {"out": requirement(inputs, 128), "out_head": requirement(inputs, 512)},
        adapter=Adapter(_read, _write),
    )
