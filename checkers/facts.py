"""What a claim's conditions say outright, and what follows from them by crossing out alternatives.

A condition is taken apart at its conjunctions; a disjunction of which all parts but one are known
to fail adds the one. Comparisons are kept by their sides, so that the calculus can ask what is
known to lie above or below a term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from routeproof.spec.interpret import Value
from routeproof.spec.terms import FALSE, TRUE, Bool, EnumSort, Int, Op, Term, all_of, integer

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
    ) -> None:
        """Take the conditions apart, and cross out alternatives until nothing new follows."""
        self.parent = parent
        self.added = all_of(*given)
        self.contradictory: bool = parent.contradictory if parent else False
        self.known: dict[Term, None] = {}
        self.uppers: dict[Term, dict[Int, None]] = {}
        self.lowers: dict[Term, dict[Int, None]] = {}
        self._divisors: dict[Term, dict[Int, None]] = {}
        self._children: dict[Bool, Facts] = {}
        self.pending: list[tuple[Bool, ...]] = list(parent.pending) if parent else []
        self.ranges: Ranges = parent.ranges if parent else Ranges(box or {})
        self._learn(list(given))
        if parent is None and box is None:
            self.ranges = Ranges(self._box())
            self._learn([])
            self.ranges = Ranges(self._box())

    def _box(self) -> dict[str, Interval]:
        """The range of each symbol; what lies below a symbol's low end, or above, moves it."""
        box = box_of(tuple(cast("Bool", one) for one in self.known))
        for _ in range(_ROUNDS):
            for left, rights in self.uppers.items():
                for right in rights:
                    if left.op is right.op is Op.SYMBOL and {left.name, right.name} <= box.keys():
                        low, high = box[left.name], box[right.name]
                        box[right.name] = Interval(_highest(low.lo, high.lo), high.hi)
                        box[left.name] = Interval(low.lo, _lowest(low.hi, high.hi))
        return box

    @property
    def box(self) -> dict[str, Interval]:
        """The range of each integer symbol under the conditions of the claim."""
        return self._box()

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

    def _chain(self) -> Iterator[Facts]:
        place: Facts | None = self
        while place:
            yield place
            place = place.parent

    def extends(self, other: Facts) -> bool:
        """Whether these are the other's facts, perhaps with more."""
        return any(place is other for place in self._chain())

    def knows(self, condition: Bool) -> bool:
        """Whether the condition is among the facts, or is evident from ranges."""
        return any(condition in place.known for place in self._chain()) or self._is_evident(
            condition
        )

    def above(self, term: Int) -> list[Int]:
        """What the facts put above the term."""
        return [one for place in self._chain() for one in place.uppers.get(term, ())]

    def below(self, term: Int) -> list[Int]:
        """What the facts put below the term."""
        return [one for place in self._chain() for one in place.lowers.get(term, ())]

    def conditionally_below(self, term: Int) -> list[tuple[Int, tuple[Bool, ...], int]]:
        """What a part of a disjunction puts below the term, with the disjunction and its place."""
        return [
            (sides(part)[0], clause, index)
            for clause in self.pending
            for index, part in enumerate(clause)
            if _is_order(part) and sides(part)[1] is term
        ]

    def not_below(self, value: int) -> list[Int]:
        """Terms of which a fact says that they are at least some constant that is at least this."""
        return [
            cast("Int", term)
            for place in self._chain()
            for term, lows in place.lowers.items()
            if any(low.op is Op.CONST and cast("int", low.value) >= value for low in lows)
            and term.op is not Op.CONST
        ]

    def range_of(self, term: Int) -> Interval:
        """The range of the term under the conditions of the claim."""
        return self.ranges.of(term)

    def at_least(self, term: Int, value: int) -> bool:
        """Whether the term's range starts at the value or above."""
        return self.ranges.ends(term)[0] >= value

    # What a state that meets the facts looks like

    def ordered(self, symbols: Sequence[Term]) -> list[Term]:
        """The symbols, those below or dividing another before it."""
        done: dict[Term, None] = {}

        def visit(symbol: Term, above: frozenset[Term]) -> None:
            for other in (*self.lowers.get(symbol, ()), *self._divisors.get(symbol, ())):
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
        for clause in (*((known,) for known in self.known), *self.pending):
            offered = [
                cast("Value", part.args[1].value)
                for part in cast("tuple[Bool, ...]", clause)
                if part.op is Op.EQ and part.args[0] is symbol and part.args[1].op is Op.CONST
            ]
            if offered:
                return offered
        return []

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
        if condition is TRUE or any(condition in place.known for place in self._chain()):
            return
        self.known[condition] = None
        positive = condition.args[0] if condition.op is Op.NOT else condition
        if positive.op in (Op.AND, Op.OR):
            parts = cast("tuple[Bool, ...]", positive.args)
            parts = tuple(~part for part in parts) if condition.op is Op.NOT else parts
            if (positive.op is Op.AND) is (condition.op is not Op.NOT):
                queue.extend(parts)
            else:
                self.pending.append(parts)
        elif positive.op in (Op.LE, Op.LT, Op.EQ) and isinstance(positive.args[0], Int):
            if condition.op is Op.EQ and condition.args[0].op is Op.MOD:
                value, divisor = cast("tuple[Int, Int]", condition.args[0].args)
                if condition.args[1] is integer(0):
                    self._divisors.setdefault(value, {})[divisor] = None
            for left, right in _orders(condition):
                self.uppers.setdefault(left, {})[right] = None
                self.lowers.setdefault(right, {})[left] = None

    def refutes(self, condition: Bool) -> bool:
        """Whether the condition is known to fail."""
        if self.knows(~condition):
            return True
        if condition.op is Op.EQ and isinstance(condition.args[0].sort, EnumSort):
            symbol, member = condition.args
            return member.op is Op.CONST and any(
                known.op is Op.EQ and known.args[0] is symbol and known.args[1] is not member
                for place in self._chain()
                for known in place.known
                if known.args[1:] and known.args[1].op is Op.CONST
            )
        return False

    def _is_evident(self, condition: Bool) -> bool:
        positive = condition.args[0] if condition.op is Op.NOT else condition
        if positive.op not in (Op.LE, Op.LT, Op.EQ) or not isinstance(positive.args[0], Int):
            return False
        (low, high), (lower, higher) = (
            self.ranges.ends(cast("Int", side)) for side in positive.args
        )
        if positive.op is Op.EQ:
            return condition.op is Op.NOT and (high < lower or higher < low)
        if condition.op is Op.NOT:
            return higher < low if positive.op is Op.LE else higher <= low
        return high < lower if positive.op is Op.LT else high <= lower


def _is_flag(condition: Bool) -> bool:
    positive = condition.args[0] if condition.op is Op.NOT else condition
    is_member = positive.op is Op.EQ and isinstance(positive.args[0].sort, EnumSort)
    return positive.op is Op.SYMBOL or is_member


def _highest(one: int | None, two: int | None) -> int | None:
    return max((end for end in (one, two) if end is not None), default=None)


def _lowest(one: int | None, two: int | None) -> int | None:
    return min((end for end in (one, two) if end is not None), default=None)


def _is_order(condition: Bool) -> bool:
    positive = condition.args[0] if condition.op is Op.NOT else condition
    return positive.op in (Op.LE, Op.LT) and isinstance(positive.args[0], Int)


def _orders(condition: Bool) -> Iterator[tuple[Int, Int]]:
    """What a comparison or its negation says, as `left <= right`; constants are moved by one."""
    positive = condition.args[0] if condition.op is Op.NOT else condition
    if positive.op is Op.EQ:
        left, right = cast("tuple[Int, Int]", positive.args)
        yield from () if condition.op is Op.NOT else ((left, right), (right, left))
        return
    left, right = cast("tuple[Int, Int]", positive.args)
    strict = positive.op is Op.LT
    if condition.op is Op.NOT:
        left, right, strict = right, left, not strict
    if not strict:
        yield left, right
    elif right.op is Op.CONST:
        yield left, right - 1
    elif left.op is Op.CONST:
        yield left + 1, right
    else:
        yield left, right


def sides(goal: Bool) -> tuple[Int, Int]:
    """The two sides of an order or of its negation, as `left <= right`."""
    positive = goal.args[0] if goal.op is Op.NOT else goal
    left, right = cast("tuple[Int, Int]", positive.args)
    strict = positive.op is Op.LT
    if goal.op is Op.NOT:
        left, right, strict = right, left, not strict
    return (left + integer(int(strict)), right)
