"""Normal form: equal polynomials become the same term, statuses become conditions.

Integer sums and products are written as polynomials over everything else (`x // 3`, `min(..)`, an
if-then-else), in one order; comparisons are brought to `positive part <= negative part`; equality
of an enum with a member is pushed through if-then-else. Only exact terms are reordered: a check of
machine arithmetic is a comparison of its own and stays where it is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import cast

from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Enum,
    EnumSort,
    Float,
    Int,
    Op,
    Term,
    align_up,
    all_of,
    any_of,
    ceil_div,
    implies,
    integer,
    ite,
    rebuild,
    rename_bound,
    substitute,
    topological,
)

from .unrolling import write_out

__all__ = ["normalise", "push_negations", "specialise", "split"]

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
        self._ways_of: dict[Term, int] = {}

    def run(self, roots: tuple[Term, ...]) -> tuple[Term, ...]:
        for node in topological(roots):
            self._done[node] = self._normal(node, tuple(self._done[arg] for arg in node.args))
        return tuple(self._done[root] for root in roots)

    def _normal(self, node: Term, args: tuple[Term, ...]) -> Term:
        if isinstance(node, Int):
            self._known[node] = self._polynomial(node, args)
            return self._sum(self._known[node])
        if node.op is Op.GREATEST:
            return self._search(rebuild(node, args))
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
        match node.op:
            case Op.ALIGN_UP | Op.FLOOR_DIV | Op.CEIL_DIV if args[1].op is Op.CONST:
                return self._divided(node.op, cast("Int", args[0]), cast("Int", args[1]))
            case Op.ITE:
                test, one, two = args
                return self._choice(cast("Bool", test), self._form(one), self._form(two))
            case Op.FIRST:
                return self._chosen(cast("Int", self._search(rebuild(node, args))))
        return self._atom(cast("Int", rebuild(node, args)))

    def _search(self, search: Term) -> Term:
        """A search with a canonical variable; a choice of limits is a choice of searches."""
        limit, variable, *bodies, fallback = search.args
        if limit.op is Op.ITE:
            test, *limits = limit.args
            sides = []
            for value, side in zip((TRUE, FALSE), limits, strict=True):
                inner = substitute(tuple(bodies), {test: value})
                sides.append(self._search(rebuild(search, (side, variable, *inner, fallback))))
            return ite(cast("Bool", test), cast("Int", sides[0]), cast("Int", sides[1]))
        if limit.op is Op.CONST and cast("int", limit.value) <= 1:
            return write_out(search, 1)
        return rename_bound(search, "%")

    def _chosen(self, term: Int) -> _Polynomial:
        if term.op is not Op.ITE:
            return self._atom(term)
        test, one, two = term.args
        sides = (self._chosen(cast("Int", side)) for side in (one, two))
        return self._choice(cast("Bool", test), *sides)

    def _form(self, term: Term) -> _Polynomial:
        return self._atom(cast("Int", term))

    def _choice(self, test: Bool, one: _Polynomial, two: _Polynomial) -> _Polynomial:
        """If-then-else, what both sides have in common taken out."""
        common = {m: c for m, c in one.items() if two.get(m) == c}
        sides = (self._sum(_add(side, common, -1)) for side in (one, two))
        return _add(self._atom(ite(test, *sides)), common, 1)

    def _divided(self, op: Op, value: Int, divisor: Int) -> _Polynomial:
        """Rounding by a constant: inside an if-then-else, and beside multiples of the constant."""
        if value.op is Op.ITE:
            test, *sides = value.args
            one, two = (self._divided(op, cast("Int", side), divisor) for side in sides)
            return self._choice(cast("Bool", test), one, two)
        form, step = self._form(value), cast("int", divisor.value)
        padded = op is Op.ALIGN_UP
        whole = {m: c for m, c in form.items() if step > 0 and _is_multiple(m, c, step, padded)}
        rest = self._sum(_add(form, whole, -1))
        rounded = {Op.FLOOR_DIV: operator.floordiv, Op.CEIL_DIV: ceil_div, Op.ALIGN_UP: align_up}[
            op
        ]
        outside = whole if op is Op.ALIGN_UP else {m: c // step for m, c in whole.items()}
        return _add(self._atom(rounded(rest, divisor)), outside, 1)

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
        if choice is None or len(monomial) == 1 or self._cases({monomial: 1}) > _MOST_MONOMIALS:
            return {monomial: 1}
        at = next(index for index, atom in enumerate(monomial) if atom is choice)
        rest: _Polynomial = {monomial[:at] + monomial[at + 1 :]: 1}
        test, *sides = choice.args
        one, two = (self._multiply(self._form(side), rest) for side in sides)
        return self._choice(cast("Bool", test), one, two)

    def _cases(self, polynomial: _Polynomial) -> int:
        """How many products without a choice stand in for the polynomial, its choices lifted."""
        return sum(math.prod(map(self._ways, monomial)) for monomial in polynomial)

    def _ways(self, atom: Int) -> int:
        if atom not in self._ways_of:
            sides = atom.args[1:] if atom.op is Op.ITE else ()
            self._ways_of[atom] = sum(self._cases(self._form(side)) for side in sides) or 1
        return self._ways_of[atom]

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


def _is_multiple(monomial: tuple[Int, ...], coefficient: int, step: int, padded: bool) -> bool:
    """Whether the monomial is a multiple of the step, by its coefficient or by its padding."""
    if coefficient % step == 0:
        return True
    return padded and any(_is_padded(atom, step) for atom in monomial)


def _is_padded(term: Int, step: int) -> bool:
    """Whether every value of the term is a multiple of the step by construction."""
    match term.op:
        case Op.CONST:
            return cast("int", term.value) % step == 0
        case Op.ALIGN_UP:
            to = term.args[1]
            return to.op is Op.CONST and cast("int", to.value) % step == 0
        case Op.ITE:
            return all(_is_padded(cast("Int", side), step) for side in term.args[1:])
        case Op.ADD:
            return all(_is_padded(cast("Int", part), step) for part in term.args)
        case Op.MUL:
            return any(_is_padded(cast("Int", part), step) for part in term.args)
    return False


def _product(monomial: tuple[Int, ...]) -> Int:
    result = integer(1)
    for atom in monomial:
        result = result * atom
    return result


def _add(left: _Polynomial, right: _Polynomial, sign: int) -> _Polynomial:
    result = dict(left)
    for monomial, coefficient in right.items():
        result[monomial] = result.get(monomial, 0) + sign * coefficient
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


def _is_member(left: Enum, right: Enum) -> Bool:
    """Equality of enums as conditions: pushed through the if-then-else on either side.

    Of two choices it suffices to compare all members but one: the costliest is left out.
    """
    if left.op is Op.ITE and right.op is Op.ITE:
        sides = [(_pushed(left, one), _pushed(right, one)) for one in _constants(left.members)]
        sides.sort(key=lambda pair: len(topological(pair)))
        return all_of(*(one == two for one, two in sides[:-1]))
    for one, two in ((left, right), (right, left)):
        if one.op is Op.ITE and two.op is Op.CONST:
            return _pushed(one, two)
    return left == right


def _constants(sort: EnumSort) -> list[Enum]:
    return [sort[member] for member in sort.members]


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


def push_negations(condition: Bool) -> Bool:
    """The condition with negation pushed inwards through conjunction and disjunction."""
    done: dict[tuple[Term, bool], Bool] = {}

    def sign(term: Term, *, positive: bool) -> Bool:
        if term.op is Op.NOT:
            return done[term.args[0], not positive]
        if term.op not in (Op.AND, Op.OR):
            return cast("Bool", term) if positive else ~cast("Bool", term)
        parts = [done[arg, positive] for arg in term.args]
        return all_of(*parts) if (term.op is Op.AND) is positive else any_of(*parts)

    for node in topological((condition,)):
        if isinstance(node, Bool):
            done[node, True] = sign(node, positive=True)
            done[node, False] = sign(node, positive=False)
    return done[condition, True]


def split(goal: Bool) -> list[Bool]:
    """Goals that together are the goal: conjunctions taken apart, also behind an implication."""
    if goal.op is Op.AND:
        return [part for arg in goal.args for part in split(cast("Bool", arg))]
    if goal.op is Op.EQ and isinstance(goal.args[0], Bool):
        one, two = cast("tuple[Bool, Bool]", goal.args)
        return split(implies(one, two)) + split(implies(two, one))
    if goal.op is Op.OR:
        conclusions = [arg for arg in goal.args if arg.op is Op.AND]
        if len(conclusions) == 1:
            rest = [cast("Bool", arg) for arg in goal.args if arg is not conclusions[0]]
            return [
                any_of(*rest, part)
                for arg in conclusions[0].args
                for part in split(cast("Bool", arg))
            ]
    return [goal]


def specialise(condition: Bool) -> Bool:
    """An equal condition in which a symbol that its conjuncts pin is replaced by its values.

    A flag or an enum pinned to one value disappears; with `x in {4, 8}`, the product `x*y` becomes
    `4*y if x == 4 else 8*y`, which is linear.
    """
    parts = cast("tuple[Bool, ...]", condition.args if condition.op is Op.AND else (condition,))
    choices: dict[Term, Term] = {}
    kept = []
    for part in parts:
        pinned = _pinned(part)
        if pinned and pinned[0] not in choices:
            symbol, (*values, chosen) = pinned
            for value in values:
                chosen = ite(symbol == value, cast("Int", value), cast("Int", chosen))
            choices[symbol] = chosen
            kept.append(part)
    others = substitute(tuple(part for part in parts if part not in set(kept)), choices)
    return all_of(*kept, *cast("tuple[Bool, ...]", others))


def _pinned(part: Bool) -> tuple[Term, list[Term]] | None:
    """The symbol and the constants, if the condition says that a symbol is one of a few."""
    if part.op is Op.SYMBOL:
        return part, [TRUE]
    if part.op is Op.NOT and part.args[0].op is Op.SYMBOL:
        return part.args[0], [FALSE]
    ways = part.args if part.op is Op.OR else (part,)
    if len(ways) > _MOST_VALUES or any(way.op is not Op.EQ for way in ways):
        return None
    pairs = [way.args if way.args[1].op is Op.CONST else way.args[::-1] for way in ways]
    symbols = {symbol for symbol, _ in pairs}
    if len(symbols) != 1 or isinstance(pairs[0][0], Float):
        return None
    if any(symbol.op is not Op.SYMBOL or value.op is not Op.CONST for symbol, value in pairs):
        return None
    return pairs[0][0], [value for _, value in pairs]
