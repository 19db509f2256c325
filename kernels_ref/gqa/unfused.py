"""The unfused route: scores and softmax are written out whole, in float32.

Follows `UnfusedGqaAttention` in `onnxruntime/contrib_ops/cuda/bert/group_query_attention_impl.cu`:
Q transposed to heads first, one matrix of scores, one of probabilities, the output transposed back.
"""

from __future__ import annotations

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.arena import Arena, Part
from routeproof.kernels_ref.formats import FP32
from routeproof.kernels_ref.namespace import Array

from . import tiles
from .launch import Launch
from .preparation import Prepared
from .tensors import Bound

__all__ = ["attend", "carve"]

_LINES = 256  # every matrix ends at a multiple of these bytes


def _columns(launch: Launch) -> int:
    """Keys per row of scores: a windowed cache shows no more than it holds."""
    return min(launch.total, launch.visible) if launch.windowed else launch.total


def carve(arena: Arena, launch: Launch) -> list[Array]:
    """Q and the output by heads, scores and probabilities."""
    rows = (launch.batch, launch.heads, launch.tokens)
    transposed, matrix = (*rows, launch.head_size), (*rows, _columns(launch))
    found: list[Array] = []
    for name, shape, kind in (
        ("q_bnsh", transposed, launch.storage),
        ("y_bnsh", transposed, launch.storage),
        ("qk", matrix, FP32),
        ("softmax", matrix, FP32),
    ):
        found += arena.carve(name, Part(name, shape, kind), rounding=_LINES)
    return found


def attend(bound: Bound, prepared: Prepared, arena: Arena, scratch: list[Array]) -> None:
    """Scores, softmax, weighted values: three passes over whole matrices."""
    xp, launch, given = bound.xp, bound.launch, bound.given
    query, output, matrix, probabilities = scratch
    query[...] = prepared.query.transpose(0, 2, 1, 3)
    shape = (launch.batch, launch.kv_heads, launch.group, launch.tokens)
    keys = (0, _columns(launch))
    source = tiles.cache_source(bound, prepared, given.k_scale, given.v_scale)
    by_group = formats.decode(xp, query, launch.element).reshape(*shape, launch.head_size)
    matrix[...] = tiles.scores(bound, by_group, source.keys(*keys)).reshape(matrix.shape)
    arena.release("q_bnsh")
    if launch.bias:
        matrix[...] = matrix + formats.decode(xp, given.bias, launch.element)
    seen = tiles.mask(bound, prepared, (0, launch.tokens), keys)[:, 0]
    found = xp.where(seen, matrix, -float("inf"))
    # A padding query may see no key; its probabilities are zero.
    highest = xp.maximum(found.max(axis=-1, keepdims=True), -3.0e38)
    weights = xp.exp(found - highest)
    total = weights.sum(axis=-1, keepdims=True)
    probabilities[...] = weights / xp.where(total > 0, total, 1.0)
    arena.release("qk")
    by_group = probabilities.reshape(*shape, keys[1])
    values = xp.matmul(by_group, source.values(*keys)[:, :, None]).reshape(output.shape)
    output[...] = formats.encode(xp, values, launch.element)
    arena.release("softmax")
    bound.output[...] = output.transpose(0, 2, 1, 3)
    arena.release("y_bnsh")
