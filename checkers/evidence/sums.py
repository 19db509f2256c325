"""Terms as sums of products, in an order that names alone decide."""

from __future__ import annotations

from typing import cast

from routeproof.spec.derivation import Digests
from routeproof.spec.terms import Bool, Int, Op, Term, align_up, integer, ite

__all__ = ["Monomial", "Polynomial", "Sums", "add", "is_multiple", "is_whole", "product"]

Monomial = tuple[Int, ...]
Polynomial = dict[Monomial, int]
_MOST_MONOMIALS = 48


class Sums:
    """Terms as sums of products; the same order of factors and products wherever it runs."""

    def __init__(self, names: Digests) -> None:
        self._names = names
        self._known: dict[Term, Polynomial] = {}

    def of(self, term: Int) -> Polynomial:
        """Products with coefficients; padding keeps its remainder, a choice what differs."""
        if term not in self._known:
            self._known[term] = self._expand(term)
        return self._known[term]

    def _expand(self, term: Int) -> Polynomial:
        args = cast("tuple[Int, ...]", term.args)
        match term.op:
            case Op.CONST:
                return {(): cast("int", term.value)} if term.value else {}
            case Op.ADD:
                return add(self.of(args[0]), self.of(args[1]))
            case Op.SUB:
                return add(self.of(args[0]), self.of(args[1]), -1)
            case Op.MUL if not is_multiple(term):
                one, two = self.of(args[0]), self.of(args[1])
                if len(one) * len(two) <= _MOST_MONOMIALS:
                    return self.times(one, two)
            case Op.ALIGN_UP if args[1].op is Op.CONST:
                form = self.of(args[0])
                whole = {m: c for m, c in form.items() if is_whole({m: c}, args[1])}
                rest = align_up(self.term(add(form, whole, -1)), args[1])
                return add(whole, {(rest,): 1} if rest.op is not Op.CONST else self.of(rest))
            case Op.ITE:
                then, other = self.of(args[1]), self.of(args[2])
                common = {m: c for m, c in then.items() if other.get(m) == c}
                sides = (self.term(add(one, common, -1)) for one in (then, other))
                if common:
                    return add(common, {(ite(cast("Bool", term.args[0]), *sides),): 1})
        return {(term,): 1}

    def times(self, one: Polynomial, two: Polynomial) -> Polynomial:
        """The product of two sums."""
        result: Polynomial = {}
        for left, factor in one.items():
            for right, other in two.items():
                factors = tuple(sorted((*left, *right), key=self._names))
                result = add(result, {factors: factor * other})
        return result

    def term(self, sums: Polynomial) -> Int:
        """The sum as a term."""
        result = integer(0)
        for monomial in sorted(sums, key=lambda one: [self._names(f) for f in one]):
            result = result + sums[monomial] * product(monomial)
        return result


def add(one: Polynomial, two: Polynomial, sign: int = 1) -> Polynomial:
    """`one + sign * two`."""
    result = dict(one)
    for monomial, coefficient in two.items():
        result[monomial] = result.get(monomial, 0) + sign * coefficient
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


def product(monomial: Monomial) -> Int:
    """The product as a term."""
    result = integer(1)
    for factor in monomial:
        result = result * factor
    return result


def is_whole(sums: Polynomial, unit: Int) -> bool:
    """Whether every product is a multiple of the constant, by coefficient or a padded factor."""
    step = cast("int", unit.value)

    def is_padded(factor: Int) -> bool:
        if factor.op is not Op.ALIGN_UP or factor.args[1].op is not Op.CONST:
            return False
        return cast("int", factor.args[1].value) % step == 0

    return step > 0 and all(c % step == 0 or any(map(is_padded, m)) for m, c in sums.items())


def is_multiple(term: Int) -> bool:
    """Whether the product is `u // k * k`, which counts as one factor."""
    quotient, times = term.args
    return quotient.op is Op.FLOOR_DIV and quotient.args[1] is times and times.op is Op.CONST
