"""IEEE 754 arithmetic on Python floats: rounding to a width, and operations that never raise."""

from __future__ import annotations

import math
import struct

from .terms import Width

__all__ = ["divide", "from_integer", "multiply", "round_to", "round_up"]

_PRECISION = {32: 24, 64: 53}
_LARGEST = {32: (2**24 - 1) * 2**104, 64: (2**53 - 1) * 2**971}


def round_to(value: float, width: Width) -> float:
    """A double rounded to the width; beyond the largest finite float it is an infinity."""
    if width == 64 or math.isinf(value) or math.isnan(value):
        return value
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def from_integer(value: int, width: Width) -> float:
    """The integer rounded once (ties to even), whatever its size."""
    magnitude, precision = abs(value), _PRECISION[width]
    excess = magnitude.bit_length() - precision
    if excess > 0:
        quotient, rest = divmod(magnitude, 1 << excess)
        half = 1 << (excess - 1)
        quotient += rest > half or (rest == half and quotient % 2 == 1)
        magnitude = quotient << excess
    rounded = math.inf if magnitude > _LARGEST[width] else float(magnitude)
    return -rounded if value < 0 else rounded


def multiply(one: float, two: float, width: Width) -> float:
    """Product rounded to the width (the double product of two float32 rounds innocuously)."""
    return round_to(one * two, width)


def divide(one: float, two: float, width: Width) -> float:
    """Quotient rounded to the width; x/0 is an infinity with IEEE sign, 0/0 is NaN."""
    if two == 0:
        if one == 0 or math.isnan(one):
            return math.nan
        return math.copysign(math.inf, math.copysign(1, one) * math.copysign(1, two))
    return round_to(one / two, width)


def round_up(value: float) -> float:
    """C `ceil`: keeps NaN, infinities and the sign of zero."""
    if math.isnan(value) or math.isinf(value):
        return value
    return math.copysign(float(math.ceil(value)), value)
