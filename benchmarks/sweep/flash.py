"""The NumPy side: the same routes as `flash.c`, a block of columns at a time.

Nearly all states are usual: every check passes, and no size comes near 2^63. Each part below
narrows one mask to them and forms its sizes in plain int64, for whatever they are in other rows.
Those others, a few in a hundred, are answered together at the end, exactly.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from . import exact
from .splits import SplitTable, kv_blocks, work_items
from .states import INT32_MAX, OK, Answers, Column, Flags, States

__all__ = ["sweep"]

_BLOCK: Final = 16_384  # states: fewer, and calls cost more than they do; more, and caches overflow

# Below these, with D <= 256, no size overflows int64: the largest, a cache of 2 * B * Hkv * C * row
# bytes, stays below 2^58, and the sum of all below 2^60.
_MOST_HEADS: Final = 2**12  # and the most sequences
_MOST_TOKENS: Final = 2**22


def sweep(states: States, multiprocessors: int) -> Answers:
    """Every state answered; the table of splits is made anew, as part of the work."""
    table = SplitTable(multiprocessors)
    answers = Answers.empty(len(states))
    answers.status.fill(OK)
    unusual: list[NDArray[np.intp]] = []
    # What an unusual state divides by does not matter.
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, len(states), _BLOCK):
            rows = slice(start, start + _BLOCK)
            usual = _answer(states.take(rows), table, answers.take(rows))
            unusual.append(start + np.flatnonzero(~usual))
    rest = np.concatenate(unusual)
    answers.put(rest, exact.answer(states.take(rest), table))
    return answers


def _answer(states: States, table: SplitTable, answers: Answers) -> Flags:
    """Bytes and splits of a block; returns which states they are right for."""
    usual, lse, kv_heads = _shape(states)
    total, capacity = _cache(states, kv_heads, usual)
    total += _aligned((states.is_windowed_kv_cache + 1) * states.batch_size * 12)
    total += _preprocessing(states, lse, kv_heads, capacity, usual)
    splits = table(work_items(states), _kv_blocks(states, capacity, usual))
    total += lse
    split = np.flatnonzero(splits > 1)
    total[split] += _partial_bytes(lse[split], splits[split], states.head_size[split])
    answers.selected_split_count[:] = splits
    answers.total_workspace_bytes[:] = total.view(np.uint64)
    return usual


# Seen as unsigned, a negative number is large: one comparison holds both ends of a range, and for
# several columns at once if the upper end is a power of two. Updates in place save memory traffic,
# which is most of what an operation costs.


def _shape(states: States) -> tuple[Flags, Column, Column]:
    """Which shapes are usual; bytes of log-sum-exp rows, 4 * B * H * S; and B * Hkv."""
    batch, heads, kv_heads = states.batch_size, states.num_heads, states.kv_num_heads
    usual = (batch | heads | kv_heads).view(np.uint64) < _MOST_HEADS
    usual &= states.sequence_length.view(np.uint64) < _MOST_TOKENS
    usual &= ((states.head_size - 8) & ~0b1111_1000) == 0  # 8, 16 ... 256
    usual &= states.qkv_element_size == 2
    usual &= kv_heads > 0
    # Exact for so few heads: a quotient that is no integer is further from one than float32 rounds.
    groups = heads.astype(np.float32)
    groups /= kv_heads.astype(np.float32)
    usual &= groups == np.floor(groups)
    lse = batch * heads
    lse *= states.sequence_length
    lse *= 4
    usual &= lse > 0
    return usual, lse, batch * kv_heads


def _cache(states: States, kv_heads: Column, usual: Flags) -> tuple[Column, Column]:
    """Bytes of a separate past, or of a window's copies; and the effective capacity."""
    windowed, separate = states.is_windowed_kv_cache, states.requires_separate_past_buffer
    present, past = states.present_kv_cache_capacity, states.past_kv_cache_capacity
    element, bits = states.cache_element_size, states.kv_cache_bit_width
    usual &= (present | past).view(np.uint64) < _MOST_TOKENS
    usual &= present > 0
    usual &= past >= separate
    usual &= (separate & windowed) == 0
    packed = ((bits & ~12) == 0) & (bits != 12)
    usual &= ((element == 1) & packed) | ((element == 2) & (bits == 0))
    row = states.head_size * element
    row >>= (bits >> 2) & 1  # half a byte each for 4 bits
    usual &= (row & (windowed * 15)) == 0
    stages = states.stages
    capacity = stages * states.sequence_length
    capacity += present
    # Never both: a separate past, or a window, staged twice or compacted in a region of twice that.
    region = past * separate
    region += capacity * windowed
    region *= row
    region *= kv_heads
    region *= windowed + 1 - stages
    return _aligned(region) * (stages + 1), capacity


def _preprocessing(
    states: States, lse: Column, kv_heads: Column, capacity: Column, usual: Flags
) -> Column:
    """Bytes of Q, where it is copied, and of two tensors of K and V where they are quantised."""
    quantized = np.maximum(states.k_quantization, states.v_quantization)
    usual &= quantized < 3
    quantized = np.minimum(quantized, 1)
    dequantizes = quantized & ~states.is_first_prompt
    copies = quantized | states.do_rotary
    copies |= states.is_packed_qkv
    copies |= states.use_qk_norm
    size = capacity * dequantizes
    size += states.sequence_length * (quantized - dequantizes)
    size *= kv_heads
    size *= 8
    size += lse * copies
    size *= states.head_size >> 1  # both terms are twice what two bytes make of their rows
    size += dequantizes * 256
    return _aligned(size)


def _kv_blocks(states: States, capacity: Column, usual: Flags) -> Column:
    """KV blocks of the length that Flash is sized for: a window caps it."""
    length, window = states.total_sequence_length, states.local_window_size
    usual &= (length - 1).view(np.uint64) < INT32_MAX
    usual &= ((window - 1).view(np.uint64) < INT32_MAX) | (window == -1)
    limit = states.is_windowed_kv_cache - 1  # all bits where there is no window: no limit
    limit |= capacity
    capped = np.minimum(length.view(np.uint64), limit.view(np.uint64))
    return kv_blocks(capped.view(np.int64), states.head_size)


def _partial_bytes(lse: Column, splits: NDArray[np.uint8], head_size: Column) -> Column:
    """What several splits add to the log-sum-exp rows: their own rows, and partial outputs."""
    partial = lse * splits
    return _aligned(lse) - lse + _aligned(partial) + partial * ((head_size + 31) & ~31)


def _aligned(size: Column) -> Column:
    """The start of whatever lies behind."""
    end = size + 255
    end &= ~255
    return end
