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
from routeproof.spec.terms import Bool, EnumSort, Float, Int, IntDomain, Op, Term, topological

from .readings.vectorised import columns, compile_numpy, values

__all__ = ["Sampler", "constants_of"]

# States per batch, and the powers of two up to which integers are drawn: most faults show at
# small numbers, and these run in machine integers.
_BATCHES = ((256, 62), (4_096, 8), (16_384, 12), (16_384, 20), (4_096, 62))
_INT64 = np.iinfo(np.int64)
_FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"))
_Column = NDArray[Any]


def constants_of(terms: Sequence[Term]) -> tuple[int, ...]:
    """The integer constants of the terms with their neighbours, in ascending order."""
    constants = (node for node in topological(tuple(terms)) if node.op is Op.CONST)
    found = {cast("int", node.value) for node in constants if isinstance(node, Int)}
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
        for size, powers in _BATCHES[:batches]:
            drawn = self._draw(start, size, powers, draw)
            (meets,) = self._program(drawn)
            for row in np.flatnonzero(np.broadcast_to(meets, (size,)))[:8]:
                state = dict(self._state(drawn, int(row)))
                if accept(state):
                    return state
        return None

    def _draw(
        self, start: State, size: int, powers: int, draw: np.random.Generator
    ) -> dict[str, _Column]:
        base = columns(self._symbols, [start])
        # Most rows change a few symbols, some change many.
        rate = draw.choice([1.5, 3.0, 6.0], size) / max(1, len(self._symbols))
        drawn = {}
        for symbol in self._symbols:
            fresh = self._random(symbol, size, powers, draw)
            old = np.broadcast_to(base[symbol.name], (size,))
            if old.dtype == object:
                fresh = fresh.astype(object)
            drawn[symbol.name] = np.where(draw.random(size) < rate, fresh, old)
        return drawn

    def _random(self, symbol: Term, size: int, powers: int, draw: np.random.Generator) -> _Column:
        if isinstance(symbol, Bool):
            return draw.random(size) < 0.5
        if isinstance(symbol.sort, EnumSort):
            return draw.integers(0, len(symbol.sort.members), size).astype(np.int8)
        if isinstance(symbol, Float):
            return draw.choice(
                np.array(_FLOATS, np.float32 if symbol.width == 32 else np.float64), size
            )
        return self._integers(cast("Int", symbol), size, powers, draw)

    def _integers(self, symbol: Int, size: int, powers: int, draw: np.random.Generator) -> _Column:
        """Half of the values from the claim's constants, half log-uniform around the rest value."""
        domain = symbol.domain or IntDomain()
        lo = _INT64.min if domain.lo is None else max(domain.lo, _INT64.min)
        hi = _INT64.max if domain.hi is None else min(domain.hi, _INT64.max)
        rest, step = domain.rest, domain.multiple_of
        if lo > hi or not lo <= rest <= hi or step > _INT64.max:
            return np.full(size, rest, object)
        steps = np.exp2(draw.random(size) * powers).astype(np.int64) - 1
        steps = np.where((draw.random(size) < 0.3) & (lo < rest), -steps, steps)
        # Python's bounds keep the sum inside int64.
        near = rest + np.clip(steps, max(lo - rest, -(2**62)), min(hi - rest, 2**62))
        marks = np.array([n for n in self._constants if lo <= n <= hi] or [rest], np.int64)
        drawn: _Column = np.where(draw.random(size) < 0.5, draw.choice(marks, size), near)
        multiples: _Column = drawn - drawn % step
        return multiples

    def _state(self, drawn: dict[str, _Column], row: int) -> Iterator[tuple[str, Value]]:
        for symbol in self._symbols:
            (value,) = values(symbol, drawn[symbol.name][row : row + 1])
            yield symbol.name, value
