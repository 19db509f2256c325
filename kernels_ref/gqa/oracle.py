"""What the output has to be: plain attention in float64, one query head and one row at a time.

Written on its own, without tiles, regions or the steps of preparation: it reads the operator's
inputs, and of what a kernel made only the present cache, which it checks first. A first prompt
attends to its K and V as they are; later tokens to what the cache holds of them.

Source: the operator's description (`com.microsoft.GroupQueryAttention`): scale 1/sqrt(D), softcap,
then bias; a sink adds exp(sink) to the denominator, smooth softmax adds 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import cast

import numpy as np

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.namespace import Array, Namespace
from routeproof.spec.execution import Fault

from .launch import Launch
from .tensors import QK_NORM_EPSILON, Tensors, past_length

__all__ = ["Executed", "check"]

_HOST = cast("Namespace", np)
_ULPS = 2.0
"""Of the largest value, by which an output may be off: each route rounds in places of its own."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What a launch left behind, on the host: output (B, S, N, D) and caches (B, Nk, C, row).

    `softmax_lse` (B, N, S) are Flash's log-sum-exp of each row's scores, empty for other routes.
    """

    output: Array
    present_key: Array
    present_value: Array
    softmax_lse: Array


@dataclass(frozen=True, slots=True)
class _Tensor:
    """K or V: new tokens (B, S, Nk, D) in float64, the cache before and after, and its scale."""

    name: str
    new: Array
    past: Array
    present: Array
    scale: Array


def check(launch: Launch, given: Tensors, executed: Executed) -> float:
    """The largest absolute difference of the output from plain attention in float64.

    Raises:
        Fault: the cache does not hold what it has to, or the output is too far off.
    """
    past = past_length(launch, given.lengths)
    query, key, value = _new_tokens(launch, given, past)
    caches = (
        _Tensor("present_key", key, given.past_key, executed.present_key, given.k_scale),
        _Tensor("present_value", value, given.past_value, executed.present_value, given.v_scale),
    )
    worst = 0.0
    for row in range(launch.batch):
        had, total = int(past[row]), int(given.lengths[row])
        cached = [_attended(launch, one, row, had, total) for one in caches]
        expected, sums = _attention(launch, given, row, query[row, : total - had], cached)
        if executed.softmax_lse.size:
            shares = executed.softmax_lse[row, :, : total - had].astype(np.float64)
            limit = 1e-3 + 4 * formats.unit(launch.element) * (1 + np.abs(sums))
            _within(_Place("softmax_lse", row, 4), shares, sums, limit)
        shown = _numbers(launch, executed.output[row, : total - had])
        largest = float(np.abs(cached[1]).max())
        limit = _ULPS * formats.unit(launch.element) * (np.abs(expected) + largest)
        place = _Place("output", row, launch.storage.size)
        worst = max(worst, float(_within(place, shown, expected, limit).max()))
    return worst


def _numbers(launch: Launch, stored: Array) -> Array:
    return formats.decode(_HOST, stored, launch.element).astype(np.float64)


def _new_tokens(launch: Launch, given: Tensors, past: Array) -> tuple[Array, Array, Array]:
    """Q, K, V (B, S, heads, D) after QK-norm and rotation."""
    query, key, value = (_numbers(launch, one) for one in (given.query, given.key, given.value))
    if launch.qk_norm:
        query, key = (
            part
            / np.sqrt(np.mean(part**2, axis=-1, keepdims=True) + QK_NORM_EPSILON)
            * _numbers(launch, weight)
            for part, weight in ((query, given.q_weight), (key, given.k_weight))
        )
    if launch.rotary:
        cosines, sines = _numbers(launch, given.cosines), _numbers(launch, given.sines)
        half = launch.head_size // 2
        for row in range(launch.batch):
            for token in range(int(given.lengths[row] - past[row])):
                place = past[row] + token
                turn = cosines[place] + 1j * sines[place]
                for part in (query, key):
                    turned = (part[row, token, :, :half] + 1j * part[row, token, :, half:]) * turn
                    part[row, token] = np.concatenate([turned.real, turned.imag], axis=-1)
    return query, key, value


def _attended(launch: Launch, tensor: _Tensor, row: int, had: int, total: int) -> Array:
    """K or V (Nk, tokens, D) that the new tokens of a row attend to; the present is checked first.

    Past rows have to be the same bytes. New ones have to be what exact arithmetic stores, up to
    one rounding; where the cache still holds them, attention reads them from there.
    """
    held = min(had, launch.capacity) if launch.windowed else had
    fresh = np.ascontiguousarray(tensor.new[row, : total - had].transpose(1, 0, 2))
    stored = formats.pack(_HOST, fresh.astype(np.float32), launch.cache, tensor.scale)
    rows = np.concatenate([tensor.past[row, :, :held], stored], axis=1)
    kept = min(rows.shape[1], launch.capacity)
    late = min(kept, fresh.shape[1])  # new rows that the cache still holds
    _check_rest(launch, tensor, row, kept)
    present = tensor.present[row, :, :kept]
    _check_past(tensor.name, row, present[:, : kept - late], rows[:, -kept : rows.shape[1] - late])
    exact = fresh[:, fresh.shape[1] - late :]
    shown = formats.unpack(_HOST, present[:, kept - late :], launch.cache, tensor.scale)
    scales = np.broadcast_to(
        tensor.scale.astype(np.float64), (launch.kv_heads, 1, launch.head_size)
    )
    place = _Place(tensor.name, row, launch.row / launch.head_size)
    _within(place, shown, _clipped(launch, exact, scales), _rounding(launch, exact, scales))
    if launch.first_prompt and launch.quantized:
        bits = formats.encode(_HOST, fresh.astype(np.float32), launch.element)
        return _numbers(launch, bits)
    numbers = formats.unpack(_HOST, rows, launch.cache, tensor.scale).astype(np.float64)
    numbers[:, numbers.shape[1] - late :] = shown
    return numbers


def _check_rest(launch: Launch, tensor: _Tensor, row: int, kept: int) -> None:
    """Behind its tokens the present has the past's own rows, and zeros if it has more."""
    rest = np.zeros((launch.kv_heads, launch.capacity, launch.row), np.uint8)
    rest[:, : launch.past_capacity] = tensor.past[row, :, : launch.capacity]
    _check_past(tensor.name, row, tensor.present[row, :, kept:], rest[:, kept:])


def _check_past(name: str, row: int, present: Array, past: Array) -> None:
    wrong = present != past
    if wrong.any():
        head, token = (int(one[0]) for one in np.nonzero(wrong.any(axis=2)))
        raise Fault(
            name,
            f"{int(wrong.sum()):,} of {wrong.size:,} bytes of row {row} are not the past's, the "
            f"first for head {head}, token {token}",
        )


def _rounding(launch: Launch, exact: Array, scales: Array) -> Array:
    """Half the gap between stored values near each exact one, and the arithmetic's own error."""
    unit = formats.unit(launch.element)
    if launch.cache == "fp8":  # a mantissa of 3 bits, and steps of 2**-9 near zero
        return np.maximum(np.abs(exact) * 2.0**-4, scales * 2.0**-10) + np.abs(exact) * unit
    if launch.quantized:
        return scales * 0.5001 + np.abs(exact) * unit * 1.001
    return np.abs(exact) * unit * 1.001 + 1e-6


def _clipped(launch: Launch, exact: Array, scales: Array) -> Array:
    """What the cache can hold of the exact values."""
    if not launch.quantized:
        return exact
    low, high = {"int8": (-128, 127), "int4": (-8, 7), "fp8": (-448, 448)}[launch.cache]
    return np.clip(exact, low * scales, high * scales)


def _attention(
    launch: Launch, given: Tensors, row: int, query: Array, cached: list[Array]
) -> tuple[Array, Array]:
    """The output (tokens, N, D) and log-sum-exp (N, tokens) of a row, head by head.

    `cached` are its K and V (Nk, length, D).
    """
    keys, values = cached
    output, sums = np.zeros(query.shape), np.zeros((launch.heads, query.shape[0]))
    tokens, length = query.shape[0], keys.shape[1]
    last = np.arange(length - tokens, length)[:, None]
    place = np.arange(length)[None, :]
    hidden = (place > last) if launch.causal else np.zeros((tokens, length), bool)
    if launch.window > 0:
        hidden = hidden | (place <= last - launch.window)
    sinks = _numbers(launch, given.sink) if launch.sink != "none" else np.zeros(launch.heads)
    for head in range(launch.heads):
        shared = head * launch.kv_heads // launch.heads
        score = query[:, head] @ keys[shared].T / sqrt(launch.head_size)
        if launch.softcap:
            score = launch.softcap * np.tanh(score / launch.softcap)
        if launch.bias:
            rows, heads = given.bias.shape[:2]
            bias = given.bias[row if rows > 1 else 0, head if heads > 1 else 0]
            score = score + _numbers(launch, bias[:tokens, :length])
        highest = np.where(hidden, -np.inf, score).max(axis=1, keepdims=True)
        weight = np.where(hidden, 0.0, np.exp(np.where(hidden, highest, score) - highest))
        total = weight.sum(axis=1, keepdims=True)
        sums[head] = (highest + np.log(total))[:, 0]
        if launch.smooth or launch.sink != "none":
            total = total + np.exp(sinks[head] - highest)
        output[:, head] = weight / total @ values[shared]
    return output, sums


@dataclass(frozen=True, slots=True)
class _Place:
    """Which tensor, which row, and how many bytes an element of it has."""

    tensor: str
    row: int
    bytes_each: float


def _within(place: _Place, shown: Array, exact: Array, limit: Array) -> Array:
    """The differences, none above its limit; what is no number exceeds any."""
    error: Array = np.abs(shown - exact)
    wrong = ~(error <= limit)
    if wrong.any():
        first = tuple(int(one[0]) for one in np.nonzero(wrong))
        count, size = (int(one * place.bytes_each) for one in (wrong.sum(), wrong.size))
        raise Fault(
            place.tensor,
            f"{count:,} of {size:,} bytes of row {place.row} are wrong, the first at "
            f"{list(first)}: {shown[first]:.6g} instead of {exact[first]:.6g}",
        )
    return error
