"""Monotone calculus: `s <= t` from the way in which the two are built, rule by rule.

A bound compares a size with the same size at the ends of an envelope. Both are made of the same
sums, products, paddings and choices, so the comparison falls apart into comparisons of their
parts, down to facts that the claim assumes. Nothing is searched for in numbers, so the size of the
envelope does not matter. Every success carries its derivation, which `certify` checks again; every
failure is `None`, and says nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from routeproof.spec.derivation import Digests, Rule, Step
from routeproof.spec.terms import (
    TRUE,
    Bool,
    Int,
    Op,
    Term,
    all_of,
    integer,
    symbols_among,
    topological,
)

from .facts import Facts, sides
from .likeness import Likeness
from .polynomials import Monomial, Polynomial, Polynomials, difference, is_whole, shared, without
from .readings.intervals import prune
from .witnesses import Witnesses

__all__ = ["Calculus", "compares_sizes"]

_MOST_STEPS = 2_000
_MOST_CASES = 2
_MOST_TRIED = 3
_FEW_STEPS = 2
_CONTEXT_STEPS = 10
_DEEPEST = 60

_Pair = tuple[Int, Int]
_Place = tuple[int, Monomial, Int]


class Calculus:
    """Derivations under one set of conditions."""

    def __init__(self, conditions: Sequence[Bool], goals: Sequence[Bool]) -> None:
        """Take the conditions apart once; every goal is derived from the same facts."""
        below = topological(tuple(conditions))
        nodes = [*below, *topological(tuple(goals), set(below))]
        given = self.facts = Facts(conditions, symbols=symbols_among(below))
        self.box, flags = given.ranges.box, given.flags
        simple = cast("tuple[Bool, ...]", prune((*conditions, *goals), self.box, flags, nodes))
        self._root = Facts((*flags, *simple[: len(conditions)]), box=self.box)
        self.parts = [part for goal in simple[len(conditions) :] for part in _parts(goal)]
        """The conjuncts of the goals, simplified, each of which is derived by itself."""
        self.witnesses = Witnesses(conditions, below, nodes, given)
        self.names = Digests()
        self._polynomials = Polynomials(self.names)
        self._proved: dict[_Pair, list[tuple[Facts, Step]]] = {}
        self._failed: set[tuple[Facts, Int, Int]] = set()
        self._open: set[tuple[Facts, Int, Int]] = set()
        self._verdicts: dict[tuple[Facts, Bool], Step | None] = {}
        self._simple = simple
        self._likeness = Likeness(self._root)
        self.steps = 0

    @cached_property
    def _other_tests(self) -> list[Bool]:
        return _tests(all_of(*self._simple))

    def derive(self, part: Bool) -> Step | None:
        """A derivation of one part, or None if none was found."""
        self.steps = 0
        return self._in_cases(part, self._root, _MOST_CASES)

    def _in_cases(self, goal: Bool, facts: Facts, left: int) -> Step | None:
        """The goal, or else the goal where a condition holds and where it fails."""
        if (step := self._holds(goal, facts)) or not left:
            return step
        for test in dict.fromkeys((*_tests(goal), *self._other_tests)):
            if facts.knows(test) or facts.refutes(test):
                continue
            one = self._in_cases(goal, facts.with_also(test), left - 1)
            two = one and self._in_cases(goal, facts.with_also(~test), left - 1)
            if one and two:
                return Step(Rule.CASES, (test,), (one, two))
        return None

    # Conditions

    def _holds(self, goal: Bool, facts: Facts) -> Step | None:
        key = (facts, goal)
        if key not in self._verdicts:
            self._verdicts[key] = None  # not known while it is being found out
            self._verdicts[key] = self._found(goal, facts)
        return self._verdicts[key]

    def _found(self, goal: Bool, facts: Facts) -> Step | None:
        if facts.contradictory:
            return Step(Rule.ABSURD)
        if goal is TRUE or facts.knows(goal):
            return Step(Rule.FACT)
        positive = goal.args[0] if goal.op is Op.NOT else goal
        if positive.op in (Op.AND, Op.OR):
            parts = cast("tuple[Bool, ...]", positive.args)
            signed = tuple(~part for part in parts) if goal.op is Op.NOT else parts
            every = (positive.op is Op.AND) is (goal.op is not Op.NOT)
            return self._every(signed, facts) if every else self._some(signed, facts)
        if not isinstance((*positive.args, goal)[0], Int):
            return None
        if positive.op is Op.EQ:
            return self._equal(goal, facts)
        return self._all(Rule.ORDER, (), [sides(goal)], facts)

    def _every(self, parts: Sequence[Bool], facts: Facts) -> Step | None:
        premises = []
        for part in parts:
            premise = self._holds(part, facts)
            if premise is None:
                return None
            premises.append(premise)
        return Step(Rule.ALL, (), tuple(premises))

    def _some(self, parts: Sequence[Bool], facts: Facts) -> Step | None:
        """One part, where the others fail; that says nothing of a flag that is free."""
        for index in reversed(range(len(parts))):
            if facts.is_free(parts[index]):
                continue
            self.steps += _CONTEXT_STEPS
            if self.steps > _MOST_STEPS:
                return None
            others = all_of(*(~part for at, part in enumerate(parts) if at != index))
            premise = self._holds(parts[index], facts.with_also(others))
            if premise:
                return Step(Rule.ANY, (index,), (premise,))
        return None

    def _equal(self, goal: Bool, facts: Facts) -> Step | None:
        left, right = cast("_Pair", (goal.args[0] if goal.op is Op.NOT else goal).args)
        if goal.op is Op.EQ:
            return self._all(Rule.EQUAL, (), [(left, right), (right, left)], facts)
        for index, (low, high) in enumerate(((left, right), (right, left))):
            if step := self._all(Rule.APART, (index,), [(low + 1, high)], facts):
                return step
        return None

    def _decided(self, condition: Bool, facts: Facts) -> tuple[bool, Step] | None:
        """Whether the condition is derived to hold, or to fail."""
        for value, goal in ((True, condition), (False, ~condition)):
            if step := self._holds(goal, facts):
                return value, step
        return None

    # Comparisons

    def _at_most(self, left: Int, right: Int, facts: Facts) -> Step | None:
        """A derivation of `left <= right`."""
        if left is right:
            return Step(Rule.SAME)
        if facts.ends(left)[1] <= facts.ends(right)[0]:
            return Step(Rule.RANGE)
        for place, step in self._proved.get((left, right), ()):
            if facts.extends(place):
                return step
        key = (facts, left, right)
        if key in self._failed or key in self._open or len(self._open) > _DEEPEST:
            return None
        if not self._is_possible(left, right, facts):
            self._failed.add(key)
            return None
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return None
        self._open.add(key)
        found = next((step for step in self._ways(left, right, facts) if step), None)
        self._open.remove(key)
        if found:
            self._proved.setdefault((left, right), []).append((facts, found))
        else:
            self._failed.add(key)
        return found

    def _is_possible(self, left: Int, right: Int, facts: Facts) -> bool:
        """Whether the sides have to do with each other, and no admitted state refutes it."""
        return self._likeness.are_related(left, right) and not self.witnesses.refutes(
            left, right, facts
        )

    def _all(
        self, rule: Rule, choices: tuple[object, ...], pairs: Sequence[_Pair], facts: Facts
    ) -> Step | None:
        """The rule, if each of the comparisons that it rests on is derived."""
        premises = []
        for left, right in pairs:
            premise = self._at_most(left, right, facts)
            if premise is None:
                return None
            premises.append(premise)
        return Step(rule, choices, tuple(premises))

    def _ways(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """The rules that may apply, the cheapest first."""
        yield from self._by_choice(left, right, facts)
        if right.op is Op.CONST:
            yield from self._by_facts(left, right, facts)
        yield from self._by_greatest(left, right, facts)
        yield from self._by_branches(left, right, facts)
        yield from self._by_extremes(left, right, facts)
        yield from self._by_rounding(left, right, facts)
        if {left.op, right.op} & {Op.ADD, Op.SUB, Op.MUL, Op.ALIGN_UP, Op.ITE}:
            yield from self._by_parts(left, right, facts)
        yield from self._by_either(left, right, facts)
        if right.op is not Op.CONST:
            yield from self._by_facts(left, right, facts)

    def _by_choice(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """If-then-else: the branch that is known to be taken."""
        for side, term in enumerate((left, right)):
            if term.op is Op.ITE and (known := self._decided(cast("Bool", term.args[0]), facts)):
                value, why = known
                chosen = cast("Int", term.args[1 if value else 2])
                pair = (chosen, right) if side == 0 else (left, chosen)
                premise = self._at_most(*pair, facts)
                yield premise and Step(Rule.CHOSEN, (side, int(value)), (why, premise))
                return

    def _by_branches(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """If-then-else on both sides: branches beside each other."""
        if left.op is right.op is Op.ITE:
            one, two = cast("tuple[Bool, Bool]", (left.args[0], right.args[0]))
            pairs = list(zip(_ints(left)[1:], _ints(right)[1:], strict=True))
            crossed = [(_ints(left)[2], _ints(right)[1]), (_ints(left)[1], _ints(right)[2])]
            for index, (low, high) in enumerate(((one, two), (two, one))):
                if low is high and index:
                    return
                bridge = self._implies(low, high, facts)
                extra = [crossed[index]] if low is not high else []
                both = self._all(Rule.GUARDED, (), [*pairs, *extra], facts) if bridge else None
                if bridge and both:
                    yield Step(Rule.GUARDED, (index,), (bridge, *both.premises))

    def _by_either(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """If-then-else of which nothing is known: both of its branches."""
        for side, term in enumerate((left, right)):
            if term.op is Op.ITE:
                pairs = [(one, right) if side == 0 else (left, one) for one in _ints(term)[1:]]
                yield self._all(Rule.EITHER, (side,), pairs, facts)

    def _implies(self, one: Bool, two: Bool, facts: Facts) -> Step | None:
        """A derivation that the first condition holds only where the second does."""
        if one is two:
            return Step(Rule.SAME)
        if one.op is two.op and one.op in (Op.LT, Op.LE) and isinstance(one.args[0], Int):
            (low, high), (lower, higher) = _ints(one), _ints(two)
            return self._all(Rule.WIDER, (), [(lower, low), (high, higher)], facts)
        if one.op is two.op is Op.NOT:
            return self._implies(cast("Bool", two.args[0]), cast("Bool", one.args[0]), facts)
        if one.op is two.op and one.op in (Op.AND, Op.OR) and len(one.args) == len(two.args):
            pairs = zip(
                cast("tuple[Bool, ...]", one.args), cast("tuple[Bool, ...]", two.args), strict=True
            )
            premises = [self._implies(*pair, facts) for pair in pairs]
            if all(premises):
                return Step(Rule.WIDER, (), cast("tuple[Step, ...]", tuple(premises)))
        return None

    def _by_greatest(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """A maximum on the right: the argument that looks most like the left side first."""
        if right.op is not Op.MAX:
            return
        ways = sorted(_arguments(right), key=lambda way: self._likeness.unshared(left, way[0]))
        for argument, path in ways:
            step = self._at_most(left, argument, facts)
            for index in path:
                step = step and Step(Rule.GREATEST_RIGHT, (index,), (step,))
            yield step

    def _by_extremes(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """Minimum and maximum, on the side where one argument is enough or all are needed."""
        if left.op is Op.MAX:
            yield self._all(Rule.GREATEST_LEFT, (), [(one, right) for one in _ints(left)], facts)
        if right.op is Op.MIN:
            yield self._all(Rule.LEAST_RIGHT, (), [(left, one) for one in _ints(right)], facts)
        if left.op is Op.MIN:
            for index, one in enumerate(_ints(left)):
                yield self._all(Rule.LEAST_LEFT, (index,), [(one, right)], facts)
        if left.op is Op.FIRST:
            limit, *_, otherwise = left.args
            last = (cast("Int", limit), integer(cast("int", left.value)))
            for index, one in enumerate(last):
                pairs = [(one, right), (integer(1), right), (cast("Int", otherwise), right)]
                yield self._all(Rule.SEARCH, (index,), pairs, facts)

    def _by_rounding(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """Quotients and multiples."""
        quotients = (Op.FLOOR_DIV, Op.CEIL_DIV)
        if left.op is right.op and left.op in (*quotients, Op.ALIGN_UP):
            (one, by), (two, over) = _ints(left), _ints(right)
            grows = left.op in quotients and facts.at_least(one, 0)
            if facts.at_least(over, 1) and (by is over or grows):
                yield self._all(Rule.QUOTIENT, (), [(one, two), (over, by)], facts)
        if left.op in quotients:
            value, by = _ints(left)
            if facts.at_least(value, 0) and facts.at_least(by, 1):
                yield self._all(Rule.ROUNDED, (), [(value, right)], facts)
        if right.op is Op.MUL and right.args[0].op is Op.FLOOR_DIV:
            (value, step), times = _ints(cast("Int", right.args[0])), right.args[1]
            if step is times and facts.at_least(step, 1) and facts.knows(left % step == 0):
                yield self._all(Rule.MULTIPLE, (), [(left, value)], facts)

    def _by_facts(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """Something between the two, of which a fact knows that it is above or below."""
        for middle in facts.above(left):
            yield self._all(Rule.BELOW, (middle,), [(middle, right)], facts)
        if right.op is Op.CONST and left.op is Op.CONST:
            return
        below: list[tuple[Int, tuple[Bool, ...]]] = [
            *((middle, ()) for middle in facts.below(right)),
            *facts.conditionally_below(right),
        ]
        gaps = {middle: self.witnesses.gap(left, middle, facts) for middle, _ in below}
        unlike = {
            middle: (self._likeness.difference(left, middle), gap)
            for middle, gap in gaps.items()
            if gap < math.inf
        }
        possible = [way for way in below if way[0] in unlike]
        near = heapq.nsmallest(_MOST_TRIED, possible, key=lambda way: gaps[way[0]])
        likely = heapq.nsmallest(_MOST_TRIED, possible, key=lambda way: unlike[way[0]])
        for middle, others in dict.fromkeys((*likely, *near)):
            premise = self._at_most(left, middle, facts)
            if premise and (why := self._every(others, facts)):
                yield Step(Rule.ABOVE, (middle, others), (premise, *why.premises))
        if left.op is Op.CONST:
            for middle in facts.not_below(cast("int", left.value)):
                yield self._all(Rule.BELOW, (middle,), [(middle, right)], facts)

    # Sums of products

    def _expand(self, term: Int) -> Polynomial:
        return self._polynomials.expand(term)

    def _by_parts(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """Each product on the left is at most one on the right, and the rest is not negative."""
        gap = difference(self._expand(left), self._expand(right))
        low = {monomial: c for monomial, c in gap.items() if c > 0}
        high = {monomial: -c for monomial, c in gap.items() if c < 0}
        if len(low) == 1 and low == {(left,): 1} and len(high) == 1 and high == {(right,): 1}:
            yield from self._by_padding(left, right, facts)
            return
        yield from self._by_unit(low, high, facts)
        matched = self._matched(low, high, facts)
        if isinstance(matched, Step):
            yield matched
            return
        for place in matched:
            before = self.steps
            yield from self._rewritten(*place, low, high, facts)
            if self.steps - before > _FEW_STEPS:
                return  # it was a fair try

    def _by_unit(self, low: Polynomial, high: Polynomial, facts: Facts) -> Iterator[Step | None]:
        """A padded value is at most a multiple of its unit if the value is."""
        if len(low) == 1 and list(low.values()) == [1]:
            (factors,) = low
            if len(factors) == 1 and factors[0].op is Op.ALIGN_UP:
                value, unit = _ints(factors[0])
                if unit.op is Op.CONST and facts.at_least(unit, 1) and is_whole(high, unit):
                    pair = (value, self._polynomials.total(high))
                    yield self._all(Rule.UNIT, (), [pair], facts)

    def _by_padding(self, left: Int, right: Int, facts: Facts) -> Iterator[Step | None]:
        """Two padded values, or one: padding adds less than its unit, and takes nothing away."""
        for side, term in enumerate((left, right)):
            if term.op is Op.ALIGN_UP:
                low: Polynomial = {(left,): 1}
                high: Polynomial = {(right,): 1}
                yield from self._rewritten(side, (term,), term, low, high, facts)

    def _matched(self, low: Polynomial, high: Polynomial, facts: Facts) -> Step | list[_Place]:
        """Which product covers which, how often, and why; or else where to rewrite."""
        match = _Match(dict(high))
        needs = {
            small: self._placed(small, low[small], match, facts)
            for small in sorted(low, key=len, reverse=True)
        }
        failed = {small: need for small, need in needs.items() if need}
        left_over = {large: count for large, count in match.room.items() if count}
        if all(self._least(large, facts, 0) for large in left_over):
            if not failed:
                return Step(Rule.PARTS, tuple(match.pairs), tuple(match.premises))
            for large in filter(_is_compound, left_over if match.pairs else ()):
                if step := self._at_most(*self._totals(failed, {large: left_over[large]}), facts):
                    choices = (*match.pairs, (tuple(failed), large, 0))
                    return Step(Rule.PARTS, choices, (*match.premises, step))
        return [*_places(0, list(failed)), *_places(1, list(dict.fromkeys((*left_over, *high))))]

    def _placed(self, small: Monomial, need: int, match: _Match, facts: Facts) -> int:
        """Cover the product, needed so often, by what there is room in; what is left uncovered."""
        for large in sorted(match.room, key=lambda one: self._likeness.unlike(small, one)):
            room = match.room[large]
            unit = 1 if small else self._least(large, facts)
            if not room or not unit:
                continue
            if room != need and _is_compound(large):
                whole = self._totals({small: need}, {large: room})
                if step := self._at_most(*whole, facts):
                    match.add(small, large, 0, room, step)
                    return 0
            if step := self._covers(small, large, facts):
                used = min(-(-need // unit), room)
                match.add(small, large, used, used, step)
                need -= used * unit
                if need <= 0:
                    return 0
        return need

    def _totals(self, low: Polynomial, high: Polynomial) -> _Pair:
        return self._polynomials.total(low), self._polynomials.total(high)

    def _least(self, monomial: Monomial, facts: Facts, least: int = 1) -> int:
        """The least value of the product if all its factors are at least this; else 0."""
        lows = [facts.ends(factor)[0] for factor in monomial]
        if any(low < least for low in lows):
            return 0
        return math.prod(cast("list[int]", lows)) if least else 1

    def _covers(self, small: Monomial, large: Monomial, facts: Facts) -> Step | None:
        """A derivation of `product(small) <= product(large)`, factor by factor."""
        common, one, two = shared(small, large)
        if not all(facts.at_least(factor, 0) for factor in (*common, *one, *two)):
            return None
        if len(one) == 1 and len(two) != 1 and one[0].op is not Op.SYMBOL:
            return self._covers_as_one(one, two, facts)
        pairs: list[_Pair] = []
        premises: list[Step] = []
        rest = two
        for factor in one:
            likely = sorted(rest, key=lambda other: self._likeness.unlike((factor,), (other,)))
            tried = ((other, self._at_most(factor, other, facts)) for other in likely[:2])
            found = next(((other, step) for other, step in tried if step), None)
            if found is None:
                return self._covers_as_one(one, two, facts)
            pairs.append((factor, found[0]))
            premises.append(found[1])
            rest = without(rest, (found[0],))
        if not all(facts.at_least(factor, 1) for factor in rest):
            return None
        return Step(Rule.FACTORS, tuple(pairs), tuple(premises))

    def _covers_as_one(self, one: Monomial, two: Monomial, facts: Facts) -> Step | None:
        """What the two products do not share, compared as one value each."""
        if (len(one) == 1) is (len(two) == 1):
            return None
        pair = (self._polynomials.product(one), self._polynomials.product(two))
        return self._all(Rule.FACTORS, ((one, two),), [pair], facts)

    def _rewritten(  # noqa: PLR0913, PLR0917 - a place in a comparison
        self,
        side: int,
        monomial: Monomial,
        factor: Int,
        low: Polynomial,
        high: Polynomial,
        facts: Facts,
    ) -> Iterator[Step | None]:
        rest = without(monomial, (factor,))
        if not all(facts.at_least(one, 0) for one in rest):
            return

        def pair(new: Int, factors: Monomial = (factor,)) -> _Pair:
            replace = self._polynomials.replace
            one = replace(low, monomial, factors, new) if side == 0 else low
            two = replace(high, monomial, factors, new) if side == 1 else high
            return self._totals(one, two)

        place = (side, monomial, factor)
        match factor.op:
            case Op.ITE:
                test, *branches = factor.args
                if known := self._decided(cast("Bool", test), facts):
                    holds, why = known
                    premise = self._at_most(*pair(_ints(factor)[1 if holds else 2]), facts)
                    yield premise and Step(Rule.REPLACED, (*place, int(holds)), (why, premise))
                else:
                    pairs = [pair(cast("Int", one)) for one in branches]
                    yield self._all(Rule.REPLACED, (*place, 2), pairs, facts)
            case Op.MAX if side == 0:
                yield self._all(
                    Rule.REPLACED, (*place, 0), [pair(one) for one in _ints(factor)], facts
                )
            case Op.MIN if side == 0:
                for index, one in enumerate(_ints(factor)):
                    yield self._all(Rule.REPLACED, (*place, index), [pair(one)], facts)
            case Op.ALIGN_UP if facts.at_least(_ints(factor)[1], 1):
                value, unit = _ints(factor)
                new = value + (unit - 1) if side == 0 else value
                yield self._all(Rule.REPLACED, (*place, 0), [pair(new)], facts)
            case Op.FLOOR_DIV if side == 0 and facts.at_least(_ints(factor)[1], 1):
                value, divisor = _ints(factor)
                terms = list(self._expand(divisor).items())
                if (
                    len(terms) == 1
                    and terms[0][1] == 1
                    and not Counter(terms[0][0]) - Counter(rest)
                ):
                    changed = pair(value, (factor, *terms[0][0]))
                    yield self._all(Rule.CANCELLED, place, [changed], facts)


@dataclass(slots=True)
class _Match:
    """Products on the right with what room is left in each, and which cover which, and why."""

    room: Polynomial
    pairs: list[tuple[Monomial, Monomial, int]] = field(default_factory=list)
    premises: list[Step] = field(default_factory=list)

    def add(self, small: Monomial, large: Monomial, times: int, used: int, why: Step) -> None:
        """Note that the one covers the other so many times (0: as a whole)."""
        self.pairs.append((small, large, times))
        self.premises.append(why)
        self.room[large] -= used


_REPLACED = ((Op.FLOOR_DIV, Op.MAX, Op.ALIGN_UP, Op.MIN, Op.ITE), (Op.ALIGN_UP, Op.ITE))


def _places(side: int, monomials: Sequence[Monomial]) -> list[_Place]:
    """Where in the products something can be replaced, what loses least first."""
    found = [
        (side, monomial, factor)
        for monomial in monomials
        for factor in dict.fromkeys(monomial)
        if factor.op in _REPLACED[side]
    ]
    return sorted(found, key=lambda place: _REPLACED[side].index(place[2].op))


def _arguments(greatest: Int) -> list[tuple[Int, tuple[int, ...]]]:
    """What a maximum of maxima is over, each with its places in these, the innermost first."""
    found: list[tuple[Int, tuple[int, ...]]] = []
    stack: list[tuple[Int, tuple[int, ...]]] = [(greatest, ())]
    while stack:
        term, path = stack.pop()
        if term.op is Op.MAX:
            stack += [(one, (index, *path)) for index, one in enumerate(_ints(term))]
        else:
            found.append((term, path))
    return found


def _tests(goal: Bool) -> list[Bool]:
    """Conditions of choices below the goal that compare a symbol with a constant, or are flags."""
    found = (node.args[0] for node in reversed(topological((goal,))) if node.op is Op.ITE)
    return [
        cast("Bool", test)
        for test in dict.fromkeys(found)
        if test.op is Op.SYMBOL
        or (test.args and all(arg.op in (Op.SYMBOL, Op.CONST) for arg in test.args))
    ]


def compares_sizes(conditions: Sequence[Bool], goals: Iterable[Bool]) -> bool:
    """Whether a goal orders products, under conditions that order sizes: what this is for."""
    given = [part for one in conditions for part in _parts(one)]
    if not any(_orders_sizes(part) for part in given):
        return False
    orders = (
        node for node in topological(tuple(goals)) if node.op in (Op.LE, Op.LT) and not node.bound
    )
    return any(_is_product(one) for order in orders for one in topological(order.args))


def _orders_sizes(condition: Bool) -> bool:
    return condition.op in (Op.LE, Op.LT) and all(one.op is not Op.CONST for one in condition.args)


def _is_product(term: Term) -> bool:
    return term.op is Op.MUL and all(arg.op is not Op.CONST for arg in term.args)


def _parts(goal: Bool) -> list[Bool]:
    """The conjuncts of a goal, each of which is derived by itself."""
    return list(cast("tuple[Bool, ...]", goal.args)) if goal.op is Op.AND else [goal]


def _is_compound(monomial: Monomial) -> bool:
    return len(monomial) == 1 and monomial[0].op is not Op.SYMBOL


def _ints(term: Term) -> tuple[Int, ...]:
    return cast("tuple[Int, ...]", term.args)
