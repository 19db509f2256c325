"""What a claim's conditions say outright, and what follows from them by crossing out alternatives.

A condition is taken apart at its conjunctions; a disjunction of which all parts but one are known
to fail adds the one. Comparisons are kept by their sides, so that the calculus can ask what is
known to lie above or below a term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

from routeproof.spec.interpret import Value
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    EnumSort,
    Int,
    Op,
    Term,
    all_of,
    free_symbols,
    integer,
)

from .abstraction import box_of
from .readings.intervals import Interval, Ranges

__all__ = ["Facts", "sides"]


_ROUNDS = 3


class Facts:
    """Conditions known to hold, on top of those of `parent`."""

    def __init__(
        self,
        given: Sequence[Bool],
        parent: Facts | None = None,
        box: Mapping[str, Interval] | None = None,
        symbols: Sequence[Term] | None = None,
    ) -> None:
        """Take the conditions apart, and cross out alternatives until nothing new follows.

        `box` gives the ranges of symbols, and `symbols` those of the conditions, where known.
        """
        self.parent = parent
        self.added = all_of(*given) if parent else TRUE
        self.contradictory: bool = parent.contradictory if parent else False
        self.known: dict[Term, None] = dict(parent.known) if parent else {}
        self.pending: list[tuple[Bool, ...]] = list(parent.pending) if parent else []
        self.ranges: Ranges = parent.ranges if parent else Ranges(box or {})
        self.evident: dict[Term, bool | None] = parent.evident if parent else {}
        self.denied: set[Term] = set(parent.denied) if parent else set()
        self.members: dict[Term, Term] = dict(parent.members) if parent else {}
        self._uppers: dict[Term, dict[Int, None]] = {}
        self._lowers: dict[Term, dict[Int, None]] = {}
        self._divisors: dict[Term, dict[Int, None]] = {}
        self._children: dict[Bool, Facts] = {}
        self._learn(list(given))
        if parent is None and box is None:
            symbols = free_symbols(*given) if symbols is None else symbols
            self._narrow(symbols)
            known = len(self.known)
            self._learn([])
            if len(self.known) > known:
                self._narrow(symbols)

    def _narrow(self, symbols: Sequence[Term]) -> None:
        self.ranges, self.evident = Ranges(self._box(symbols)), {}

    def _box(self, symbols: Sequence[Term]) -> dict[str, Interval]:
        """The range of each symbol; what lies below a symbol's low end, or above, moves it."""
        box = box_of(cast("list[Bool]", list(self.known)), symbols)
        for _ in range(_ROUNDS):
            for left, rights in self._uppers.items():
                for right in rights:
                    if left.op is right.op is Op.SYMBOL and {left.name, right.name} <= box.keys():
                        low, high = box[left.name], box[right.name]
                        box[right.name] = Interval(_highest(low.lo, high.lo), high.hi)
                        box[left.name] = Interval(low.lo, _lowest(low.hi, high.hi))
        return box

    @property
    def flags(self) -> list[Bool]:
        """What is known of Booleans and enums: neither sizes nor comparisons of sizes."""
        return [one for one in cast("list[Bool]", list(self.known)) if _is_flag(one)]

    def with_also(self, condition: Bool) -> Facts:
        """These facts and one more condition."""
        if condition is TRUE or self.knows(condition):
            return self
        if condition not in self._children:
            self._children[condition] = Facts((condition,), self)
        return self._children[condition]

    def extends(self, other: Facts) -> bool:
        """Whether these are the other's facts, perhaps with more."""
        return self is other or (self.parent is not None and self.parent.extends(other))

    def knows(self, condition: Bool) -> bool:
        """Whether the condition is among the facts, or is evident from ranges."""
        return condition in self.known or self._evident(condition) is True

    def refutes(self, condition: Bool) -> bool:
        """Whether the condition is known to fail."""
        if condition in self.denied or self._evident(condition) is False:
            return True
        if condition.op is Op.NOT:
            return condition.args[0] in self.known
        return _is_member(condition) and self._member(condition) is not condition.args[1]

    def lacks(self, part: Bool) -> bool:
        """Whether the part is a flag that is not known: nothing but a fact shows a flag."""
        return _is_flag(part) and not self.knows(part)

    def is_free(self, part: Bool) -> bool:
        """Whether the part is a flag of which the facts say nothing, not even in a disjunction."""
        return self.lacks(part) and _symbol(part) not in self._tied

    @cached_property
    def _tied(self) -> set[Term]:
        """The flags and enums of which disjunctions speak."""
        return {_symbol(part) for clause in self.pending for part in clause if _is_flag(part)}

    def above(self, term: Int) -> list[Int]:
        """What the facts put above the term."""
        found = list(self._uppers.get(term, ()))
        return found + self.parent.above(term) if self.parent else found

    def below(self, term: Int) -> list[Int]:
        """What the facts put below the term."""
        found = list(self._lowers.get(term, ()))
        return found + self.parent.below(term) if self.parent else found

    def conditionally_below(self, term: Int) -> list[tuple[Int, tuple[Bool, ...]]]:
        """What a part of a disjunction puts below the term, if these conditions hold."""
        return self._conditional.get(term, [])

    @cached_property
    def _conditional(self) -> dict[Int, list[tuple[Int, tuple[Bool, ...]]]]:
        found: dict[Int, list[tuple[Int, tuple[Bool, ...]]]] = {}
        for clause in self.pending:
            for index, part in enumerate(clause):
                if _is_order(part):
                    low, high = sides(part)
                    others = tuple(~other for at, other in enumerate(clause) if at != index)
                    if not any(map(self.lacks, others)):
                        found.setdefault(high, []).append((low, others))
        return found

    def not_below(self, value: int) -> list[Int]:
        """Terms of which a fact says that they are at least some constant that is at least this."""
        found = [term for term, low in self._limited if low >= value]
        return found + self.parent.not_below(value) if self.parent else found

    @cached_property
    def _limited(self) -> list[tuple[Int, int]]:
        """The terms that have a constant below them, with the greatest."""
        return [
            (cast("Int", term), max(constants))
            for term, lows in self._lowers.items()
            if term.op is not Op.CONST
            and (constants := [cast("int", low.value) for low in lows if low.op is Op.CONST])
        ]

    def ends(self, term: Int) -> tuple[float, float]:
        """The ends of the term's range under the conditions of the claim, integers or infinite."""
        return self.ranges.ends(term)

    def at_least(self, term: Int, value: int) -> bool:
        """Whether the term's range starts at the value or above."""
        return self.ranges.ends(term)[0] >= value

    # What a state that meets the facts looks like

    def ordered(self, symbols: Sequence[Term]) -> list[Term]:
        """The symbols, those below or dividing another before it."""
        done: dict[Term, None] = {}

        def visit(symbol: Term, above: frozenset[Term]) -> None:
            for other in (*self._lowers.get(symbol, ()), *self._divisors.get(symbol, ())):
                if other.op is Op.SYMBOL and other not in above and other not in done:
                    visit(other, above | {symbol})
            done[symbol] = None

        for symbol in symbols:
            if symbol not in done:
                visit(symbol, frozenset())
        return list(done)

    def multiples(self, symbol: Term) -> list[Int]:
        """What the facts say divides the symbol."""
        return list(self._divisors.get(symbol, ()))

    def values_of(self, symbol: Term) -> list[Value]:
        """The constants that a disjunction offers for the symbol, or the one that a fact gives."""
        return self._offers.get(symbol, [])

    @cached_property
    def _offers(self) -> dict[Term, list[Value]]:
        offers: dict[Term, list[Value]] = {}
        for clause in (*((known,) for known in self.known), *self.pending):
            offered: dict[Term, list[Value]] = {}
            for part in clause:
                if part.op is Op.EQ and part.args[1].op is Op.CONST:
                    value = cast("Value", part.args[1].value)
                    offered.setdefault(part.args[0], []).append(value)
            for symbol, values in offered.items():
                offers.setdefault(symbol, values)
        return offers

    # Taking conditions apart

    def _learn(self, queue: list[Bool]) -> None:
        while True:
            while queue:
                self._add(queue.pop(), queue)
            kept = []
            for clause in self.pending:
                if any(self.knows(part) for part in clause):
                    continue
                possible = tuple(part for part in clause if not self.refutes(part))
                if len(possible) > 1:
                    kept.append(possible)
                elif possible:
                    queue.append(possible[0])
                else:
                    self.contradictory = True
            self.pending = kept
            if not queue:
                return

    def _add(self, condition: Bool, queue: list[Bool]) -> None:
        if condition is FALSE or self.refutes(condition):
            self.contradictory = True
        if condition is TRUE or condition in self.known:
            return
        self.known[condition] = None
        negated = condition.op is Op.NOT
        positive = condition.args[0] if negated else condition
        if negated:
            self.denied.add(positive)
        if positive.op in (Op.AND, Op.OR):
            parts = cast("tuple[Bool, ...]", positive.args)
            parts = tuple(~part for part in parts) if negated else parts
            if (positive.op is Op.AND) is not negated:
                queue.extend(parts)
            else:
                self.pending.append(parts)
        elif _is_member(condition):
            self.members.setdefault(condition.args[0], condition.args[1])
        elif positive.op in (Op.LE, Op.LT, Op.EQ) and isinstance(positive.args[0], Int):
            self._compare(condition)

    def _compare(self, condition: Bool) -> None:
        """Note what a comparison of integers, or its negation, puts above and below."""
        if condition.op is Op.EQ and condition.args[0].op is Op.MOD:
            value, divisor = cast("tuple[Int, Int]", condition.args[0].args)
            if condition.args[1] is integer(0):
                self._divisors.setdefault(value, {})[divisor] = None
        for left, right in _orders(condition):
            self._uppers.setdefault(left, {})[right] = None
            self._lowers.setdefault(right, {})[left] = None

    def _member(self, condition: Bool) -> Term:
        """The member that the symbol is known to be, or else the one that the condition names."""
        symbol, member = condition.args
        return self.members.get(symbol, member)

    def _evident(self, condition: Bool) -> bool | None:
        """What ranges say of a comparison of integers, or of its negation, if anything."""
        if condition not in self.evident:
            self.evident[condition] = self._said(condition)
        return self.evident[condition]

    def _said(self, condition: Bool) -> bool | None:
        if condition.op is Op.NOT:
            said = self._evident(cast("Bool", condition.args[0]))
            return None if said is None else not said
        if condition.op not in (Op.LE, Op.LT, Op.EQ) or not isinstance(condition.args[0], Int):
            return None
        left, right = cast("tuple[Int, Int]", condition.args)
        (low, high), (lower, higher) = self.ranges.ends(left), self.ranges.ends(right)
        match condition.op:
            case Op.EQ:
                return False if high < lower or higher < low else None
            case Op.LE:
                return True if high <= lower else False if higher < low else None
            case _:
                return True if high < lower else False if higher <= low else None


def _is_flag(condition: Bool) -> bool:
    positive = condition.args[0] if condition.op is Op.NOT else condition
    is_enum = positive.op is Op.EQ and isinstance(positive.args[0].sort, EnumSort)
    return positive.op is Op.SYMBOL or is_enum


def _symbol(flag: Bool) -> Term:
    """The Boolean or the enum that the flag is about."""
    positive = flag.args[0] if flag.op is Op.NOT else flag
    return positive if positive.op is Op.SYMBOL else positive.args[0]


def _is_member(condition: Bool) -> bool:
    """Whether it says of an enum which member it is."""
    return (
        condition.op is Op.EQ
        and isinstance(condition.args[0].sort, EnumSort)
        and condition.args[1].op is Op.CONST
    )


def _highest(one: int | None, two: int | None) -> int | None:
    return max((end for end in (one, two) if end is not None), default=None)


def _lowest(one: int | None, two: int | None) -> int | None:
    return min((end for end in (one, two) if end is not None), default=None)


def _is_order(condition: Bool) -> bool:
    positive = condition.args[0] if condition.op is Op.NOT else condition
    return positive.op in (Op.LE, Op.LT) and isinstance(positive.args[0], Int)


def _ordered(order: Bool) -> tuple[Int, Int, bool]:
    """The two sides of an order or of its negation, the lower first, and whether it is strict."""
    positive = order.args[0] if order.op is Op.NOT else order
    left, right = cast("tuple[Int, Int]", positive.args)
    strict = positive.op is Op.LT
    return (right, left, not strict) if order.op is Op.NOT else (left, right, strict)


def _orders(condition: Bool) -> list[tuple[Int, Int]]:
    """What a comparison or its negation says, as `left <= right`; constants are moved by one."""
    if condition.op is Op.EQ:
        left, right = cast("tuple[Int, Int]", condition.args)
        return [(left, right), (right, left)]
    if not _is_order(condition):
        return []
    left, right, strict = _ordered(condition)
    if strict and right.op is Op.CONST:
        return [(left, right - 1)]
    return [(left + 1 if strict and left.op is Op.CONST else left, right)]


def sides(order: Bool) -> tuple[Int, Int]:
    """The two sides of an order or of its negation, as `left <= right`."""
    left, right, strict = _ordered(order)
    return left + int(strict), right
