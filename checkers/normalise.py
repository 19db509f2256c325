"""Normal form: equal polynomials become the same term, statuses become conditions.

Integer sums and products are written as polynomials over everything else (`x // 3`, `min(..)`, an
if-then-else), in one order; comparisons are brought to `positive part <= negative part`; equality
of an enum with a member is pushed through if-then-else. Only exact terms are reordered: a check of
machine arithmetic is a comparison of its own and stays where it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import cast

from routeproof.spec.terms import (
    Bool,
    Enum,
    Int,
    Op,
    Term,
    all_of,
    any_of,
    integer,
    rebuild,
    topological,
)

__all__ = ["normalise"]

_Polynomial = dict[tuple[Int, ...], int]
_MOST_MONOMIALS = 64


def normalise(roots: Sequence[Term]) -> tuple[Term, ...]:
    """The roots in normal form, equal to the originals on every state."""
    return _Normaliser().run(tuple(roots))


class _Normaliser:
    """One pass; atoms are ordered by first appearance, so the result depends on the roots only."""

    def __init__(self) -> None:
        self._rank: dict[Term, int] = {}
        self._known: dict[Term, _Polynomial] = {}
        self._done: dict[Term, Term] = {}

    def run(self, roots: tuple[Term, ...]) -> tuple[Term, ...]:
        for node in topological(roots):
            self._done[node] = self._normal(node, tuple(self._done[arg] for arg in node.args))
        return tuple(self._done[root] for root in roots)

    def _normal(self, node: Term, args: tuple[Term, ...]) -> Term:
        if isinstance(node, Int):
            self._known[node] = self._polynomial(node, args)
            return self._sum(self._known[node])
        if node.op in (Op.EQ, Op.LT, Op.LE) and isinstance(node.args[0], Int):
            left, right = (self._known[arg] for arg in node.args)
            return self._relation(node.op, _add(left, right, -1))
        if node.op is Op.EQ and isinstance(args[0], Enum):
            return _is_member(args[0], cast("Enum", args[1]))
        return rebuild(node, args)

    def _polynomial(self, node: Int, args: tuple[Term, ...]) -> _Polynomial:
        if node.op in (Op.ADD, Op.SUB, Op.MUL):
            left, right = (self._known[arg] for arg in node.args)
            if node.op is not Op.MUL:
                return _add(left, right, 1 if node.op is Op.ADD else -1)
            if len(left) * len(right) <= _MOST_MONOMIALS:
                return self._multiply(left, right)
        atom = cast("Int", rebuild(node, args))
        if atom.op is Op.CONST:
            return {(): cast("int", atom.value)} if atom.value else {}
        self._rank.setdefault(atom, len(self._rank))
        return {(atom,): 1}

    def _multiply(self, left: _Polynomial, right: _Polynomial) -> _Polynomial:
        result: defaultdict[tuple[Int, ...], int] = defaultdict(int)
        for one, factor in left.items():
            for two, other in right.items():
                result[tuple(sorted(one + two, key=self._rank.__getitem__))] += factor * other
        return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}

    def _order(self, monomial: tuple[Int, ...]) -> tuple[bool, list[int]]:
        return (not monomial, [self._rank[atom] for atom in monomial])

    def _sum(self, polynomial: _Polynomial) -> Int:
        """The polynomial as a term: monomials in order, the constant last."""
        result = integer(0)
        for monomial in sorted(polynomial, key=self._order):
            result = result + integer(polynomial[monomial]) * _product(monomial)
        return result

    def _relation(self, op: Op, difference: _Polynomial) -> Bool:
        """`difference op 0` with positive coefficients on both sides."""
        if op is Op.EQ and difference and difference[min(difference, key=self._order)] < 0:
            difference = {monomial: -coefficient for monomial, coefficient in difference.items()}
        positive = self._sum({m: c for m, c in difference.items() if c > 0})
        negative = self._sum({m: -c for m, c in difference.items() if c < 0})
        if op is Op.EQ:
            return positive == negative
        return positive < negative if op is Op.LT else positive <= negative


def _product(monomial: tuple[Int, ...]) -> Int:
    result = integer(1)
    for atom in monomial:
        result = result * atom
    return result


def _add(left: _Polynomial, right: _Polynomial, sign: int) -> _Polynomial:
    result = defaultdict(int, left)
    for monomial, coefficient in right.items():
        result[monomial] += sign * coefficient
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


def _is_member(left: Enum, right: Enum) -> Bool:
    """Equality of enums, pushed through the if-then-else on either side."""
    for one, two in ((left, right), (right, left)):
        if one.op is Op.ITE and two.op is Op.CONST:
            return _pushed(one, two)
    return left == right


def _pushed(chosen: Enum, member: Enum) -> Bool:
    done: dict[Term, Bool] = {}
    for node in topological((chosen,)):
        if not isinstance(node, Enum):
            continue
        if node.op is Op.ITE:
            test = cast("Bool", node.args[0])
            then, otherwise = (done[arg] for arg in node.args[1:])
            done[node] = any_of(all_of(test, then), all_of(~test, otherwise))
        else:
            done[node] = node == member
    return done[chosen]
