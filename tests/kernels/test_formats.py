"""Number formats: every code of every format, and rounding as ml_dtypes rounds."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.kernels_ref import formats

ONE = np.ones(1, np.float32)
FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


def halves(codes, kind):
    """Return the values of the codes, what lies exactly between neighbours, and just beside it."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = np.sort(codes.view(kind).astype(np.float64))
    values = values[np.isfinite(values)]
    between = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(between, np.float32(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([values.astype(np.float32), between, *beside])


def same(one, two):
    """Whether two arrays of numbers are the same bits, any NaN for another."""
    one, two = np.asarray(one, np.float32), np.asarray(two, np.float32)
    bits = one.view(np.uint32) == two.view(np.uint32)
    return bool((bits | (np.isnan(one) & np.isnan(two))).all())


def test_bf16_decodes_every_code():
    """All 65,536 of them."""
    codes = np.arange(2**16).astype(np.uint16)
    assert same(formats.decode(np, codes, "bf16"), codes.view(ml_dtypes.bfloat16))


def test_bf16_rounds_to_nearest_even():
    """At every code, between each two, and beside that."""
    values = halves(np.arange(2**16).astype(np.uint16), ml_dtypes.bfloat16)
    stored = formats.encode(np, values, "bf16")
    assert same(stored.view(ml_dtypes.bfloat16), values.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("element", ["fp16", "bf16"])
@given(values=st.lists(FLOATS, min_size=1, max_size=40))
def test_elements_round_as_their_library_type(element, values):
    """Any float32, infinities and NaN included."""
    kind = np.float16 if element == "fp16" else ml_dtypes.bfloat16
    given_ = np.array(values, np.float32)
    with np.errstate(over="ignore"):
        stored, wanted = formats.encode(np, given_, element), given_.astype(kind)
    assert same(formats.decode(np, stored, element), wanted)


def test_fp8_decodes_every_code():
    """All 256, NaN among them."""
    codes = np.arange(256).astype(np.uint8)
    found = formats.unpack(np, codes, "fp8", ONE)
    assert same(found, codes.view(ml_dtypes.float8_e4m3fn))


def test_fp8_rounds_to_nearest_even_and_saturates():
    """Within its range as ml_dtypes; beyond 448, and for infinities, the largest value."""
    values = halves(np.arange(256).astype(np.uint8), ml_dtypes.float8_e4m3fn)
    inside = values[np.abs(values) <= 448]
    stored = formats.pack(np, inside, "fp8", ONE)
    assert same(stored.view(ml_dtypes.float8_e4m3fn), inside.astype(ml_dtypes.float8_e4m3fn))
    beyond = np.array([449, 1e30, np.inf, -464, -np.inf], np.float32)
    assert formats.unpack(np, formats.pack(np, beyond, "fp8", ONE), "fp8", ONE).tolist() == [
        448,
        448,
        448,
        -448,
        -448,
    ]


@pytest.mark.parametrize(("cache", "low", "high"), [("int8", -128, 127), ("int4", -8, 7)])
def test_integers_survive_and_saturate(cache, low, high):
    """Every level, two per byte where they have 4 bits, the even element low."""
    levels = np.arange(low, high + 1).astype(np.float32)
    rows = formats.pack(np, levels, cache, ONE)
    assert rows.dtype == np.uint8
    assert rows.size == formats.row_bytes(cache, levels.size)
    assert formats.unpack(np, rows, cache, ONE).tolist() == levels.tolist()
    outside = np.array([low - 5, high + 5], np.float32)
    assert formats.unpack(np, formats.pack(np, outside, cache, ONE), cache, ONE).tolist() == [
        low,
        high,
    ]


def test_int4_puts_the_even_element_low():
    """With 8 added."""
    assert formats.pack(np, np.array([-8, 7], np.float32), "int4", ONE).tolist() == [0xF0]


@given(
    values=st.lists(st.floats(-3, 3, width=32), min_size=8, max_size=8),
    scale=st.floats(0.03125, 0.5, width=32),
    cache=st.sampled_from(["int8", "int4"]),
)
def test_scaled_integers_are_off_by_half_a_step_at_most(values, scale, cache):
    """Where the range holds them."""
    given_, step = np.array(values, np.float32), np.full(1, scale, np.float32)
    top = (127 if cache == "int8" else 7) * scale
    back = formats.unpack(np, formats.pack(np, given_, cache, step), cache, step)
    inside = np.abs(given_) <= top
    assert (np.abs(back - given_)[inside] <= scale * 0.50001).all()
