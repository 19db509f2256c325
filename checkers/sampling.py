"""Random search for a state that meets a condition: finds faults and witnesses, never proves.

States differ from a known one in some symbols, drawn from the edges of the domain and from the
constants of the claim and their neighbours, where piecewise functions change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from routeproof.spec.interpret import State, Value
from routeproof.spec.terms import Bool, EnumSort, Float, Int, Op, Term, topological

from .readings.vectorised import columns, compile_numpy, values

__all__ = ["Sampler", "constants_of"]

_BATCHES = (256, 4_096, 16_384)
_FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"))
_Column = NDArray[Any]


def constants_of(terms: Sequence[Term]) -> tuple[int, ...]:
    """The integer constants of the terms with their neighbours, in ascending order."""
    found = {
        cast("int", node.value)
        for node in topological(tuple(terms))
        if node.op is Op.CONST and isinstance(node.value, int) and not isinstance(node.value, bool)
    }
    return tuple(sorted({value + step for value in found for step in (-1, 0, 1)}))


class Sampler:
    """One condition, compiled once, and the search for states that meet it."""

    def __init__(self, condition: Bool, symbols: Sequence[Term], constants: Sequence[int]) -> None:
        """Draw integers from the constants and from all magnitudes of each symbol's domain."""
        self._program = compile_numpy([condition])
        self._symbols = symbols
        self._constants = constants

    def find(
        self, accept: Callable[[State], bool], start: State, batches: int, seed: int
    ) -> dict[str, Value] | None:
        """A state around `start` that `accept` confirms, or None, which says nothing."""
        draw = np.random.default_rng(seed)
        for size in _BATCHES[:batches]:
            drawn = self._draw(start, size, draw)
            (meets,) = self._program(drawn)
            for row in np.flatnonzero(np.broadcast_to(meets, (size,)))[:8]:
                state = dict(self._state(drawn, int(row)))
                if accept(state):
                    return state
        return None

    def _draw(self, start: State, size: int, draw: np.random.Generator) -> dict[str, _Column]:
        base = columns(self._symbols, [start])
        # Most rows change a few symbols, some change many.
        rate = draw.choice([1.5, 3.0, 6.0], size) / len(self._symbols)
        drawn = {}
        for symbol in self._symbols:
            fresh = self._random(symbol, size, draw)
            old = np.broadcast_to(base[symbol.name], (size,)).astype(fresh.dtype)
            drawn[symbol.name] = np.where(draw.random(size) < rate, fresh, old)
        return drawn

    def _random(self, symbol: Term, size: int, draw: np.random.Generator) -> _Column:
        if isinstance(symbol, Bool):
            return draw.random(size) < 0.5
        if isinstance(symbol.sort, EnumSort):
            return draw.integers(0, len(symbol.sort.members), size).astype(np.int8)
        if isinstance(symbol, Float):
            return draw.choice(np.array(_FLOATS, np.float32 if symbol.width == 32 else np.float64), size)
        return self._integers(cast("Int", symbol), size, draw)

    def _integers(self, symbol: Int, size: int, draw: np.random.Generator) -> _Column:
        """Half of the values from the claim's constants, half log-uniform from the rest value."""
        domain = symbol.domain
        lo = -(2**62) if domain is None or domain.lo is None else max(domain.lo, -(2**63))
        hi = 2**62 if domain is None or domain.hi is None else min(domain.hi, 2**63 - 1)
        step, rest = (domain.multiple_of, domain.rest) if domain else (1, 0)
        span = max(hi - rest, 0).bit_length()
        powers = np.exp2(draw.random(size) * min(span, 62)).astype(np.int64)
        near = np.clip(rest + powers - 1, lo, hi)
        marks = np.array([n for n in self._constants if lo <= n <= hi] or [rest], np.int64)
        drawn = np.where(draw.random(size) < 0.5, draw.choice(marks, size), near)
        return drawn - drawn % step

    def _state(self, drawn: dict[str, _Column], row: int) -> Iterator[tuple[str, Value]]:
        for symbol in self._symbols:
            (value,) = values(symbol, drawn[symbol.name][row : row + 1])
            yield symbol.name, value
