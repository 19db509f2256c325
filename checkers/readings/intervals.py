"""The interval reading: a range that contains every value an integer term takes over a box.

Sound for every operation, including division by zero and by negative numbers; not exact, because a
symbol that occurs twice counts as two. It chooses NumPy's integer width, bounds the new symbols of
a solver's abstraction, and decides the comparisons that a box already settles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from routeproof.spec.errors import ModelError
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Int,
    IntDomain,
    Op,
    Term,
    all_of,
    integer,
    rebuild,
    show_range,
    topological,
)

__all__ = ["Interval", "Ranges", "intervals", "prune"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers lo..hi; None is unbounded on that side."""

    lo: int | None = None
    hi: int | None = None

    @classmethod
    def of(cls, domain: IntDomain) -> Interval:
        """The range of a declared domain, its ends rounded inwards to multiples."""
        step, lo, hi = domain.multiple_of, domain.lo, domain.hi
        return cls(
            None if lo is None else -(-lo // step) * step, None if hi is None else hi // step * step
        )

    def __str__(self) -> str:
        """Readable range, for proof axes."""
        return show_range(self.lo, self.hi)

    def __contains__(self, value: int) -> bool:
        """Whether the value lies in the range."""
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)


# Inside, ends are exact integers or an infinity; Python compares the two exactly.
_End = float
_Ends = tuple[_End, _End]
_Rule = Callable[[_Ends, _Ends], _Ends]
_ALL: _Ends = (-math.inf, math.inf)


def intervals(
    roots: Sequence[Term], box: Mapping[str, Interval] | None = None
) -> dict[Term, Interval]:
    """The range of every integer node below the roots.

    The box gives a symbol's range by name, instead of its declared domain; a bound variable ranges
    over its candidates.
    """
    found: dict[Term, _Ends] = {}
    for node in topological(tuple(roots)):
        if isinstance(node, Int):
            found[node] = _range(node, found, box or {})
    return {node: Interval(_closed(lo), _closed(hi)) for node, (lo, hi) in found.items()}


class Ranges:
    """The range of one node after another over one box, each computed once."""

    def __init__(self, box: Mapping[str, Interval]) -> None:
        """Nothing is computed before it is asked for."""
        self.box = box
        self._found: dict[Term, _Ends] = {}

    def ends(self, term: Int) -> tuple[float, float]:
        """The ends of the range, exact integers or infinite."""
        if term not in self._found:
            self._extend(term)
        return self._found[term]

    def _extend(self, term: Int) -> None:
        stack: list[Int] = [term]
        while stack:
            node = stack[-1]
            args = node.args[1:] if node.op is Op.ITE else node.args
            needed = [one for one in args if isinstance(one, Int) and one not in self._found]
            if needed:
                stack.extend(needed)
            else:
                self._found[node] = _range(node, self._found, self.box)
                stack.pop()


def prune(
    roots: Sequence[Term],
    box: Mapping[str, Interval] | None = None,
    given: Sequence[Bool] = (),
    nodes: Sequence[Term] | None = None,
) -> tuple[Term, ...]:
    """The roots without what the box decides: comparisons, minima, choices and fixed values.

    Equal to the original on every state of the box that meets the conditions given. `nodes` are all
    below the roots, arguments before users, where that is known.
    """
    found: dict[Term, _Ends] = {}
    done: dict[Term, Term] = _facts(given)
    for node in topological(tuple(roots)) if nodes is None else nodes:
        if node in done:
            continue
        new = _settle(rebuild(node, tuple([done[arg] for arg in node.args])), found)
        if isinstance(new, Int) and new not in found:
            found[new] = _range(new, found, box or {})
            new = _fixed(new, found)
        done[node] = new
    return tuple(done[root] for root in roots)


def _facts(given: Sequence[Bool]) -> dict[Term, Term]:
    """What every conjunct of the conditions is worth."""
    parts = all_of(*given)
    conjuncts = parts.args if parts.op is Op.AND else (parts,)
    return {
        **dict.fromkeys(conjuncts, TRUE),
        **{part.args[0]: FALSE for part in conjuncts if part.op is Op.NOT},
    }


def _closed(end: _End) -> int | None:
    return end if isinstance(end, int) else None


def _opened(interval: Interval) -> _Ends:
    lo, hi = interval.lo, interval.hi
    return (-math.inf if lo is None else lo, math.inf if hi is None else hi)


def _range(node: Int, found: Mapping[Term, _Ends], box: Mapping[str, Interval]) -> _Ends:
    if (rule := _RULES.get(node.op)) is not None:
        one, two = node.args
        return rule(found[one], found[two])
    match node.op:
        case Op.CONST:
            value = cast("int", node.value)
            return value, value
        case Op.SYMBOL | Op.BOUND:
            domain = Interval.of(cast("IntDomain", node.domain))
            return _opened(box.get(node.name, domain) if node.op is Op.SYMBOL else domain)
        case Op.ITE:
            return _hull((found[node.args[1]], found[node.args[2]]))
        case Op.FIRST:
            last = min(found[node.args[0]][1], cast("int", node.value))
            hits = [(1, last)] if last >= 1 else []
            return _hull((*hits, found[node.args[3]]))
        case _:
            raise ModelError(f"no interval rule for {node.op}")


def _hull(parts: Iterable[_Ends]) -> _Ends:
    lows, highs = zip(*parts, strict=True)
    return min(lows), max(highs)


def _negated(ends: _Ends) -> _Ends:
    return -ends[1], -ends[0]


def _corners(function: Callable[[_End, _End], _End], one: _Ends, two: _Ends) -> _Ends:
    """The range of a function that is monotone in each argument while the other stands still."""
    values = [function(x, y) for x in one for y in two]
    return min(values), max(values)


def _plus(one: _End, two: _End) -> _End:
    if isinstance(one, int) and isinstance(two, int):
        return one + two
    return two if isinstance(one, int) else one


def _times(one: _End, two: _End) -> _End:
    if isinstance(one, int) and isinstance(two, int):
        return one * two
    if not one or not two:
        return 0
    return math.inf if (one > 0) == (two > 0) else -math.inf


def _quotient(value: _End, divisor: _End) -> _End:
    """The floor of a quotient by a positive divisor; by an infinite one, the limit."""
    if not isinstance(divisor, int):
        return 0 if value >= 0 else -1
    return value // divisor if isinstance(value, int) else value


def _add(one: _Ends, two: _Ends) -> _Ends:
    return _plus(one[0], two[0]), _plus(one[1], two[1])


def _multiply(one: _Ends, two: _Ends) -> _Ends:
    if one[0] >= 0 and two[0] >= 0:
        return _times(one[0], two[0]), _times(one[1], two[1])
    return _corners(_times, one, two)


def _floor_div(value: _Ends, divisor: _Ends) -> _Ends:
    return _corners(_quotient, value, divisor)


def _ceil_div(value: _Ends, divisor: _Ends) -> _Ends:
    return _negated(_floor_div(_negated(value), divisor))


def _mod(value: _Ends, divisor: _Ends) -> _Ends:
    if value[0] < 0:
        return 0, _plus(divisor[1], -1)
    return (value[0] if value[1] < divisor[0] else 0), min(value[1], _plus(divisor[1], -1))


def _align_up(value: _Ends, divisor: _Ends) -> _Ends:
    if divisor[0] == divisor[1]:
        lo, hi = _ceil_div(value, divisor)
        return _times(lo, divisor[0]), _times(hi, divisor[0])
    hi = _plus(value[1], _plus(divisor[1], -1))
    return value[0], min(hi, 0) if value[1] <= 0 else hi


def _total(positive: Callable[[_Ends, _Ends], _Ends], mirror: int, at_zero: int) -> _Rule:
    """The rule for any divisor, from the one for positive ones.

    With both arguments negated the result is the same (`mirror` 1) or negated (-1); for a zero
    divisor it is `at_zero` times the value.
    """

    def rule(value: _Ends, divisor: _Ends) -> _Ends:
        if divisor[0] > 0:
            return positive(value, divisor)
        parts: list[_Ends] = []
        if divisor[0] <= 0 <= divisor[1]:
            parts.append(value if at_zero else (0, 0))
        if divisor[1] > 0:
            parts.append(positive(value, (max(divisor[0], 1), divisor[1])))
        if divisor[0] < 0:
            below = positive(_negated(value), _negated((divisor[0], min(divisor[1], -1))))
            parts.append(below if mirror > 0 else _negated(below))
        return _hull(parts or [_ALL])  # no divisor at all: the box is empty

    return rule


_RULES: dict[Op, _Rule] = {
    Op.ADD: _add,
    Op.SUB: lambda one, two: _add(one, _negated(two)),
    Op.MUL: _multiply,
    Op.MIN: lambda one, two: (min(one[0], two[0]), min(one[1], two[1])),
    Op.MAX: lambda one, two: (max(one[0], two[0]), max(one[1], two[1])),
    Op.FLOOR_DIV: _total(_floor_div, mirror=1, at_zero=0),
    Op.CEIL_DIV: _total(_ceil_div, mirror=1, at_zero=0),
    Op.MOD: _total(_mod, mirror=-1, at_zero=1),
    Op.ALIGN_UP: _total(_align_up, mirror=-1, at_zero=0),
}


def _fixed(node: Int, found: dict[Term, _Ends]) -> Int:
    """The constant that the node always is, if it is one (a bound variable stays one)."""
    lo, hi = found[node]
    if lo != hi or node.op is Op.BOUND:
        return node
    constant = integer(lo)
    found[constant] = (lo, hi)
    return constant


def _settle(node: Term, found: Mapping[Term, _Ends]) -> Term:
    """What the ranges of its arguments make of a node: a truth value, or one of the arguments."""
    if node.op not in _SETTLED or not isinstance(node.args[0], Int):
        return node
    one, two = node.args
    (low, high), (other_low, other_high) = found[one], found[two]
    match node.op:
        case Op.LT:
            return TRUE if high < other_low else FALSE if low >= other_high else node
        case Op.LE:
            return TRUE if high <= other_low else FALSE if low > other_high else node
        case Op.EQ:
            return FALSE if high < other_low or low > other_high else node
        case Op.MIN:
            return one if high <= other_low else two if low >= other_high else node
        case Op.MAX:
            return one if low >= other_high else two if high <= other_low else node
        case _:
            return one if low >= 0 and high < other_low else node


_SETTLED = frozenset({Op.LT, Op.LE, Op.EQ, Op.MIN, Op.MAX, Op.MOD})
