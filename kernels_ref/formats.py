"""Number formats in storage: explicit rounding to fp16, bf16, fp8 (e4m3fn), int8 and packed int4.

Arithmetic is float32 everywhere; a format says how values lie in memory. bf16 is held as `uint16`
and fp8 as `uint8`, rounded here (nearest, halves to even), since CuPy has neither type. Cache rows
are raw bytes, so that moving rows never depends on what they hold.

Sources: OCP 8-bit floating point specification 1.0 (e4m3: no infinities, 448 is the largest);
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_qdq.cuh` (int8 and int4 are symmetric, two
int4 in a byte with the even element low, stored with 8 added).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from .namespace import Array, Namespace

__all__ = [
    "BYTES",
    "FP32",
    "INT32",
    "Cache",
    "Element",
    "Format",
    "decode",
    "element_format",
    "encode",
    "pack",
    "row_bytes",
    "unit",
    "unpack",
]

Element = Literal["fp16", "bf16"]
Cache = Literal["fp16", "bf16", "int8", "fp8", "int4"]


@dataclass(frozen=True, slots=True)
class Format:
    """An element type as it lies in memory: its name, its storage type and its size (bytes)."""

    name: str
    storage: str
    size: int


FP32 = Format("fp32", "float32", 4)
INT32 = Format("int32", "int32", 4)
BYTES = Format("bytes", "uint8", 1)
_FP16 = Format("fp16", "float16", 2)
_BF16 = Format("bf16", "uint16", 2)
_LEVELS = {"int8": 127.0, "int4": 7.0, "fp8": 448.0}


def element_format(element: Element) -> Format:
    """The format of Q, K, V and outputs."""
    return _FP16 if element == "fp16" else _BF16


def unit(element: Element) -> float:
    """The unit roundoff: half the distance from 1 to the next value."""
    return 2.0**-11 if element == "fp16" else 2.0**-8


def encode(xp: Namespace, values: Array, element: Element) -> Array:
    """Float32 values in storage, rounded."""
    if element == "fp16":
        return values.astype("float16")
    bits = xp.ascontiguousarray(values, dtype="float32").view("uint32")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("uint16")
    return xp.where(xp.isnan(values), xp.asarray(0x7FC0, dtype="uint16"), rounded)


def decode(xp: Namespace, stored: Array, element: Element) -> Array:
    """Stored values as float32, exactly."""
    if element == "fp16":
        return stored.astype("float32")
    bits = stored.astype("uint32") << 16
    return xp.ascontiguousarray(bits).view("float32")


def row_bytes(cache: Cache, head_size: int) -> int:
    """Bytes of one head's K or V for one token."""
    return {"int8": head_size, "fp8": head_size, "int4": head_size // 2}.get(cache, 2 * head_size)


def pack(xp: Namespace, values: Array, cache: Cache, scale: Array) -> Array:
    """Cache rows (..., bytes) of float32 values (..., head size), divided by their scale."""
    if cache in ("fp16", "bf16"):
        return _bytes(xp, encode(xp, values, "fp16" if cache == "fp16" else "bf16"))
    scaled = values / scale
    if cache == "fp8":
        return _encode_fp8(xp, scaled)
    low, high = -_LEVELS[cache] - 1.0, _LEVELS[cache]
    whole = xp.minimum(xp.maximum(xp.rint(scaled), low), high)
    if cache == "int8":
        return _bytes(xp, whole.astype("int8"))
    nibbles = (whole + 8.0).astype("uint8")
    return xp.ascontiguousarray(nibbles[..., 0::2] | (nibbles[..., 1::2] << 4))


def unpack(xp: Namespace, rows: Array, cache: Cache, scale: Array) -> Array:
    """Float32 values (..., head size) of cache rows, times their scale."""
    if cache in ("fp16", "bf16"):
        element: Element = "fp16" if cache == "fp16" else "bf16"
        stored = xp.ascontiguousarray(rows).view(element_format(element).storage)
        return decode(xp, stored, element)
    if cache == "fp8":
        return xp.take(xp.asarray(_fp8_values()), rows.astype("int32")) * scale
    if cache == "int8":
        return xp.ascontiguousarray(rows).view("int8").astype("float32") * scale
    pairs = xp.stack([rows & 0xF, rows >> 4], axis=-1)
    nibbles = pairs.reshape((*rows.shape[:-1], 2 * rows.shape[-1]))
    return (nibbles.astype("float32") - 8.0) * scale


def _bytes(xp: Namespace, values: Array) -> Array:
    return xp.ascontiguousarray(values).view("uint8")


@cache
def _fp8_values() -> Array:
    """The value of each of the 256 codes, as float32; 0x7F and 0xFF are no numbers."""
    found = []
    for code in range(128):
        exponent, mantissa = code >> 3, code & 7
        scaled = mantissa / 8 + (exponent > 0)
        found.append(scaled * 2.0 ** (max(exponent, 1) - 7))
    found[127] = float("nan")
    table: Array = np.array([*found, *(-value for value in found)], np.float32)
    return table


def _encode_fp8(xp: Namespace, values: Array) -> Array:
    """The nearest code, halves to even, saturating at 448."""
    magnitudes = _fp8_values()[:127].astype(np.float64)
    between = xp.asarray(((magnitudes[1:] + magnitudes[:-1]) / 2).astype(np.float32))
    size = xp.abs(values)
    code = xp.searchsorted(between, size).astype("int32")
    reached = xp.take(between, xp.minimum(code, 125))
    # Exactly between two codes, the search stops at the lower one: the even one is meant.
    code = code + ((reached == size) & (code < 126) & (code % 2 == 1))
    code = xp.where(xp.isnan(values), 127, code)
    signed: Array = code + 128 * xp.signbit(values)
    return signed.astype("uint8")
