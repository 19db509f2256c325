"""The exact maximum workspace of a GQA node, by evaluating every state of an envelope.

The oracle for what a symbolic maximiser says. Recipes, eligibility, ladder and phases of ONNX
Runtime's CUDA GroupQueryAttention are typed here from their public sources once more, in NumPy, and
nothing of the package is imported: an error would have to be made twice to stay unseen. The
recorded rows of the real code are replayed against it.

A *lane* is one state. What varies inside an envelope (batch, query and total length, first prompt)
is an array with one element per lane; what is fixed there is a plain Python value. Arrays are int64
for envelopes, which `_no_int64_overflow` makes safe, and Python integers (dtype object) for rows,
whose sizes reach 2^64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[Any]
Range = tuple[int, int]  # both ends included

INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1
SIZE_MAX = 2**64 - 1

OK, INVALID, UNAVAILABLE, OVERFLOW = range(4)
STATUSES = ("ok", "invalid_argument", "unavailable", "overflow")

REVISIONS = ("older", "newest")
PHASES = ("prefill", "chunk", "decode")
ROUTES = ("xqa", "cudnn", "flash", "flash_fast_decode", "memory_efficient", "unfused", "errors")
XQA, CUDNN, FLASH, FLASH_FAST_DECODE, MEMORY_EFFICIENT, UNFUSED, ERRORS = range(len(ROUTES))

QUANTISATIONS = ("none", "per_tensor", "per_channel")
BLOCK_LANES = 2**18  # lanes evaluated at once: arrays of 2 MB


# What the caller describes.


@dataclass(frozen=True)
class Node:
    """The facts of a graph node; sizes in elements, element sizes in bytes."""

    element_type: str = "fp16"
    cache_type: str = "fp16"
    cache_element_size: int = 2
    kv_cache_bit_width: int = 0
    k_quantization: str = "none"
    v_quantization: str = "none"
    num_heads: int = 12
    kv_num_heads: int = 2
    head_size: int = 128
    do_rotary: bool = False
    is_packed_qkv: bool = False
    use_qk_norm: bool = False
    is_windowed_kv_cache: bool = False
    local_window_size: int = -1
    softcap: float = 0.0
    smooth_softmax: bool = False
    head_sink_storage: str = "none"
    has_attention_bias: bool = False
    is_unidirectional: bool = True
    kv_scales_same_tensor: bool = False

    @property
    def has_head_sink(self) -> bool:
        """Whether one is given, converted per launch or before."""
        return self.head_sink_storage != "none"

    @property
    def quantised(self) -> bool:
        """K or V is."""
        return self.k_quantization != "none" or self.v_quantization != "none"


@dataclass(frozen=True)
class Device:
    """Compute capability and number of multiprocessors."""

    major: int
    minor: int
    sms: int


@dataclass(frozen=True)
class Options:
    """What the session and the build enable; `cudnn` is "off", "on" or "auto"."""

    enable_xqa: bool = True
    cudnn: str = "off"
    disable_flash: bool = False
    disable_flash_decode: bool = False
    disable_mea: bool = False


@dataclass(frozen=True)
class Envelope:
    """The admitted batch sizes, query lengths and total lengths."""

    batch: Range
    query: Range
    total: Range
    past_capacity: int
    allow_query_above_total: bool = False


@dataclass(frozen=True)
class State:
    """One execution of the node."""

    batch: int
    query: int
    total: int
    past_key_shared: bool
    past_value_shared: bool
    xqa_shared_memory_ok: bool
    cudnn_is_stable: bool
    cudnn_is_supported: bool


@dataclass(frozen=True)
class Maximum:
    """The most bytes over some states, and where.

    `bytes` is None where no number exists: cuDNN and errors, and if one state's recipe fails, which
    is then `failing_state`. `state` attains the maximum if there is one, else it is any state.
    """

    bytes: int | None
    state: State
    failing_state: State | None = None


Key = tuple[str, str, str]  # phase, route, alias


# Arithmetic and the order of checks.


class Sized(NamedTuple):
    """Per lane a status and, where that is OK, a number of bytes (else 0)."""

    status: Lanes
    bytes: Lanes


def _cd(x: Any, d: Any) -> Any:
    return -(-x // d)


def _al(x: Any, alignment: Any = 256) -> Any:
    return _cd(x, alignment) * alignment


def _no_positive_int32(x: Any) -> Any:
    return (x < 1) | (x > INT32_MAX)


class Checks:
    """The first failed check of a lane decides its status."""

    def __init__(self, lanes: int) -> None:
        self.status = np.full(lanes, OK, np.int8)

    def fail_if(self, condition: Any, status: int) -> None:
        """Give `status` to the lanes that passed so far and for which `condition` holds."""
        self.status[(self.status == OK) & condition] = status

    @property
    def all_failed(self) -> bool:
        """Whether no lane is left; arithmetic may then be impossible (zero heads)."""
        return bool(np.all(self.status != OK))

    def failed(self) -> Sized:
        """The outcome if no lane is left."""
        return Sized(self.status, np.zeros(len(self.status), np.int64))

    def sized(self, layout: Layout) -> Sized:
        """The outcome of the lanes that are left: overflow, or where the layout ends."""
        self.fail_if(layout.overflow, OVERFLOW)
        return Sized(self.status, np.where(self.status == OK, layout.end, 0))


class Layout:
    """Regions of bytes one after another; an empty one does not move the cursor."""

    def __init__(self, lanes: int) -> None:
        self.end: Lanes = np.zeros(lanes, np.int64)
        self.overflow = np.zeros(lanes, np.bool_)

    def checked(self, size: Any) -> Any:
        """`size`, a product of positive factors or a sum, noted as overflow beyond size_t."""
        self.overflow |= np.asarray(size > SIZE_MAX, np.bool_)
        return size

    def place(self, size: Any, alignment: int = 256) -> None:
        """Append a region that starts at the next multiple of `alignment`."""
        placed = self.checked(_al(self.end, alignment) + self.checked(size))
        self.end = np.where(size > 0, placed, self.end)


# Recipes: how many bytes a route asks for.


@dataclass(frozen=True)
class Problem:
    """The shape that all recipes get; arrays are per lane. Named as in the rows."""

    batch_size: Lanes
    sequence_length: Lanes
    is_first_prompt: Lanes
    qkv_element_size: int
    cache_element_size: int
    num_heads: int
    kv_num_heads: int
    head_size: int
    present_kv_cache_capacity: int
    past_kv_cache_capacity: int
    kv_cache_bit_width: int
    k_quantization: str
    v_quantization: str
    is_windowed_kv_cache: bool
    do_rotary: bool
    is_packed_qkv: bool
    use_qk_norm: bool
    requires_separate_past_buffer: bool

    @property
    def lanes(self) -> int:
        """How many states."""
        return len(self.batch_size)

    @property
    def quantised(self) -> bool:
        """K or V is; an unknown quantisation counts."""
        return self.k_quantization != "none" or self.v_quantization != "none"

    @property
    def q_elements(self) -> Any:
        """B * S * N * D."""
        return self.batch_size * self.sequence_length * self.num_heads * self.head_size

    @property
    def kv_elements(self) -> Any:
        """B * S * Nk * D: one of the new K and V."""
        return self.batch_size * self.sequence_length * self.kv_num_heads * self.head_size

    @property
    def cache_row_bytes(self) -> int:
        """One head of one token; a bit width means packed rows."""
        if self.kv_cache_bit_width:
            return self.head_size * self.kv_cache_bit_width // 8
        return self.head_size * self.cache_element_size

    @property
    def effective_capacity(self) -> Any:
        """A windowed cache is staged, hence larger, for more than one token."""
        capacity, query = self.present_kv_cache_capacity, self.sequence_length
        if not self.is_windowed_kv_cache:
            return capacity
        return np.where(query > 1, capacity + query, capacity)

    @property
    def bad_geometry(self) -> Any:
        """The checks that every recipe makes first."""
        heads, kv_heads, size = self.num_heads, self.kv_num_heads, self.head_size
        fixed = (
            any(_no_positive_int32(x) for x in (heads, kv_heads, size))
            or heads % kv_heads != 0
            or self.qkv_element_size != 2
        )
        return (
            fixed | _no_positive_int32(self.batch_size) | _no_positive_int32(self.sequence_length)
        )


def _xqa_has_kernel(heads: int, kv_heads: int, head_size: int, *, quantised: bool) -> bool:
    groups = (4, 8, 16, 32) if quantised else (1, 2, 4, 5, 8, 16, 32)
    return head_size in {64, 128, 256} and heads in {g * kv_heads for g in groups}


def preparation(p: Problem, mode: str, *, fast_decode: bool) -> Sized:
    """Transients alive before and beside the backend `mode`."""
    checks = Checks(p.lanes)
    checks.fail_if(p.bad_geometry, INVALID)
    checks.fail_if(_bad_cache(p), INVALID)
    if not checks.all_failed:
        checks.fail_if(_preparation_rejects(p, mode, fast_decode=fast_decode), INVALID)
        checks.fail_if(p.effective_capacity > INT32_MAX, INVALID)
    if checks.all_failed:
        return checks.failed()
    layout = Layout(p.lanes)
    _place_caches(p, layout)
    vectors = 6 if p.is_windowed_kv_cache else 3
    needs_vectors = (p.sequence_length != 1) | (not fast_decode)
    layout.place(np.where(needs_vectors, 4 * vectors * p.batch_size, 0))
    if not fast_decode:
        layout.checked(p.q_elements)  # formed even where it is not used
        layout.place(_preprocess_bytes(p, mode))
    return checks.sized(layout)


def _bad_cache(p: Problem) -> bool:
    bits, past = p.kv_cache_bit_width, p.past_kv_cache_capacity
    if p.is_windowed_kv_cache:
        # A packed row is a whole number of 16-byte vectors, and so is any other.
        bad_rows = p.cache_row_bytes % 16 != 0 or (bits in {4, 8} and p.head_size % (128 // bits))
    else:
        bad_rows = False
    return bool(
        _no_positive_int32(p.present_kv_cache_capacity)
        or p.cache_element_size not in {1, 2}
        or p.head_size % 8 != 0
        or bits not in {0, 4, 8}
        or (bits != 0 and p.cache_element_size != 1)
        or not {p.k_quantization, p.v_quantization} <= set(QUANTISATIONS)
        or not 0 <= past <= INT32_MAX
        or (p.requires_separate_past_buffer and past == 0)
        or bad_rows
    )


def _preparation_rejects(p: Problem, mode: str, *, fast_decode: bool) -> Any:
    """What a backend cannot be prepared for; heads and sizes are known to be good."""
    rejected: Any = mode not in {"xqa", "flash", "memory_efficient", "unfused"}
    if fast_decode:
        rejected = (
            rejected
            | (mode != "flash" or p.is_windowed_kv_cache or p.quantised or p.use_qk_norm)
            | p.is_first_prompt
        )
    if mode == "xqa":
        rejected = (
            rejected
            | p.is_first_prompt
            | (p.sequence_length != 1)
            | ((p.k_quantization == "none") != (p.v_quantization == "none"))
            | (p.quantised and (p.kv_cache_bit_width != 8 or p.use_qk_norm))
            | (not _xqa_has_kernel(p.num_heads, p.kv_num_heads, p.head_size, quantised=p.quantised))
        )
    if p.requires_separate_past_buffer:
        rejected = rejected | (p.is_windowed_kv_cache or mode == "xqa" or fast_decode)
    return rejected


def _place_caches(p: Problem, layout: Layout) -> None:
    """Preserved past; staged K and V; compaction, which is K and V in one region."""
    rows = p.batch_size * p.kv_num_heads * p.cache_row_bytes
    if p.requires_separate_past_buffer:
        layout.place(rows * p.past_kv_cache_capacity)
    if p.is_windowed_kv_cache:
        several = p.sequence_length > 1
        staged = np.where(several, rows * p.effective_capacity, 0)
        layout.place(staged)
        layout.place(staged)
        layout.place(np.where(several, 0, 2 * rows * p.present_kv_cache_capacity))


def _preprocess_bytes(p: Problem, mode: str) -> Any:
    """Rotated, unpacked, normalised or dequantised Q, K and V, as the backend `mode` wants them."""
    q, k_and_v, e = p.q_elements, 2 * p.kv_elements, p.qkv_element_size
    rotated = p.do_rotary or p.is_packed_qkv or p.use_qk_norm
    if mode == "xqa":
        return q * e if rotated or p.k_quantization == "per_channel" else 0 * q
    if mode == "memory_efficient":
        if p.is_packed_qkv:
            return (q + k_and_v) * e
        if p.do_rotary:
            return (q + p.kv_elements) * e
        return q * e if p.use_qk_norm else 0 * q
    if mode == "flash" and p.quantised:
        cache = 2 * p.batch_size * p.effective_capacity * p.kv_num_heads * p.head_size
        return np.where(p.is_first_prompt, (q + k_and_v) * e, (q + cache) * e + 256)
    return q * e if rotated else 0 * q


@dataclass(frozen=True)
class Launch:
    """What a backend gets beside the problem; the totals are T, per lane."""

    backend: str
    preprocess_mode: str
    preparation_fast_decode: bool
    fast_decode: bool
    total_sequence_length: Any
    local_window_size: int
    multi_processor_count: int
    device_major: int
    device_minor: int
    kv_type: str
    head_sink_storage: str


def xqa(p: Problem, launch: Launch) -> Sized:
    """Single-token decode: the scratch of sub-sequences, then rotary and head-sink buffers."""
    sms, kv_type = launch.multi_processor_count, launch.kv_type
    major, minor = launch.device_major, launch.device_minor
    checks = Checks(p.lanes)
    checks.fail_if(p.bad_geometry | _no_positive_int32(p.present_kv_cache_capacity), INVALID)
    checks.fail_if(p.sequence_length != 1, UNAVAILABLE)
    checks.fail_if(p.is_first_prompt, INVALID)
    checks.fail_if(major < 8, UNAVAILABLE)
    checks.fail_if((p.batch_size > 65_535) | (p.kv_num_heads > 65_535), UNAVAILABLE)
    checks.fail_if(not 1 <= sms <= UINT32_MAX or minor < 0, INVALID)
    checks.fail_if(kv_type == "invalid" or (kv_type != "none") != p.quantised, INVALID)
    checks.fail_if(p.quantised and (p.kv_cache_bit_width != 8 or p.use_qk_norm), INVALID)
    checks.fail_if(kv_type == "fp8" and not (major >= 9 or (major, minor) == (8, 9)), UNAVAILABLE)
    checks.fail_if(launch.head_sink_storage == "invalid", INVALID)
    if not checks.all_failed:
        has_kernel = _xqa_has_kernel(
            p.num_heads, p.kv_num_heads, p.head_size, quantised=p.quantised
        )
        checks.fail_if(not has_kernel, UNAVAILABLE)
    if checks.all_failed:
        return checks.failed()
    sequences = p.batch_size * p.kv_num_heads
    split = np.minimum(np.maximum(1, sms // sequences), _cd(p.present_kv_cache_capacity, 256))
    count = sequences * split
    vector = _xqa_vector_bytes(p)
    layout = Layout(p.lanes)
    # The accumulator starts at a multiple of its vector, counted from the end of the semaphores.
    layout.place(_al(4 * sequences, 128) + _al(256 * count, vector) + vector * count)
    _place_xqa_extras(p, launch.head_sink_storage, layout)
    return checks.sized(layout)


def _xqa_vector_bytes(p: Problem) -> int:
    group = p.num_heads // p.kv_num_heads
    tile = 8 if group <= 8 else 16 if group <= 16 else 32
    return p.head_size * tile * 2


def _place_xqa_extras(p: Problem, head_sink_storage: str, layout: Layout) -> None:
    """Rotated Q and K and a converted head sink, unaligned behind the scratch."""
    if p.do_rotary:
        for heads in (p.num_heads, p.kv_num_heads):
            layout.place(_al(p.batch_size * heads * p.head_size * p.qkv_element_size), 1)
    if head_sink_storage == "dynamic_conversion":
        layout.place(_al(4 * p.num_heads), 1)


def flash(p: Problem, launch: Launch, *, structural: bool = False) -> Sized:
    """Log-sum-exp and, when the KV length is split, its accumulators.

    The run chooses the splits by a heuristic; an aggregate reserves their `structural` ceiling.
    """
    sms, window, total = (
        launch.multi_processor_count,
        launch.local_window_size,
        launch.total_sequence_length,
    )
    checks = Checks(p.lanes)
    checks.fail_if(p.bad_geometry | _no_positive_int32(total), INVALID)
    checks.fail_if(sms < 1 or (window != -1 and _no_positive_int32(window)), INVALID)
    if launch.fast_decode:
        checks.fail_if(p.is_windowed_kv_cache or p.quantised or p.use_qk_norm, INVALID)
        checks.fail_if(p.is_first_prompt, INVALID)
    checks.fail_if(p.head_size % 8 != 0 or p.head_size > 256, UNAVAILABLE)
    if checks.all_failed:
        return checks.failed()
    kv = np.minimum(total, window) if launch.fast_decode and window != -1 else total
    blocks = _cd(kv, 256 if p.head_size <= 64 else 128 if p.head_size <= 128 else 64)
    heads = p.kv_num_heads if launch.fast_decode else p.num_heads
    layout = Layout(p.lanes)
    work = layout.checked(p.batch_size * heads * _cd(p.sequence_length, 64))
    splits = np.minimum(min(128, sms), blocks) if structural else _split_counts(work, blocks, sms)
    lse = 4 * p.batch_size * p.num_heads * p.sequence_length
    accumulated = np.where(splits > 1, splits * lse, 0)
    layout.place(lse)
    layout.place(accumulated)
    layout.place(accumulated * _al(p.head_size, 32))
    return checks.sized(layout)


def _split_counts(work: Lanes, blocks: Lanes, sms: int) -> Lanes:
    """`split_count` per lane, computed once for each pair."""
    base = blocks.max() + 1
    pairs, lane_of = np.unique(work * base + blocks, return_inverse=True)
    counts = [split_count(int(pair // base), int(pair % base), sms) for pair in pairs]
    return np.array(counts, np.int64)[lane_of]


@cache
def split_count(work: int, blocks: int, sms: int) -> int:
    """Flash's split heuristic: float32 throughout, except the double 0.85."""
    if np.float32(work) >= np.float32(0.8) * np.float32(sms):
        return 1
    efficiencies = {}
    for count in range(1, min(128, sms, blocks) + 1):
        if count == 1 or _cd(blocks, count) != _cd(blocks, count - 1):
            waves = np.float32(work * count) / np.float32(sms)
            efficiencies[count] = waves / np.ceil(waves)
    best = float(max(efficiencies.values()))
    return next(count for count, each in efficiencies.items() if float(each) >= 0.85 * best)


def memory_efficient(p: Problem) -> Sized:
    """K and V expanded to all query heads, and a float32 output for large heads."""
    capacity = p.effective_capacity
    checks = Checks(p.lanes)
    checks.fail_if(p.bad_geometry, INVALID)
    checks.fail_if(p.quantised, UNAVAILABLE)
    checks.fail_if(_no_positive_int32(capacity), INVALID)
    if checks.all_failed:
        return checks.failed()
    layout = Layout(p.lanes)
    if p.num_heads != p.kv_num_heads:
        for _ in "KV":
            layout.place(p.qkv_element_size * p.batch_size * p.num_heads * capacity * p.head_size)
    if p.head_size > 128:
        layout.place(4 * p.q_elements)
    return checks.sized(layout)


def unfused(p: Problem, total: Any) -> Sized:
    """Q, Y, and the S x T matrices before and after the softmax."""
    checks = Checks(p.lanes)
    checks.fail_if(p.bad_geometry, INVALID)
    checks.fail_if(p.quantised, UNAVAILABLE)
    checks.fail_if(_no_positive_int32(total), INVALID)
    if checks.all_failed:
        return checks.failed()
    layout = Layout(p.lanes)
    scores = 4 * p.batch_size * p.num_heads * p.sequence_length * total
    for size in (p.qkv_element_size * p.q_elements,) * 2 + (scores,) * 2:
        layout.place(_al(layout.checked(size)))
    return checks.sized(layout)


def complete(p: Problem, launch: Launch) -> Sized:
    """The whole workspace of a route: preparation, then the backend."""
    checks = Checks(p.lanes)
    backend = launch.backend
    checks.fail_if(backend == "invalid", INVALID)
    checks.fail_if(backend == "cudnn", UNAVAILABLE)  # its size is known to its graphs alone
    checks.fail_if(launch.preprocess_mode != backend, INVALID)
    if backend == "flash":
        checks.fail_if(launch.fast_decode != launch.preparation_fast_decode, INVALID)
    if checks.all_failed:
        return checks.failed()
    prepared = preparation(p, backend, fast_decode=launch.preparation_fast_decode)
    return joined(prepared, _backend(p, launch))


def _backend(p: Problem, launch: Launch) -> Sized:
    total = launch.total_sequence_length
    if p.is_windowed_kv_cache:
        total = np.minimum(total, p.effective_capacity)
    if launch.backend == "xqa":
        return xqa(p, launch)
    if launch.backend == "flash":
        return flash(p, replace(launch, total_sequence_length=total))
    if launch.backend == "memory_efficient":
        return memory_efficient(p)
    return unfused(p, total)


def joined(prepared: Sized, backend: Sized) -> Sized:
    """The backend behind its preparation, whose status comes first."""
    checks = Checks(len(prepared.status))
    for status in (INVALID, UNAVAILABLE, OVERFLOW):
        checks.fail_if(prepared.status == status, status)
    for status in (INVALID, UNAVAILABLE, OVERFLOW):
        checks.fail_if(backend.status == status, status)
    layout = Layout(len(prepared.status))
    layout.place(prepared.bytes)
    layout.place(backend.bytes)
    return checks.sized(layout)


# The aggregate: one number from component-wise upper bounds.


@dataclass(frozen=True)
class Bounds:
    """Upper bounds and fixed facts, named as in the rows."""

    qkv_element_size: int
    cache_element_size: int
    batch_size_bound: int
    sequence_length_bound: int
    num_heads: int
    kv_num_heads: int
    head_size_bound: int
    present_kv_cache_capacity_bound: int
    kv_cache_bit_width: int
    k_quantization: str
    v_quantization: str
    is_windowed_kv_cache: bool
    do_rotary: bool
    is_packed_qkv: bool
    use_qk_norm: bool
    prompt_reachable: bool
    decode_reachable: bool
    reachable_backends: tuple[str, ...]
    device_major: int
    device_minor: int
    multi_processor_count: int
    is_bf16: bool
    xqa_kv_type: str
    xqa_head_sink_storage: str
    head_sink_may_be_prepacked: bool
    local_window_size: int


@dataclass
class Aggregate:
    """The running maximum; sizes in bytes."""

    status: int = OK
    total_workspace_bytes: int = 0
    persistent_prepack_bytes: int = 0
    initialization_scratch_bytes: int = 0
    sized_backends: set[str] = field(default_factory=set)

    def add(self, route: str, sized: Sized) -> None:
        """Enlarge the maximum, or stop at the first failing state."""
        self.status = int(sized.status[0])
        if self.status == OK:
            self.total_workspace_bytes = max(self.total_workspace_bytes, int(sized.bytes[0]))
            self.sized_backends.add(route)


def aggregate(b: Bounds) -> Aggregate:
    """What the runtime reserves for all that `b` admits."""
    result = Aggregate(status=_refused_upfront(b))
    if result.status != OK:
        return result
    if b.head_sink_may_be_prepacked or b.xqa_head_sink_storage == "prepacked_fp32":
        result.persistent_prepack_bytes = 4 * b.num_heads
        result.initialization_scratch_bytes = 2 * b.num_heads
    if not b.reachable_backends:
        result.status = UNAVAILABLE
    for route in ("memory_efficient", "unfused", "flash", "flash_fast_decode"):
        if route not in b.reachable_backends:
            continue
        for query, first in _aggregate_states(b, route):
            if result.status == OK:
                result.add(route, _aggregate_route(b, route, query, first=first))
    if "xqa" in b.reachable_backends:
        sizes = [size for size in (64, 128, 256) if size <= b.head_size_bound]
        if not sizes:
            result.status = UNAVAILABLE
        for size in sizes:
            if result.status == OK:
                result.add("xqa", _aggregate_xqa(b, size))
    return result


def _refused_upfront(b: Bounds) -> int:
    invalid = (
        min(
            b.batch_size_bound,
            b.sequence_length_bound,
            b.num_heads,
            b.kv_num_heads,
            b.present_kv_cache_capacity_bound,
            b.multi_processor_count,
        )
        <= 0
        or b.num_heads % b.kv_num_heads != 0
        or b.head_size_bound < 8
        or b.qkv_element_size != 2
        or b.cache_element_size not in {1, 2}
        or not (b.prompt_reachable or b.decode_reachable)
    )
    if invalid:
        return INVALID
    return UNAVAILABLE if "cudnn" in b.reachable_backends else OK


def _aggregate_states(b: Bounds, route: str) -> list[tuple[int, bool]]:
    """The query lengths and first prompts that a route is sized at."""
    longest = b.sequence_length_bound
    if route == "flash_fast_decode":
        return [(longest, False)]
    decode = [(1, False)] if b.decode_reachable else []
    prompt = [(longest, True), (longest, False)] if b.prompt_reachable else []
    return decode + prompt


def _aggregate_problem(b: Bounds, head_size: int, query: int, *, first: bool) -> Problem:
    return Problem(
        batch_size=np.array([b.batch_size_bound], object),
        sequence_length=np.array([query], object),
        is_first_prompt=np.array([first]),
        qkv_element_size=b.qkv_element_size,
        cache_element_size=b.cache_element_size,
        num_heads=b.num_heads,
        kv_num_heads=b.kv_num_heads,
        head_size=head_size,
        present_kv_cache_capacity=b.present_kv_cache_capacity_bound,
        past_kv_cache_capacity=0,
        kv_cache_bit_width=b.kv_cache_bit_width,
        k_quantization=b.k_quantization,
        v_quantization=b.v_quantization,
        is_windowed_kv_cache=b.is_windowed_kv_cache,
        do_rotary=b.do_rotary,
        is_packed_qkv=b.is_packed_qkv,
        use_qk_norm=b.use_qk_norm,
        requires_separate_past_buffer=False,
    )


def _aggregate_route(b: Bounds, route: str, query: int, *, first: bool) -> Sized:
    limit = {"memory_efficient": 1024, "unfused": INT32_MAX}.get(route, 256)
    head_size = min(b.head_size_bound, limit) // 8 * 8
    p = _aggregate_problem(b, head_size, query, first=first)
    mode = "flash" if route == "flash_fast_decode" else route
    prepared = preparation(p, mode, fast_decode=route == "flash_fast_decode")
    if np.any(prepared.status != OK):
        return prepared
    total = np.zeros(1, object) + p.effective_capacity
    if route == "memory_efficient":
        return joined(prepared, memory_efficient(p))
    if route == "unfused":
        return joined(prepared, unfused(p, total))
    launch = Launch(
        backend="flash",
        preprocess_mode="flash",
        preparation_fast_decode=route == "flash_fast_decode",
        fast_decode=route == "flash_fast_decode",
        total_sequence_length=total,
        local_window_size=b.local_window_size if b.local_window_size > 0 else -1,
        multi_processor_count=b.multi_processor_count,
        device_major=b.device_major,
        device_minor=b.device_minor,
        kv_type="none",
        head_sink_storage="none",
    )
    return joined(prepared, flash(p, launch, structural=True))


def _aggregate_xqa(b: Bounds, head_size: int) -> Sized:
    """The XQA scratch with each rounding at its worst and as many sub-sequences as can be."""
    p = _aggregate_problem(b, head_size, 1, first=False)
    prepared = preparation(p, "xqa", fast_decode=False)
    if np.any(prepared.status != OK):
        return prepared
    sequences = p.batch_size * p.kv_num_heads
    count = np.maximum(sequences, b.multi_processor_count)
    vector = _xqa_vector_bytes(p)
    layout = Layout(1)
    layout.place(_al(4 * sequences, 128) + 127 + 256 * count + (vector - 1) + vector * count)
    _place_xqa_extras(p, b.xqa_head_sink_storage, layout)
    return joined(prepared, Checks(1).sized(layout))


# The ladder: which route a state takes.


@dataclass(frozen=True)
class Facts:
    """What the ladder reads, named as in the rows; the first three are per lane."""

    is_first_prompt: Lanes
    sequence_length: Lanes
    kv_sequence_length: Lanes
    element_type: str
    cache_type: str
    k_quant_type: str
    v_quant_type: str
    kv_scales_same_tensor: bool
    enable_xqa: bool
    is_unidirectional: bool
    has_attention_bias: bool
    device_major: int
    device_minor: int
    past_key_shared: bool
    past_value_shared: bool
    softcap: float
    use_qk_norm: bool
    smooth_softmax: bool
    has_head_sink: bool
    num_heads: int
    kv_num_heads: int
    head_size: int
    xqa_shared_memory_ok: bool
    local_window_size: int
    past_kv_format_bnsh: bool
    enable_cudnn_flash_attention: bool
    auto_enable_cudnn_flash_attention: bool
    cudnn_is_stable: bool
    cudnn_is_supported: bool
    disable_flash_attention: bool
    disable_flash_decode: bool
    disable_memory_efficient_attention: bool
    is_windowed_kv_cache: bool

    @property
    def quantised(self) -> bool:
        """K or V is."""
        return self.k_quant_type != "none" or self.v_quant_type != "none"

    @property
    def smooth(self) -> bool:
        """A head sink implies a smooth softmax."""
        return self.smooth_softmax or self.has_head_sink

    @property
    def both_shared(self) -> bool:
        """Past and present share one buffer, K and V alike."""
        return self.past_key_shared and self.past_value_shared


def ladder(f: Facts, revision: str) -> Lanes:
    """The index in `ROUTES` of the first rung that holds, per lane."""
    newest = {"older": False, "newest": True}[revision]
    no, yes = np.zeros(len(f.sequence_length), np.bool_), np.ones(len(f.sequence_length), np.bool_)
    if _hard_error(f, newest=newest):
        return np.full(len(yes), ERRORS)
    later = np.logical_not(f.is_first_prompt) & (f.kv_sequence_length > 0) & f.both_shared
    one = f.sequence_length == 1
    xqa_rung = later & one & (f.xqa_shared_memory_ok and xqa_core(f, newest=newest))
    cudnn_rung = yes & (cudnn_core(f) and f.cudnn_is_stable and f.cudnn_is_supported)
    flash_rung = yes & flash_core(f)
    fast = later & flash_rung & (not (f.disable_flash_decode or f.quantised or f.use_qk_norm))
    if newest:
        fast = no if f.is_windowed_kv_cache else fast & one
    mea_rung = yes & mea_core(f, newest=newest)
    rungs = {
        XQA: xqa_rung,
        CUDNN: cudnn_rung,
        FLASH_FAST_DECODE: fast,
        FLASH: flash_rung,
        MEMORY_EFFICIENT: mea_rung,
        UNFUSED: yes & _unfused_runs(f),
    }
    return np.select(list(rungs.values()), list(rungs), ERRORS)


def _hard_error(f: Facts, *, newest: bool) -> bool:
    """The checks before the ladder."""
    if f.has_attention_bias and (f.quantised or f.smooth):
        return True
    if newest:
        return f.is_windowed_kv_cache and not f.both_shared
    return f.past_key_shared != f.past_value_shared


def xqa_core(f: Facts, *, newest: bool) -> bool:
    """The single-token kernel, as far as static facts decide it."""
    return (
        f.enable_xqa
        and (f.is_unidirectional or not newest)
        and not f.has_attention_bias
        and f.device_major >= 8
        and f.softcap == 0
        and not (f.use_qk_norm and f.quantised)
        and (not f.smooth_softmax or f.has_head_sink)
        and (not f.quantised or _xqa_reads_cache(f, newest=newest))
        and _xqa_has_kernel(f.num_heads, f.kv_num_heads, f.head_size, quantised=f.quantised)
    )


def _xqa_reads_cache(f: Facts, *, newest: bool) -> bool:
    """Quantised caches: K and V both, of 8 bits, FP8 on 8.9 and from 9.0 on."""
    types = (f.k_quant_type, f.v_quant_type)
    if newest:
        scales = set(types) <= {"per_tensor", "per_channel"}
    else:
        scales = types == ("per_tensor",) * 2 and f.kv_scales_same_tensor and not f.has_head_sink
    fp8 = f.device_major >= 9 or (f.device_major, f.device_minor) == (8, 9)
    return scales and (f.cache_type == "int8" or (f.cache_type == "fp8" and fp8))


def cudnn_core(f: Facts) -> bool:
    """cuDNN, as far as static facts decide it."""
    return (
        not (f.has_attention_bias or f.quantised or f.smooth)
        and f.element_type == f.cache_type
        and f.softcap == 0
        and f.local_window_size == -1
        and f.past_kv_format_bnsh
        and (
            f.enable_cudnn_flash_attention
            or (f.auto_enable_cudnn_flash_attention and f.device_major >= 9)
        )
    )


def flash_core(f: Facts) -> bool:
    """Flash, as far as static facts decide it."""
    return (
        not (f.has_attention_bias or f.disable_flash_attention)
        and f.device_major >= 8
        and f.head_size % 8 == 0
        and f.head_size <= 256
        and f.num_heads % f.kv_num_heads == 0
    )


def mea_core(f: Facts, *, newest: bool) -> bool:
    """The memory-efficient kernel; the older ladder let quantised caches in."""
    oldest = (8, 0) if f.element_type == "bf16" else (5, 3)
    return (
        not (f.disable_memory_efficient_attention or f.has_attention_bias)
        and not (newest and f.quantised)
        and f.head_size % 8 == 0
        and f.head_size <= 1024
        and (f.device_major, f.device_minor) >= oldest
    )


def _unfused_runs(f: Facts) -> bool:
    """The last rung; with another cache type it is chosen and then fails."""
    return (
        not (f.quantised or f.smooth) and f.past_kv_format_bnsh and f.cache_type == f.element_type
    )


# Every state of an envelope.


class Block(NamedTuple):
    """Some states of an envelope: lengths, phase (an index in PHASES), and who is accepted."""

    batch: Lanes
    query: Lanes
    total: Lanes
    phase: Lanes
    accepted: Lanes


def classify(batch: Lanes, query: Lanes, total: Lanes) -> tuple[Lanes, Lanes]:
    """The phase by a total length that lives on the CPU, and whether the batch fits it."""
    phase = np.where(query == total, 0, np.where(query > 1, 1, 2))
    return phase, (phase != 1) | (batch == 1)


def blocks(envelope: Envelope) -> Iterator[Block]:
    """Walk the box of batch, query and total, `BLOCK_LANES` cells at a time."""
    ranges = (envelope.batch, envelope.query, envelope.total)
    shape = tuple(high - low + 1 for low, high in ranges)
    cells = math.prod(shape)
    for start in range(0, cells, BLOCK_LANES):
        cell = np.arange(start, min(start + BLOCK_LANES, cells), dtype=np.int64)
        axes = np.unravel_index(cell, shape)
        batch, query, total = (axis + low for axis, (low, _) in zip(axes, ranges, strict=True))
        admitted = (query <= total) | envelope.allow_query_above_total
        batch, query, total = batch[admitted], query[admitted], total[admitted]
        if len(batch):
            yield Block(batch, query, total, *classify(batch, query, total))


def _problem(node: Node, envelope: Envelope, block: Block, *, one_aliased: bool) -> Problem:
    windowed, past = node.is_windowed_kv_cache, envelope.past_capacity
    return Problem(
        batch_size=block.batch,
        sequence_length=block.query,
        is_first_prompt=block.query == block.total,
        qkv_element_size=2,
        cache_element_size=node.cache_element_size,
        num_heads=node.num_heads,
        kv_num_heads=node.kv_num_heads,
        head_size=node.head_size,
        present_kv_cache_capacity=node.local_window_size
        if windowed
        else max(past, envelope.total[1]),
        past_kv_cache_capacity=past,
        kv_cache_bit_width=node.kv_cache_bit_width,
        k_quantization=node.k_quantization,
        v_quantization=node.v_quantization,
        is_windowed_kv_cache=windowed,
        do_rotary=node.do_rotary,
        is_packed_qkv=node.is_packed_qkv,
        use_qk_norm=node.use_qk_norm,
        requires_separate_past_buffer=one_aliased and not windowed,
    )


def _launch(node: Node, device: Device, route: int, total: Lanes) -> Launch:
    fast = route == FLASH_FAST_DECODE
    backend = "flash" if fast else ROUTES[route]
    return Launch(
        backend=backend,
        preprocess_mode=backend,
        preparation_fast_decode=fast,
        fast_decode=fast,
        total_sequence_length=total,
        local_window_size=node.local_window_size,
        multi_processor_count=device.sms,
        device_major=device.major,
        device_minor=device.minor,
        kv_type=node.cache_type if node.quantised else "none",
        head_sink_storage=node.head_sink_storage,
    )


def _facts(node: Node, device: Device, options: Options, block: Block, run: Run) -> Facts:
    return Facts(
        is_first_prompt=block.query == block.total,
        sequence_length=block.query,
        kv_sequence_length=block.query,
        element_type=node.element_type,
        cache_type=node.cache_type,
        k_quant_type=node.k_quantization,
        v_quant_type=node.v_quantization,
        kv_scales_same_tensor=node.kv_scales_same_tensor,
        enable_xqa=options.enable_xqa,
        is_unidirectional=node.is_unidirectional,
        has_attention_bias=node.has_attention_bias,
        device_major=device.major,
        device_minor=device.minor,
        softcap=node.softcap,
        use_qk_norm=node.use_qk_norm,
        smooth_softmax=node.smooth_softmax,
        has_head_sink=node.has_head_sink,
        num_heads=node.num_heads,
        kv_num_heads=node.kv_num_heads,
        head_size=node.head_size,
        local_window_size=node.local_window_size,
        past_kv_format_bnsh=True,
        enable_cudnn_flash_attention=options.cudnn == "on",
        auto_enable_cudnn_flash_attention=options.cudnn == "auto",
        disable_flash_attention=options.disable_flash,
        disable_flash_decode=options.disable_flash_decode,
        disable_memory_efficient_attention=options.disable_mea,
        is_windowed_kv_cache=node.is_windowed_kv_cache,
        **run._asdict(),
    )


class Run(NamedTuple):
    """The run-time facts that are no lengths: which buffers are shared, what the probes say."""

    past_key_shared: bool
    past_value_shared: bool
    xqa_shared_memory_ok: bool
    cudnn_is_stable: bool
    cudnn_is_supported: bool

    @property
    def alias(self) -> str:
        """How many of the two past/present pairs are one buffer, in words."""
        return ("none", "one", "both")[self.past_key_shared + self.past_value_shared]


RUNS = tuple(Run(*bits) for bits in itertools.product((False, True), repeat=5))


def brute(
    node: Node, device: Device, options: Options, envelope: Envelope, revision: str
) -> dict[Key, Maximum]:
    """The maximum of every (phase, route, alias) that some state of the envelope reaches."""
    _no_int64_overflow(node, device, envelope)
    best: dict[Key, Maximum] = {}
    for block in blocks(envelope):
        sized: dict[tuple[int, bool], Sized] = {}
        for run in RUNS:
            route = ladder(_facts(node, device, options, block, run), revision)
            route = np.where(block.accepted, route, ERRORS)
            outcome = block.phase * len(ROUTES) + route
            for code in np.flatnonzero(np.bincount(outcome)):
                phase, taken = divmod(int(code), len(ROUTES))
                one_aliased = run.alias == "one"
                if (taken, one_aliased) not in sized:
                    problem = _problem(node, envelope, block, one_aliased=one_aliased)
                    launch = _launch(node, device, taken, block.total)
                    sized[taken, one_aliased] = _size(problem, launch)
                key = (PHASES[phase], ROUTES[taken], run.alias)
                lanes = np.flatnonzero(outcome == code)
                here = _maximum(sized[taken, one_aliased], lanes, block, run)
                best[key] = _larger(best.get(key), here, numbered=taken not in {CUDNN, ERRORS})
    return best


def unfused_over(node: Node, envelope: Envelope, phase: str, alias: str) -> Maximum | None:
    """The maximum of the unfused recipe over the states of a phase, whatever route they take.

    The classifier's errors (a chunk of several batches) are no states of the phase. None if none
    is.
    """
    device = Device(0, 0, 1)  # the recipe reads none
    _no_int64_overflow(node, device, envelope)
    best: Maximum | None = None
    for block in blocks(envelope):
        lanes = np.flatnonzero(block.accepted & (block.phase == PHASES.index(phase)))
        if len(lanes):
            problem = _problem(node, envelope, block, one_aliased=alias == "one")
            sized = complete(problem, _launch(node, device, UNFUSED, block.total))
            run = next(run for run in RUNS if run.alias == alias)
            best = _larger(best, _maximum(sized, lanes, block, run))
    return best


def _size(problem: Problem, launch: Launch) -> Sized:
    if launch.backend in {"cudnn", "errors"}:
        nothing = np.zeros(problem.lanes, np.int64)
        return Sized(nothing, nothing)
    return complete(problem, launch)


def _maximum(sized: Sized, lanes: Lanes, block: Block, run: Run) -> Maximum:
    """The maximum over the `lanes` of one block."""

    def state(lane: int) -> State:
        lengths = (int(axis[lane]) for axis in (block.batch, block.query, block.total))
        return State(*lengths, *run)

    failing = lanes[sized.status[lanes] != OK]
    if len(failing):
        return Maximum(None, state(failing[0]), state(failing[0]))
    most = lanes[np.argmax(sized.bytes[lanes])]
    return Maximum(int(sized.bytes[most]), state(most))


def _larger(before: Maximum | None, here: Maximum, *, numbered: bool = True) -> Maximum:
    """Two maxima as one: a failure stays one, the first of equals is kept."""
    if before is None:
        return here if numbered else replace(here, bytes=None)
    if before.bytes is None:
        return before
    if here.bytes is None or here.bytes > before.bytes:
        return here
    return before


def _no_int64_overflow(node: Node, device: Device, envelope: Envelope) -> None:
    """Refuse an envelope whose sizes could leave int64, where NumPy would wrap silently."""
    batch, query, total = (high for _, high in (envelope.batch, envelope.query, envelope.total))
    rows = batch * max(node.num_heads, node.kv_num_heads) * (node.head_size + 32)
    tokens = query + total + envelope.past_capacity + max(node.local_window_size, 0)
    flash_most = 4 * 130 * rows * query
    caches = 64 * rows * tokens
    scores = 16 * batch * node.num_heads * query * total
    xqa_most = 128 * (node.head_size + 32) * (rows + device.sms)
    if flash_most + caches + scores + xqa_most >= 2**62:
        raise ValueError("too large for int64")
    if min(envelope.batch[0], envelope.query[0], envelope.total[0]) < 1:
        raise ValueError("lengths are positive")


# Random small cases.


class Case(NamedTuple):
    """The arguments of `brute`, less the revision."""

    node: Node
    device: Device
    options: Options
    envelope: Envelope


def random_case(rng: np.random.Generator) -> Case:
    """A small case, of a few thousand states, that is often on an edge of some rule."""
    node = _random_node(rng)
    return Case(node, _random_device(rng), _random_options(rng), _random_envelope(rng))


def _one_of(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _chance(rng: np.random.Generator, probability: float) -> bool:
    return bool(rng.random() < probability)


def _random_cache(rng: np.random.Generator, element_type: str) -> dict[str, Any]:
    """Mostly a cache of the element type or a well-formed quantised one."""
    if _chance(rng, 0.55):
        other = _one_of(rng, "fp16", "bf16")
        cache_type = other if _chance(rng, 0.1) else element_type
        return {"cache_type": cache_type, "cache_element_size": 2}
    cache_type, bits = _one_of(
        rng, ("int8", 8), ("int8", 8), ("fp8", 8), ("fp8", 8), ("uint8", 4), ("int8", 4), ("fp8", 4)
    )
    k = _one_of(rng, "per_tensor", "per_tensor", "per_channel")
    v = _one_of(rng, "per_tensor", "per_channel") if _chance(rng, 0.3) else k
    if _chance(rng, 0.1):
        v = "none"
    return {
        "cache_type": cache_type,
        "cache_element_size": 1,
        "kv_cache_bit_width": 0 if _chance(rng, 0.1) else bits,
        "k_quantization": k,
        "v_quantization": v,
        "kv_scales_same_tensor": _chance(rng, 0.7),
    }


def _random_node(rng: np.random.Generator) -> Node:
    element_type = _one_of(rng, "fp16", "bf16")
    kv_heads = _one_of(rng, 1, 2, 3, 4, 8)
    group = _one_of(rng, 1, 2, 3, 4, 4, 4, 5, 8, 8, 8, 16, 32)
    usual_head = _one_of(rng, 64, 64, 96, 128, 128, 256)
    windowed = _chance(rng, 0.25)
    window = _one_of(rng, 1, 16, 40, 64, 127, 200, 300)
    return Node(
        element_type=element_type,
        **_random_cache(rng, element_type),
        num_heads=kv_heads * group,
        kv_num_heads=kv_heads,
        head_size=usual_head if _chance(rng, 0.8) else _one_of(rng, 8, 12, 24, 80, 264, 512, 1032),
        do_rotary=_chance(rng, 0.5),
        is_packed_qkv=_chance(rng, 0.3),
        use_qk_norm=_chance(rng, 0.15),
        is_windowed_kv_cache=windowed,
        local_window_size=window if windowed or _chance(rng, 0.25) else -1,
        softcap=30.0 if _chance(rng, 0.1) else 0.0,
        smooth_softmax=_chance(rng, 0.1),
        head_sink_storage=_one_of(rng, "dynamic_conversion", "prepacked_fp32")
        if _chance(rng, 0.2)
        else "none",
        has_attention_bias=_chance(rng, 0.05),
        is_unidirectional=_chance(rng, 0.9),
    )


def _random_device(rng: np.random.Generator) -> Device:
    major, minor = _one_of(
        rng, (5, 2), (7, 5), (8, 0), (8, 0), (8, 6), (8, 9), (8, 9), (9, 0), (9, 0), (12, 0)
    )
    sms = int(rng.integers(1, 41)) if _chance(rng, 0.6) else _one_of(rng, 68, 82, 108, 132)
    return Device(major, minor, sms)


def _random_options(rng: np.random.Generator) -> Options:
    return Options(
        enable_xqa=_chance(rng, 0.8),
        cudnn=_one_of(rng, "off", "off", "on", "auto"),
        disable_flash=_chance(rng, 0.25),
        disable_flash_decode=_chance(rng, 0.2),
        disable_mea=_chance(rng, 0.35),
    )


def _random_range(rng: np.random.Generator, low: int, high: int, most: int) -> Range:
    start = int(rng.integers(low, high + 1))
    return start, min(high, start + int(rng.integers(most)))


def _random_envelope(rng: np.random.Generator) -> Envelope:
    """Queries often from 1 on, and totals often from about there on, which gives first prompts."""
    query = (1, _one_of(rng, 1, 2, 40, 65))
    if _chance(rng, 0.3):
        query = _random_range(rng, 1, 150, 40)
    batch = (1, 1) if _chance(rng, 0.4) else _random_range(rng, 1, 6, 4)
    width = max(1, 6000 // ((query[1] - query[0] + 1) * (batch[1] - batch[0] + 1)))
    start = (
        query[0] + int(rng.integers(9)) if _chance(rng, 0.6) else int(rng.integers(query[0], 601))
    )
    total = (start, min(600, start + int(rng.integers(width))))
    capacity = _one_of(rng, 0, total[0], total[1], total[1] + 77, 256, 1024)
    return Envelope(batch, query, total, capacity, allow_query_above_total=_chance(rng, 0.2))
