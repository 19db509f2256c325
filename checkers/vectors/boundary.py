"""Boundary-value vectors of a modelled function: inputs at and around its edges, with the outputs.

The outputs are what the reference interpreter computes. Vectors are examples, chosen so that a
mistake at one of the edges found shows on one of them; they prove nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.values import Json
from routeproof.spec.function import Function
from routeproof.spec.interpret import State
from routeproof.spec.records import leaves
from routeproof.spec.terms import Term

from .bases import default_bases
from .searching import Found, Goal, Search

__all__ = ["Vector", "Vectors", "boundary_vectors", "cover", "paths", "vectors_from"]

_MOST = 300


@dataclass(frozen=True, slots=True)
class Vector:
    """A row as `routeproof eval` takes and prints it, and the edges that it is there for."""

    row: Mapping[str, Json]
    edges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of a function, and the sides of edges that no vector was found for."""

    function: Function
    vectors: tuple[Vector, ...]
    uncovered: tuple[str, ...]


def boundary_vectors(
    function: Function, base: Sequence[Json] | None = None, *, most: int = _MOST
) -> Vectors:
    """At most so many vectors, found around rows `{"in": ...}`, or around states of our own."""
    if base is None:
        return vectors_from(function, default_bases(function), most=most)
    read = Evaluator(function).state
    states = [read(row, f"base row {number}") for number, row in enumerate(base, 1)]
    return vectors_from(function, states, most=most)


def vectors_from(function: Function, bases: Sequence[State], *, most: int = _MOST) -> Vectors:
    """The vectors around given states."""
    search = Search(function.inputs, paths(function))
    search.run(bases)
    kept = cover(search.found, most)
    times = Counter(goal for one in kept for goal in one.meets)
    evaluate = Evaluator(function)
    vectors: list[Vector] = []
    met: set[Goal] = set()
    for one in kept:
        # What only this vector meets comes first: that is why it is there.
        new = sorted(one.meets.keys() - met, key=lambda goal: (times[goal] > 1, goal))
        row = {"in": evaluate.inputs(one.state), **evaluate.outputs(one.state)}
        vectors.append(Vector(row, tuple(search.text(goal, one.meets[goal]) for goal in new)))
        met.update(new)
    uncovered = tuple(search.text(goal) for goal in search.required if goal not in met)
    return Vectors(function, tuple(vectors), uncovered)


def paths(function: Function) -> dict[str, Term]:
    """Every output by its key and its path in the record."""
    return {
        path: term
        for key, record in function.outputs.items()
        for path, term in leaves(record, key).items()
    }


def cover(found: Sequence[Found], most: int) -> list[Found]:
    """States that together meet what all do, the most telling first, and none that is superfluous.

    If that takes more than `most`, the rest is left out.
    """
    left = set().union(*(one.meets for one in found))
    chosen: list[int] = []
    while left and len(chosen) < most:
        gains = [len(left & one.meets.keys()) for one in found]
        best = gains.index(max(gains))
        chosen.append(best)
        left -= found[best].meets.keys()
    times = Counter(goal for at in chosen for goal in found[at].meets)
    for at in reversed(chosen.copy()):
        if all(times[goal] > 1 for goal in found[at].meets):
            times.subtract(found[at].meets.keys())
            chosen.remove(at)
    return [found[at] for at in sorted(chosen)]
