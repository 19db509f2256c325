"""The tensors of one launch: seeded contents on the host, and fresh copies of them on a device.

Kernels change the cache, so every execution gets its own copy. Where past and present share a
buffer they really do: both are views of the same bytes, each with its own capacity. What no kernel
may read (rows of the cache that hold nothing, the present before it is written) is poison.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.backends import Backend
from routeproof.kernels_ref.namespace import Array, Namespace

from .launch import Launch

__all__ = ["Bound", "Tensors", "bind", "draw", "past_length"]

QK_NORM_EPSILON = 1e-6  # the operator's default
_HOST = cast("Namespace", np)


@dataclass(frozen=True, slots=True)
class Tensors:
    """Contents on the host. Q, K, V (B, S, heads, D), tables and weights in element storage.

    `lengths` (B,) int32 are total lengths, new tokens included; `past_key` and `past_value` (B,
    Nk, P, row) bytes of which the first tokens are valid; scales float32, one or (Nk, 1, D);
    `bias` (1 or B, 1 or N, S, T).
    """

    lengths: Array
    query: Array
    key: Array
    value: Array
    past_key: Array
    past_value: Array
    cosines: Array
    sines: Array
    q_weight: Array
    k_weight: Array
    k_scale: Array
    v_scale: Array
    sink: Array
    bias: Array


@dataclass(frozen=True, slots=True)
class Bound:
    """The same on a device, ready to be changed; `packed` (B, S, N + 2 Nk, D) replaces Q, K and V.

    `past_key` and `present_key` (B, Nk, capacity, row) may lie in one buffer, as may the values.
    """

    launch: Launch
    xp: Namespace
    given: Tensors
    packed: Array | None
    past_key: Array
    past_value: Array
    present_key: Array
    present_value: Array
    output: Array


def past_length(launch: Launch, lengths: Array) -> Array:
    """Tokens of each sequence before this launch (B,); a padded prompt has none."""
    past: Array = np.maximum(lengths - launch.tokens, 0)
    return past


def draw(launch: Launch, seed: int) -> Tensors:
    """Random contents, in the range of every format and large enough to tell keys apart."""
    chance = np.random.default_rng(seed)
    shape = (launch.batch, launch.tokens)

    def stored(*extents: int, sizes: Array | float = 1.0) -> Array:
        values = (chance.standard_normal(extents) * sizes).astype(np.float32)
        return formats.encode(_HOST, values, launch.element)

    lengths = _lengths(launch, chance)
    scales = {
        "k": _scale(launch, launch.k_scales, chance),
        "v": _scale(launch, launch.v_scales, chance),
    }
    pasts = {
        name: _past(launch, past_length(launch, lengths), scale, chance)
        for name, scale in scales.items()
    }
    angles = chance.uniform(0.0, 2 * np.pi, (launch.total, launch.head_size // 2))
    turns = [part(angles).astype(np.float32) for part in (np.cos, np.sin)]
    cosines, sines = (formats.encode(_HOST, turn, launch.element) for turn in turns)
    bias = (int(chance.choice([1, launch.batch])), int(chance.choice([1, launch.heads])))
    return Tensors(
        lengths=lengths,
        query=stored(*shape, launch.heads, launch.head_size, sizes=_query_sizes(launch, chance)),
        key=stored(*shape, launch.kv_heads, launch.head_size),
        value=stored(*shape, launch.kv_heads, launch.head_size),
        past_key=pasts["k"],
        past_value=pasts["v"],
        cosines=cosines,
        sines=sines,
        q_weight=stored(launch.head_size),
        k_weight=stored(launch.head_size),
        k_scale=scales["k"],
        v_scale=scales["v"],
        sink=stored(launch.heads),
        bias=stored(*bias, launch.tokens, launch.total) if launch.bias else stored(0),
    )


def _query_sizes(launch: Launch, chance: np.random.Generator) -> Array:
    """The size of each token's Q (B, S, 1, 1): now and then tiny, or so large that exp overflows.

    Tiny ones tell an epsilon of QK-norm apart. Large ones only where Q and K are read as they are:
    a rounding of either would show in the output.
    """
    exact = not (launch.qk_norm or launch.rotary or launch.quantized)
    choices = [1.0, 1.0, 1.0, 2.0**-10 if launch.qk_norm else 32.0 if exact else 1.0]
    return chance.choice(choices, (launch.batch, launch.tokens, 1, 1))


def _lengths(launch: Launch, chance: np.random.Generator) -> Array:
    """Total lengths: one sequence is the longest, the others at most as long."""
    whole = np.full(launch.batch, launch.total, np.int32)
    can_vary = launch.first_prompt or launch.tokens == 1
    if launch.batch == 1 or not can_vary:
        return whole
    shorter = chance.integers(1, launch.total + 1, launch.batch).astype(np.int32)
    shorter[chance.integers(launch.batch)] = launch.total
    return shorter


def _scale(launch: Launch, kind: str, chance: np.random.Generator) -> Array:
    """Scales for which values up to about 4 fill the range of the cache."""
    if kind == "none":
        return np.ones(1, np.float32)
    shape = (1,) if kind == "per_tensor" else (launch.kv_heads, 1, launch.head_size)
    levels = {"int8": 127.0, "int4": 7.0, "fp8": 448.0}[launch.cache]
    return (chance.uniform(3.0, 5.0, shape) / levels).astype(np.float32)


def _past(launch: Launch, past: Array, scale: Array, chance: np.random.Generator) -> Array:
    """Rows of the past: valid ones first, poison behind them."""
    shape = (launch.batch, launch.kv_heads, launch.past_capacity, launch.head_size)
    values = chance.standard_normal(shape).astype(np.float32)
    rows = formats.pack(_HOST, values, launch.cache, scale)
    for one, length in enumerate(past):
        rows[one, :, length:] = 0xFF
    return rows


def bind(launch: Launch, tensors: Tensors, backend: Backend, poison: int) -> Bound:
    """Copies on the device; what is not written yet is poison."""
    xp = backend.xp
    given = Tensors(
        **{name: xp.asarray(getattr(tensors, name).copy()) for name in Tensors.__dataclass_fields__}
    )
    packed = None
    if launch.packed:
        packed = xp.concatenate([given.query, given.key, given.value], axis=2)
        for part in (given.query, given.key, given.value):
            part.view("uint8")[...] = poison  # the operator has no such inputs
    past_key, present_key = _cache(launch, xp, given.past_key, launch.shares_key, poison)
    past_value, present_value = _cache(launch, xp, given.past_value, launch.shares_value, poison)
    output = xp.full(tensors.query.shape, 0, launch.storage.storage)
    return Bound(
        launch, xp, given, packed, past_key, past_value, present_key, present_value, output
    )


def _cache(
    launch: Launch, xp: Namespace, past: Array, shares: bool, poison: int
) -> tuple[Array, Array]:
    """Past and present, in one buffer where they share it: each starts where the buffer starts."""
    shape = (launch.batch, launch.kv_heads, launch.capacity, launch.row)
    if not shares:
        return past, xp.full(shape, poison, "uint8")
    buffer = xp.full(max(prod(shape), prod(past.shape)), poison, "uint8")
    buffer[: prod(past.shape)] = past.reshape(-1)
    return buffer[: prod(past.shape)].reshape(past.shape), buffer[: prod(shape)].reshape(shape)
