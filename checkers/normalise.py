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
    ite,
    rebuild,
    substitute,
    topological,
)

__all__ = ["normalise", "specialise"]

_Polynomial = dict[tuple[Int, ...], int]
_MOST_MONOMIALS = 64
_MOST_VALUES = 4


def normalise(roots: Sequence[Term]) -> tuple[Term, ...]:
    """The roots in normal form, equal to the originals on every state."""
    return _Normaliser().run(tuple(roots))


class _Normaliser:
    """One pass; atoms are ordered by first appearance, so the result depends on the roots only."""

    def __init__(self) -> None:
        self._rank: dict[Term, int] = {}
        self._known: dict[Term, _Polynomial] = {}
        self._forms: dict[Term, _Polynomial] = {}
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
        return self._atom(cast("Int", rebuild(node, args)))

    def _atom(self, atom: Int) -> _Polynomial:
        if atom in self._forms:
            return self._forms[atom]
        if atom.op is Op.CONST:
            return {(): cast("int", atom.value)} if atom.value else {}
        self._rank.setdefault(atom, len(self._rank))
        return {(atom,): 1}

    def _multiply(self, left: _Polynomial, right: _Polynomial) -> _Polynomial:
        result: _Polynomial = {}
        for one, factor in left.items():
            for two, other in right.items():
                monomial = tuple(sorted(one + two, key=self._rank.__getitem__))
                result = _add(result, self._lifted(monomial), factor * other)
        return result

    def _lifted(self, monomial: tuple[Int, ...]) -> _Polynomial:
        """The product, with an if-then-else among several factors moved to the outside."""
        choice = next((atom for atom in monomial if atom.op is Op.ITE), None)
        if choice is None or len(monomial) == 1:
            return {monomial: 1}
        at = next(index for index, atom in enumerate(monomial) if atom is choice)
        rest: _Polynomial = {monomial[:at] + monomial[at + 1 :]: 1}
        test, *sides = choice.args
        one, two = (self._sum(self._multiply(self._atom(cast("Int", s)), rest)) for s in sides)
        return self._atom(ite(cast("Bool", test), one, two))

    def _order(self, monomial: tuple[Int, ...]) -> tuple[bool, list[int]]:
        return (not monomial, [self._rank[atom] for atom in monomial])

    def _sum(self, polynomial: _Polynomial) -> Int:
        """The polynomial as a term: monomials in order, the constant last."""
        result = integer(0)
        for monomial in sorted(polynomial, key=self._order):
            result = result + integer(polynomial[monomial]) * _product(monomial)
        self._forms[result] = polynomial
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
        if not isinstance(node, Enum) or node.sort != member.sort:
            continue
        if node.op is Op.ITE:
            test = cast("Bool", node.args[0])
            then, otherwise = (done[arg] for arg in node.args[1:])
            done[node] = any_of(all_of(test, then), all_of(~test, otherwise))
        else:
            done[node] = node == member
    return done[chosen]


def specialise(condition: Bool) -> Bool:
    """An equal condition in which a symbol that its conjuncts pin to few values is a choice of them.

    Products with such a symbol become linear: with `x in {4, 8}`, `x*y` is `4*y if x == 4 else 8*y`.
    """
    parts = cast("tuple[Bool, ...]", condition.args if condition.op is Op.AND else (condition,))
    choices: dict[Term, Term] = {}
    for part in parts:
        pinned = _pinned(part)
        if pinned and pinned[0] not in choices:
            symbol, (*values, last) = pinned
            chosen = integer(last)
            for value in values:
                chosen = ite(symbol == value, value, chosen)
            choices[symbol] = chosen
    kept = tuple(part for part in parts if _pinned(part))
    others = substitute(tuple(part for part in parts if not _pinned(part)), choices)
    return all_of(*kept, *cast("tuple[Bool, ...]", others))


def _pinned(part: Bool) -> tuple[Int, list[int]] | None:
    """The symbol and the values, if the condition says that a symbol is one of a few integers."""
    ways = part.args if part.op is Op.OR else (part,)
    symbols: set[Term] = set()
    values = []
    for way in ways:
        if way.op is not Op.EQ or not isinstance(way.args[0], Int):
            return None
        symbol, value = way.args if way.args[1].op is Op.CONST else way.args[::-1]
        if symbol.op is not Op.SYMBOL or value.op is not Op.CONST:
            return None
        symbols.add(symbol)
        values.append(cast("int", value.value))
    if len(symbols) != 1 or len(values) > _MOST_VALUES:
        return None
    return cast("Int", symbols.pop()), values
