"""How much two terms look alike: which of several comparisons the calculus attempts first.

A size and its bound are built alike, from symbols that facts compare: a symbol and what bounds it
count as the same, and so do a value and the same value limited or rounded. Nothing rests on it: it
orders attempts, and leaves out those between terms that have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from routeproof.spec.terms import Int, Op, Term, free_symbols, topological

from .facts import Facts

__all__ = ["Likeness"]


class Likeness:
    """Shapes and symbols have numbers; those below a term are the bits of one integer each."""

    def __init__(self, facts: Facts) -> None:
        """Symbols are alike if these facts compare them."""
        self._facts = facts
        self._numbers: dict[Hashable, int] = {}
        self._shape: dict[Term, int] = {}
        self._shapes: dict[Term, int] = {}
        self._kin: dict[Term, int] = {}

    def distance(self, one: Term, two: Term) -> float:
        """The share of their shapes that only one of them has."""
        left, right = self._shapes_below(one), self._shapes_below(two)
        return (left ^ right).bit_count() / (left | right).bit_count()

    def are_related(self, one: Term, two: Term) -> bool:
        """Whether they have to do with each other: by a symbol, or by one that is above it."""
        if one.op is Op.CONST or two.op is Op.CONST:
            return True
        return bool(self._kin_below(one) & self._kin_below(two))

    def unlike(self, one: Sequence[Term], two: Sequence[Term]) -> tuple[float, int]:
        """How little two products look alike: by the symbols behind them, and by their length."""
        left = right = 0
        for factor in one:
            left |= self._kin_below(factor)
        for factor in two:
            right |= self._kin_below(factor)
        share = (left & right).bit_count() / ((left | right).bit_count() or 1)
        return -share, abs(len(one) - len(two))

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _shapes_below(self, term: Term) -> int:
        for node in topological((term,), self._shapes):
            self._shapes[node] = self._with_shape(node)
        return self._shapes[term]

    def _with_shape(self, node: Term) -> int:
        """The shapes below the node and its own, which is noted."""
        shape = self._shape
        if (same := _as_good_as(node)) is not None:
            shape[node] = shape[same]
            return self._shapes[same]
        if node.op is Op.SYMBOL:
            key: Hashable = ("like", self._kin_below(node)) if isinstance(node, Int) else node.name
        else:
            key = (node.op, node.value, *(shape[arg] for arg in node.args))
        shape[node] = self._number(key)
        below = 1 << shape[node]
        for arg in node.args:
            below |= self._shapes[arg]
        return below

    def _kin_below(self, term: Term) -> int:
        """The integer symbols below the term, and all that facts compare those with."""
        for node in topological((term,), self._kin):
            below = 0
            if isinstance(node, Int) and node.op is Op.SYMBOL:
                for symbol in self._compared(node):
                    below |= 1 << self._number(symbol.name)
            for arg in node.args:
                below |= self._kin[arg]
            self._kin[node] = below
        return self._kin[term]

    def _compared(self, symbol: Int) -> set[Int]:
        """The symbol, and all that facts compare it with, directly or not."""
        found, queue = {symbol}, [symbol]
        while queue:
            one = queue.pop()
            for other in (*self._facts.above(one), *self._facts.below(one)):
                new = {n for n in free_symbols(other) if isinstance(n, Int)} - found
                found |= new
                queue.extend(new)
        return found


def _as_good_as(node: Term) -> Term | None:
    """What the node limits or rounds, if it does."""
    is_multiple = (
        node.op is Op.MUL and node.args[0].op is Op.FLOOR_DIV and node.args[1].op is Op.CONST
    )
    if is_multiple or node.op in (Op.MIN, Op.FLOOR_DIV):
        parts = [arg for arg in node.args if arg.op is not Op.CONST]
        return parts[0] if len(parts) == 1 else None
    return None
