"""The evidence checker: what was called proved is checked again, without the engines that found it.

It rebuilds the claim, takes its conditions apart in its own way, and follows the derivation: each
step must be an instance of its rule, with the choices the step names, down to facts of the claim.
Texts in the evidence are for people and are not read. Only `spec` is used here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from routeproof.spec.derivation import Digests, Rule, Step
from routeproof.spec.errors import ModelError
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    EnumSort,
    Int,
    Op,
    Term,
    align_up,
    all_of,
    free_symbols,
    integer,
    ite,
    rebuild,
    topological,
)

__all__ = ["RefusedError", "Use", "check_derivation", "parts_of"]

Range = tuple[float, float]  # ends are exact integers or infinite
Monomial = tuple[Int, ...]
Polynomial = dict[Monomial, int]
_INFINITE = float("inf")
_ROUNDS = 3
_MOST_MONOMIALS = 48


class RefusedError(Exception):
    """A step is no instance of its rule, or rests on what is no fact."""


def parts_of(conditions: Sequence[Bool], goals: Sequence[Bool]) -> tuple[list[Bool], Facts]:
    """The conjuncts of the goals, simplified under the conditions; and what these say."""
    given = Facts(conditions, {})
    given = Facts(conditions, given.box())
    box = given.box()
    flags = [one for one in given.known if _is_flag(one)]
    simple = _simplified((*conditions, *goals), flags, box)
    facts = Facts((*flags, *simple[: len(conditions)]), box)
    parts: list[Bool] = []
    for goal in simple[len(conditions) :]:
        parts.extend(cast("tuple[Bool, ...]", goal.args) if goal.op is Op.AND else [goal])
    return parts, facts


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


# What the conditions say


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
        parts, all_hold = _parts(condition)
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
                    self.ranges[node] = _range(node, self.ranges, self._box)
        return self.ranges[term]

    def at_least(self, term: Int, value: int) -> bool:
        """Whether the term's range starts at the value or above."""
        return self.range_of(term)[0] >= value

    def orders(self) -> Iterator[tuple[Int, Int]]:
        """Every `left <= right` among the facts."""
        for condition in self.known:
            yield from _orders(condition)

    def box(self) -> dict[str, Range]:
        """The range of each symbol, from its domain and what the facts say of it outright."""
        box: dict[str, Range] = {}
        for symbol in free_symbols(*self.known):
            if isinstance(symbol, Int):
                box[symbol.name] = _declared(symbol)
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
            _offer(_parts(condition)[0], box)
            _step(condition, box)
        box = {name: ends for name, ends in box.items() if ends[0] <= ends[1]}
        for _ in range(_ROUNDS):
            for left, right in pairs:
                if left.op is right.op is Op.SYMBOL and {left.name, right.name} <= box.keys():
                    (lo, hi), (lower, higher) = box[left.name], box[right.name]
                    box[right.name] = (max(lo, lower), higher)
                    box[left.name] = (lo, min(hi, higher))
        return box


def _parts(condition: Bool) -> tuple[tuple[Bool, ...], bool]:
    """The conjuncts (True) or disjuncts (False) of a condition, negation pushed inwards."""
    positive = condition.args[0] if condition.op is Op.NOT else condition
    if positive.op not in (Op.AND, Op.OR):
        return (), True
    parts = cast("tuple[Bool, ...]", positive.args)
    signed = tuple(~part for part in parts) if condition.op is Op.NOT else parts
    return signed, (positive.op is Op.AND) is (condition.op is not Op.NOT)


def _orders(condition: Bool) -> Iterator[tuple[Int, Int]]:
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


# Ranges


def _declared(symbol: Int) -> Range:
    domain = symbol.domain
    lo = -_INFINITE if domain is None or domain.lo is None else domain.lo
    hi = _INFINITE if domain is None or domain.hi is None else domain.hi
    return lo, hi


def _range(node: Int, known: Mapping[Term, Range], box: Mapping[str, Range]) -> Range:
    ends = [known[arg] for arg in node.args if isinstance(arg, Int)]
    match node.op:
        case Op.CONST:
            return cast("int", node.value), cast("int", node.value)
        case Op.SYMBOL | Op.BOUND:
            return _declared(node) if node.op is Op.BOUND else box.get(node.name, _declared(node))
        case Op.ITE:
            return min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])
        case Op.FIRST:
            (_, last), _, otherwise = ends
            top = min(last, cast("int", node.value))
            return (min(1, otherwise[0]), max(top, otherwise[1])) if top >= 1 else otherwise
        case Op.ADD:
            return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]
        case Op.SUB:
            return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
        case Op.MIN:
            return min(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
        case Op.MAX:
            return max(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])
        case Op.MUL:
            values = [_times(one, two) for one in ends[0] for two in ends[1]]
            return min(values), max(values)
        case _ if ends[1][0] >= 1:
            return _rounded(node.op, *ends)
    return -_INFINITE, _INFINITE


def _times(one: float, two: float) -> float:
    return 0 if not one or not two else one * two


def _floor(value: float, divisor: float) -> float:
    if isinstance(divisor, int):
        return value // divisor if isinstance(value, int) else value
    return 0 if value >= 0 else -1


def _rounded(op: Op, value: Range, divisor: Range) -> Range:
    """Division, remainder and padding by a positive divisor."""
    if op is Op.FLOOR_DIV:
        quotients = [_floor(one, two) for one in value for two in divisor]
        return min(quotients), max(quotients)
    if op is Op.CEIL_DIV:
        quotients = [-_floor(-one, two) for one in value for two in divisor]
        return min(quotients), max(quotients)
    if op is Op.ALIGN_UP and divisor[0] == divisor[1]:
        lo, hi = (-_floor(-one, divisor[0]) for one in value)
        return _times(lo, divisor[0]), _times(hi, divisor[0])
    if op is Op.ALIGN_UP:
        hi = value[1] + divisor[1] - 1
        return value[0], min(hi, 0) if value[1] <= 0 else hi
    if value[0] < 0:
        return 0, divisor[1] - 1
    return (value[0] if value[1] < divisor[0] else 0), min(value[1], divisor[1] - 1)


def _simplified(
    roots: Sequence[Bool], flags: Sequence[Bool], box: Mapping[str, Range]
) -> tuple[Bool, ...]:
    """The roots without what the flags and the box decide."""
    done: dict[Term, Term] = dict.fromkeys(flags, TRUE)
    done |= {flag.args[0]: FALSE for flag in flags if flag.op is Op.NOT}
    ranges: dict[Term, Range] = {}
    for node in topological(tuple(roots)):
        if node in done:
            continue
        new = _settled(rebuild(node, tuple(done[arg] for arg in node.args)), ranges)
        if isinstance(new, Int) and new not in ranges:
            ranges[new] = _range(new, ranges, box)
            lo, hi = ranges[new]
            if lo == hi and new.op is not Op.BOUND:
                new = integer(cast("int", lo))
                ranges[new] = (lo, hi)
        done[node] = new
    return tuple(cast("Bool", done[root]) for root in roots)


def _settled(node: Term, ranges: Mapping[Term, Range]) -> Term:
    ops = (Op.LT, Op.LE, Op.EQ, Op.MIN, Op.MAX, Op.MOD)
    if node.op not in ops or not isinstance(node.args[0], Int):
        return node
    one, two = node.args
    (lo, hi), (lower, higher) = ranges[one], ranges[two]
    match node.op:
        case Op.LT:
            return TRUE if hi < lower else FALSE if lo >= higher else node
        case Op.LE:
            return TRUE if hi <= lower else FALSE if lo > higher else node
        case Op.EQ:
            return FALSE if hi < lower or lo > higher else node
        case Op.MIN:
            return one if hi <= lower else two if lo >= higher else node
        case Op.MAX:
            return one if lo >= higher else two if hi <= lower else node
        case _:
            return one if lo >= 0 and hi < lower else node


# Sums of products


class _Sums:
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
            case Op.MUL if not _is_multiple(term):
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


def _is_multiple(term: Int) -> bool:
    quotient, times = term.args
    return quotient.op is Op.FLOOR_DIV and quotient.args[1] is times and times.op is Op.CONST


# Steps


def require(holds: bool, why: str) -> None:
    """Refuse the step unless the condition on it holds."""
    if not holds:
        raise RefusedError(why)


class _Checker:
    """Follows a derivation; whatever is asked for twice under the same facts is checked once."""

    def __init__(self, names: Digests, facts: Facts) -> None:
        self._names = names
        self._sums = _Sums(names)
        nodes = topological(tuple(facts.known))
        self._terms = {names(node): node for node in nodes}
        self._done: set[tuple[Facts, Term, Term, Step]] = set()
        self._path: list[Rule] = []
        self.uses: list[Use] = []

    def _term(self, name: object) -> Term:
        require(isinstance(name, str) and name in self._terms, f"no term {name} in the claim")
        return self._terms[cast("str", name)]

    # Conditions

    def holds(self, goal: Bool, step: Step, facts: Facts) -> None:
        """The condition holds under the facts."""
        self._learn((goal,))
        parts, all_hold = _parts(goal)
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
                test = cast("Bool", self._term(step.choices[0]))
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
        middle = cast("Int", self._term(step.choices[0]))
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
        middle = cast("Int", self._term(name))
        negated = {self._term(one) for one in cast("tuple[object, ...]", others)}
        for other, premise in zip(
            cast("tuple[object, ...]", others), step.premises[1:], strict=True
        ):
            self.holds(cast("Bool", self._term(other)), premise, facts)

        def remains(clause: Sequence[Bool]) -> bool:
            rest = [part for part in clause if ~part not in negated and not facts.refutes(part)]
            return len(rest) == 1 and any(says(*pair) for pair in _orders(rest[0]))

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
        require(right.op is Op.MUL and _is_multiple(right), "not a multiple")
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
