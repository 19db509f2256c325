"""Products of unknowns as unknown numbers, for a solver that does not multiply.

Every sum is put in one form, choices outside of products, so that equal products become one term.
Each is then a new symbol, of which only plain facts are kept: its sign, that it is no less than a
part of it where the rest is positive, that it is zero where a factor is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from routeproof.spec.derivation import Digests
from routeproof.spec.terms import (
    Bool,
    Int,
    Op,
    Term,
    all_of,
    any_of,
    implies,
    integer,
    ite,
    rebuild,
    substitute,
    symbol_int,
    topological,
)

from .sums import Monomial, Sums, product

__all__ = ["without_products"]

_SUMS = (Op.ADD, Op.SUB, Op.MUL, Op.ALIGN_UP)


def without_products(conditions: Sequence[Bool]) -> tuple[Bool, ...]:
    """The conditions over new symbols for their products, and what holds of these."""
    terms = _Uniform().of(conditions)
    products = {
        cast("Int", node): Counter(_factors(node))
        for node in topological(terms)
        if _is_product(node) and not node.bound
    }
    symbols: dict[Term, Term] = {one: symbol_int(f"product {one.serial}") for one in products}
    return cast("tuple[Bool, ...]", substitute((*terms, *_facts(products)), symbols))


class _Uniform:
    """Conditions with every sum in one form."""

    def __init__(self) -> None:
        self._names = Digests()
        self._sums = Sums(self._names)

    def of(self, conditions: Sequence[Bool]) -> tuple[Term, ...]:
        """The conditions, rebuilt from below."""
        done: dict[Term, Term] = {}
        for node in topological(tuple(conditions)):
            new = rebuild(node, tuple(done[arg] for arg in node.args))
            is_sum = isinstance(new, Int) and new.op in _SUMS and not new.bound
            done[node] = self._total(cast("Int", new)) if is_sum else new
        return tuple(done[one] for one in conditions)

    def _total(self, term: Int) -> Int:
        sums, result = self._sums.of(term), integer(0)
        for monomial in sorted(sums, key=lambda one: [self._names(factor) for factor in one]):
            result = result + sums[monomial] * self._product(monomial)
        return result

    def _product(self, monomial: Monomial) -> Int:
        """The product, a choice among its factors moved outside."""
        for place, factor in enumerate(monomial):
            if factor.op is Op.ITE and len(monomial) > 1:
                test, *branches = factor.args
                rest = product(monomial[:place] + monomial[place + 1 :])
                one, two = (self._total(cast("Int", branch) * rest) for branch in branches)
                return ite(cast("Bool", test), one, two)
        return product(monomial)


def _factors(node: Term) -> list[Int]:
    """The factors of a product of unknowns; a multiple by a constant is one factor, as it is."""
    if _is_product(node):
        return [factor for arg in node.args for factor in _factors(arg)]
    return [cast("Int", node)]


def _is_product(node: Term) -> bool:
    return node.op is Op.MUL and all(arg.op is not Op.CONST for arg in node.args)


def _facts(products: Mapping[Int, Counter[Int]]) -> Iterator[Bool]:
    for whole, factors in products.items():
        yield implies(all_of(*(factor >= 0 for factor in factors)), whole >= 0)
        for part in (*products, *factors):
            fewer = products.get(part, Counter([part]))
            if part is not whole and not fewer - factors:
                rest = factors - fewer
                yield implies(all_of(part >= 0, *(one >= 1 for one in rest)), part <= whole)
                yield implies(any_of(*(one == 0 for one in rest)), whole == 0)
