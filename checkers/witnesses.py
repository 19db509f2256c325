"""A few admitted states, found from the facts alone, and the values that terms have on them.

A comparison that fails on one of them need not be attempted, and any of them shows that the
conditions can be met. States are proposed, not solved for: each symbol takes a value that the facts
about it alone allow, small ones first, and a proposal counts once every condition was evaluated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from operator import gt
from typing import cast

from routeproof.spec.interpret import State, Value
from routeproof.spec.terms import (
    SEARCHES,
    Bool,
    Enum,
    Float,
    Int,
    Op,
    Term,
    all_of,
    free_symbols,
    symbols_among,
    topological,
)

from .columns import Columns
from .facts import Facts

__all__ = ["Witnesses", "failing_state"]

_BATCH = 32
_FEW_BATCHES = 2
_BATCHES = 6
_ENOUGH = 8
_KEPT = 8
_LIKENESS = 0.75
_ROUNDS = 8
_TRIED = 120
_SCALES = (20, 300, 300, 5_000, 80_000)


class Witnesses:
    """Admitted states, and whether a comparison holds on those that meet some facts."""

    def __init__(
        self,
        conditions: Sequence[Bool],
        below: Sequence[Term],
        nodes: Sequence[Term],
        facts: Facts,
    ) -> None:
        """Propose states, keep those that meet every condition, and of those the most various.

        `below` are the nodes below the conditions, and `nodes` these and those below the goals.
        """
        proposals = _Proposals(symbols_among(nodes), facts, random.Random(0))  # noqa: S311
        tests = _tests(nodes)
        order = [*below, *topological(tuple(tests), set(below))]
        admitted: list[State] = []
        regimes: list[Sequence[Value]] = []
        for batch in range(_BATCHES):
            like = admitted[0] if admitted else None
            states = [proposals.state(like, small=not at) for at in range(_BATCH)]
            columns = Columns(states, order)
            values = list(zip(*map(columns.values, tests), strict=True)) or [()] * _BATCH
            for at in columns.meeting(conditions):
                admitted.append(states[at])
                regimes.append(values[at])
            if len(admitted) >= (_ENOUGH if batch < _FEW_BATCHES else 1):
                break
        self._columns = Columns([admitted[at] for at in _various(regimes)])
        self._met: dict[Facts, Sequence[int]] = {}

    @property
    def states(self) -> Sequence[State]:
        """The admitted states."""
        return self._columns.states

    def refutes(self, left: Int, right: Int, facts: Facts) -> bool:
        """Whether `left <= right` fails on one of the states that meet the facts.

        Where none of the states does, nothing is known.
        """
        one, two = self._sizes(left), self._sizes(right)
        if facts.parent is None:
            return any(map(gt, one, two))
        return any(one[at] > two[at] for at in self._meeting(facts))

    def gap(self, left: Int, right: Int, facts: Facts) -> float:
        """By how much `right` exceeds `left` on the smallest state; infinite if it fails on any.

        There an envelope is as small as what lies inside, so that a size equals its bound.
        """
        if self.refutes(left, right, facts):
            return math.inf
        smallest = next(iter(self._meeting(facts)), None)
        if smallest is None:
            return 0
        return self._sizes(right)[smallest] - self._sizes(left)[smallest]

    def _sizes(self, term: Int) -> Sequence[int]:
        return cast("Sequence[int]", self._columns.values(term))

    def _meeting(self, facts: Facts) -> Sequence[int]:
        """Which states meet the facts."""
        if facts.parent is None:
            return range(len(self.states))
        if facts not in self._met:
            added = set(self._columns.meeting((facts.added,)))
            self._met[facts] = [at for at in self._meeting(facts.parent) if at in added]
        return self._met[facts]


def _various(regimes: Sequence[Sequence[Value]]) -> list[int]:
    """Where the first is, those in which something has a value that is new, and some more."""
    seen: set[tuple[int, Value]] = set()
    kept = dict.fromkeys(range(len(regimes))[:1])
    for at, values in enumerate(regimes):
        new = set(enumerate(values)) - seen
        if new:
            kept[at] = None
            seen |= new
    kept.update(dict.fromkeys(range(len(regimes))[-_KEPT:]))
    return list(kept)


def failing_state(
    conditions: Sequence[Bool], goals: Sequence[Bool], facts: Facts, seed: int = 0
) -> State | None:
    """A proposed state that meets every condition and breaks a goal, if one turns up."""
    symbols = free_symbols(*conditions, *goals)
    for round_ in range(_ROUNDS):
        draw = random.Random(f"{seed} {round_}")  # noqa: S311 - not for secrets
        proposals = _Proposals(symbols, facts, draw)
        columns = Columns([proposals.state(small=not at) for at in range(_TRIED)])
        for at in columns.meeting((*conditions, ~all_of(*goals))):
            return columns.states[at]
    return None


def _tests(nodes: Sequence[Term]) -> list[Bool]:
    """The conditions of choices, and whether a search has several candidates."""
    found: dict[Bool, None] = {}
    searching: set[Term] = set()
    for node in nodes:
        if node.op in SEARCHES or (searching and not searching.isdisjoint(node.args)):
            searching.add(node)
        if node.bound:
            continue
        if node.op is Op.ITE and node.args[0] not in searching:
            found[cast("Bool", node.args[0])] = None
        elif node.op is Op.FIRST and node.args[0] not in searching:
            found[cast("Int", node.args[0]) > 1] = None
    return list(found)


class _Proposals:
    """States in which every symbol has a value that the facts about it alone allow."""

    def __init__(self, symbols: Sequence[Term], facts: Facts, draw: random.Random) -> None:
        self._plan = {one.name: _Proposer(one, facts) for one in facts.ordered(symbols)}
        self._sizes = [name for name, proposer in self._plan.items() if proposer.is_size]
        self._choices = [ways for clause in facts.pending if (ways := _ways(clause))]
        self._draw = draw

    def state(self, like: State | None = None, *, small: bool) -> State:
        """A state with a few large sizes, or small in all; much of it like another state."""
        # Most regimes want a few symbols large, and the others small.
        draw = self._draw
        count = 0 if small else draw.randint(1, 4)
        large = draw.sample(self._sizes, min(len(self._sizes), count))
        state: dict[str, Value] = {}
        for name, one in self._plan.items():
            is_kept = like and name not in large and draw.random() < _LIKENESS
            if like and is_kept and one.allows(like[name], state):
                state[name] = like[name]
            else:
                state[name] = one.value(state, draw, draw.choice(_SCALES) if name in large else 0)
        for ways in self._choices:
            if all(state[name] != value for name, value in ways):
                state.update([draw.choice(ways)])
        return state


def _ways(clause: Sequence[Bool]) -> list[tuple[str, Value]]:
    """The flags, with the values of which one is to be taken, if the clause says no more."""
    flags = [part.args[0] if part.op is Op.NOT else part for part in clause]
    if any(flag.op is not Op.SYMBOL for flag in flags):
        return []
    return [(flag.name, flag is part) for flag, part in zip(flags, clause, strict=True)]


class _Proposer:
    """What one symbol may be, as far as the facts about it alone say."""

    def __init__(self, symbol: Term, facts: Facts) -> None:
        self._offered = facts.values_of(symbol)
        if isinstance(symbol, Bool) and not self._offered:
            fixed = facts.knows(symbol) or facts.refutes(symbol)
            self._offered = [facts.knows(symbol)] if fixed else [False, True]
        elif isinstance(symbol, Enum) and not self._offered:
            members = symbol.members.members
            self._offered = [one for one in members if not facts.refutes(symbol == one)]
        elif isinstance(symbol, Float):
            self._offered = [0.0]
        elif not self._offered:
            self._low, self._high = facts.ends(cast("Int", symbol))
            below = facts.below(cast("Int", symbol))
            self._below = [one.name for one in below if one.op is Op.SYMBOL]
            steps = facts.multiples(symbol)
            self._steps = [one.name for one in steps if one.op is Op.SYMBOL]
            constants = (cast("int", one.value) for one in steps if one.op is Op.CONST)
            self._unit = math.lcm(*constants)

    @property
    def is_size(self) -> bool:
        """Whether the facts leave it a range of integers."""
        return not self._offered and not self._below

    def allows(self, value: Value, state: State) -> bool:
        """Whether the value lies above all that is below."""
        return bool(self._offered) or int(value) >= self._least(state)

    def _least(self, state: State) -> int:
        return max([int(state[name]) for name in self._below if name in state], default=0)

    def value(self, state: State, draw: random.Random, scale: int) -> Value:
        """The first value offered most times; or one above all that is below, by the scale."""
        if self._offered:
            return self._offered[0] if draw.random() < 0.7 else draw.choice(self._offered)
        low = max(self._least(state), cast("int", max(0, self._low)))
        unit = math.lcm(self._unit, *[int(state.get(name, 1)) for name in self._steps])
        # Others than facts about the symbol alone may want a rounder value.
        unit = (unit or 1) * draw.choice((1, 2)) if unit != 1 else 1
        more = int((1 + draw.random()) * scale) if scale else draw.choice((0, 0, 0, 1, 3))
        value = -(-(low + more * unit) // unit) * unit
        return value if value <= self._high else low
