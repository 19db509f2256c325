"""The split heuristic as a table: a device and few distinct questions make a search a look-up.

Source: `routeproof.models.ort.gqa.split`, with its widths. The table belongs to one sweep, so that
what it costs is part of what is measured.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .states import Column, States

__all__ = ["SplitTable", "kv_blocks", "work_items"]

_MAX_SPLITS: Final = 128
_BATCH: Final = 512  # pairs searched together: their candidates stay in the cache


def work_items(states: States) -> Column:
    """Independent blocks of work before any split: one per row, head and 64 query tokens."""
    return states.batch_size * states.num_heads * ((states.sequence_length + 63) >> 6)


def kv_blocks(kv_length: Column, head_size: Column) -> Column:
    """Blocks of 256, 128 or 64 tokens, by head size (elements), that cover the KV length."""
    shift = 8 - ((head_size > 64).view(np.int8) + (head_size > 128).view(np.int8))
    return -(-kv_length >> shift)


class SplitTable:
    """Selected splits by (work, KV blocks), searched when a pair is first asked for."""

    def __init__(self, multiprocessors: int) -> None:
        limit = min(_MAX_SPLITS, multiprocessors)
        # The first work that fills the device: it is never split, nor is more.
        self._full = int(np.ceil(np.float32(0.8) * np.float32(multiprocessors)))
        # From here on every candidate is eligible: b / (s - 1) - b / s >= 1 if b >= s * (s - 1).
        self._enough = limit * (limit - 1)
        self._splits = np.arange(1, limit + 1, dtype=np.float32)
        self._ranks = np.arange(limit, 0, -1, dtype=np.uint8)
        self._multiprocessors = np.float32(multiprocessors)
        chosen = np.zeros((self._full + 1, self._enough + 1), np.uint8)  # 0: not searched yet
        chosen[0] = chosen[:, 0] = chosen[self._full] = 1
        self._chosen = chosen.ravel()

    def __call__(self, work: Column, blocks: Column) -> NDArray[np.uint8]:
        """The splits of every row; a row that is not valid gets any."""
        # Seen as unsigned, a negative number is large: every place is inside the table.
        places = np.minimum(work.view(np.uint64), self._full)
        places *= self._enough + 1
        places += np.minimum(blocks.view(np.uint64), self._enough)
        places = places.view(np.int64)
        splits = self._chosen.take(places)
        missing = places[splits == 0]
        if missing.size:
            for start in range(0, missing.size, _BATCH):
                self._search(missing[start : start + _BATCH])
            splits = self._chosen.take(places)
        return splits

    def _search(self, places: Column) -> None:
        """The fewest eligible splits within 85 % of the best, for each of some places."""
        # Candidates are rows, so that every operation runs along all places. float32 rounds where
        # the source does, and not in `each`: a quotient that is no integer is too far from one.
        work, blocks = np.divmod(places, self._enough + 1)
        splits = self._splits[:, None]
        waves = work.astype(np.float32) * splits
        waves /= self._multiprocessors
        efficiency = np.divide(waves, np.ceil(waves), out=waves)
        each = blocks.astype(np.float32) / splits
        np.ceil(each, out=each)
        # One split less leaves every split with as many blocks: not eligible, and worth nothing.
        efficiency[1:] *= np.minimum(each[:-1] - each[1:], 1)
        bound = _narrow(0.85 * efficiency.max(axis=0).astype(np.float64))
        reaches = (efficiency >= bound).view(np.uint8)
        reaches *= self._ranks[:, None]  # the fewest splits rank highest
        self._chosen[places] = self._ranks[0] + 1 - reaches.max(axis=0)


def _narrow(bound: NDArray[np.float64]) -> NDArray[np.float32]:
    """The least float32 that is not below the bound: what reaches one reaches the other."""
    nearest = bound.astype(np.float32)
    return np.where(nearest < bound, np.nextafter(nearest, np.float32(np.inf)), nearest)
