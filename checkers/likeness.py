"""How much two terms look alike: which of several comparisons the calculus attempts first.

A size and its bound are built alike, from symbols that facts compare: a symbol and what bounds it
count as the same, and so do a value and the same value limited or rounded. Nothing rests on it: it
orders attempts, and leaves out those between terms that have nothing to do with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import reduce
from operator import or_

from routeproof.spec.terms import Int, Op, Term, free_symbols, topological

from .facts import Facts
from .polynomials import Monomial

__all__ = ["Likeness"]

_DEEPEST = 100
_MOST_PARTS = 200


class Likeness:
    """Shapes and symbols have numbers; those below a term are the bits of one integer each."""

    def __init__(self, facts: Facts) -> None:
        """Symbols are alike if these facts compare them."""
        self._facts = facts
        self._numbers: dict[Hashable, int] = {}
        self._shape: dict[Term, int] = {}
        self._shapes: dict[Term, int] = {}
        self._kin: dict[Term, int] = {}
        self._products: dict[Monomial, int] = {}
        self._kinds_of: dict[Term, Counter[tuple[Op, ...]]] = {}
        self._size: dict[Term, int] = {}
        self._pairs: dict[tuple[Term, Term], int] = {}

    def difference(self, one: Term, two: Term) -> float:
        """How little two sizes look alike: three shares added, as each alone is often wrong."""
        return self.unshared(one, two) + self._misaligned(one, two) + self._unmatched(one, two)

    def unshared(self, one: Term, two: Term) -> float:
        """The share of their shapes that only one of them has."""
        left, right = self._shapes_below(one), self._shapes_below(two)
        return (left ^ right).bit_count() / (left | right).bit_count()

    def _misaligned(self, one: Term, two: Term) -> float:
        """The share of their nodes without a counterpart, the one laid on the other."""
        return 1 - 2 * self._aligned(one, two) / (self._size[one] + self._size[two])

    def _aligned(self, one: Term, two: Term, depth: int = 0) -> int:
        """How many nodes lie on one that is alike, from the roots downwards."""
        one, two = _unlimited(one), _unlimited(two)
        if self._shape[one] == self._shape[two]:
            return self._size[one]
        if one.op is not two.op or len(one.args) != len(two.args) or depth > _DEEPEST:
            return 0
        pair = (one, two)
        if pair not in self._pairs:
            below = zip(one.args, two.args, strict=True)
            self._pairs[pair] = 1 + sum(self._aligned(*args, depth + 1) for args in below)
        return self._pairs[pair]

    def _unmatched(self, one: Term, two: Term) -> float:
        """The share of their summands that are of a kind that the other lacks."""
        left, right = self._kinds(one), self._kinds(two)
        common = sum(min(count, right.get(kind, 0)) for kind, count in left.items())
        return 1 - common / ((left.total() + right.total() - common) or 1)

    def _kinds(self, term: Term) -> Counter[tuple[Op, ...]]:
        if term not in self._kinds_of:
            summands = _flat(term, (Op.ADD, Op.SUB))
            factors = (_flat(one, (Op.MUL,)) for one in summands)
            kinds = (tuple(sorted([f.op for f in one if f.op is not Op.CONST])) for one in factors)
            self._kinds_of[term] = Counter(kinds)
        return self._kinds_of[term]

    def are_related(self, one: Term, two: Term) -> bool:
        """Whether they have to do with each other: by a symbol, or by one that is above it."""
        if one.op is Op.CONST or two.op is Op.CONST:
            return True
        return bool(self._kin_below(one) & self._kin_below(two))

    def unlike(self, one: Monomial, two: Monomial) -> tuple[float, int]:
        """How little two products look alike: by the symbols behind them, and by their length."""
        left, right = self._kin_of(one), self._kin_of(two)
        share = (left & right).bit_count() / ((left | right).bit_count() or 1)
        return -share, abs(len(one) - len(two))

    def _kin_of(self, product: Monomial) -> int:
        if product not in self._products:
            self._products[product] = reduce(or_, map(self._kin_below, product), 0)
        return self._products[product]

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _shapes_below(self, term: Term) -> int:
        if term not in self._shapes:
            for node in topological((term,), self._shapes):
                self._shapes[node] = self._with_shape(node)
        return self._shapes[term]

    def _with_shape(self, node: Term) -> int:
        """The shapes below the node and its own, which is noted."""
        shape = self._shape
        if (same := _as_good_as(node)) is not None:
            shape[node] = shape[same]
            self._size[node] = self._size[same]
            return self._shapes[same]
        below, size = 0, 1
        for arg in node.args:
            below |= self._shapes[arg]
            size += self._size[arg]
        if node.op is Op.SYMBOL:
            key: Hashable = ("like", self._kin_below(node)) if isinstance(node, Int) else node.name
        else:
            key = (node.op, node.value, *[shape[arg] for arg in node.args])
        shape[node], self._size[node] = self._number(key), size
        return below | 1 << shape[node]

    def _kin_below(self, term: Term) -> int:
        """The integer symbols below the term, and all that facts compare those with."""
        if term not in self._kin:
            for node in topological((term,), self._kin):
                own = self._compared(node) if isinstance(node, Int) and node.op is Op.SYMBOL else 0
                self._kin[node] = reduce(or_, [self._kin[arg] for arg in node.args], own)
        return self._kin[term]

    def _compared(self, symbol: Int) -> int:
        """The symbol, and all that facts compare it with, directly or not."""
        found, queue = {symbol}, [symbol]
        while queue:
            one = queue.pop()
            for other in (*self._facts.above(one), *self._facts.below(one)):
                new = {n for n in free_symbols(other) if isinstance(n, Int)} - found
                found |= new
                queue.extend(new)
        return sum(1 << self._number(one.name) for one in found)


def _flat(term: Term, ops: tuple[Op, ...]) -> list[Term]:
    """What the term combines with operations of these kinds; of very much, some."""
    found, stack = list[Term](), [term]
    while stack and len(found) < _MOST_PARTS:
        node = stack.pop()
        if node.op in ops:
            stack += node.args
        else:
            found.append(node)
    return found


def _as_good_as(node: Term) -> Term | None:
    """What the node limits or rounds, if it does."""
    if node.op not in (Op.MIN, Op.FLOOR_DIV, Op.MUL):
        return None
    is_multiple = node.args[0].op is Op.FLOOR_DIV and node.args[1].op is Op.CONST
    if is_multiple or node.op is not Op.MUL:
        parts = [arg for arg in node.args if arg.op is not Op.CONST]
        return parts[0] if len(parts) == 1 else None
    return None


def _unlimited(term: Term) -> Term:
    while (inner := _as_good_as(term)) is not None:
        term = inner
    return term
