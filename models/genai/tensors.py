"""Tensor metadata as kernels are asked with it: present or not, element type, rank, extents.

A list of shapes is not part of the language: `read_tensor` and `read_tensors` turn it into records
of a fixed number of extents. They are plain readers in front of the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.errors import refuse
from routeproof.spec.records import Record
from routeproof.spec.terms import Bool, Enum, Int, IntDomain, any_of, ite

from .vocabulary import DTYPE, U64

__all__ = [
    "MOST_EXTENTS",
    "Rank",
    "Tensor",
    "extent",
    "from_end",
    "read_tensor",
    "read_tensors",
    "same_extents",
]

MOST_EXTENTS = 6
Rank = Annotated[Int, IntDomain(0, MOST_EXTENTS)]


@dataclass(frozen=True, slots=True)
class Tensor(Record):
    """What is known of an input; extents beyond the rank are 0. An input not listed is absent."""

    present: Bool
    dtype: Annotated[Enum, DTYPE]
    rank: Rank
    extent_0: U64
    extent_1: U64
    extent_2: U64
    extent_3: U64
    extent_4: U64
    extent_5: U64


def extent(tensor: Tensor, index: int) -> Int:
    """The extent of a dimension, counted from the front."""
    found: Int = getattr(tensor, f"extent_{index}")
    return found


def from_end(tensor: Tensor, index: int) -> Int:
    """The extent of a dimension, counted from the end: 1 is the last; 0 where there is none."""
    found: Int = extent(tensor, 0) * 0
    for place in range(MOST_EXTENTS):
        found = ite(tensor.rank == place + index, extent(tensor, place), found)
    return found


def same_extents(one: Tensor, two: Tensor) -> Bool:
    """The two shapes are the same."""
    differ = (extent(one, at) != extent(two, at) for at in range(MOST_EXTENTS))
    return ~any_of(one.rank != two.rank, *differ)


def read_tensor(data: Any, where: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """One input's metadata `{dtype, shape, present}` as a value per field of `Tensor`."""
    if not isinstance(data, dict) or set(data) != {"dtype", "shape", "present"}:
        refuse(where, f"expected an object of dtype, shape and present, got {data!r}")
    shape = data["shape"]
    if not isinstance(shape, list) or not all(type(one) is int for one in shape):
        refuse(f"{where}.shape", f"expected a list of integers, got {shape!r}")
    if len(shape) > MOST_EXTENTS:
        refuse(f"{where}.shape", f"{len(shape)} extents are more than {MOST_EXTENTS}")
    extents = [*shape, *[0] * (MOST_EXTENTS - len(shape))]
    named = {f"extent_{place}": one for place, one in enumerate(extents)}
    return {"present": data["present"], "dtype": data["dtype"], "rank": len(shape), **named}


def read_tensors(data: Any, names: Sequence[str], where: str) -> dict[str, Any]:  # noqa: ANN401
    """A list of inputs by name, with how many were listed; those beyond the list are absent."""
    if not isinstance(data, list):
        refuse(where, f"expected a list of inputs, got {data!r}")
    absent = {"dtype": "undefined", "shape": [], "present": False}
    listed = [*data[: len(names)], *[absent] * (len(names) - len(data))]
    read = {
        name: read_tensor(one, f"{where}[{place}]")
        for place, (name, one) in enumerate(zip(names, listed, strict=True))
    }
    return {"listed": len(data), **read}
