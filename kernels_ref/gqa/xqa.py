"""XQA, for one new token: each sequence's cache is divided into stretches, one partial result each.

Follows `ExtremeDecoding` in `onnxruntime/contrib_ops/cuda/bert/group_query_attention_impl.cu` and
the multi-block mode of its XQA kernel: row maxima and row sums in float32 lines of 128 bytes, and
one tile of outputs in the element type per stretch. Scales of K's channels are folded into Q, those
of V's channels into the output.
"""

from __future__ import annotations

from dataclasses import replace

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.arena import Arena, Part
from routeproof.kernels_ref.formats import FP32, INT32
from routeproof.kernels_ref.namespace import Array

from . import tiles
from .launch import Launch
from .preparation import Prepared
from .tensors import Bound

__all__ = ["attend", "carve", "stretches", "tile_rows"]

_TILE = 256  # tokens of the cache
_LINE = 32  # float32 per row of maxima and sums
_LINES = 256  # transients end at a multiple of these bytes


def stretches(launch: Launch) -> int:
    """How many stretches of its cache each sequence is given: enough to occupy the device."""
    sequences = launch.batch * launch.kv_heads
    return min(max(1, launch.multiprocessors // sequences), -(-launch.capacity // _TILE))


def tile_rows(launch: Launch) -> int:
    """Query heads per tile: the group, rounded up to a size that kernels exist for."""
    return 8 if launch.group <= 8 else 16 if launch.group <= 16 else 32


def carve(arena: Arena, launch: Launch) -> list[Array]:
    """Counters, maxima, sums and outputs per stretch, then what a launch converts."""
    sequences = launch.batch * launch.kv_heads
    count = sequences * stretches(launch)
    parts, tile = (count, _LINE), (count, tile_rows(launch), launch.head_size)
    counters = Part("counters", (sequences,), INT32, needed=False)
    arena.carve("semaphore", counters)
    found = arena.carve("row_max", Part("maxima", parts, FP32), alignment=128)
    found += arena.carve("row_sum", Part("sums", parts, FP32), alignment=128)
    vector = tile[1] * tile[2] * launch.storage.size
    outputs = Part("outputs", tile, launch.storage)
    found += arena.carve("output_accumulator", outputs, alignment=vector, behind="row_max")
    if launch.rotary:
        for name, heads in (("rotary_q", launch.heads), ("rotary_k", launch.kv_heads)):
            shape = (launch.batch, heads, launch.head_size)
            unused = Part(name, shape, launch.storage, needed=False)
            arena.carve(name, unused, alignment=128, rounding=_LINES)
    if launch.sink == "dynamic_conversion":
        sinks = Part("sinks", (launch.heads,), FP32)
        found += arena.carve("dynamic_head_sink", sinks, alignment=128, rounding=_LINES)
    return found


def attend(bound: Bound, prepared: Prepared, arena: Arena, scratch: list[Array]) -> None:
    """A partial result per stretch, then one pass over all of a sequence."""
    xp, launch, given = bound.xp, bound.launch, bound.given
    one = xp.full((1,), 1.0, "float32")
    source = tiles.cache_source(
        bound,
        prepared,
        one if launch.k_scales == "per_channel" else given.k_scale,
        one if launch.v_scales == "per_channel" else given.v_scale,
    )
    attention = tiles.Attention.over(bound, prepared, source, launch.kv_heads)
    if launch.sink == "dynamic_conversion":
        scratch[3][...] = formats.decode(xp, given.sink, launch.element)
        attention = replace(attention, sinks=scratch[3].reshape(launch.kv_heads, -1, 1))
    shape = (launch.batch, launch.kv_heads, stretches(launch))
    maxima, sums = (part.reshape(*shape, _LINE)[..., : launch.group] for part in scratch[:2])
    outputs = scratch[2].reshape(*shape, -1, launch.head_size)[..., : launch.group, :]
    for stretch in range(shape[2]):
        running = _stretch(attention, stretch, shape[2])
        maxima[:, :, stretch] = running.highest[..., 0]
        sums[:, :, stretch] = running.total[..., 0]
        values = running.partial(xp)[..., 0, :]
        outputs[:, :, stretch] = formats.encode(xp, values, launch.element)
    stored = attention.finished(_joined(bound, maxima, sums, outputs))
    if launch.v_scales == "per_channel":
        scales = xp.repeat(given.v_scale.reshape(launch.kv_heads, -1), launch.group, axis=0)
        scaled = formats.decode(xp, stored, launch.element) * scales
        stored = formats.encode(xp, scaled, launch.element)
    bound.output[...] = stored
    for name in ("row_max", "row_sum", "output_accumulator"):
        arena.release(name)


def _stretch(attention: tiles.Attention, stretch: int, count: int) -> tiles.Running:
    """Every `count`-th tile of the cache, from the stretch's own on."""
    longest = int(attention.prepared.valid.max())
    running = attention.start((0, 1))
    for first in range(stretch * _TILE, longest, count * _TILE):
        attention.see(running, (0, 1), (first, min(first + _TILE, longest)))
    return running


def _joined(bound: Bound, maxima: Array, sums: Array, outputs: Array) -> tiles.Running:
    """The stretches (B, KV heads, stretches, group) of each sequence as one."""
    xp = bound.xp
    highest = maxima.max(axis=2)
    weights = sums * xp.exp(maxima - highest[:, :, None])
    values = formats.decode(xp, xp.ascontiguousarray(outputs), bound.launch.element)
    weighted = (weights[..., None] * values).sum(axis=2)
    return tiles.Running(highest[..., None], weights.sum(axis=2)[..., None], weighted[..., None, :])
