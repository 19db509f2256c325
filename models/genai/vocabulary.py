"""The vocabulary of onnx-genai's workspace contract: types, lifetimes, requirements, errors.

Sources: `WorkspaceRequirement` and the kernels of the CUDA plugin of the public repository
justinchuby/onnx-genai, August 2026 (up to ac9c7dd06). A kernel is asked, from metadata alone, for
one requirement: bytes, alignment, lifetime class. NONE is 0 bytes, alignment 1, step-scoped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Adapter
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, SizeT
from routeproof.spec.terms import FALSE, Bool, Enum, EnumSort, Int, integer, ite

__all__ = [
    "ALIGNMENT",
    "DTYPE",
    "DTYPE_NAMES",
    "LIFETIME",
    "U64",
    "Requirement",
    "dtype_size",
    "error_sort",
    "errors",
    "is_float",
    "layout_adapter",
    "requirement_text",
]

U64 = SizeT
ALIGNMENT = 256
DTYPE = EnumSort("dtype", ("undefined", "f32", "f16", "bf16", "i32", "i64", "bool", "f64"))
DTYPE_NAMES = {
    "undefined": "Undefined",
    "f32": "Float32",
    "f16": "Float16",
    "bf16": "BFloat16",
    "i32": "Int32",
    "i64": "Int64",
    "bool": "Bool",
    "f64": "Float64",
}
LIFETIME = EnumSort("lifetime", ("StepScoped", "SessionPersistent"))
_ZERO, _ONE = integer(0), integer(1)


@dataclass(frozen=True, slots=True)
class Requirement(Record):
    """A planned requirement (bytes); no bytes at all is NONE."""

    bytes: Int = _ZERO
    alignment: Int = _ONE
    lifetime: Annotated[Enum, LIFETIME] = LIFETIME["StepScoped"]
    is_none: Bool = FALSE


def dtype_size(dtype: Enum) -> Int:
    """Bytes of an element; undefined has none."""
    size: Int = integer(0)
    for names, count in (
        (("bool",), 1),
        (("f16", "bf16"), 2),
        (("f32", "i32"), 4),
        (("i64", "f64"), 8),
    ):
        size = ite(dtype.is_in(*names), count, size)
    return size


def is_float(dtype: Enum) -> Bool:
    """One of the types that the attention kernels compute in."""
    return dtype.is_in("f32", "f16", "bf16")


def error_sort(*names: str) -> EnumSort:
    """An error enum: `none` first."""
    return EnumSort("error", ("none", *names))


def errors(sort: EnumSort) -> Checks:
    """An ordered list of checks, each overflow with a name of its own."""
    return Checks(sort, overflow=sort.members[1])


def layout_adapter(prefix: str, names: Mapping[str, str], absent: object) -> Adapter:
    """Rows of a layout: `{"err": text}`, or offsets and sizes; an absent region's offset as given.

    A region is `X_offset` and `X_bytes`; `has_X` beside them says whether it is there.
    """

    def write(_: Any, __: str, found: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        if found["error"] != "none":
            return {"err": f"{prefix}{names[found['error']]}"}
        shown = {}
        for key, value in found.items():
            if key == "error" or key.startswith("has_"):
                continue
            has = found.get(f"has_{key.removesuffix('_offset')}", True)
            shown[key] = value if has else absent
        return shown

    return Adapter(lambda data, _: data, write)


def requirement_text(found: Mapping[str, Any]) -> dict[str, Any]:
    """A requirement as its rows have it."""
    if found["is_none"]:
        return {"none": True}
    return {
        "bytes": found["bytes"],
        "alignment": found["alignment"],
        "lifetime": found["lifetime"],
        "step_scoped": found["lifetime"] == "StepScoped",
    }
