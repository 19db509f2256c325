"""What a claim's conditions say, taken apart once more, apart from the engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    EnumSort,
    Int,
    Op,
    Term,
    free_symbols,
    integer,
    topological,
)

from .ranges import Range, declared, range_of, simplified

__all__ = ["Facts", "junction", "orders_of", "parts_of"]

_ROUNDS = 3


def parts_of(conditions: Sequence[Bool], goals: Sequence[Bool]) -> tuple[list[Bool], Facts]:
    """The conjuncts of the goals, simplified under the conditions; and what these say."""
    given = Facts(conditions, {})
    given = Facts(conditions, given.box())
    box = given.box()
    flags = [one for one in given.known if _is_flag(one)]
    simple = simplified((*conditions, *goals), flags, box)
    facts = Facts((*flags, *simple[: len(conditions)]), box)
    parts: list[Bool] = []
    for goal in simple[len(conditions) :]:
        parts.extend(cast("tuple[Bool, ...]", goal.args) if goal.op is Op.AND else [goal])
    return parts, facts


class Facts:
    """Conditions known to hold: taken apart, with alternatives crossed out as long as it helps."""

    def __init__(
        self, given: Iterable[Bool], box: Mapping[str, Range], parent: Facts | None = None
    ) -> None:
        self.ranges: dict[Term, Range] = parent.ranges if parent else {}
        self._box = box
        self.known: dict[Bool, None] = dict(parent.known) if parent else {}
        self.clauses: list[tuple[Bool, ...]] = list(parent.clauses) if parent else []
        self.contradictory: bool = parent.contradictory if parent else False
        self._close(list(given))

    def assuming(self, *conditions: Bool) -> Facts:
        """These facts and more conditions."""
        return Facts(conditions, self._box, self)

    def _close(self, queue: list[Bool]) -> None:
        changed = True
        while queue or changed:
            while queue:
                self._add(queue.pop(), queue)
            kept, changed = [], False
            for clause in self.clauses:
                if any(self.knows(part) for part in clause):
                    continue
                possible = tuple(part for part in clause if not self.refutes(part))
                if len(possible) == 1:
                    queue.append(possible[0])
                elif possible:
                    kept.append(possible)
                self.contradictory = self.contradictory or not possible
            self.clauses = kept

    def _add(self, condition: Bool, queue: list[Bool]) -> None:
        self.contradictory = self.contradictory or condition is FALSE or self.refutes(condition)
        if condition is TRUE or condition in self.known:
            return
        self.known[condition] = None
        parts, all_hold = junction(condition)
        if parts and all_hold:
            queue.extend(parts)
        elif parts:
            self.clauses.append(parts)

    def knows(self, condition: Bool) -> bool:
        """Whether the condition is a fact, or evident from ranges."""
        return condition in self.known or self._is_evident(condition)

    def refutes(self, condition: Bool) -> bool:
        """Whether the condition's negation is a fact, or the symbol is another member."""
        if self.knows(~condition):
            return True
        if condition.op is not Op.EQ or not isinstance(condition.args[0].sort, EnumSort):
            return False
        symbol, member = condition.args
        return member.op is Op.CONST and any(
            one.op is Op.EQ
            and one.args[0] is symbol
            and one.args[1].op is Op.CONST
            and one.args[1] is not member
            for one in self.known
        )

    def _is_evident(self, condition: Bool) -> bool:
        positive = condition.args[0] if condition.op is Op.NOT else condition
        if positive.op not in (Op.LE, Op.LT, Op.EQ) or not isinstance(positive.args[0], Int):
            return False
        (low, high), (lower, higher) = (self.range_of(cast("Int", one)) for one in positive.args)
        match positive.op, condition.op is Op.NOT:
            case Op.LE, False:
                return high <= lower
            case Op.LT, False:
                return high < lower
            case Op.LE, True:
                return higher < low
            case Op.LT, True:
                return higher <= low
            case _, negated:
                return negated and (high < lower or higher < low)

    def range_of(self, term: Int) -> Range:
        """The range of the term, for symbols in the box."""
        if term not in self.ranges:
            for node in topological((term,)):
                if isinstance(node, Int) and node not in self.ranges:
                    self.ranges[node] = range_of(node, self.ranges, self._box)
        return self.ranges[term]

    def at_least(self, term: Int, value: int) -> bool:
        """Whether the term's range starts at the value or above."""
        return self.range_of(term)[0] >= value

    def orders(self) -> Iterator[tuple[Int, Int]]:
        """Every `left <= right` among the facts."""
        for condition in self.known:
            yield from orders_of(condition)

    def box(self) -> dict[str, Range]:
        """The range of each symbol, from its domain and what the facts say of it outright."""
        box: dict[str, Range] = {}
        for symbol in free_symbols(*self.known):
            if isinstance(symbol, Int):
                box[symbol.name] = declared(symbol)
        pairs = list(self.orders())
        for left, right in pairs:
            if left.op is Op.SYMBOL and right.op is Op.CONST:
                lo, hi = box[left.name]
                box[left.name] = (lo, min(hi, cast("int", right.value)))
            elif left.op is Op.CONST and right.op is Op.SYMBOL:
                lo, hi = box[right.name]
                box[right.name] = (max(lo, cast("int", left.value)), hi)
        for clause in self.clauses:
            _offer(clause, box)
        for condition in self.known:
            _offer(junction(condition)[0], box)
            _step(condition, box)
        box = {name: ends for name, ends in box.items() if ends[0] <= ends[1]}
        for _ in range(_ROUNDS):
            for left, right in pairs:
                if left.op is right.op is Op.SYMBOL and {left.name, right.name} <= box.keys():
                    (lo, hi), (lower, higher) = box[left.name], box[right.name]
                    box[right.name] = (max(lo, lower), higher)
                    box[left.name] = (lo, min(hi, higher))
        return box


def junction(condition: Bool) -> tuple[tuple[Bool, ...], bool]:
    """The conjuncts (True) or disjuncts (False) of a condition, negation pushed inwards."""
    positive = condition.args[0] if condition.op is Op.NOT else condition
    if positive.op not in (Op.AND, Op.OR):
        return (), True
    parts = cast("tuple[Bool, ...]", positive.args)
    signed = tuple(~part for part in parts) if condition.op is Op.NOT else parts
    return signed, (positive.op is Op.AND) is (condition.op is not Op.NOT)


def orders_of(condition: Bool) -> Iterator[tuple[Int, Int]]:
    """What a comparison says as `left <= right`; beside a constant, strictness moves it by one."""
    positive = condition.args[0] if condition.op is Op.NOT else condition
    if positive.op not in (Op.LE, Op.LT, Op.EQ) or not isinstance(positive.args[0], Int):
        return
    left, right = cast("tuple[Int, Int]", positive.args)
    if positive.op is Op.EQ:
        yield from () if condition.op is Op.NOT else ((left, right), (right, left))
        return
    strict = positive.op is Op.LT
    if condition.op is Op.NOT:
        left, right, strict = right, left, not strict
    if strict and right.op is Op.CONST:
        yield left, right - 1
    elif strict and left.op is Op.CONST:
        yield left + 1, right
    else:
        yield left, right


def _offer(parts: Sequence[Bool], box: dict[str, Range]) -> None:
    """Narrow the box by a disjunction that offers values for one symbol."""
    if not parts or any(one.op is not Op.EQ or not isinstance(one.args[0], Int) for one in parts):
        return
    symbols = {one.args[0] for one in parts}
    if len(symbols) == 1 and all(one.args[1].op is Op.CONST for one in parts):
        (symbol,) = symbols
        if symbol.op is Op.SYMBOL:
            values = [cast("int", one.args[1].value) for one in parts]
            lo, hi = box[symbol.name]
            box[symbol.name] = (max(lo, min(values)), min(hi, max(values)))


def _step(condition: Bool, box: dict[str, Range]) -> None:
    """Round a symbol's range to the multiples that it is one of."""
    if condition.op is Op.EQ and condition.args[0].op is Op.MOD and condition.args[1] is integer(0):
        symbol, unit = condition.args[0].args
        if symbol.op is Op.SYMBOL and unit.op is Op.CONST and cast("int", unit.value) > 0:
            (lo, hi), step = box[symbol.name], cast("int", unit.value)
            box[symbol.name] = (
                -(-lo // step) * step if isinstance(lo, int) else lo,
                hi // step * step if isinstance(hi, int) else hi,
            )


def _is_flag(condition: Bool) -> bool:
    positive = condition.args[0] if condition.op is Op.NOT else condition
    is_member = positive.op is Op.EQ and isinstance(positive.args[0].sort, EnumSort)
    return positive.op is Op.SYMBOL or is_member
