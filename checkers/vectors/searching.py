"""The search for states at edges: from known states, along one input after another.

A *goal* is a side of an edge of a probe. A state found for one goal is examined for all others that
it meets. Nothing is proved: a goal that no state was found for may still have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from routeproof.spec.interpret import State, Value
from routeproof.spec.records import Record, leaves
from routeproof.spec.terms import Term

from .axes import Axis, Move, axes_of, edges_between, turns
from .landscape import Landscape, Values
from .probes import Probe, probes_of

__all__ = ["Found", "Goal", "Search"]

# From how many states each probe is looked at in a round, and how many of its edges may turn out
# not to matter after the last that did.
_LOOKS = 3
_TRIES = 6


class Goal(NamedTuple):
    """A side of an edge: the number of the probe, and which side."""

    probe: int
    side: str


class Sight(NamedTuple):
    """Where an edge is seen from: the step across it, and the node's values here and there."""

    move: Move
    here: Value
    there: Value


@dataclass(frozen=True, slots=True)
class Found:
    """A state, and every goal that it meets; an output needs no edge to be seen."""

    state: State
    meets: Mapping[Goal, Sight | None]


class Search:
    """One function: the goals still open, and the states found."""

    def __init__(self, inputs: Record, outputs: Mapping[str, Term]) -> None:
        """Name the goals; `outputs` are the function's terms by dotted path."""
        self.land = Landscape([*leaves(inputs).values(), *outputs.values()])
        self._axes = axes_of(self.land)
        self._results = frozenset(self.land.slot[term] for term in outputs.values())
        self.probes = probes_of(outputs, self.land.slot)
        self._watching: dict[int, list[int]] = {}
        for number, probe in enumerate(self.probes):
            for slot in probe.reads:
                self._watching.setdefault(slot, []).append(number)
        self.required = tuple(
            Goal(number, side)
            for number, probe in enumerate(self.probes)
            for side in probe.required
        )
        self.open = set(self.required)
        self.found: list[Found] = []
        self._met: set[Goal] = set()
        self._looks: Counter[int] = Counter()
        self._tries: Counter[int] = Counter()

    def text(self, goal: Goal, sight: Sight | None = None) -> str:
        """What is the case on the side, and the step across the edge."""
        probe = self.probes[goal.probe]
        if sight is None:
            return probe.text(goal.side)
        return f"{probe.seen(goal.side, sight.here, sight.there)} | {sight.move}"

    def run(self, bases: Sequence[State]) -> None:
        """Look from the bases, and then from what was found, as long as that finds more."""
        starts = [*bases]
        while starts:
            seen = len(self.found)
            self._looks.clear()
            for base in starts:
                self._look_from(self.land.values(base))
            starts = [one.state for one in self.found[seen:]]

    def _look_from(self, values: Values) -> None:
        """Move each input, for the probes that matter here and were looked at from few states."""
        if not self.open.isdisjoint(self._outcomes(values)):
            self._keep(values)
        wanted = [
            number
            for number, probe in enumerate(self.probes)
            if self._looks[number] < _LOOKS
            and self._is_wanted(number)
            and self._matters(probe, values, None)
        ]
        self._looks.update(wanted)
        for axis in self._axes:
            if axis.applies(values):
                self._look_along(values, axis, wanted)

    def _is_wanted(self, number: int) -> bool:
        probe = self.probes[number]
        return self._tries[number] < _TRIES and (
            probe.is_rich or any(Goal(number, side) in self.open for side in probe.required)
        )

    def _matters(self, probe: Probe, values: Values, there: Values | None) -> bool:
        """Whether the outputs would differ if the probe alone were mistaken."""
        mistake = probe.mistake(values, there)
        return self.land.reaches(values, probe.slot, mistake, self._results)

    def _look_along(self, values: Values, axis: Axis, wanted: Sequence[int]) -> None:
        """Find where the probes turn along an axis, and try the edges that may matter."""
        moving = set(self.land.above(axis.slot, *axis.others))
        probes = [one for one in wanted if not moving.isdisjoint(self.probes[one].reads)]
        if not probes:
            return
        line = axis.points(values)
        rows = [axis.settings(values, value) for value in line]
        settings = {slot: [row[slot] for row in rows] for slot in rows[0]}
        reads = {slot for number in probes for slot in self.probes[number].reads}
        columns = self.land.columns(values, settings, reads)
        ways = axis.ways(values, line)
        state = cache(lambda place: self._moved(values, axis, line[place]))
        for number in probes:
            probe = self.probes[number]
            read = [columns.get(slot) or [values[slot]] * len(line) for slot in probe.reads]
            keys = list(map(probe.key, *read))
            for near, far, stride in turns(keys, ways):
                move = Move(axis, line[near], line[far])
                ends = ((near, far, move), (far, near, move.back))
                if self._tries[number] < _TRIES and any(
                    self._is_new(number, probe.sides(keys[here], keys[there], step))
                    and self._matters(probe, state(here), None)
                    for here, there, step in ends
                ):
                    self._approach(number, values, move, stride)

    def _is_new(self, number: int, sides: Sequence[str]) -> bool:
        return not self._met.issuperset(Goal(number, side) for side in sides)

    def _moved(self, values: Values, axis: Axis, value: Value) -> Values:
        return self.land.moved(values, axis.settings(values, value))[0]

    def _approach(self, number: int, values: Values, move: Move, stride: int) -> None:
        """Narrow the move down to two neighbours, and try both sides of the edge between them."""
        probe, axis = self.probes[number], move.axis
        along = self.land.along(values, (axis.slot, *axis.others), probe.reads)

        def key(value: Value) -> object:
            return probe.key(*along(axis.settings(values, value)))

        is_new = []
        for edge in edges_between(move, stride, key):
            here, there = (self._moved(values, axis, one) for one in (edge.here, edge.there))
            is_new += [self._try(number, here, there, edge)]
            is_new += [self._try(number, there, here, edge.back)]
        self._tries[number] = 0 if any(is_new) else self._tries[number] + 1

    def _try(self, number: int, here: Values, there: Values, move: Move) -> bool:
        """Keep the state at the edge if it meets something new."""
        probe = self.probes[number]
        if not self._is_new(number, probe.sides_at(here, there, move)):
            return False
        if self._matters(probe, here, there):
            self._keep(here)
            return True
        return False

    def _keep(self, values: Values) -> None:
        """Note the state with all that it meets."""
        meets = {**self._outcomes(values), **dict(self._edges_at(values))}
        self.found.append(Found(self.land.state(values), meets))
        self._met |= meets.keys()
        self.open -= meets.keys()

    def _outcomes(self, values: Values) -> dict[Goal, None]:
        """What the outputs are, edge or not."""
        sides = ((number, probe.outcome(values)) for number, probe in enumerate(self.probes))
        return {Goal(number, side): None for number, side in sides if side is not None}

    def _edges_at(self, values: Values) -> Iterator[tuple[Goal, Sight]]:
        """The sides that the state lies on, of edges that matter there."""
        seen: set[Goal] = set()
        for axis in self._axes:
            for value in axis.neighbours(values) if axis.applies(values) else ():
                there, moved = self.land.moved(values, axis.settings(values, value))
                move = Move(axis, values[axis.slot], value)
                for number in sorted({n for slot in moved for n in self._watching.get(slot, ())}):
                    probe = self.probes[number]
                    goals = [Goal(number, one) for one in probe.sides_at(values, there, move)]
                    if not seen.issuperset(goals) and self._matters(probe, values, there):
                        sight = Sight(move, values[probe.slot], there[probe.slot])
                        yield from ((goal, sight) for goal in goals if goal not in seen)
                        seen.update(goals)
