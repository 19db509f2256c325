"""The memory-efficient route: a running softmax over K and V expanded to every query head.

Follows `EfficientAttention` in `onnxruntime/contrib_ops/cuda/bert/group_query_attention_impl.cu`
and CUTLASS's `kernel_forward.h`: outputs wider than 128 do not fit in registers and accumulate in
float32 scratch. The cache is expanded over its whole capacity, however few tokens are valid.
"""

from __future__ import annotations

from routeproof.kernels_ref.arena import Arena, Part
from routeproof.kernels_ref.formats import FP32
from routeproof.kernels_ref.namespace import Array

from . import tiles
from .launch import Launch
from .preparation import Prepared
from .tensors import Bound

__all__ = ["attend", "carve"]

_QUERIES = 64
_KEYS = 128
_REGISTERS = 128  # columns of output that a block keeps to itself


def carve(arena: Arena, launch: Launch) -> list[Array]:
    """Expanded K and V where heads share them, and the accumulator of wide outputs."""
    found: list[Array] = []
    if launch.group > 1:
        shape = (launch.batch, launch.heads, launch.visible, launch.head_size)
        for name in ("expanded_key", "expanded_value"):
            found += arena.carve(name, Part(name, shape, launch.storage))
    if launch.head_size > _REGISTERS:
        shape = (launch.batch, launch.tokens, launch.heads, launch.head_size)
        found += arena.carve("output_accumulator", Part("outputs", shape, FP32))
    return found


def attend(bound: Bound, prepared: Prepared, arena: Arena, scratch: list[Array]) -> None:
    """Every block of queries against all keys, head by head."""
    launch = bound.launch
    attention = tiles.Attention.over(
        bound, prepared, _source(bound, prepared, scratch), launch.heads
    )
    longest = int(prepared.valid.max())
    for start in range(0, launch.tokens, _QUERIES):
        rows = (start, min(start + _QUERIES, launch.tokens))
        into = None
        if launch.head_size > _REGISTERS:
            into = scratch[-1][:, rows[0] : rows[1]].transpose(0, 2, 1, 3)[:, :, None]
        running = attention.start(rows, into)
        for first in range(0, longest, _KEYS):
            attention.see(running, rows, (first, min(first + _KEYS, longest)))
        bound.output[:, rows[0] : rows[1]] = attention.finished(running)
    for name in ("expanded_key", "expanded_value") if launch.group > 1 else ():
        arena.release(name)


def _source(bound: Bound, prepared: Prepared, scratch: list[Array]) -> tiles.Source:
    """K and V by query heads: expanded where heads share them, else as the cache has them."""
    launch, given = bound.launch, bound.given
    if launch.group == 1:
        return tiles.cache_source(bound, prepared, given.k_scale, given.v_scale)
    for expanded, rows in zip(scratch[:2], (prepared.keys, prepared.values), strict=True):
        stored = bound.xp.ascontiguousarray(rows).view(launch.storage.storage)
        expanded[...] = bound.xp.repeat(stored, launch.group, axis=1)
    return tiles.stored_source(bound, scratch[0], scratch[1], prepared.valid)
