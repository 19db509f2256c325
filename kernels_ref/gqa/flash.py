"""Flash: a running softmax over blocks of keys, divided among splits where that fills the device.

Follows `onnxruntime/contrib_ops/cuda/bert/flash_attention/` (81fd9888): 64 queries and 256, 128 or
64 keys per block by head size, splits of whole blocks, partial outputs and their log-sum-exp in
float32, and a last pass that combines them. Fast decode is the same over the cache in place, with
splits chosen by KV heads; it rotates Q in registers. The number of splits is derived here on its
own, in NumPy's float32, and nothing of the recipe is read.
"""

from __future__ import annotations

import numpy as np

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.arena import Arena, Part
from routeproof.kernels_ref.formats import FP32
from routeproof.kernels_ref.namespace import Array

from . import tiles
from .launch import Launch
from .preparation import Prepared
from .tensors import Bound

__all__ = ["attend", "carve", "choose_splits", "splits"]

_QUERIES = 64
_MOST = 128
_LOWEST = -3.0e38
_COLUMNS = 32  # accumulators hold whole multiples of these


def _block(launch: Launch) -> int:
    """Keys per block."""
    return 256 if launch.head_size <= 64 else 128 if launch.head_size <= 128 else 64


def choose_splits(work: int, blocks: int, multiprocessors: int) -> int:
    """The fewest splits within 85 % of the best use of the device, by the launcher's arithmetic."""
    device = np.float32(multiprocessors)
    if np.float32(work) >= np.float32(0.8) * device:
        return 1
    most = min(_MOST, multiprocessors, blocks)
    use = {}
    for count in range(1, most + 1):
        if count == 1 or -(-blocks // count) != -(-blocks // (count - 1)):
            waves = np.float32(work * count) / device
            use[count] = waves / np.ceil(waves)
    enough = 0.85 * float(max(use.values(), default=np.float32(0)))
    return next((count for count, part in use.items() if float(part) >= enough), 1)


def splits(launch: Launch) -> int:
    """Into how many parts this launch divides its keys."""
    heads = launch.kv_heads if launch.fast else launch.heads
    length = launch.total
    if launch.fast and launch.window > 0:
        length = min(length, launch.window)
    if launch.windowed:
        length = min(length, launch.visible)
    work = launch.batch * heads * -(-launch.tokens // _QUERIES)
    return choose_splits(work, -(-length // _block(launch)), launch.multiprocessors)


def carve(arena: Arena, launch: Launch) -> list[Array]:
    """Log-sum-exp of every row; partial ones and partial outputs where there are several splits."""
    rows = (launch.batch, launch.heads, launch.tokens)
    found = arena.carve("softmax_lse", Part("lse", rows, FP32))
    count = splits(launch)
    if count > 1:
        wide = -(-launch.head_size // _COLUMNS) * _COLUMNS
        parts = Part("lse", (count, *rows), FP32)
        found += arena.carve("softmax_lse_accumulator", parts)
        parts = Part("outputs", (count, *rows, wide), FP32)
        found += arena.carve("output_accumulator", parts)
    return found


def attend(bound: Bound, prepared: Prepared, arena: Arena, scratch: list[Array]) -> None:
    """Every block of queries against the keys of every split, then the splits combined."""
    launch = bound.launch
    lse, *partial = scratch
    attention = tiles.Attention.over(bound, prepared, _source(bound, prepared), launch.kv_heads)
    count, block = splits(launch), _block(launch)
    longest = int(prepared.valid.max())
    blocks = -(-longest // block)
    each = -(-blocks // count)
    for start in range(0, launch.tokens, _QUERIES):
        rows = (start, min(start + _QUERIES, launch.tokens))
        for split in range(count):
            running = attention.start(rows)
            for one in range(split * each, min((split + 1) * each, blocks)):
                attention.see(running, rows, (one * block, min((one + 1) * block, longest)))
            if partial:
                _keep(bound, running, split, partial, rows)
                continue
            shares = running.log_sum_exp(bound.xp)
            lse[:, :, rows[0] : rows[1]] = shares.reshape(launch.batch, launch.heads, -1)
            bound.output[:, rows[0] : rows[1]] = attention.finished(running)
    if partial:
        _combine(attention, partial, lse)
        arena.release("softmax_lse_accumulator")
        arena.release("output_accumulator")


def _source(bound: Bound, prepared: Prepared) -> tiles.Source:
    """The cache itself, or what it was dequantised to, or a first prompt's own K and V."""
    xp, launch, given = bound.xp, bound.launch, bound.given
    if not launch.quantized:
        return tiles.cache_source(bound, prepared, given.k_scale, given.v_scale)
    _, keys, values = prepared.scratch.qkv
    if launch.first_prompt:
        new = (keys.transpose(0, 2, 1, 3), values.transpose(0, 2, 1, 3))
        return tiles.stored_source(bound, *new, given.lengths)
    for whole, rows, scale in (
        (keys, prepared.keys, given.k_scale),
        (values, prepared.values, given.v_scale),
    ):
        for one, length in enumerate(prepared.valid.tolist()):
            part = formats.unpack(xp, rows[one, :, :length], launch.cache, scale)
            whole[one, :, :length] = formats.encode(xp, part, launch.element)
    return tiles.stored_source(bound, keys, values, prepared.valid)


def _keep(
    bound: Bound, running: tiles.Running, split: int, partial: list[Array], rows: tuple[int, int]
) -> None:
    """A split's log-sum-exp and its output as if there were no other."""
    launch, part = bound.launch, slice(*rows)
    shape = (launch.batch, launch.heads, rows[1] - rows[0])
    partial[0][split, :, :, part] = running.log_sum_exp(bound.xp).reshape(shape)
    values = running.partial(bound.xp).reshape(*shape, launch.head_size)
    partial[1][split, :, :, part, : launch.head_size] = values


def _combine(attention: tiles.Attention, partial: list[Array], lse: Array) -> None:
    """Each split's output, weighted by its share of the whole sum."""
    bound = attention.bound
    xp, launch = bound.xp, bound.launch
    shares, outputs = partial
    highest = xp.maximum(shares.max(axis=0), _LOWEST)
    sinks = None if attention.sinks is None else attention.sinks.reshape(1, launch.heads, 1)
    if sinks is not None:
        highest = xp.maximum(highest, sinks)
    weights = xp.exp(shares - highest[None])
    total = weights.sum(axis=0)
    some = total > 0
    lse[...] = xp.where(some, highest + xp.log(xp.where(some, total, 1.0)), -float("inf"))
    if sinks is not None:
        total = total + xp.exp(sinks - highest)
    weights = weights / xp.where(total > 0, total, 1.0)[None]
    values = (weights[..., None] * outputs[..., : launch.head_size]).sum(axis=0)
    bound.output[...] = formats.encode(xp, values.transpose(0, 2, 1, 3), launch.element)
