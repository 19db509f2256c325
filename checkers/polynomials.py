"""Sums of products over terms that are neither: what the calculus compares part by part.

Multiples of a unit are taken out of its padding, and what both sides of a choice share out of the
choice, so that what lies before a region does not hide in its offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from routeproof.spec.derivation import Digests
from routeproof.spec.terms import Bool, Int, Op, Term, align_up, integer, ite

__all__ = ["Monomial", "Polynomial", "Polynomials", "difference", "is_whole", "shared", "without"]

Monomial = tuple[Int, ...]
Polynomial = dict[Monomial, int]
_MOST_MONOMIALS = 48


def difference(one: Polynomial, two: Polynomial) -> Polynomial:
    """`one - two`."""
    return _sum(one, {monomial: -coefficient for monomial, coefficient in two.items()})


def without(monomial: Monomial, factors: Iterable[Int]) -> Monomial:
    """The product divided by those of the factors that it has."""
    return shared(monomial, factors)[1]


def shared(one: Monomial, two: Iterable[Int]) -> tuple[Monomial, Monomial, Monomial]:
    """What the two products share, and what else the first has, and the second."""
    left: dict[Int, int] = {}
    for factor in two:
        left[factor] = left.get(factor, 0) + 1
    common, first = list[Int](), list[Int]()
    for factor in one:
        if left.get(factor):
            left[factor] -= 1
            common.append(factor)
        else:
            first.append(factor)
    return tuple(common), tuple(first), tuple(f for f, times in left.items() for _ in range(times))


def _sum(one: Polynomial, two: Polynomial) -> Polynomial:
    result = dict(one)
    for monomial, coefficient in two.items():
        result[monomial] = result.get(monomial, 0) + coefficient
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


class Polynomials:
    """Terms as polynomials and back, factors and products in an order that only names decide."""

    def __init__(self, names: Digests) -> None:
        """Everything is computed once."""
        self._names = names
        self._known: dict[Term, Polynomial] = {}
        self._products: dict[Monomial, Int] = {(): integer(1)}
        self._order: dict[Monomial, list[str]] = {}

    def expand(self, term: Int) -> Polynomial:
        """The term as products with integer coefficients; `u // k * k` counts as one factor."""
        if term not in self._known:
            self._known[term] = self._expanded(term)
        return self._known[term]

    def _expanded(self, term: Int) -> Polynomial:
        match term.op:
            case Op.CONST:
                value = cast("int", term.value)
                return {(): value} if value else {}
            case Op.ADD | Op.SUB:
                one, two = (self.expand(cast("Int", arg)) for arg in term.args)
                return difference(one, two) if term.op is Op.SUB else _sum(one, two)
            case Op.MUL if not _is_multiple(term):
                one, two = (self.expand(cast("Int", arg)) for arg in term.args)
                if len(one) * len(two) <= _MOST_MONOMIALS:
                    return self._product(one, two)
            case Op.ALIGN_UP if term.args[1].op is Op.CONST:
                return self._padded(term)
            case Op.ITE:
                return self._choice(term)
        return {(term,): 1}

    def _padded(self, term: Int) -> Polynomial:
        """Multiples of the unit stand outside its padding."""
        value, unit = cast("tuple[Int, Int]", term.args)
        form, step = self.expand(value), cast("int", unit.value)
        whole = {m: c for m, c in form.items() if step > 0 and _is_whole(m, c, step)}
        rest = align_up(self.total(difference(form, whole)), unit)
        return _sum(whole, {(rest,): 1} if rest.op is not Op.CONST else self.expand(rest))

    def _choice(self, term: Int) -> Polynomial:
        """What both branches share stands outside the choice."""
        test, one, two = term.args
        sides = [self.expand(cast("Int", side)) for side in (one, two)]
        common = {m: c for m, c in sides[0].items() if sides[1].get(m) == c}
        if not common:
            return {(term,): 1}
        then, other = (self.total(difference(side, common)) for side in sides)
        return _sum(common, {(ite(cast("Bool", test), then, other),): 1})

    def _product(self, one: Polynomial, two: Polynomial) -> Polynomial:
        result: Polynomial = {}
        for left, factor in one.items():
            for right, other in two.items():
                factors = tuple(sorted((*left, *right), key=self._names))
                result = _sum(result, {factors: factor * other})
        return result

    def replace(
        self, polynomial: Polynomial, monomial: Monomial, factors: Iterable[Int], new: Int
    ) -> Polynomial:
        """The polynomial with factors of one of its products replaced by a term."""
        others = dict(polynomial)
        coefficient = others.pop(monomial)
        changed = self._product({without(monomial, factors): coefficient}, self.expand(new))
        return _sum(others, changed)

    def total(self, polynomial: Polynomial) -> Int:
        """The sum as a term."""
        monomials = list(polynomial)
        if len(monomials) > 1:
            monomials.sort(key=self._rank)
        result = integer(0)
        for monomial in monomials:
            result = result + polynomial[monomial] * self.product(monomial)
        return result

    def _rank(self, monomial: Monomial) -> list[str]:
        if monomial not in self._order:
            self._order[monomial] = [self._names(factor) for factor in monomial]
        return self._order[monomial]

    def product(self, monomial: Monomial) -> Int:
        """The product as a term."""
        if monomial not in self._products:
            self._products[monomial] = self.product(monomial[:-1]) * monomial[-1]
        return self._products[monomial]


def _is_multiple(term: Int) -> bool:
    quotient, times = term.args
    return quotient.op is Op.FLOOR_DIV and quotient.args[1] is times and times.op is Op.CONST


def is_whole(polynomial: Polynomial, unit: Int) -> bool:
    """Whether the sum is a multiple of the constant, product by product."""
    step = cast("int", unit.value)
    return all(_is_whole(monomial, c, step) for monomial, c in polynomial.items())


def _is_whole(monomial: Monomial, coefficient: int, step: int) -> bool:
    """Whether the product is a multiple of the step, by its coefficient or by a padded factor."""
    if coefficient % step == 0:
        return True
    padded = (factor.args[1] for factor in monomial if factor.op is Op.ALIGN_UP)
    return any(u.op is Op.CONST and cast("int", u.value) % step == 0 for u in padded)
