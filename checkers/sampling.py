"""Random search for a failing state around known admitted ones: finds faults, never proves.

States differ from a known one in a few symbols, drawn from the edges of the domain and from the
constants of the claim and their neighbours, where piecewise functions change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import cast

from routeproof.spec.interpret import State, Value
from routeproof.spec.terms import Bool, EnumSort, Float, Op, Term, topological

__all__ = ["constants_of", "find_failing"]

_FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"))


def constants_of(terms: Sequence[Term]) -> tuple[int, ...]:
    """The integer constants of the terms with their neighbours, in ascending order."""
    found = {
        cast("int", node.value)
        for node in topological(tuple(terms))
        if node.op is Op.CONST and isinstance(node.value, int) and not isinstance(node.value, bool)
    }
    return tuple(sorted({value + step for value in found for step in (-1, 0, 1)}))


def find_failing(
    fails: Callable[[State], bool],
    symbols: Sequence[Term],
    start: State,
    constants: Sequence[int],
    tries: int,
    seed: int = 0,
) -> dict[str, Value] | None:
    """A failing state within a number of tries, or None, which says nothing."""
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    for attempt in range(tries):
        state = dict(start)
        for symbol in draw.sample(list(symbols), min(len(symbols), 1 + attempt % 4)):
            state[symbol.name] = _value(symbol, constants, draw)
        if fails(state):
            return state
    return None


def _value(symbol: Term, constants: Sequence[int], draw: random.Random) -> Value:
    if isinstance(symbol, Bool):
        return draw.random() < 0.5
    if isinstance(symbol.sort, EnumSort):
        return draw.choice(symbol.sort.members)
    if isinstance(symbol, Float):
        return draw.choice(_FLOATS)
    domain = symbol.domain
    if domain is None or domain.lo is None or domain.hi is None:
        return draw.choice(constants or (0, 1, 2))
    kind = draw.random()
    if kind < 0.4 and constants:
        value = draw.choice(constants)
    else:
        span = domain.hi - max(domain.lo, domain.rest)
        value = domain.rest + draw.randrange(1 + (1 << draw.randrange(1 + span.bit_length())))
    value -= value % domain.multiple_of
    return min(max(value, domain.lo), domain.hi)
