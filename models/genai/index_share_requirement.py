"""IndexShare: what it asks for from metadata alone; bad metadata is an error, never NONE.

Source: the CUDA IndexShare kernel of onnx-genai at #751 (d2db1f5ac).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Adapter, Function, Source
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import FALSE, Bool, Enum, all_of, any_of, implies, integer, ite

from .index_share import MESSAGES, PREFIX, LayoutInput, layout
from .tensors import Tensor, extent, read_tensors, same_extents
from .vocabulary import (
    ALIGNMENT,
    DTYPE_NAMES,
    LIFETIME,
    U64,
    Requirement,
    error_sort,
    errors,
    is_float,
    requirement_text,
)

__all__ = ["ERROR", "PlannedRequirement", "RequirementInput", "function", "planned"]

INPUTS = (
    "query",
    "key",
    "value",
    "past_key",
    "past_value",
    "selected_indices",
    "attention_bias",
)
_REQUIRED = (0, 1, 2, 5)
ERROR = error_sort(
    *MESSAGES,
    "too_few",
    *(f"absent_{place}" for place in _REQUIRED),
    "query_dtype",
    "qkv_dtype",
    "indices_dtype",
    *(f"rank_{place}" for place in (*_REQUIRED, 3, 4)),
    "past_together",
    "float_dtype",
    "query_heads",
    "batch",
    "kv_heads",
    "kv_shape",
    "past_shape",
    "indices_shape",
    "indices_width",
)
_TEXTS = {
    "qkv_dtype": "query, key, and value must use the same floating dtype",
    "past_together": "past_key and past_value must be provided together",
    "float_dtype": "query, key, value, past_key, past_value, and attention_bias must use the same "
    "floating dtype",
    "batch": "query, key, and value batch dimensions must match",
    "kv_shape": "key/value sequence and head dimensions must match query/schema",
    "past_shape": "past_key and past_value shapes must match",
    "indices_width": "selected_indices K dimension must be nonzero",
}


@dataclass(frozen=True, slots=True)
class RequirementInput(Record):
    """Attributes, whether the node has its three outputs, the inputs' metadata."""

    num_heads: U64
    kv_num_heads: U64
    present_outputs: Bool
    listed: U64
    query: Tensor
    key: Tensor
    value: Tensor
    past_key: Tensor
    past_value: Tensor
    selected_indices: Tensor
    attention_bias: Tensor


@dataclass(frozen=True, slots=True)
class PlannedRequirement(Requirement):
    """A requirement, or the error that planning ends in."""

    error: Annotated[Enum, ERROR] = ERROR["none"]


def _checked(given: RequirementInput) -> Checks:
    """What is refused, in the kernel's order."""
    checks = errors(ERROR)
    query, key, value = given.query, given.key, given.value
    past_key, past_value, indices = given.past_key, given.past_value, given.selected_indices
    bias = given.attention_bias
    checks.require(given.listed >= 6, "too_few")
    for place in _REQUIRED:
        checks.require(getattr(given, INPUTS[place]).present, f"absent_{place}")
    checks.require(is_float(query.dtype), "query_dtype")
    same = all_of(key.dtype == query.dtype, value.dtype == query.dtype)
    checks.require(same, "qkv_dtype")
    checks.require(indices.dtype.is_in("i32", "i64"), "indices_dtype")
    for place in _REQUIRED:
        checks.require(getattr(given, INPUTS[place]).rank == 4, f"rank_{place}")
    for place, past in ((3, past_key), (4, past_value)):
        checks.require(past.rank == 4, f"rank_{place}", when=past.present)
    checks.require(past_key.present == past_value.present, "past_together")
    for one in (past_key, past_value, bias):
        checks.require(one.dtype == query.dtype, "float_dtype", when=one.present)
    checks.require(extent(query, 1) == given.num_heads, "query_heads")
    batch = extent(query, 0)
    checks.require(all_of(extent(key, 0) == batch, extent(value, 0) == batch), "batch")
    heads = all_of(*(extent(one, 1) == given.kv_num_heads for one in (key, value)))
    checks.require(heads, "kv_heads")
    shapes = all_of(
        extent(key, 2) == extent(value, 2),
        *(extent(one, 3) == extent(query, 3) for one in (key, value)),
    )
    checks.require(shapes, "kv_shape")
    checks.require(implies(past_key.present, same_extents(past_key, past_value)), "past_shape")
    shape = all_of(
        extent(indices, 0) == batch,
        any_of(extent(indices, 1) == 1, extent(indices, 1) == given.num_heads),
        extent(indices, 2) == extent(query, 2),
    )
    checks.require(shape, "indices_shape")
    checks.require(extent(indices, 3) != 0, "indices_width")
    return checks


def planned(given: RequirementInput) -> PlannedRequirement:
    """The requirement, always of the session, or an error."""
    checks = _checked(given)
    cache = ite(given.past_key.present, extent(given.past_key, 2), 0) + extent(given.key, 2)
    checks.fits(cache, failure="present_elements")
    part, found = layout(
        LayoutInput(
            batch=extent(given.query, 0),
            q_heads=given.num_heads,
            kv_heads=given.kv_num_heads,
            q_seq=extent(given.query, 2),
            cache_seq=cache,
            head_size=extent(given.query, 3),
            selected_width=extent(given.selected_indices, 3),
            dtype=given.query.dtype,
            has_bias=given.attention_bias.present,
            want_present=given.present_outputs,
        )
    )
    for name in MESSAGES:
        checks.require(part.status != name, name)
    charged = PlannedRequirement(
        found.bytes, integer(ALIGNMENT), LIFETIME["SessionPersistent"], FALSE
    )
    return select(checks.ok, charged, PlannedRequirement(error=checks.status))


def _read(data: Any, where: str) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(data, dict) or "inputs" not in data:
        return data
    rest = {key: one for key, one in data.items() if key != "inputs"}
    return rest | read_tensors(data["inputs"], INPUTS, f"{where}: inputs")


def _text(error: str, given: Any) -> str:  # noqa: ANN401 - JSON
    """The error as the kernel words it."""
    inputs, (_, __, number) = given["inputs"], error.rpartition("_")
    if error in MESSAGES:
        return MESSAGES[error]
    if error in _TEXTS:
        return _TEXTS[error]
    if error == "too_few":
        return f"expected at least 6 input metadata entries, got {len(inputs)}"
    if error == "query_dtype":
        name = DTYPE_NAMES[inputs[0]["dtype"]]
        return f"IndexShare query dtype {name} unsupported; expected Float32, Float16, or BFloat16"
    if error == "indices_dtype":
        name = DTYPE_NAMES[inputs[5]["dtype"]]
        return f"input 5 ('selected_indices') dtype {name} unsupported; expected Int32 or Int64"
    if error == "query_heads":
        heads = inputs[0]["shape"][1]
        return f"query head dimension {heads} must equal num_heads {given['num_heads']}"
    if error == "kv_heads":
        return f"key/value head dimensions must equal kv_num_heads {given['kv_num_heads']}"
    if error == "indices_shape":
        shape = inputs[5]["shape"]
        return f"selected_indices must have shape [B, 1|N, S_q, K], got {shape}"
    place = int(number)
    if error.startswith("absent"):
        return f"required input {place} ('{INPUTS[place]}') is absent"
    rank = len(inputs[place]["shape"])
    return f"input {place} ('{INPUTS[place]}') rank {rank} unsupported; expected 4"


def _write(given: Any, _: str, found: Any) -> Any:  # noqa: ANN401 - JSON
    if found["error"] != "none":
        return {"err": f"{PREFIX}{_text(found['error'], given)}"}
    return requirement_text(found)


def function() -> Function:
    """`genai.index_share.requirement`."""
    inputs = symbols(RequirementInput)
    return Function(
        "genai.index_share.requirement",
        "What IndexShare asks for, from metadata",
        Source("onnx-genai, CUDA plugin, IndexShare", "requirement", "d2db1f5ac"),
        inputs,
        {"out": planned(inputs)},
        adapter=Adapter(_read, _write),
    )
