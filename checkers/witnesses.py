"""A few admitted states, found from the facts alone, and the values that terms have on them.

A comparison that fails on one of them need not be attempted, and any of them shows that the
conditions can be met. States are proposed, not solved for: each symbol takes a value that the facts
about it alone allow, small ones first, and a proposal counts once every condition was evaluated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from routeproof.spec.interpret import Concrete, State, Value, compile_terms
from routeproof.spec.terms import (
    SEARCHES,
    Bool,
    Enum,
    Float,
    Int,
    Op,
    Term,
    free_symbols,
    topological,
)

from .facts import Facts

__all__ = ["Witnesses", "failing_state"]

_ALGEBRA = Concrete()
_TRIED = 120
_PROPOSED = 60
_KEPT = 6
_SIMPLE = 60
_ROUNDS = 8
_SCALES = (20, 300, 300, 5_000, 80_000)


class Witnesses:
    """Admitted states as columns, and the columns of every term asked about."""

    def __init__(
        self, conditions: Sequence[Bool], goals: Sequence[Bool], facts: Facts, seed: int = 0
    ) -> None:
        """Propose states, keep those that meet every condition, and of those the most various."""
        self._places: dict[Facts, Sequence[int]] = {}
        symbols = free_symbols(*conditions, *goals)
        simple = [one for one in conditions if len(topological((one,))) <= _SIMPLE]
        meets = compile_terms(simple)
        proposals = _proposals(facts.ordered(symbols), facts, random.Random(seed))  # noqa: S311
        proposed = [state for state in proposals if all(meets(state))][:_PROPOSED]
        self._set(symbols, proposed)
        met = [self.column(condition) for condition in conditions]
        self._keep([at for at in range(len(proposed)) if all(column[at] for column in met)])
        self._keep(self._various(_tests(goals)))

    def _set(self, symbols: Sequence[Term], states: Sequence[State]) -> None:
        self._states = list(states)
        self._columns: dict[Term, tuple[Value, ...]] = {
            symbol: tuple(state[symbol.name] for state in states) for symbol in symbols
        }

    def _keep(self, places: Sequence[int]) -> None:
        self._states = [self._states[at] for at in places]
        self._columns = {
            term: tuple(column[at] for at in places) for term, column in self._columns.items()
        }

    def _various(self, tests: Sequence[Bool]) -> list[int]:
        """The first state, those in which a test has a value that is new, and some more."""
        columns = [self.column(test) for test in tests]
        seen: set[tuple[int, Value]] = set()
        kept: dict[int, None] = {}
        for at in range(len(self._states)):
            found = {(index, column[at]) for index, column in enumerate(columns)}
            if not kept or not found <= seen:
                kept[at] = None
                seen |= found
        kept.update(dict.fromkeys(range(len(self._states))[-_KEPT:]))
        return list(kept)

    @property
    def states(self) -> Sequence[State]:
        """The admitted states."""
        return self._states

    def refutes(self, left: Int, right: Int, facts: Facts) -> bool:
        """Whether `left <= right` fails on one of the states that meet the facts.

        Where none of the states does, nothing is known.
        """
        met = self._meeting(facts)
        one, two = self.column(left), self.column(right)
        return any(cast("int", one[at]) > cast("int", two[at]) for at in met)

    def gap(self, left: Int, right: Int, facts: Facts) -> float:
        """By how much `right` exceeds `left` on the smallest state; infinite if it fails on any.

        There an envelope is as small as what lies inside, so that a size equals its bound.
        """
        if self.refutes(left, right, facts):
            return math.inf
        smallest = next(iter(self._meeting(facts)), None)
        if smallest is None:
            return 0
        one, two = (self.column(term)[smallest] for term in (left, right))
        return int(two) - int(one)

    def _meeting(self, facts: Facts) -> Sequence[int]:
        """Which states meet the facts."""
        if facts.parent is None:
            return range(len(self._states))
        if facts not in self._places:
            column = self.column(facts.added)
            before = self._meeting(facts.parent)
            self._places[facts] = [at for at in before if column[at]]
        return self._places[facts]

    def column(self, term: Term) -> tuple[Value, ...]:
        """The term's value on each state."""
        stack = [term]
        while stack:
            node = stack[-1]
            args = () if node.op in SEARCHES else node.args
            missing = [arg for arg in args if arg not in self._columns]
            if missing and node not in self._columns:
                stack.extend(missing)
                continue
            if node not in self._columns:
                self._columns[node] = self._computed(node)
            stack.pop()
        return self._columns[term]

    def _computed(self, node: Term) -> tuple[Value, ...]:
        if node.op is Op.CONST:
            return (_ALGEBRA.constant(node),) * len(self._states)
        if node.op in SEARCHES:
            program = compile_terms((node,))
            return tuple(program(state)[0] for state in self._states)
        args = (self._columns[arg] for arg in node.args)
        return tuple(map(_ALGEBRA.operation(node), *args))


def failing_state(
    conditions: Sequence[Bool], goals: Sequence[Bool], facts: Facts, seed: int = 0
) -> State | None:
    """A proposed state that meets every condition and breaks a goal, if one turns up."""
    symbols = facts.ordered(free_symbols(*conditions, *goals))
    simple = [one for one in conditions if len(topological((one,))) <= _SIMPLE]
    meets, program = compile_terms(simple), compile_terms((*conditions, *goals))
    for round_ in range(_ROUNDS):
        draw = random.Random(f"{seed} {round_}")  # noqa: S311 - not for secrets
        for state in _proposals(symbols, facts, draw):
            if all(meets(state)):
                values = program(state)
                if all(values[: len(conditions)]) and not all(values[len(conditions) :]):
                    return state
    return None


def _tests(goals: Sequence[Bool]) -> list[Bool]:
    """The conditions of choices, and whether a search has several candidates."""
    found: dict[Bool, None] = {}
    searching: set[Term] = set()
    for node in topological(tuple(goals)):
        if node.op in SEARCHES or not searching.isdisjoint(node.args):
            searching.add(node)
        if node.bound:
            continue
        if node.op is Op.ITE and node.args[0] not in searching:
            found[cast("Bool", node.args[0])] = None
        elif node.op is Op.FIRST and node.args[0] not in searching:
            found[cast("Int", node.args[0]) > 1] = None
    return list(found)


def _proposals(
    symbols: Sequence[Term], facts: Facts, draw: random.Random
) -> Iterator[dict[str, Value]]:
    """The smallest state that the facts about each symbol allow, then some with large sizes."""
    plan = {one.name: _Proposer(one, facts) for one in symbols}
    sizes = [name for name, proposer in plan.items() if proposer.is_size]
    for step in range(_TRIED):
        # Most regimes want a few symbols large, and the others small.
        large = draw.sample(sizes, min(len(sizes), draw.randint(1, 4) if step else 0))
        state: dict[str, Value] = {}
        for name, proposer in plan.items():
            state[name] = proposer.value(state, draw, draw.choice(_SCALES) if name in large else 0)
        yield state


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
            self._box = facts.range_of(cast("Int", symbol))
            below = facts.below(cast("Int", symbol))
            self._below = [one for one in below if one.op is Op.SYMBOL]
            self._steps = [
                one for one in facts.multiples(symbol) if one.op in (Op.SYMBOL, Op.CONST)
            ]

    @property
    def is_size(self) -> bool:
        """Whether the facts leave it a range of integers."""
        return not self._offered and not self._below

    def value(self, state: Mapping[str, Value], draw: random.Random, scale: int) -> Value:
        """The first value offered most times; or one above all that is below, by the scale."""
        if self._offered:
            return self._offered[0] if draw.random() < 0.7 else draw.choice(self._offered)
        below = (int(state[one.name]) for one in self._below if one.name in state)
        low = max(0, *below, self._box.lo or 0)
        unit = math.lcm(
            *(
                int(state.get(one.name, 1)) if one.op is Op.SYMBOL else cast("int", one.value)
                for one in self._steps
            )
        )
        unit = unit or 1
        more = int((1 + draw.random()) * scale) if scale else draw.choice((0, 0, 0, 1, 3))
        value = -(-(low + more * unit) // unit) * unit
        return value if self._box.hi is None or value <= self._box.hi else low
