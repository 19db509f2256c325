"""Derivations followed step by step: each must be an instance of its rule, down to facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from routeproof.spec.derivation import Digests, Rule, Step
from routeproof.spec.errors import ModelError
from routeproof.spec.terms import TRUE, Bool, Int, Op, Term, all_of, integer, topological

from .conditions import Facts, junction, orders_of
from .refused import RefusedError, require
from .sums import Monomial, Polynomial, Sums, add, is_multiple, is_whole, product

__all__ = ["Use", "check_derivation"]

Use = tuple[Int, Int, tuple[Rule, ...]]
"""A fact used, `left <= right`, and the rules between the goal and it."""


def check_derivation(part: Bool, step: Step, facts: Facts, names: Digests) -> list[Use]:
    """Follow the derivation of one part; a `RefusedError` names the first step that fails.

    What comes back are the facts about symbols that it rests on, for people.
    """
    checker = _Checker(names, facts)
    try:
        checker.holds(part, step, facts)
    except (ModelError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"a step is malformed: {error}") from error
    return checker.uses


class _Checker:
    """Follows a derivation; whatever is asked for twice under the same facts is checked once."""

    def __init__(self, names: Digests, facts: Facts) -> None:
        self._names = names
        self._sums = Sums(names)
        nodes = topological(tuple(facts.known))
        self._terms = {names(node): node for node in nodes}
        self._done: set[tuple[Facts, Term, Term, Step]] = set()
        self._path: list[Rule] = []
        self.uses: list[Use] = []

    def _term(self, name: object, facts: Facts) -> Term:
        """The term of that name: one of the claim, or a side of what the facts order."""
        if name not in self._terms:
            self._learn([side for pair in facts.orders() for side in pair])
        require(isinstance(name, str) and name in self._terms, f"no term {name} in the claim")
        return self._terms[cast("str", name)]

    # Conditions

    def holds(self, goal: Bool, step: Step, facts: Facts) -> None:
        """The condition holds under the facts."""
        self._learn((goal,))
        parts, all_hold = junction(goal)
        match step.rule:
            case Rule.ABSURD:
                require(facts.contradictory, "the facts do not contradict each other")
            case Rule.FACT:
                require(goal is TRUE or facts.knows(goal), "not a fact")
            case Rule.ALL:
                require(bool(parts) and all_hold, "not a conjunction")
                require(len(parts) == len(step.premises), "a premise is missing")
                for part, premise in zip(parts, step.premises, strict=True):
                    self.holds(part, premise, facts)
            case Rule.ANY:
                at = cast("int", step.choices[0])
                require(not all_hold and 0 <= at < len(parts), "not a disjunction")
                others = all_of(*(~part for index, part in enumerate(parts) if index != at))
                self.holds(parts[at], step.premises[0], self._assuming(facts, others))
            case Rule.CASES:
                test = cast("Bool", self._term(step.choices[0], facts))
                require(isinstance(test, Bool), "not a condition")
                for literal, premise in zip((test, ~test), step.premises, strict=True):
                    self.holds(goal, premise, self._assuming(facts, literal))
            case _:
                self._compared(goal, step, facts)

    def _assuming(self, facts: Facts, condition: Bool) -> Facts:
        return facts if facts.knows(condition) else facts.assuming(condition)

    def _compared(self, goal: Bool, step: Step, facts: Facts) -> None:
        positive = cast("Bool", goal.args[0] if goal.op is Op.NOT else goal)
        require(positive.op in (Op.LE, Op.LT, Op.EQ), "not a comparison")
        require(isinstance(positive.args[0], Int), "not a comparison of integers")
        left, right = cast("tuple[Int, Int]", positive.args)
        match step.rule, positive.op is Op.EQ:
            case Rule.ORDER, False:
                strict = positive.op is Op.LT
                if goal.op is Op.NOT:
                    left, right, strict = right, left, not strict
                self.at_most(left + int(strict), right, step.premises[0], facts)
            case Rule.EQUAL, True if goal.op is Op.EQ:
                self.at_most(left, right, step.premises[0], facts)
                self.at_most(right, left, step.premises[1], facts)
            case Rule.APART, True if goal.op is Op.NOT:
                low, high = (left, right) if step.choices[0] == 0 else (right, left)
                self.at_most(low + 1, high, step.premises[0], facts)
            case _:
                raise RefusedError(f"{step.rule} does not apply to {goal.op}")

    # Comparisons

    def at_most(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """`left <= right` under the facts."""
        key = (facts, left, right, step)
        if key not in self._done:
            self._learn((left, right))
            rule = _RULES.get(step.rule)
            if rule is None:
                raise RefusedError(f"{step.rule} does not compare")
            self._path.append(step.rule)
            rule(self, left, right, step, facts)
            self._path.pop()
            self._done.add(key)

    def _learn(self, terms: Sequence[Term]) -> None:
        for term in terms:
            if self._names(term) not in self._terms:
                self._terms |= {self._names(node): node for node in topological((term,))}

    def all(self, pairs: Sequence[tuple[Int, Int]], premises: Sequence[Step], facts: Facts) -> None:
        """Each comparison by its premise."""
        require(len(pairs) == len(premises), "a premise is missing")
        for (left, right), premise in zip(pairs, premises, strict=True):
            self.at_most(left, right, premise, facts)

    def same(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """Two sums with the same products."""
        del step, facts
        require(not add(self._sums.of(left), self._sums.of(right), -1), "not the same")

    def ranges(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """The range of one ends where that of the other begins."""
        del step
        require(facts.range_of(left)[1] <= facts.range_of(right)[0], "the ranges overlap")

    def _is_same(self, one: Int, two: Int) -> bool:
        return one is two or not add(self._sums.of(one), self._sums.of(two), -1)

    def below(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A fact puts a term above the left side."""
        middle = cast("Int", self._term(step.choices[0], facts))
        least = left.value if left.op is Op.CONST else None

        def says(low: Int, high: Int) -> bool:
            if high is not middle:
                return False
            if least is not None and low.op is Op.CONST:
                return cast("int", low.value) >= cast("int", least)
            return self._is_same(low, left)

        require(any(says(*pair) for pair in facts.orders()), "no fact puts the term above")
        if left.op is Op.SYMBOL:
            self.uses.append((left, middle, tuple(self._path)))
        self.all([(middle, right)], step.premises, facts)

    def above(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A fact, or what remains of a disjunction, puts a term below the right side."""
        name, others = step.choices
        middle = cast("Int", self._term(name, facts))
        negated = {self._term(one, facts) for one in cast("tuple[object, ...]", others)}
        for other, premise in zip(
            cast("tuple[object, ...]", others), step.premises[1:], strict=True
        ):
            self.holds(cast("Bool", self._term(other, facts)), premise, facts)

        def remains(clause: Sequence[Bool]) -> bool:
            rest = [part for part in clause if ~part not in negated and not facts.refutes(part)]
            return len(rest) == 1 and any(says(*pair) for pair in orders_of(rest[0]))

        def says(low: Int, high: Int) -> bool:
            return high is right and low is middle

        stated = any(says(*pair) for pair in facts.orders())
        require(stated or any(map(remains, facts.clauses)), "no fact puts the term below")
        self.at_most(left, middle, step.premises[0], facts)

    def chosen(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """The branch that is taken."""
        side, value = step.choices
        term = (left, right)[side]
        require(term.op is Op.ITE, "not a choice")
        test = cast("Bool", term.args[0])
        self.holds(test if value else ~test, step.premises[0], facts)
        branch = cast("Int", term.args[1 if value else 2])
        pair = (branch, right) if side == 0 else (left, branch)
        self.at_most(*pair, step.premises[1], facts)

    def guarded(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """Two choices, the condition of one inside that of the other."""
        require(left.op is right.op is Op.ITE, "not two choices")
        (one, then, other), (two, then_right, other_right) = left.args, right.args
        tests = cast("tuple[Bool, Bool]", (one, two) if step.choices[0] == 0 else (two, one))
        crossed = (other, then_right) if step.choices[0] == 0 else (then, other_right)
        pairs = [(then, then_right), (other, other_right), *([] if one is two else [crossed])]
        self.implies(*tests, step.premises[0], facts)
        self.all(cast("list[tuple[Int, Int]]", pairs), step.premises[1:], facts)

    def implies(self, one: Bool, two: Bool, step: Step, facts: Facts) -> None:
        """The first condition holds only where the second does."""
        if one is two:
            return
        require(step.rule is Rule.WIDER and one.op is two.op, "the conditions differ in kind")
        if one.op is Op.NOT:
            self.implies(cast("Bool", two.args[0]), cast("Bool", one.args[0]), step, facts)
        elif one.op in (Op.AND, Op.OR):
            for pair, premise in zip(
                zip(one.args, two.args, strict=True), step.premises, strict=True
            ):
                self.implies(*cast("tuple[Bool, Bool]", pair), premise, facts)
        else:
            require(one.op in (Op.LT, Op.LE) and isinstance(one.args[0], Int), "not comparisons")
            (low, high), (lower, higher) = _ints(one), _ints(two)
            self.all([(lower, low), (high, higher)], step.premises, facts)

    def either(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """Both branches, whichever is taken."""
        term = (left, right)[step.choices[0]]
        require(term.op is Op.ITE, "not a choice")
        branches = _ints(term)[1:]
        pairs = [(one, right) if step.choices[0] == 0 else (left, one) for one in branches]
        self.all(pairs, step.premises, facts)

    def extreme(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """Minimum and maximum, by one argument or by all."""
        side = 0 if step.rule in (Rule.LEAST_LEFT, Rule.GREATEST_LEFT) else 1
        op = Op.MIN if step.rule in (Rule.LEAST_LEFT, Rule.LEAST_RIGHT) else Op.MAX
        term = (left, right)[side]
        require(term.op is op, f"not a {op}")
        one = step.rule in (Rule.LEAST_LEFT, Rule.GREATEST_RIGHT)
        args = [_ints(term)[step.choices[0]]] if one else _ints(term)
        self.all([(a, right) if side == 0 else (left, a) for a in args], step.premises, facts)

    def search(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A candidate is at most the limit and the cap; or there is none."""
        require(left.op is Op.FIRST and not left.bound, "not a search")
        limit, *_, otherwise = left.args
        last = (limit, integer(cast("int", left.value)))[step.choices[0]]
        pairs = [(last, right), (integer(1), right), (otherwise, right)]
        self.all(cast("list[tuple[Int, Int]]", pairs), step.premises, facts)

    def quotient(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """Less divided by more; or less and more, padded to the same unit."""
        quotients = (Op.FLOOR_DIV, Op.CEIL_DIV)
        require(left.op is right.op and left.op in (*quotients, Op.ALIGN_UP), "not two quotients")
        (one, by), (two, over) = _ints(left), _ints(right)
        grows = left.op in quotients and facts.at_least(one, 0)
        require(facts.at_least(over, 1) and (by is over or grows), "the divisors do not fit")
        self.all([(one, two), (over, by)], step.premises, facts)

    def rounded(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A quotient is at most what it divides."""
        require(left.op in (Op.FLOOR_DIV, Op.CEIL_DIV), "not a quotient")
        value, by = _ints(left)
        require(facts.at_least(value, 0) and facts.at_least(by, 1), "a sign is open")
        self.all([(value, right)], step.premises, facts)

    def multiple(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A multiple below a value is below the value's own multiple."""
        require(right.op is Op.MUL and is_multiple(right), "not a multiple")
        value, unit = _ints(cast("Int", right.args[0]))
        require(facts.at_least(unit, 1) and facts.knows(left % unit == 0), "not a multiple")
        self.all([(left, value)], step.premises, facts)

    # Sums of products

    def _sides(self, left: Int, right: Int) -> tuple[Polynomial, Polynomial]:
        gap = add(self._sums.of(left), self._sums.of(right), -1)
        return {m: c for m, c in gap.items() if c > 0}, {m: -c for m, c in gap.items() if c < 0}

    def _named(self, sums: Polynomial) -> dict[object, Monomial]:
        return {tuple(self._names(factor) for factor in m): m for m in sums}

    def parts(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """Products on the left are covered by products on the right, each used once."""
        low, high = self._sides(left, right)
        smalls, larges = self._named(low), self._named(high)
        require(len(step.choices) == len(step.premises), "a premise is missing")
        for (small, large, used), premise in zip(step.choices, step.premises, strict=True):
            require(large in larges, "no such product on the right")
            covering = larges[large]
            group = [small] if small in smalls else list(small)
            require(all(one in smalls for one in group), "no such product on the left")
            covered = {smalls[one]: low[smalls[one]] for one in group}
            if used == 0:
                pair = (self._sums.term(covered), self._sums.term({covering: high[covering]}))
                self.at_most(*pair, premise, facts)
                low = add(low, covered, -1)
                high = {m: c for m, c in high.items() if m is not covering}
                continue
            ((one, need),) = covered.items()
            require(0 < used <= high.get(covering, 0), "a product is used too often")
            self.covers(one, covering, premise, facts)
            unit = 1 if one else self._least(covering, facts)
            low = {**low, one: need - min(need, used * unit)}
            high = {**high, covering: high[covering] - used}
        require(not any(low.values()), "a product on the left is left over")
        rest = [m for m, count in high.items() if count]
        require(all(facts.at_least(f, 0) for m in rest for f in m), "the rest may be negative")

    def _least(self, monomial: Monomial, facts: Facts) -> int:
        least = 1
        for factor in monomial:
            require(facts.at_least(factor, 1), "a factor may be below 1")
            least *= int(facts.range_of(factor)[0])
        return least

    def covers(self, small: Monomial, large: Monomial, step: Step, facts: Facts) -> None:
        """One product is at most another, factor by factor, or as what they do not share."""
        require(step.rule is Rule.FACTORS, "not a comparison of products")
        rest, over = Counter(small), Counter(large)
        common = rest & over
        rest, over = rest - common, over - common
        factors = (*common, *rest, *over)
        require(all(facts.at_least(factor, 0) for factor in factors), "a factor may be negative")
        names = self._names
        if step.choices and not isinstance(step.choices[0][0], str):
            one, two = (sorted(side.elements(), key=names) for side in (rest, over))
            self.all([(product(tuple(one)), product(tuple(two)))], step.premises, facts)
            return
        pairs = []
        for name, other in step.choices:
            factor = next((f for f in rest if names(f) == name and rest[f]), None)
            cover = next((f for f in over if names(f) == other and over[f]), None)
            if factor is None or cover is None:
                raise RefusedError("no such factor")
            rest[factor] -= 1
            over[cover] -= 1
            pairs.append((factor, cover))
        require(not any(rest.values()), "a factor is left over")
        kept = (factor for factor, count in over.items() if count)
        require(all(facts.at_least(factor, 1) for factor in kept), "a factor may be below 1")
        self.all(pairs, step.premises, facts)

    def unit(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A padded value is at most a multiple of its unit if the value is."""
        low, high = self._sides(left, right)
        require(list(low.values()) == [1], "not one padded value")
        ((padded,),) = low
        require(padded.op is Op.ALIGN_UP and padded.args[1].op is Op.CONST, "not padded")
        value, unit = _ints(padded)
        require(facts.at_least(unit, 1) and is_whole(high, unit), "not a multiple of the unit")
        self.all([(value, self._sums.term(high))], step.premises, facts)

    def replaced(self, left: Int, right: Int, step: Step, facts: Facts) -> None:
        """A factor replaced by what it is, by more on the left, or by less on the right."""
        side, monomial_name, factor_name, *more = step.choices
        sides = self._sides(left, right)
        monomial = self._named(sides[side]).get(monomial_name)
        require(monomial is not None, "no such product")
        place = cast("Monomial", monomial)
        factor = next((f for f in place if self._names(f) == factor_name), None)
        if factor is None:
            raise RefusedError("no such factor")
        rest = list(place)
        rest.pop(next(at for at, one in enumerate(rest) if one is factor))
        require(all(facts.at_least(one, 0) for one in rest), "a factor may be negative")
        news, premises = self._replacements(factor, side, more, rest, step, facts)
        pairs = []
        for new, kept in news:
            changed = self._sums.times({tuple(kept): sides[side][place]}, self._sums.of(new))
            others = {m: c for m, c in sides[side].items() if m is not place}
            both = [*sides]
            both[side] = add(others, changed)
            pairs.append((self._sums.term(both[0]), self._sums.term(both[1])))
        self.all(pairs, premises, facts)

    def _replacements(  # noqa: PLR0913, PLR0917 - a place in a comparison
        self,
        factor: Int,
        side: int,
        more: Sequence[int],
        rest: Sequence[Int],
        step: Step,
        facts: Facts,
    ) -> tuple[list[tuple[Int, list[Int]]], Sequence[Step]]:
        """What takes the factor's place, the factors that stay, and the premises that say so."""
        kept, premises = list(rest), step.premises
        args = cast("tuple[Int, ...]", factor.args)
        match factor.op:
            case Op.ITE if more[0] == 2:
                return [(args[1], kept), (args[2], kept)], premises
            case Op.ITE:
                test = cast("Bool", factor.args[0])
                self.holds(test if more[0] else ~test, premises[0], facts)
                return [(args[1 if more[0] else 2], kept)], premises[1:]
            case Op.ALIGN_UP:
                require(facts.at_least(args[1], 1), "the unit may be below 1")
                return [(args[0] + (args[1] - 1) if side == 0 else args[0], kept)], premises
            case Op.MIN if side == 0:
                return [(args[more[0]], kept)], premises
            case Op.MAX if side == 0:
                return [(args[0], kept), (args[1], kept)], premises
            case Op.FLOOR_DIV if side == 0 and step.rule is Rule.CANCELLED:
                require(facts.at_least(args[1], 1), "the divisor may be below 1")
                ((by, times),) = self._sums.of(args[1]).items()
                require(times == 1 and not Counter(by) - Counter(rest), "not divided")
                return [(args[0], list((Counter(rest) - Counter(by)).elements()))], premises
        raise RefusedError(f"nothing replaces {factor.op}")


def _ints(term: Term) -> tuple[Int, ...]:
    return cast("tuple[Int, ...]", term.args)


_Rule = Callable[[_Checker, Int, Int, Step, Facts], None]
_RULES: Mapping[Rule, _Rule] = {
    Rule.SAME: _Checker.same,
    Rule.RANGE: _Checker.ranges,
    Rule.BELOW: _Checker.below,
    Rule.ABOVE: _Checker.above,
    Rule.CHOSEN: _Checker.chosen,
    Rule.GUARDED: _Checker.guarded,
    Rule.EITHER: _Checker.either,
    Rule.LEAST_LEFT: _Checker.extreme,
    Rule.LEAST_RIGHT: _Checker.extreme,
    Rule.GREATEST_LEFT: _Checker.extreme,
    Rule.GREATEST_RIGHT: _Checker.extreme,
    Rule.SEARCH: _Checker.search,
    Rule.QUOTIENT: _Checker.quotient,
    Rule.ROUNDED: _Checker.rounded,
    Rule.MULTIPLE: _Checker.multiple,
    Rule.PARTS: _Checker.parts,
    Rule.UNIT: _Checker.unit,
    Rule.REPLACED: _Checker.replaced,
    Rule.CANCELLED: _Checker.replaced,
}
