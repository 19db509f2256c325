"""The map of a device: how often a KV length is split, by work items and KV blocks.

The count is the held part of the routes that split, as `maximise` reads it, on a product of its
keys; no length, batch or head appears in it, so that one map serves all of an envelope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from routeproof.checkers.readings.vectorised import Column, Grid
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.objective import Case, Held, Question
from routeproof.spec.terms import Int, Term, free_symbols

from .answer import Answer, Entry

__all__ = ["Counts", "State", "counts"]

_MOST_ROWS, _MOST_COLUMNS = 512, 1024


@dataclass(frozen=True, slots=True)
class State:
    """Where maxima of the answer lie on the map, and which they are."""

    labels: tuple[str, ...]
    work: int
    blocks: int
    count: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The split count, a row per work items and a column per KV blocks.

    From `filled` work items on, the device is busy without any split. States may lie above the
    map, which ends at as many items as multiprocessors.
    """

    work: tuple[int, ...]
    blocks: tuple[int, ...]
    counts: Column
    filled: int
    states: tuple[State, ...]


def counts(answer: Answer) -> Counts | None:
    """The map for an answer's device and envelope; None if no reachable route splits."""
    cases = [case for case in answer.question.cases if _splits(case)]
    if not cases:
        return None
    held, facts = cast("Held", cases[0].objective.held), cases[0].facts
    multiprocessors = _multiprocessors(answer.question)
    most = max(_keys(case, _last(case))[1] for case in cases)
    work, blocks = _spread(multiprocessors, _MOST_ROWS), _spread(most, _MOST_COLUMNS)
    table = _table(held, facts, work, blocks)
    every = np.arange(1, multiprocessors + 1)
    filled = _evaluated(held.settled, facts, {next(iter(held.keys)): every})
    return Counts(
        tuple(work.tolist()),
        tuple(blocks.tolist()),
        table,
        int(every[np.argmax(filled)]),
        tuple(_states(answer, cases)),
    )


def _splits(case: Case) -> bool:
    """Whether the held part is a count over two keys, work and blocks, in this order."""
    return case.objective.held is not None and len(case.objective.held.keys) == 2


def _multiprocessors(question: Question) -> int:
    found = (one.value for one in question.facts if (one.section, one.name) == ("device", "sms"))
    return int(next(found) or 0)


def _last(case: Case) -> dict[Int, int]:
    """The end of every axis, where the keys are largest."""
    return {axis: high for axis, (_, high) in case.domain.ranges.items()}


def _keys(case: Case, state: Mapping[Int, int]) -> tuple[int, int]:
    terms = tuple(cast("Held", case.objective.held).keys.values())
    values = {**case.facts, **{axis.name: value for axis, value in state.items()}}
    work, blocks = cast("list[int]", compile_terms(terms)(values))
    return work, blocks


def _spread(most: int, count: int) -> Column:
    """All numbers up to the most, or as many as a picture can show, both ends included."""
    return np.unique(np.rint(np.linspace(1, most, min(most, count))).astype(np.int64))


def _table(held: Held, facts: Mapping[str, Value], work: Column, blocks: Column) -> Column:
    rows, columns = held.keys
    axes = {rows: work.reshape(-1, 1), columns: blocks.reshape(1, -1)}
    return np.broadcast_to(_evaluated(held.value, facts, axes), (len(work), len(blocks)))


def _evaluated(term: Term, facts: Mapping[str, Value], axes: Mapping[Term, Column]) -> Column:
    """The term on the axes, all else as in the facts."""
    inputs = dict(axes)
    for one in free_symbols(term):
        if one not in inputs:
            inputs[one] = np.array([facts[one.name]])
    return Grid((term,), inputs).opened(inputs)[0]


def _states(answer: Answer, cases: Sequence[Case]) -> Iterator[State]:
    """The states that attain a maximum of a route that splits, equal places together."""
    found: dict[tuple[int, int, int], dict[str, None]] = {}
    for entry in answer.entries:
        case, state = _attaining(entry, cases)
        if case is None:
            continue
        held = cast("Held", case.objective.held)
        work, blocks = _keys(case, state)
        at = {key.name: value for key, value in zip(held.keys, (work, blocks), strict=True)}
        (count,) = cast("list[int]", compile_terms((held.value,))({**case.facts, **at}))
        found.setdefault((work, blocks, count), {})[f"{entry.phase} by {entry.route}"] = None
    return (State(tuple(labels), *place) for place, labels in found.items())


def _attaining(entry: Entry, cases: Sequence[Case]) -> tuple[Case | None, dict[Int, int]]:
    """The case whose maximum the entry is, and the state as its axes."""
    at = entry.attained_at
    for case in cases:
        if at and (case.phase, case.route, case.alias) == (entry.phase, entry.route, entry.alias):
            state = {axis: int(at[name]) for axis, name in case.names.items()}
            ranges = case.domain.ranges
            lone = (value == 1 for axis, value in state.items() if axis not in ranges)
            if all(lo <= state[one] <= hi for one, (lo, hi) in ranges.items()) and all(lone):
                return case, state
    return None, {}
