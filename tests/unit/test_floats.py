"""IEEE arithmetic on Python floats, against NumPy's machine arithmetic and exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from differential.strategies import EDGES, numbers
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.spec import floats

TYPE = {32: np.float32, 64: np.float64}
widths = st.sampled_from((32, 64))
pairs = widths.flatmap(lambda width: st.tuples(st.just(width), numbers(width), numbers(width)))


def same(one, two):
    """Return whether two floats are one value: NaN is, and the sign of zero counts."""
    if math.isnan(one) or math.isnan(two):
        return math.isnan(one) and math.isnan(two)
    return (one, math.copysign(1, one)) == (two, math.copysign(1, two))


@settings(max_examples=500)
@given(pairs)
def test_arithmetic_is_the_machines(operands):
    """Products, quotients and ceilings are NumPy's, including every special value."""
    width, one, two = operands
    left, right = TYPE[width](one), TYPE[width](two)
    with np.errstate(all="ignore"):
        expected = [float(left * right), float(left / right), float(np.ceil(left))]
    found = [floats.multiply(one, two, width), floats.divide(one, two, width), floats.round_up(one)]
    assert all(map(same, found, expected))


@settings(max_examples=500)
@given(numbers(64))
def test_rounding_to_a_width(value):
    """A double becomes the float32 that a C cast gives; to 64 bits it stays."""
    with np.errstate(all="ignore"):
        assert same(floats.round_to(value, 32), float(np.float32(value)))
    assert same(floats.round_to(value, 64), value)


@settings(max_examples=500)
@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES), widths)
def test_int64_converts_like_the_machine(value, width):
    """An int64 is rounded once, not through a double."""
    if -(2**63) <= value < 2**63:
        expected = float(np.int64(value).astype(TYPE[width]))
        assert same(floats.from_integer(value, width), expected)


@settings(max_examples=500)
@given(st.integers(-(2**140), 2**140) | st.integers(-(2**1030), 2**1030), widths)
def test_integers_round_to_the_nearest(value, width):
    """Of any size: no float is nearer, ties have an even last bit, too large is infinite."""
    found = floats.from_integer(value, width)
    info = np.finfo(TYPE[width])
    half_step = 2 ** (info.maxexp - info.nmant - 2)
    if math.isinf(found):
        assert abs(value) >= int(info.max) + half_step
        assert (found > 0) == (value > 0)
        return
    for toward in (-np.inf, np.inf):
        with np.errstate(all="ignore"):
            other = float(np.nextafter(TYPE[width](found), TYPE[width](toward)))
        if math.isfinite(other):
            near, far = abs(Fraction(found) - value), abs(Fraction(other) - value)
            assert near <= far
            if near == far:
                assert TYPE[width](found).tobytes()[0] % 2 == 0


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (2**24 + 1, 32, 2.0**24),
        (2**24 + 3, 32, 2.0**24 + 4),
        (2**54 + 2**30 + 1, 32, 2.0**54 + 2.0**31),  # through a double it would tie to 2**54
        (2**53 + 1, 64, 2.0**53),
        (2**128 - 2**103, 32, math.inf),
        (2**128 - 2**103 - 1, 32, float(np.finfo(np.float32).max)),
        (-(10**400), 64, -math.inf),
        (0, 32, 0.0),
    ],
)
def test_known_conversions(value, width, expected):
    """Ties, double rounding, overflow."""
    assert same(floats.from_integer(value, width), expected)
