"""The states that are swept: three mixes of one seed, mostly as models have them, some not.

Nearly all are accepted. One in two hundred is so large that its sizes may not fit size_t, as many
break a check or come next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from .states import INT32_MAX, INT64_MAX, Column, States

__all__ = ["MIXES", "MULTIPROCESSORS", "Mix", "draw"]

MULTIPROCESSORS: Final = 132

_SEED: Final = 20260901
# Query and KV heads: grouped, multi-query and multi-head.
_HEADS: Final = np.array(
    [
        *((4, 1), (8, 1), (8, 2), (8, 8), (12, 12), (14, 2), (16, 2), (16, 8), (24, 8), (28, 4)),
        *((32, 1), (32, 4), (32, 8), (32, 32), (40, 8), (48, 8), (64, 8)),
    ]
)
_HUGE_SHARE, _ODD_SHARE, _HUGE_AND_ODD_SHARE = 0.005, 0.005, 0.2

_STAGED: Final = {
    "sequence_length": 512,
    "head_size": 64,
    "is_windowed_kv_cache": 1,
    "requires_separate_past_buffer": 0,
}
_COPIED: Final = {
    "batch_size": 1,
    "kv_num_heads": 1,
    "head_size": 8,
    "kv_cache_bit_width": 0,
    "k_quantization": 0,
    "v_quantization": 0,
    "is_windowed_kv_cache": 0,
    "do_rotary": 1,
    "requires_separate_past_buffer": 0,
}

# One entry per way to break a check, and values that are next to breaking one.
_ODDITIES: Final[tuple[Mapping[str, int], ...]] = (
    *(
        {name: value}
        for name in ("batch_size", "sequence_length", "num_heads", "kv_num_heads", "head_size")
        for value in (0, -8, INT32_MAX + 1, INT64_MAX, -INT64_MAX - 1)
    ),
    {"num_heads": 12, "kv_num_heads": 8},
    {"qkv_element_size": 4},
    {"present_kv_cache_capacity": 0},
    {"present_kv_cache_capacity": INT32_MAX, "is_windowed_kv_cache": 0},
    {"present_kv_cache_capacity": INT32_MAX, "is_windowed_kv_cache": 1},
    {"present_kv_cache_capacity": INT64_MAX},
    {"cache_element_size": 0},
    {"cache_element_size": 4},
    {"head_size": 100},
    {"kv_cache_bit_width": -8},
    {"kv_cache_bit_width": 12},
    {"kv_cache_bit_width": 8, "cache_element_size": 2},
    {"k_quantization": 3},
    {"v_quantization": 3},
    {"k_quantization": 0, "v_quantization": 1},
    {"past_kv_cache_capacity": -1},
    {"past_kv_cache_capacity": INT32_MAX + 1},
    {"past_kv_cache_capacity": 0, "requires_separate_past_buffer": 1},
    {"head_size": 72, "cache_element_size": 1, "kv_cache_bit_width": 0, "is_windowed_kv_cache": 1},
    {"head_size": 48, "cache_element_size": 1, "kv_cache_bit_width": 4, "is_windowed_kv_cache": 1},
    {"is_windowed_kv_cache": 1, "requires_separate_past_buffer": 1},
    {"total_sequence_length": 0},
    {"total_sequence_length": INT32_MAX},
    {"total_sequence_length": INT32_MAX + 1},
    {"total_sequence_length": INT64_MAX, "is_windowed_kv_cache": 1},
    {"local_window_size": 0},
    {"local_window_size": -2},
    {"local_window_size": INT32_MAX + 1},
    {"head_size": 264},
    {"head_size": 264, "total_sequence_length": 0},
    *({**_STAGED, "present_kv_cache_capacity": INT32_MAX - 512 + beyond} for beyond in (0, 1)),
    # Preparation ends 144 bytes before 2^64: it fits, its end rounded up does not.
    {**_COPIED, "sequence_length": 2**30 - 5, "num_heads": 2**30 + 5},
)


class Mix(NamedTuple):
    """The states of a mix, and the rows that were made odd: each way occurs among the first."""

    name: str
    states: States
    odd: Column


def _spread(rng: Generator, count: int, low: int, high: int) -> Column:
    """Integers in low..high, every magnitude about as often."""
    drawn = np.exp2(rng.uniform(np.log2(low), np.log2(high + 1), count))
    return np.minimum(drawn.astype(np.int64), high)


def _flags(rng: Generator, count: int, share: float) -> Column:
    return (rng.random(count) < share).astype(np.int64)


def _lengths_of_prefill(rng: Generator, count: int) -> tuple[Column, Column, Column]:
    sequence = _spread(rng, count, 1 << 10, 1 << 16)
    return _spread(rng, count, 1, 8), sequence, np.zeros_like(sequence)


def _lengths_of_chunk(rng: Generator, count: int) -> tuple[Column, Column, Column]:
    return (
        _spread(rng, count, 1, 8),
        _spread(rng, count, 2, 512),
        _spread(rng, count, 128, (1 << 17) - 512),
    )


def _lengths_of_decode(rng: Generator, count: int) -> tuple[Column, Column, Column]:
    sequence = np.ones(count, np.int64)
    return _spread(rng, count, 1, 64), sequence, _spread(rng, count, 128, (1 << 18) - 1)


# Batch size, sequence length and past length (tokens) of each mix.
MIXES: Final[Mapping[str, Callable[[Generator, int], tuple[Column, Column, Column]]]] = {
    "prefill": _lengths_of_prefill,
    "chunk": _lengths_of_chunk,
    "decode": _lengths_of_decode,
}


def draw(name: str, count: int) -> Mix:
    """So many states of the named mix, the same on every call."""
    rng = np.random.default_rng([_SEED, *name.encode()])
    columns = _ordinary(rng, count, *MIXES[name](rng, count))
    huge = np.flatnonzero(rng.random(count) < _HUGE_SHARE)
    odd = rng.permutation(count)[: int(_ODD_SHARE * count)]
    _enlarge(rng, columns, huge)
    _spoil(columns, huge[rng.random(len(huge)) < _HUGE_AND_ODD_SHARE])
    _spoil(columns, odd)
    return Mix(name, States(**columns), odd)


def _ordinary(
    rng: Generator, count: int, batch: Column, sequence: Column, past: Column
) -> dict[str, Column]:
    """Geometries as models have them; all but a few are accepted."""
    heads, kv_heads = rng.choice(_HEADS, count).T
    popular = rng.choice(np.array([64, 64, 80, 96, 128, 128, 128, 192, 256]), count)
    uncommon = rng.integers(1, 33, count) * 8
    windowed = _flags(rng, count, 0.2)
    window = 1 << rng.integers(9, 14, count)
    quantized = _flags(rng, count, 0.25)
    bits = quantized * rng.choice(np.array([4, 8, 8]), count)
    quantization = quantized * rng.integers(1, 3, count)
    total = past + sequence
    return {
        "qkv_element_size": np.full(count, 2),
        "cache_element_size": 2 - quantized,
        "batch_size": batch,
        "sequence_length": sequence,
        "num_heads": heads.copy(),
        "kv_num_heads": kv_heads.copy(),
        "head_size": np.where(rng.random(count) < 0.1, uncommon, popular),
        "present_kv_cache_capacity": np.where(windowed, window, total),
        "past_kv_cache_capacity": np.where(windowed, np.minimum(window, past), past),
        "kv_cache_bit_width": bits,
        "k_quantization": quantization,
        "v_quantization": quantization,
        "is_windowed_kv_cache": windowed,
        "is_first_prompt": (past == 0).astype(np.int64),
        "do_rotary": _flags(rng, count, 0.7),
        "is_packed_qkv": _flags(rng, count, 0.3),
        "use_qk_norm": _flags(rng, count, 0.1),
        "requires_separate_past_buffer": (1 - windowed) * (past > 0) * _flags(rng, count, 0.1),
        "total_sequence_length": total,
        "local_window_size": np.where(windowed | _flags(rng, count, 0.1), window, -1),
    }


def _enlarge(rng: Generator, columns: dict[str, Column], rows: Column) -> None:
    """Make states valid in every field but so large that half of them are near the limit."""
    count = len(rows)
    kv_heads = _spread(rng, count, 1, 1 << 12)
    heads = kv_heads * _spread(rng, count, 1, 1 << 12)
    batch = _spread(rng, count, 1, INT32_MAX)
    head_size = rng.choice(np.array([8, 8, 64, 256]), count)
    # B * S * H * D around 2^63, where copied Q in two bytes just fits size_t or just does not.
    near = np.exp2(63 - rng.random(count)) / (batch * heads.astype(np.float64) * head_size)
    near_sequence = np.clip(near, 1, INT32_MAX).astype(np.int64)
    any_sequence = _spread(rng, count, 1, INT32_MAX)
    sequence = np.where(rng.random(count) < 0.5, near_sequence, any_sequence)
    values = {
        "batch_size": batch,
        "sequence_length": sequence,
        "num_heads": heads,
        "kv_num_heads": kv_heads,
        "head_size": head_size,
        "present_kv_cache_capacity": _spread(rng, count, 1, INT32_MAX),
        "past_kv_cache_capacity": _spread(rng, count, 1, INT32_MAX),
        "total_sequence_length": _spread(rng, count, 1, INT32_MAX),
    }
    for name, column in values.items():
        columns[name][rows] = column


def _spoil(columns: dict[str, Column], rows: Column) -> None:
    """Override fields, one oddity after another."""
    for first, oddity in enumerate(_ODDITIES):
        for name, value in oddity.items():
            columns[name][rows[first :: len(_ODDITIES)]] = value
