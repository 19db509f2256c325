"""What is swept: many states as int64 columns, and one answer per state."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FIELDS",
    "INT32_MAX",
    "INT64_MAX",
    "INVALID_ARGUMENT",
    "OK",
    "OVERFLOW",
    "STATUSES",
    "UNAVAILABLE",
    "Answers",
    "Column",
    "Flags",
    "Rows",
    "States",
]

Column = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = slice | NDArray[np.intp]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
STATUSES: Final = ("ok", "invalid_argument", "overflow", "unavailable")
OK, INVALID_ARGUMENT, OVERFLOW, UNAVAILABLE = range(len(STATUSES))


@dataclass(frozen=True, slots=True)
class States:
    """Columns named as in the model's input; an enumerator is its place, a flag is 0 or 1."""

    qkv_element_size: Column
    cache_element_size: Column
    batch_size: Column
    sequence_length: Column
    num_heads: Column
    kv_num_heads: Column
    head_size: Column
    present_kv_cache_capacity: Column
    past_kv_cache_capacity: Column
    kv_cache_bit_width: Column
    k_quantization: Column
    v_quantization: Column
    is_windowed_kv_cache: Column
    is_first_prompt: Column
    do_rotary: Column
    is_packed_qkv: Column
    use_qk_norm: Column
    requires_separate_past_buffer: Column
    total_sequence_length: Column
    local_window_size: Column

    def __len__(self) -> int:
        return len(self.batch_size)

    def take(self, rows: Rows) -> States:
        """The states of some rows."""
        return States(*(getattr(self, name)[rows] for name in FIELDS))

    @property
    def effective_capacity(self) -> Column:
        """The cache capacity (tokens) that the backend sees: a window that stages grows by S."""
        return self.present_kv_cache_capacity + self.sequence_length * self.stages

    @property
    def stages(self) -> Column:
        """1 where a windowed cache takes several tokens at once (0 or 1 for valid states)."""
        return np.minimum(self.sequence_length - 1, self.is_windowed_kv_cache)

    @property
    def cache_row_bytes(self) -> Column:
        """Bytes of one head's K or V for one token in the cache."""
        given = self.kv_cache_bit_width
        bits: Column = np.where(given == 0, 8 * self.cache_element_size, given)
        return self.head_size * bits >> 3

    @property
    def kv_length(self) -> Column:
        """The KV length (tokens) that Flash is sized for: a window caps it."""
        longest = np.where(self.is_windowed_kv_cache != 0, self.effective_capacity, INT64_MAX)
        return np.minimum(self.total_sequence_length, longest)


FIELDS: Final = tuple(field.name for field in fields(States))


@dataclass(frozen=True, slots=True)
class Answers:
    """The model's outputs; a status is its place in `STATUSES`."""

    status: NDArray[np.uint8]
    total_workspace_bytes: NDArray[np.uint64]
    selected_split_count: NDArray[np.uint8]

    @classmethod
    def empty(cls, states: int) -> Answers:
        """Room for so many answers."""
        return cls(
            np.empty(states, np.uint8), np.empty(states, np.uint64), np.empty(states, np.uint8)
        )

    def take(self, rows: Rows) -> Answers:
        """The answers of some rows: of a slice, a view."""
        return Answers(*(getattr(self, name)[rows] for name in OUTPUTS))

    def put(self, rows: NDArray[np.intp], answers: Answers) -> None:
        """Replace the answers of some rows."""
        for name in OUTPUTS:
            getattr(self, name)[rows] = getattr(answers, name)

    def equals(self, others: Answers) -> bool:
        """The same, element by element."""
        return all(np.array_equal(getattr(self, name), getattr(others, name)) for name in OUTPUTS)


OUTPUTS: Final = tuple(field.name for field in fields(Answers))
