"""Default-domain Attention: what it asks for from metadata alone, in three revisions.

Sources: the CUDA Attention kernel of onnx-genai at #813 (13f664a0a), #830 (4d4c22732) and #1491
(4c1b59428: the staging decision no longer looks at causality).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Adapter, Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import FALSE, TRUE, Bool, Enum, Int, all_of, any_of, integer, ite

from .std_attention import ERROR, MESSAGES, PREFIX, LayoutInput, layout
from .tensors import Tensor, extent, from_end, read_tensors
from .vocabulary import (
    ALIGNMENT,
    LIFETIME,
    U64,
    Requirement,
    dtype_size,
    errors,
    is_float,
    requirement_text,
)

__all__ = ["REVISIONS", "PlannedRequirement", "RequirementInput", "Revision", "function", "planned"]

INPUTS = ("query", "key", "value", "mask", "past_key", "past_value")


@dataclass(frozen=True, slots=True)
class Revision:
    """What changed: the control arrays (#830), and causality in the staging decision (#1491)."""

    controlled: bool
    causal_stages: bool


REVISIONS = {
    "out": Revision(controlled=False, causal_stages=True),
    "out_4d4c22732": Revision(controlled=True, causal_stages=True),
    "out_head": Revision(controlled=True, causal_stages=False),
}


@dataclass(frozen=True, slots=True)
class RequirementInput(Record):
    """Attributes (head counts may be missing), the number of outputs, the inputs' metadata."""

    has_q_num_heads: Bool
    q_num_heads: U64
    has_kv_num_heads: Bool
    kv_num_heads: U64
    is_causal: Bool
    output_count: U64
    listed: U64
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor
    past_key: Tensor
    past_value: Tensor


@dataclass(frozen=True, slots=True)
class PlannedRequirement(Requirement):
    """A requirement or an error, and which of K and V would be staged."""

    error: Annotated[Enum, ERROR] = ERROR["none"]
    stage_key: Bool = FALSE
    stage_value: Bool = FALSE


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor as batch, heads, length and head size, where it resolves to that."""

    resolves: Bool
    batch: Int
    heads: Int
    length: Int
    head_size: Int


def resolved(tensor: Tensor, has_heads: Bool, heads: Int) -> Shape:
    """Rank 4 as it is; rank 3 by a head count that divides a hidden size, neither of them 0."""
    hidden = extent(tensor, 2)
    four = tensor.rank == 4
    three = all_of(tensor.rank == 3, has_heads, heads != 0, hidden != 0, hidden % heads == 0)
    return Shape(
        any_of(four, three),
        extent(tensor, 0),
        ite(four, extent(tensor, 1), heads),
        ite(four, extent(tensor, 2), extent(tensor, 1)),
        ite(four, extent(tensor, 3), hidden // heads),
    )


def stages(given: RequirementInput, revision: Revision) -> tuple[Bool, Bool]:
    """Whether K and V are staged: a past that outputs replace, unless it stands still."""
    past_key, past_value, mask = given.past_key, given.past_value, given.mask
    fixed = all_of(
        any_of(~given.is_causal, not revision.causal_stages),
        past_key.rank >= 2,
        past_value.rank >= 2,
        mask.present,
        mask.rank >= 1,
        from_end(past_key, 2) == from_end(past_value, 2),
        from_end(past_key, 2) == from_end(mask, 1),
    )
    grows = all_of(past_key.present, past_value.present, ~fixed)
    return all_of(grows, given.output_count >= 2), all_of(grows, given.output_count >= 3)


def planned(given: RequirementInput, revision: Revision) -> PlannedRequirement:
    """The requirement, NONE, or an error; checked in the kernel's order."""
    stage_key, stage_value = stages(given, revision)
    kv_heads = (given.has_kv_num_heads, given.kv_num_heads)
    query = resolved(given.query, given.has_q_num_heads, given.q_num_heads)
    key, value = (resolved(one, *kv_heads) for one in (given.key, given.value))
    pasts = [resolved(one, *kv_heads) for one in (given.past_key, given.past_value)]
    has_past = given.past_key.present
    is_problem = all_of(
        given.listed >= 3,
        is_float(given.query.dtype),
        given.key.dtype == given.query.dtype,
        given.value.dtype == given.query.dtype,
        *(shape.resolves for shape in (query, key, value)),
        key.batch == query.batch,
        value.batch == query.batch,
        value.heads == key.heads,
        key.head_size == query.head_size,
        key.length == value.length,
        has_past == given.past_value.present,
        *(any_of(~has_past, shape.resolves) for shape in pasts),
    )
    sums = errors(ERROR)
    totals = [
        sums.fits(ite(has_past, past.length, 0) + new.length, failure=failure)
        for past, new, failure in zip(
            pasts, (key, value), ("total_length", "total_value_length"), strict=True
        )
    ]
    asked = LayoutInput(
        batch=query.batch,
        q_heads=query.heads,
        q_seq=query.length,
        total_seq=totals[0],
        kv_heads=key.heads,
        key_seq=totals[0],
        head_size=key.head_size,
        value_seq=totals[1],
        value_head_size=value.head_size,
        element_bytes=dtype_size(given.query.dtype),
        stage_key=stage_key,
        stage_value=stage_value,
        present_key_scratch=given.output_count < 2,
        present_value_scratch=given.output_count < 3,
        control_batch=query.batch,
    )
    return _decided(is_problem, sums, asked, revision)


def _decided(
    is_problem: Bool, sums: Checks, asked: LayoutInput, revision: Revision
) -> PlannedRequirement:
    """NONE first, then the sums, then totals that differ, then the layout."""
    checks, found = layout(asked, controlled=revision.controlled)
    stage: dict[str, Any] = {"stage_key": asked.stage_key, "stage_value": asked.stage_value}
    decode = all_of(asked.batch == 1, asked.q_seq == 1)
    charged = PlannedRequirement(
        found.total_bytes,
        integer(ALIGNMENT),
        ite(decode, LIFETIME["SessionPersistent"], LIFETIME["StepScoped"]),
        **stage,
    )
    none = PlannedRequirement(is_none=TRUE, **stage)
    by_layout = select(checks.ok, charged, PlannedRequirement(error=checks.status, **stage))
    compared = select(asked.key_seq == asked.value_seq, by_layout, none)
    summed = select(sums.ok, compared, PlannedRequirement(error=sums.status, **stage))
    return select(is_problem, summed, none)


def _read(data: Any, where: str) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(data, dict) or "inputs" not in data:
        return data
    rest = {key: one for key, one in data.items() if key != "inputs"}
    for name in ("q_num_heads", "kv_num_heads"):
        if name in rest:
            rest[f"has_{name}"] = rest[name] is not None
            rest[name] = rest[name] or 0
    return rest | read_tensors(data["inputs"], INPUTS, f"{where}: inputs")


def _write(_: Any, __: str, found: Any) -> Any:  # noqa: ANN401 - JSON
    stage = {"stage": [found["stage_key"], found["stage_value"]]}
    if found["error"] != "none":
        return {"err": f"{PREFIX}{MESSAGES[found['error']]}", **stage}
    return requirement_text(found) | stage


def function() -> Function:
    """`genai.std_attention.requirement`: `out` at #813, then #830, `out_head` at #1491."""
    inputs = symbols(RequirementInput)
    return Function(
        "genai.std_attention.requirement",
        "What default-domain Attention asks for, from metadata",
        Source(
            "onnx-genai, CUDA plugin, Attention", "requirement", "13f664a0a / 4d4c22732 / 4c1b59428"
        ),
        inputs,
        {key: planned(inputs, revision) for key, revision in REVISIONS.items()},
        adapter=Adapter(_read, _write),
    )
