"""The values of terms on a few states at once, in Python numbers as the interpreter has them.

A condition is one integer with a byte for each state, 1 where it holds: negations and conjunctions,
which are most of a claim, then cost one operation for all states together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import cast

from routeproof.spec.interpret import Concrete, State, Value, compile_terms
from routeproof.spec.terms import SEARCHES, Bool, Op, Term

__all__ = ["Columns"]

_ALGEBRA = Concrete()
_Column = Sequence[Value]


class Columns:
    """States as columns, and the column of every term asked about."""

    def __init__(self, states: Sequence[State], nodes: Sequence[Term] = ()) -> None:
        """Compute these nodes, arguments before users; others when they are asked for."""
        self.states = states
        self._everywhere = _packed(bytes([1] * len(states)))
        self._values: dict[Term, _Column] = {}
        self._truths: dict[Term, int] = {}
        for node in nodes:
            if not node.bound:
                self._add(node)

    def values(self, term: Term) -> _Column:
        """The term's value on each state; 0 or 1 for a condition."""
        if isinstance(term, Bool):
            return self._unpacked(self._truth(term))
        if term not in self._values:
            self._compute(term)
        return self._values[term]

    def meeting(self, conditions: Sequence[Bool]) -> list[int]:
        """The places of the states on which all the conditions hold."""
        holds = reduce(and_, map(self._truth, conditions), self._everywhere)
        return [at for at, held in enumerate(self._unpacked(holds)) if held]

    def _truth(self, condition: Bool) -> int:
        if condition not in self._truths:
            self._compute(condition)
        return self._truths[condition]

    def _unpacked(self, truth: int) -> bytes:
        return truth.to_bytes(len(self.states), "little")

    def _compute(self, term: Term) -> None:
        values, truths = self._values, self._truths
        stack = [term]
        while stack:
            node = stack[-1]
            if node in values or node in truths:
                stack.pop()
                continue
            args = () if node.op in SEARCHES else node.args
            missing = [arg for arg in args if arg not in values and arg not in truths]
            if missing:
                stack += missing
            else:
                self._add(node)

    def _add(self, node: Term) -> None:
        if isinstance(node, Bool):
            self._truths[node] = self._decided(node)
        else:
            self._values[node] = self._computed(node)

    def _decided(self, node: Bool) -> int:
        """The condition on each state, its arguments known."""
        truths = self._truths
        match node.op:
            case Op.NOT:
                return self._everywhere ^ truths[node.args[0]]
            case Op.AND:
                return reduce(and_, [truths[arg] for arg in node.args])
            case Op.OR:
                return reduce(or_, [truths[arg] for arg in node.args])
            case Op.CONST:
                return self._everywhere if node.value else 0
            case Op.SYMBOL:
                name = node.name
                return _packed(bytes([bool(state[name]) for state in self.states]))
            case Op.ITE:
                test, one, two = [truths[arg] for arg in node.args]
                return test & one | ~test & two
            case Op.EQ if isinstance(node.args[0], Bool):
                one, two = [truths[arg] for arg in node.args]
                return self._everywhere ^ one ^ two
        compare = cast("Callable[..., bool]", _ALGEBRA.operation(node))
        return _packed(bytes(map(compare, *[self._values[arg] for arg in node.args])))

    def _computed(self, node: Term) -> _Column:
        """The value on each state, its arguments known."""
        match node.op:
            case Op.CONST:
                return (_ALGEBRA.constant(node),) * len(self.states)
            case Op.SYMBOL:
                name = node.name
                return tuple([state[name] for state in self.states])
            case Op.ITE:
                test, one, two = node.args
                chosen = self._unpacked(self._truths[test])
                pairs = zip(chosen, self._values[one], self._values[two], strict=True)
                return tuple([then if holds else other for holds, then, other in pairs])
            case op if op in SEARCHES:
                program = compile_terms((node,))
                return tuple([program(state)[0] for state in self.states])
        columns = [self._values[arg] for arg in node.args]
        return tuple(map(_ALGEBRA.operation(node), *columns))


def _packed(truths: bytes) -> int:
    return int.from_bytes(truths, "little")
