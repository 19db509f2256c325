"""Routes in checked arithmetic, in the order of the model: for the few states that may fail.

Source: `routeproof.models.ort.gqa.complete` with backend `flash` and no fast decode. All sizes are
uint64; a state that is invalid has some too, which mean nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .splits import SplitTable, kv_blocks, work_items
from .states import (
    INT32_MAX,
    INVALID_ARGUMENT,
    OK,
    OVERFLOW,
    UNAVAILABLE,
    Answers,
    Column,
    Flags,
    States,
)

__all__ = ["answer"]

_SIZE_MAX: Final = 2**64 - 1

Sizes = NDArray[np.uint64]


class _Checked:
    """Sizes per state; `fits` holds where no product or sum so far left size_t."""

    def __init__(self, states: int) -> None:
        self.fits: Flags = np.ones(states, bool)

    def product(self, first: Sizes, *factors: Sizes) -> Sizes:
        """The product; a part that is not there has a first factor of 0, and always fits."""
        value = first
        for factor in factors:
            self.fits &= value <= _SIZE_MAX // np.maximum(factor, 1)
            value = value * factor
        return value

    def total(self, first: Sizes, *parts: Sizes) -> Sizes:
        """The sum, from left to right."""
        value = first
        for part in parts:
            self.fits &= value <= _SIZE_MAX - part
            value = value + part
        return value

    def carve(self, cursor: Sizes, size: Sizes) -> Sizes:
        """The end of a region at the next multiple of 256; an empty one moves nothing."""
        aligned = self.total(cursor, 255 * _unsigned(size > 0)) & ~np.uint64(255)
        return self.total(np.where(size > 0, aligned, cursor), size)


def answer(states: States, table: SplitTable) -> Answers:
    """Status, bytes and splits of every state, whatever is in it."""
    checked = _Checked(len(states))
    prepared = _preparation(checked, states)
    prepared_fits = checked.fits.copy()
    length = states.kv_length
    splits = table(work_items(states), kv_blocks(length, states.head_size))
    total = checked.carve(prepared, _backend(checked, states, _unsigned(splits)))
    status = np.select(
        [
            ~_is_prepared(states),
            ~prepared_fits,
            ~_is_configured(states, length),
            states.head_size > 256,
            ~checked.fits,
        ],
        [INVALID_ARGUMENT, OVERFLOW, INVALID_ARGUMENT, UNAVAILABLE, OVERFLOW],
        OK,
    ).astype(np.uint8)
    return Answers(status, np.where(status == OK, total, 0), np.where(status == OK, splits, 1))


def _is_prepared(states: States) -> Flags:
    """Nothing that preparation is given is invalid."""
    element, bits = states.cache_element_size, states.kv_cache_bit_width
    past, separate = states.past_kv_cache_capacity, states.requires_separate_past_buffer != 0
    windowed = states.is_windowed_kv_cache != 0
    kv_heads, head_size = states.kv_num_heads, states.head_size
    checks = (
        _is_positive_int32(states.batch_size),
        _is_positive_int32(states.sequence_length),
        _is_positive_int32(states.num_heads),
        _is_positive_int32(kv_heads),
        _is_positive_int32(head_size),
        states.num_heads % np.where(kv_heads == 0, 1, kv_heads) == 0,
        states.qkv_element_size == 2,
        _is_positive_int32(states.present_kv_cache_capacity),
        (element == 1) | (element == 2),
        head_size % 8 == 0,
        (bits == 0) | ((element == 1) & ((bits == 4) | (bits == 8))),
        (states.k_quantization < 3) & (states.v_quantization < 3),
        (past >= 0) & (past <= INT32_MAX),
        ~separate | (past > 0),
        ~windowed | (states.cache_row_bytes % 16 == 0),
        states.effective_capacity <= INT32_MAX,
        ~(windowed & separate),
    )
    holds: Flags = np.logical_and.reduce(checks)
    return holds


def _is_configured(states: States, length: Column) -> Flags:
    """Nothing that Flash is given beside is invalid."""
    window = states.local_window_size
    no_window: Flags = window == -1
    return _is_positive_int32(length) & (no_window | _is_positive_int32(window))


def _preparation(checked: _Checked, states: States) -> Sizes:
    """Bytes of the regions before the backend's."""
    batch, sequence = _unsigned(states.batch_size), _unsigned(states.sequence_length)
    kv_heads, head_size = _unsigned(states.kv_num_heads), _unsigned(states.head_size)
    row, capacity = _unsigned(states.cache_row_bytes), _unsigned(states.effective_capacity)
    separate = _unsigned(states.requires_separate_past_buffer)
    windowed = states.is_windowed_kv_cache != 0
    stages = windowed & (states.sequence_length > 1)
    past_capacity = _unsigned(states.past_kv_cache_capacity)
    past = checked.product(separate, batch, kv_heads, past_capacity, row)
    tensor = checked.product(_unsigned(windowed), batch, kv_heads, capacity, row)
    staged = tensor * stages
    compacted = checked.product(tensor * ~stages, np.full_like(tensor, 2))
    lengths = checked.product(12 * (1 + _unsigned(windowed)), batch)
    cursor = np.zeros_like(past)
    for region in (past, staged, staged, compacted, lengths):
        cursor = checked.carve(cursor, region)

    quantized = (states.k_quantization != 0) | (states.v_quantization != 0)
    first = states.is_first_prompt != 0
    dequantizes = _unsigned(quantized & ~first)
    copies = states.do_rotary | states.is_packed_qkv | states.use_qk_norm | quantized
    query = checked.product(batch, sequence, _unsigned(states.num_heads), head_size)
    new = checked.product(2 * _unsigned(quantized & first), batch, sequence, kv_heads, head_size)
    cache = checked.product(2 * dequantizes, batch, capacity, kv_heads, head_size)
    elements = checked.total(query * _unsigned(copies), new, cache)
    size = checked.product(elements, _unsigned(states.qkv_element_size))
    return checked.carve(cursor, checked.total(size, 256 * dequantizes))


def _backend(checked: _Checked, states: States, splits: Sizes) -> Sizes:
    """Bytes of log-sum-exp rows, and of partial results where there are several splits."""
    batch, sequence = _unsigned(states.batch_size), _unsigned(states.sequence_length)
    heads, rounded = _unsigned(states.num_heads), _unsigned((states.head_size + 31) & ~31)
    lse = checked.product(np.full_like(batch, 4), batch, heads, sequence)
    parts = np.where(splits > 1, splits, 0)
    partial_lse = checked.product(4 * parts, batch, sequence, heads)
    partial_output = checked.product(partial_lse, rounded)
    cursor = np.zeros_like(lse)
    for region in (lse, partial_lse, partial_output):
        cursor = checked.carve(cursor, region)
    return cursor


def _is_positive_int32(column: Column) -> Flags:
    return (column >= 1) & (column <= INT32_MAX)


def _unsigned(column: NDArray[np.generic]) -> Sizes:
    return column.astype(np.uint64)
