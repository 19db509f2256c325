"""What counts as an edge: two neighbouring states that a part of the function tells apart.

A *probe* watches one node: the truth of an atomic condition, which argument a minimum or maximum
takes, the value of a rounded quotient, of a search, or of an output. Two states are neighbours if
they differ in one input, by one step; where a probe differs between them, each of the two lies on a
*side* of an edge. The edge matters at a state if the outputs there would change were the probe
alone mistaken: a test on that state finds the mistake.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from routeproof.checkers.readings.intervals import Interval, intervals
from routeproof.spec.interpret import Value
from routeproof.spec.terms import (
    Bool,
    EnumSort,
    Float,
    Int,
    Op,
    Term,
    rebuild,
    substitute,
    symbol_bool,
    symbol_enum,
    symbol_int,
    topological,
)
from routeproof.spec.text import shortened

from .axes import Move, shown
from .landscape import Values, is_same

__all__ = ["Probe", "probes_of"]

_ROUNDINGS = (Op.FLOOR_DIV, Op.CEIL_DIV, Op.ALIGN_UP)
Key = object
_LONGEST = 300
_HOLDS, _FAILS, _LOW, _HIGH = "holds", "fails", "before a step up", "after a step up"
_ORDER = {-1: "<", 0: "==", 1: ">"}


@dataclass(frozen=True, slots=True)
class Probe(ABC):
    """One node as readers see it and its slot, what its key reads, and the sides to be tested."""

    node: Term
    slot: int
    reads: tuple[int, ...]
    required: tuple[str, ...]
    is_rich: ClassVar[bool] = False
    """Whether edges beyond the required sides are worth looking for."""

    def key(self, *read: Value) -> Key:
        """What differs across an edge."""
        return read[0]

    def differs(self, values: Values, there: Values) -> bool:
        """Whether there is an edge between two neighbours."""
        return not is_same(values[self.slot], there[self.slot])

    @abstractmethod
    def mistake(self, values: Values, there: Values | None) -> Value:
        """A wrong value of the node: what it is at the neighbour, if there is one."""

    def key_at(self, values: Values) -> Key:
        """The key of a state."""
        return self.key(*[values[slot] for slot in self.reads])

    @abstractmethod
    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        """The sides that a state lies on, by its key and the key across the edge."""

    def sides_at(self, values: Values, there: Values, move: Move) -> tuple[str, ...]:
        """The sides that a state lies on towards a neighbour; none without an edge between."""
        if not self.differs(values, there):
            return ()
        return self.sides(self.key_at(values), self.key_at(there), move)

    @abstractmethod
    def text(self, side: str) -> str:
        """What is the case on a side."""

    def seen(self, side: str, here: Value, there: Value) -> str:
        """What is the case on a side, where the node is this here and that next door."""
        del here, there
        return self.text(side)

    def outcome(self, values: Values) -> str | None:
        """The side that a state is on without a neighbour, if the probe watches an output."""
        del values
        return None


class _Truth(Probe):
    """A flag among the inputs, or a comparison that has two sides."""

    def mistake(self, values: Values, there: Values | None) -> Value:
        del there
        return not values[self.slot]

    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        del there
        side = _HOLDS if here else _FAILS
        if not isinstance(move.axis.symbol, Float) or not isinstance(move.here, float):
            return (side,)
        special = "NaN" if math.isnan(move.here) else "-0.0" if str(move.here) == "-0.0" else ""
        return (side, f"{side} at {special}") if special else (side,)

    def text(self, side: str) -> str:
        holds, _, at = side.partition(" ")
        truth = cast("Bool", self.node)
        return " ".join(
            filter(None, (shortened(truth if holds == _HOLDS else ~truth, _LONGEST), at))
        )


class _Equality(_Truth):
    """An equality of integers, which fails on two sides."""

    def key(self, *read: Value) -> Key:
        return _sign(*read)

    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        del there, move
        return (_ORDER[cast("int", here)],)

    def text(self, side: str) -> str:
        one, two = cast("tuple[Int, Int]", self.node.args)
        return shortened({"<": one < two, "==": one == two, ">": one > two}[side], _LONGEST)


class _Choice(Probe):
    """A minimum or maximum: which argument is less."""

    def key(self, *read: Value) -> Key:
        return _sign(*read)

    def differs(self, values: Values, there: Values) -> bool:
        return self.key_at(values) != self.key_at(there)

    def mistake(self, values: Values, there: Values | None) -> Value:
        del there
        one, two = (values[slot] for slot in self.reads)
        return two if values[self.slot] == one else one

    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        del there, move
        return (_ORDER[cast("int", here)],)

    def text(self, side: str) -> str:
        one, two = (shortened(arg, _LONGEST // 2) for arg in self.node.args)
        return f"{one} {side} {two}"


class _Step(Probe):
    """A rounded quotient or the best of a search, whose value changes in steps.

    Where the divisor is one of a few, each has its own steps.
    """

    def key(self, *read: Value) -> Key:
        return read

    def mistake(self, values: Values, there: Values | None) -> Value:
        return cast("int", values[self.slot]) + 1 if there is None else there[self.slot]

    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        del move
        (one, *divisor), (two, *other) = cast("tuple[list[float], list[float]]", (here, there))
        if one == two:
            return ()
        side = _LOW if one < two else _HIGH
        return (side, f"{side} by {divisor[0]}") if divisor and divisor == other else (side,)

    def text(self, side: str) -> str:
        return f"{shortened(self.node, _LONGEST)}, {side}"

    def seen(self, side: str, here: Value, there: Value) -> str:
        _, by, divisor = side.partition(" by ")
        change = f"{shown(here)} -> {shown(there)}"
        return f"{shortened(self.node, _LONGEST)}: {change}{by}{divisor}"


class _Search(_Step):
    """What a search selects, which may rise and fall along an input."""

    is_rich = True

    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        onward = not isinstance(move.axis.symbol, Int) or int(move.here) < int(move.there)
        return tuple(
            found
            for side in super().sides(here, there, move)
            for turn in ("rises" if (side == _LOW) == onward else "falls",)
            for found in (side, f"{side}, {turn} along {move.axis.symbol.name}")
        )


class _Outcome(Probe):
    """An output that is a flag or an enum, and what it changes to next door."""

    is_rich = True

    def mistake(self, values: Values, there: Values | None) -> Value:
        del values
        return "" if there is None else there[self.slot]  # no member and no truth value

    def sides(self, here: Key, there: Key, move: Move) -> tuple[str, ...]:
        del move
        one, two = shown(cast("Value", here)), shown(cast("Value", there))
        return one, f"{one} next to {two}"

    def text(self, side: str) -> str:
        value, _, other = side.partition(" ")
        return f"{self.node.name} == {value}" + (f", {other}" if other else "")

    def outcome(self, values: Values) -> str | None:
        return shown(values[self.slot])


def _sign(*read: Value) -> int:
    one, two = cast("tuple[int, int]", read)
    return (one > two) - (one < two)


def probes_of(outputs: Mapping[str, Term], slot: Mapping[Term, int]) -> list[Probe]:
    """A probe for every node that decides something below the outputs, and for what they decide.

    Sides that no input has, by the ranges of the integers, are left out.
    """
    nodes = [node for node in topological(tuple(outputs.values())) if node in slot]
    spans = intervals([node for node in nodes if isinstance(node, Int)])
    names = _names(outputs)
    found: list[Probe] = []
    for node in nodes:
        kind, sides = _kind(node, spans)
        if kind:
            read = [node, *_divisor(node)] if kind is _Step else [node]
            read = list(node.args) if kind in (_Equality, _Choice) else read
            reads = tuple(slot[one] for one in read)
            found.append(kind(_renamed(node, names), slot[node], reads, sides))
    for name, term in outputs.items():
        if sides := _outcomes(term):
            found.append(_Outcome(_named(term, name), slot[term], (slot[term],), sides))
    return found


def _kind(node: Term, spans: Mapping[Term, Interval]) -> tuple[type[Probe] | None, tuple[str, ...]]:
    """How a node is watched, and the sides to find."""
    both = (_HOLDS, _FAILS)
    match node.op:
        case Op.SYMBOL if isinstance(node, Bool):
            return _Truth, both
        case Op.EQ | Op.LT | Op.LE if isinstance(node.args[0], Int):
            orders = _orders(node, spans)
            holding = {Op.EQ: {"=="}, Op.LT: {"<"}, Op.LE: {"<", "=="}}[node.op]
            if not holding & {*orders} or {*orders} <= holding:
                return None, ()
            return (_Equality, orders) if node.op is Op.EQ else (_Truth, both)
        case Op.EQ | Op.LT | Op.LE if not isinstance(node.args[0], Bool):
            return _Truth, both
        case Op.MIN | Op.MAX if {"<", ">"} <= {*_orders(node, spans)}:
            return _Choice, ("<", ">")
        case op if op in _ROUNDINGS:
            by = [f" by {one}" for one in _values(node.args[1])]
            return _Step, tuple(side + one for one in by or [""] for side in (_LOW, _HIGH))
        case Op.GREATEST:
            return _Step, (_LOW, _HIGH)
        case Op.FIRST:
            return _Search, (_LOW, _HIGH)
        case _:
            return None, ()


def _divisor(node: Term) -> list[Term]:
    """The divisor of a rounding, if it is one of several constants."""
    return [node.args[1]] if node.op in _ROUNDINGS and _values(node.args[1]) else []


def _values(term: Term) -> list[int]:
    """The values of a choice among several constants; none of any other term."""
    leaves = [term]
    while choices := [one for one in leaves if one.op is Op.ITE]:
        leaves = [one for one in leaves if one.op is not Op.ITE]
        leaves += [arg for choice in choices for arg in choice.args[1:]]
    if term.op is not Op.ITE or any(one.op is not Op.CONST for one in leaves):
        return []
    return sorted({cast("int", one.value) for one in leaves})


def _orders(node: Term, spans: Mapping[Term, Interval]) -> tuple[str, ...]:
    """How the two arguments may compare, as far as their ranges say."""
    (low, high), (other_low, other_high) = ((spans[arg].lo, spans[arg].hi) for arg in node.args)
    may = {
        "<": low is None or other_high is None or low < other_high,
        "==": (low is None or other_high is None or low <= other_high)
        and (high is None or other_low is None or high >= other_low),
        ">": high is None or other_low is None or high > other_low,
    }
    return tuple(order for order, is_so in may.items() if is_so)


def _outcomes(term: Term) -> tuple[str, ...]:
    """The values of an output that are few enough to see each; none of a constant or an input."""
    if term.op in (Op.CONST, Op.SYMBOL):
        return ()
    if isinstance(term, Bool):
        return ("true", "false")
    return term.sort.members if isinstance(term.sort, EnumSort) else ()


def _names(outputs: Mapping[str, Term]) -> dict[Term, Term]:
    """Integers that an output shows, by the output's name; a default elsewhere does not count."""
    found: dict[Term, Term] = {}
    for name, term in outputs.items():
        branches = term.args[1:] if term.op is Op.ITE else (term,)
        computed = [one for one in branches if one.op not in (Op.CONST, Op.SYMBOL)]
        if isinstance(term, Int) and len(computed) == 1:
            found.setdefault(computed[0], symbol_int(name))
    return found


def _renamed(node: Term, names: Mapping[Term, Term]) -> Term:
    """The node for readers: what outputs show is called by their names."""
    if isinstance(node, Bool) or node.op in (Op.MIN, Op.MAX):
        new = rebuild(node, substitute(node.args, names))
        return new if new.op is node.op else node
    return substitute((node,), names)[0]


def _named(term: Term, name: str) -> Term:
    return symbol_enum(name, term.sort) if isinstance(term.sort, EnumSort) else symbol_bool(name)
