"""Attention tile by tile: some queries against some keys, and the running softmax over them.

Arrays are float32. A tile is what a GPU kernel holds in registers and shared memory: these
temporaries are no workspace, and no larger than the queries of one loop times one block of keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.namespace import Array, Namespace

from .preparation import Prepared
from .tensors import Bound

__all__ = ["Attention", "Running", "Source", "cache_source", "grouped", "mask", "stored_source"]

_LOWEST = -3.0e38


@dataclass(frozen=True, slots=True)
class Source:
    """Keys and values (B, heads, tokens, D) of a stretch of tokens, zero where there are none."""

    keys: Callable[[int, int], Array]
    values: Callable[[int, int], Array]


def cache_source(bound: Bound, prepared: Prepared, k_scale: Array, v_scale: Array) -> Source:
    """K and V read from the cache's rows, by a scale each."""

    def read(rows: Array, scale: Array) -> Callable[[int, int], Array]:
        def tile(start: int, end: int) -> Array:
            part = rows[:, :, start:end]
            values = formats.unpack(bound.xp, part, bound.launch.cache, scale)
            return _cleared(bound.xp, values, start, prepared.valid)

        return tile

    return Source(read(prepared.keys, k_scale), read(prepared.values, v_scale))


def stored_source(bound: Bound, keys: Array, values: Array, valid: Array) -> Source:
    """K and V read from scratch (B, heads, tokens, D) in element storage."""

    def read(stored: Array) -> Callable[[int, int], Array]:
        def tile(start: int, end: int) -> Array:
            part = formats.decode(bound.xp, stored[:, :, start:end], bound.launch.element)
            return _cleared(bound.xp, part, start, valid)

        return tile

    return Source(read(keys), read(values))


def _cleared(xp: Namespace, values: Array, start: int, valid: Array) -> Array:
    """Zero behind the valid tokens: what lies there need not be a number."""
    places = xp.arange(start, start + values.shape[2], dtype="int32")
    return xp.where((places[None, :] < valid[:, None])[:, None, :, None], values, 0.0)


def grouped(bound: Bound, query: Array, kv_heads: int) -> Array:
    """Queries (B, S, N, D) in storage as float32 (B, KV heads, group, S, D)."""
    values = formats.decode(bound.xp, query, bound.launch.element).transpose(0, 2, 1, 3)
    batch, heads, tokens, size = values.shape
    return values.reshape(batch, kv_heads, heads // kv_heads, tokens, size)


def scores(bound: Bound, query: Array, keys: Array) -> Array:
    """Scaled and capped products (B, KV heads, group, queries, keys)."""
    launch = bound.launch
    products = bound.xp.matmul(query, keys[:, :, None].transpose(0, 1, 2, 4, 3))
    found: Array = products * (1.0 / sqrt(launch.head_size))
    return bound.xp.tanh(found / launch.softcap) * launch.softcap if launch.softcap else found


def mask(
    bound: Bound, prepared: Prepared, queries: tuple[int, int], keys: tuple[int, int]
) -> Array:
    """Which keys each query sees (B, 1, 1, queries, keys), by their places in the cache."""
    rows = bound.xp.arange(*queries, dtype="int32")
    place = bound.xp.arange(*keys, dtype="int32")[None, None, :]
    own = (prepared.before[:, None] + rows[None, :])[:, :, None]
    seen = place < prepared.valid[:, None, None]
    if bound.launch.causal:
        seen = seen & (place <= own)
    if bound.launch.window > 0:
        seen = seen & (place > own - bound.launch.window)
    return seen[:, None, None]


@dataclass(slots=True)
class Running:
    """A softmax in progress over (..., queries): row maxima, row sums, and weighted values."""

    highest: Array
    total: Array
    values: Array

    def see(self, xp: Namespace, found: Array, seen: Array, values: Array) -> None:
        """One more tile: scores, which of them count, and the tile's values (B, heads, keys, D)."""
        found = xp.where(seen, found, _LOWEST)
        highest = xp.maximum(self.highest, found.max(axis=-1))
        weights = xp.where(seen, xp.exp(found - highest[..., None]), 0.0)
        before = xp.exp(self.highest - highest)
        self.total = self.total * before + weights.sum(axis=-1)
        self.values[...] = self.values * before[..., None] + xp.matmul(weights, values[:, :, None])
        self.highest = highest

    def partial(self, xp: Namespace) -> Array:
        """The values over what was seen; zero where nothing was."""
        found: Array = self.values / xp.where(self.total > 0, self.total, 1.0)[..., None]
        return found

    def log_sum_exp(self, xp: Namespace) -> Array:
        """The logarithm of the sum of exponentials; minus infinity where nothing was seen."""
        some = self.total > 0
        return xp.where(some, self.highest + xp.log(xp.where(some, self.total, 1.0)), -float("inf"))


@dataclass(frozen=True, slots=True)
class Attention:
    """One attention: queries (B, KV heads, group, S, D), where its K and V are read, its sinks.

    `sinks` is what each head adds to the softmax's denominator, as a score (KV heads, group, 1).
    """

    bound: Bound
    prepared: Prepared
    source: Source
    query: Array
    sinks: Array | None

    @classmethod
    def over(cls, bound: Bound, prepared: Prepared, source: Source, kv_heads: int) -> Attention:
        """Queries by the heads that K and V are read by."""
        launch, xp = bound.launch, bound.xp
        shape = (kv_heads, launch.heads // kv_heads, 1)
        sinks = None
        if launch.sink != "none":
            sinks = formats.decode(xp, bound.given.sink, launch.element).reshape(shape)
        elif launch.smooth:
            sinks = xp.zeros(shape, "float32")
        return cls(bound, prepared, source, grouped(bound, prepared.query, kv_heads), sinks)

    def start(self, queries: tuple[int, int], into: Array | None = None) -> Running:
        """Nothing seen yet; weighted values accumulate in `into`, if not in registers."""
        xp, part = self.bound.xp, self.query[..., queries[0] : queries[1], :]
        values = xp.zeros(part.shape, "float32") if into is None else into
        values[...] = 0.0
        shape = part.shape[:-1]
        return Running(xp.full(shape, _LOWEST, "float32"), xp.zeros(shape, "float32"), values)

    def see(self, running: Running, queries: tuple[int, int], keys: tuple[int, int]) -> None:
        """One more tile of keys."""
        found = scores(
            self.bound, self.query[..., queries[0] : queries[1], :], self.source.keys(*keys)
        )
        seen = mask(self.bound, self.prepared, queries, keys)
        running.see(self.bound.xp, found, seen, self.source.values(*keys))

    def finished(self, running: Running) -> Array:
        """The output (B, queries, N, D) in storage, sinks in the denominator."""
        xp, launch = self.bound.xp, self.bound.launch
        values = running.partial(xp)
        if self.sinks is not None:
            highest = xp.maximum(running.highest, self.sinks)
            scale = xp.exp(running.highest - highest)
            total = running.total * scale + xp.exp(self.sinks - highest)
            values = running.values * (scale / total)[..., None]
        batch, kv_heads, group, tokens, size = values.shape
        rows = values.reshape(batch, kv_heads * group, tokens, size).transpose(0, 2, 1, 3)
        return formats.encode(xp, rows, launch.element)
