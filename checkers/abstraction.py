"""Over-approximation: hard subterms become free symbols, bounded and related by plain facts.

Products of two unknowns, divisions by an unknown, bounded searches and computed floats are
replaced. Every state of the original is a state of the abstraction, so "no state" carries over;
a state of the abstraction counts only after the interpreter has replayed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import cast

from routeproof.spec.terms import (
    Bool,
    Float,
    Int,
    IntDomain,
    Op,
    Term,
    all_of,
    any_of,
    free_symbols,
    integer,
    rebuild,
    symbol_bool,
    symbol_int,
    topological,
)

from .readings.intervals import Interval, intervals

__all__ = ["Abstraction", "abstract", "box_of", "unused_prefix"]


@dataclass(frozen=True, slots=True)
class Abstraction:
    """The abstracted roots, facts that hold of the new symbols, and what each stands for."""

    roots: tuple[Term, ...]
    lemmas: tuple[Bool, ...]
    stands_for: Mapping[Term, Term]


def box_of(
    conditions: Sequence[Bool], symbols: Sequence[Term] | None = None
) -> dict[str, Interval]:
    """The interval of each integer symbol that the conditions, or its domain, state outright.

    A symbol whose stated bounds contradict each other is left out: the solver will find that out.
    `symbols` are those of the conditions, where they are known.
    """
    box = {
        symbol.name: Interval(symbol.domain.lo, symbol.domain.hi)
        for symbol in (free_symbols(*conditions) if symbols is None else symbols)
        if symbol.domain
    }
    for part in (part for one in conditions for part in (one.args if one.op is Op.AND else (one,))):
        for name, lo, hi in _limits(part):
            lows = [bound for bound in (box[name].lo, lo) if bound is not None]
            highs = [bound for bound in (box[name].hi, hi) if bound is not None]
            box[name] = Interval(max(lows, default=None), min(highs, default=None))
    for symbol, step in _multiples(conditions):
        lo, hi = box[symbol.name].lo, box[symbol.name].hi
        box[symbol.name] = Interval(
            None if lo is None else -(-lo // step) * step, None if hi is None else hi // step * step
        )
    return {name: one for name, one in box.items() if not _is_empty(one)}


def _multiples(conditions: Sequence[Bool]) -> Iterator[tuple[Term, int]]:
    """The symbols that a condition says are multiples of a constant."""
    for part in (part for one in conditions for part in (one.args if one.op is Op.AND else (one,))):
        if part.op is Op.EQ and part.args[0].op is Op.MOD and part.args[1] is integer(0):
            symbol, step = part.args[0].args
            if symbol.op is Op.SYMBOL and step.op is Op.CONST and cast("int", step.value) > 0:
                yield symbol, cast("int", step.value)


def _is_empty(interval: Interval) -> bool:
    return interval.lo is not None and interval.hi is not None and interval.lo > interval.hi


def _limits(part: Term) -> Iterator[tuple[str, int | None, int | None]]:
    if part.op is Op.OR:
        yield from _choice(part)
        return
    negated = part.op is Op.NOT
    relation = part.args[0] if negated else part
    if relation.op not in (Op.EQ, Op.LT, Op.LE):
        return
    left, right = relation.args
    strict = relation.op is Op.LT
    if negated:
        if relation.op is Op.EQ:
            return
        left, right, strict = right, left, not strict
    if not isinstance(left, Int):
        return
    for one, two, low in ((left, right, False), (right, left, True)):
        if one.op is Op.SYMBOL and two.op is Op.CONST:
            value = cast("int", two.value)
            if relation.op is Op.EQ:
                yield one.name, value, value
            elif low:
                yield one.name, value + strict, None
            else:
                yield one.name, None, value - strict


def _choice(part: Term) -> Iterator[tuple[str, int | None, int | None]]:
    """The ends of the values that a disjunction offers for one symbol."""
    if any(one.op is not Op.EQ or not isinstance(one.args[0], Int) for one in part.args):
        return
    symbols = {one.args[0] for one in part.args}
    if len(symbols) == 1 and all(one.args[1].op is Op.CONST for one in part.args):
        (symbol,) = symbols
        if symbol.op is Op.SYMBOL:
            values = [cast("int", one.args[1].value) for one in part.args]
            yield symbol.name, min(values), max(values)


def abstract(roots: Sequence[Term], box: Mapping[str, Interval]) -> Abstraction:
    """Abstract normalised roots over a box that every state of interest lies in."""
    ranges, mark = intervals(tuple(roots), box), unused_prefix(*roots)
    done: dict[Term, Term] = {}
    stands_for: dict[Term, Term] = {}
    for node in topological(tuple(roots)):
        if node.bound:
            continue
        if _is_hard(node):
            done[node] = _fresh(node, ranges, f"{mark}{len(stands_for)}")
            stands_for[done[node]] = node
        elif node.op is Op.GREATEST:  # only its comparisons are visible, and they are hard
            done[node] = node
        else:
            done[node] = rebuild(node, tuple(done[arg] for arg in node.args))
    result = tuple(done[root] for root in roots)
    used = set(free_symbols(*result))
    kept = {new: node for new, node in stands_for.items() if new in used}
    lemmas = tuple(_lemmas(kept, done, ranges))
    used |= set(free_symbols(*lemmas))
    return Abstraction(result, lemmas, {new: n for new, n in stands_for.items() if new in used})


def unused_prefix(*roots: Term) -> str:
    """What no symbol's name starts with, so that new symbols are new."""
    mark, names = "@", [symbol.name for symbol in free_symbols(*roots)]
    while any(name.startswith(mark) for name in names):
        mark += "@"
    return mark


def _is_hard(node: Term) -> bool:
    match node.op:
        case Op.FIRST:
            return True
        case Op.MUL:
            return all(arg.op is not Op.CONST for arg in node.args)
        case Op.FLOOR_DIV | Op.CEIL_DIV | Op.MOD | Op.ALIGN_UP:
            return node.args[1].op is not Op.CONST
        case Op.EQ | Op.LT | Op.LE if isinstance(node.args[0], Float):
            return any(arg.op not in (Op.SYMBOL, Op.CONST) for arg in node.args)
    return False


def _fresh(node: Term, ranges: Mapping[Term, Interval], name: str) -> Term:
    if isinstance(node, Bool):
        return symbol_bool(name)
    return symbol_int(name, IntDomain(ranges[node].lo, ranges[node].hi))


def _lemmas(
    stands_for: Mapping[Term, Term], done: Mapping[Term, Term], ranges: Mapping[Term, Interval]
) -> Iterator[Bool]:
    """Facts of the new symbols: a product is at least its part, a search at most its limit, ..."""
    factors = {new: Counter(_factors(n)) for new, n in stands_for.items() if n.op is Op.MUL}
    plain = {done[node]: Counter([node]) for node in ranges if _is_factor(node, done)}
    for part, whole in permutations({**plain, **factors}.items(), 2):
        if whole[0] in factors and part[1] < whole[1]:
            yield from _product_facts(part, whole, ranges)
    for new, node in stands_for.items():
        if node.op is Op.MOD and _at_least(ranges[node.args[1]], 1):
            yield cast("Int", new) < cast("Int", done[node.args[1]])
        elif node.op is Op.FLOOR_DIV and _at_least(ranges[node.args[1]], 1):
            dividend = cast("Int", done[node.args[0]])
            if _at_least(ranges[node.args[0]], 0):
                yield cast("Int", new) <= dividend
        elif node.op is Op.FIRST:
            limit, *_, otherwise = (done.get(arg, arg) for arg in node.args)
            found = all_of(cast("Int", new) >= 1, cast("Int", new) <= cast("Int", limit))
            yield any_of(cast("Int", new) == cast("Int", otherwise), found)


def _is_factor(node: Term, done: Mapping[Term, Term]) -> bool:
    return node in done and isinstance(node, Int) and node.op not in (Op.MUL, Op.CONST)


def _factors(node: Term) -> Iterator[Term]:
    """The factors of a product, nested products opened."""
    for arg in node.args:
        if arg.op is Op.MUL:
            yield from _factors(arg)
        else:
            yield arg


def _product_facts(
    part: tuple[Term, Counter[Term]],
    whole: tuple[Term, Counter[Term]],
    ranges: Mapping[Term, Interval],
) -> Iterator[Bool]:
    rest = [ranges[factor] for factor in (whole[1] - part[1]).elements()]
    if not all(_at_least(ranges[factor], 0) for factor in part[1]):
        return
    if all(_at_least(one, 0) for one in rest):
        low, high = integer(1), integer(1)
        for one in rest:
            low = low * (one.lo or 0)
        yield cast("Int", whole[0]) >= low * cast("Int", part[0])
        if all(one.hi is not None for one in rest):
            for one in rest:
                high = high * (one.hi or 0)
            yield cast("Int", whole[0]) <= high * cast("Int", part[0])


def _at_least(interval: Interval, bound: int) -> bool:
    return interval.lo is not None and interval.lo >= bound
