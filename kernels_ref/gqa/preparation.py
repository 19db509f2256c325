"""What happens before and beside the attention: lengths, staging, preserved past, Q, K and V.

Follows the launch sequence of `onnxruntime/contrib_ops/cuda/bert/group_query_attention_impl.cu`
(the revision with windowed caches): GetSequenceLengths, CompactKvCacheRows, CopyKvCacheRows,
PrepareQKV and the fused unpack, QK-norm, rotary, quantise and append. A row counts its own valid
tokens, so that padding is never appended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.arena import Arena, Part
from routeproof.kernels_ref.formats import BYTES, INT32
from routeproof.kernels_ref.namespace import Array

from .launch import Launch
from .tensors import QK_NORM_EPSILON, Bound

__all__ = ["Prepared", "Scratch", "carve", "finish", "new_tokens", "prepare"]


_VECTORS = ("past", "total", "padded", "cache_past", "cache_total", "evicted")


@dataclass(slots=True)
class Scratch:
    """The regions of preparation, empty where the launch has none."""

    past: list[Array] = field(default_factory=list)
    staged: list[Array] = field(default_factory=list)
    compaction: list[Array] = field(default_factory=list)
    lengths: list[Array] = field(default_factory=list)
    qkv: list[Array] = field(default_factory=list)


@dataclass(slots=True)
class Prepared:
    """What a route's attention reads.

    `query` (B, S, N, D) in element storage; `keys` and `values` (B, Nk, visible, row) the cache
    that attention sees, with `valid` (B,) tokens of which the first `before` (B,) were there
    already; `position` is the absolute position of the first new token.
    """

    query: Array
    keys: Array
    values: Array
    valid: Array
    before: Array
    scratch: Scratch


def carve(arena: Arena, launch: Launch) -> Scratch:
    """Ask for every region that preparation writes, in the order of their first use."""
    scratch = Scratch()

    def rows(name: str, tokens: int) -> Part:
        return Part(name, (launch.batch, launch.kv_heads, tokens, launch.row), BYTES)

    if launch.shares_key != launch.shares_value:
        scratch.past = arena.carve("separate_past", rows("past", launch.past_capacity))
    if launch.stages:
        for name in ("staged_key", "staged_value"):
            scratch.staged += arena.carve(name, rows(name, launch.capacity + launch.tokens))
    elif launch.windowed:
        halves = (rows("keys", launch.capacity), rows("values", launch.capacity))
        scratch.compaction = arena.carve("compaction", *halves)
    if not (launch.fast and launch.tokens == 1):
        vectors = _VECTORS if launch.windowed else _VECTORS[:3]
        parts = (Part(name, (launch.batch,), INT32) for name in vectors)
        scratch.lengths = arena.carve("sequence_lengths", *parts)
    if preprocessed := _preprocessed(launch):
        scratch.qkv = arena.carve("qkv_preprocess", *preprocessed)
    return scratch


def _preprocessed(launch: Launch) -> tuple[Part, ...]:
    """Q as attention reads it, and K and V where attention does not read the cache itself."""
    kind, size = launch.storage, launch.head_size
    query = Part("query", (launch.batch, launch.tokens, launch.heads, size), kind)
    new = (launch.batch, launch.tokens, launch.kv_heads, size)
    whole = (launch.batch, launch.kv_heads, launch.visible, size)
    changed = launch.rotary or launch.packed or launch.qk_norm
    if launch.route == "flash" and launch.quantized:
        if launch.first_prompt:
            return query, Part("key", new, kind), Part("value", new, kind)
        room = Part("room", (256,), BYTES, needed=False)
        return query, Part("key", whole, kind), Part("value", whole, kind), room
    if launch.route == "memory_efficient" and changed:
        unused = 2 if launch.packed else int(launch.rotary)
        names = ("key", "value")[:unused]
        return query, *(Part(name, new, kind, needed=False) for name in names)
    folds = launch.route == "xqa" and launch.k_scales == "per_channel"
    return (query,) if not launch.fast and (changed or folds) else ()


def prepare(bound: Bound, arena: Arena, scratch: Scratch) -> Prepared:
    """Bring the cache up to date and Q into the form that attention reads."""
    xp, launch, given = bound.xp, bound.launch, bound.given
    lengths = _lengths(bound, scratch)
    keys, values = _arranged(bound, arena, scratch, lengths)
    query, key, value = new_tokens(bound, lengths.past)
    new = (given.lengths - lengths.past).tolist()
    for cache, tokens, scale in ((keys, key, given.k_scale), (values, value, given.v_scale)):
        rows = formats.pack(xp, tokens.transpose(0, 2, 1, 3), launch.cache, scale)
        for one, (start, count) in enumerate(zip(lengths.before.tolist(), new, strict=True)):
            cache[one, :, start : start + count] = rows[one, :, :count]
    if launch.route == "xqa" and launch.k_scales == "per_channel":
        # The kernel takes one scale: those of the channels go into Q, each KV head's to its group.
        query = query * xp.repeat(given.k_scale.reshape(launch.kv_heads, -1), launch.group, axis=0)
    stored = formats.encode(xp, query, launch.element)
    if scratch.qkv:
        scratch.qkv[0][...] = stored
        stored = scratch.qkv[0]
    if launch.route == "flash" and launch.quantized and launch.first_prompt:
        scratch.qkv[1][...] = formats.encode(xp, key, launch.element)
        scratch.qkv[2][...] = formats.encode(xp, value, launch.element)
    return Prepared(stored, keys, values, lengths.valid, lengths.before, scratch)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Per row (B,): the past, and in the cache what is valid, there before, there at the start.

    `evicted` is what moves out of a windowed cache: before one token is appended, or after several
    were appended to the staged copy.
    """

    past: Array
    valid: Array
    before: Array
    resident: Array
    evicted: Array


def _lengths(bound: Bound, scratch: Scratch) -> _Lengths:
    """Fill the vectors; fast decode of one token has none, its past is the operator's input."""
    xp, launch, total = bound.xp, bound.launch, bound.given.lengths
    nothing = xp.zeros(launch.batch, "int32")
    past = xp.maximum(total - launch.tokens, 0)
    if not scratch.lengths:
        return _Lengths(past, total, past, past, nothing)
    stored_past, stored_total, padded, *cache = scratch.lengths
    stored_past[...], stored_total[...] = past, total
    padded[...] = launch.tokens if launch.first_prompt else 0
    if not launch.windowed:
        return _Lengths(stored_past, stored_total, stored_past, stored_past, nothing)
    before, valid, evicted = cache
    resident = xp.minimum(past, launch.capacity)
    evicted[...] = xp.maximum(resident + (total - past) - launch.capacity, 0)
    before[...] = resident if launch.stages else resident - evicted
    valid[...] = before + (total - past)
    return _Lengths(stored_past, valid, before, resident, evicted)


def _arranged(
    bound: Bound, arena: Arena, scratch: Scratch, lengths: _Lengths
) -> tuple[Array, Array]:
    """The cache that tokens are appended to: staged, compacted, in place, or copied together."""
    launch, present = bound.launch, [bound.present_key, bound.present_value]
    if launch.stages:
        for staged, cache in zip(scratch.staged, present, strict=True):
            for one, length in enumerate(lengths.resident.tolist()):
                staged[one, :, :length] = cache[one, :, :length]
        return scratch.staged[0], scratch.staged[1]
    if launch.windowed:
        _compact(arena, scratch.compaction, present, lengths)
    elif not launch.shared:
        _copy_past(bound, scratch)
        if scratch.past:
            arena.release("separate_past")
    return present[0], present[1]


def _compact(arena: Arena, scratch: list[Array], present: list[Array], lengths: _Lengths) -> None:
    """Move what stays to the front, by way of scratch: the rows overlap."""
    moves = list(zip(lengths.before.tolist(), lengths.evicted.tolist(), strict=True))
    if not any(length and by for length, by in moves):
        arena.excuse("compaction")
        arena.release("compaction")
        return
    for half, cache in zip(scratch, present, strict=True):
        for one, (length, by) in enumerate(moves):
            if by:
                half[one, :, :length] = cache[one, :, by : by + length]
                cache[one, :, :length] = half[one, :, :length]
    arena.release("compaction")


def _copy_past(bound: Bound, scratch: Scratch) -> None:
    """Clear the present and copy the past into it; a past in the same buffer is saved first."""
    launch = bound.launch
    pairs = (
        (launch.shares_key, bound.past_key, bound.present_key),
        (launch.shares_value, bound.past_value, bound.present_value),
    )
    for shares, past, present in pairs:
        source = preserve(past, scratch) if shares else past
        length = min(launch.past_capacity, launch.capacity)
        present[...] = 0
        present[:, :, :length] = source[:, :, :length]


def preserve(past: Array, scratch: Scratch) -> Array:
    """The past tensor, saved from the present that shares its buffer."""
    scratch.past[0][...] = past
    return scratch.past[0]


def new_tokens(bound: Bound, past: Array) -> tuple[Array, Array, Array]:
    """Q, K and V of the new tokens (B, S, heads, D) as float32: unpacked, normalised, rotated."""
    xp, launch, given = bound.xp, bound.launch, bound.given
    if bound.packed is None:
        parts = [given.query, given.key, given.value]
    else:
        ends = (launch.heads, launch.heads + launch.kv_heads)
        parts = [
            bound.packed[:, :, : ends[0]],
            bound.packed[:, :, ends[0] : ends[1]],
            bound.packed[:, :, ends[1] :],
        ]
    query, key, value = (formats.decode(xp, part, launch.element) for part in parts)
    if launch.qk_norm:
        query = _normalised(bound, query, given.q_weight)
        key = _normalised(bound, key, given.k_weight)
    if launch.rotary:
        query, key = (_rotated(bound, part, past) for part in (query, key))
    return query, key, value


def _normalised(bound: Bound, values: Array, weight: Array) -> Array:
    mean = (values * values).mean(axis=-1, keepdims=True)
    weights = formats.decode(bound.xp, weight, bound.launch.element)
    return values / bound.xp.sqrt(mean + QK_NORM_EPSILON) * weights


def _rotated(bound: Bound, values: Array, past: Array) -> Array:
    """The first half of each head turned against the second, by absolute position."""
    xp, launch = bound.xp, bound.launch
    steps = xp.arange(0, launch.tokens, dtype="int32")
    places = (past[:, None] + steps[None, :]).reshape(-1)
    cosine, sine = (
        formats.decode(xp, table, launch.element)[places].reshape(
            launch.batch, launch.tokens, 1, -1
        )
        for table in (bound.given.cosines, bound.given.sines)
    )
    half = launch.head_size // 2
    one, two = values[..., :half], values[..., half:]
    return xp.concatenate([one * cosine - two * sine, two * cosine + one * sine], axis=-1)


def finish(bound: Bound, arena: Arena, prepared: Prepared) -> None:
    """Copy what stays of a staged cache back: the last tokens, as many as the cache holds."""
    if not bound.launch.stages:
        return
    scratch = prepared.scratch
    valid, evicted = (vector.tolist() for vector in scratch.lengths[4:])
    for staged, cache in zip(scratch.staged, (bound.present_key, bound.present_value), strict=True):
        for one, (first, end) in enumerate(zip(evicted, valid, strict=True)):
            cache[one, :, : end - first] = staged[one, :, first:end]
    for name in ("staged_key", "staged_value"):
        arena.release(name)
