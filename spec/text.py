"""Readable texts for messages: a term in infix, and the name that an unknown one may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .floats import round_to
from .terms import SEARCHES, FloatValue, Op, Term

__all__ = ["closest", "render", "shortened"]

_INFIX = {
    Op.ADD: (" + ", 60),
    Op.SUB: (" - ", 60),
    Op.MUL: ("*", 70),
    Op.FLOOR_DIV: (" // ", 65),
    Op.MOD: (" % ", 65),
    Op.FLOAT_MUL: ("*", 70),
    Op.FLOAT_DIV: (" / ", 65),
    Op.EQ: (" == ", 40),
    Op.LT: (" < ", 40),
    Op.LE: (" <= ", 40),
    Op.AND: (" and ", 20),
    Op.OR: (" or ", 10),
}
_DEEPEST = 100
_MOST_NAMES = 12
_FLIPPED = {Op.LT: " > ", Op.LE: " >= "}
_NEGATED = {Op.LT: " >= ", Op.LE: " > "}


def render(term: Term, most: int = 2_000) -> str:
    """Infix text; `a > 3` rather than `not a <= 3`, functions by their name in `spec.terms`.

    Shared parts are repeated, so beyond `most` nodes, or below `_DEEPEST` levels, the rest is
    written as three dots.
    """
    return _Renderer(most).render(term, 0)


def shortened(term: Term, most: int = 80) -> str:
    """Infix text of at most so many characters, three dots for the rest."""
    text = render(term)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def closest(name: str, names: Iterable[str]) -> str:
    """What to add to an error about an unknown name: the closest match, or all there are."""
    known = {one.lower(): one for one in sorted(names)}
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
    if close:
        return f"; did you mean {known[close[0]]!r}?"
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return f"; known: {', '.join(list(known.values())[:_MOST_NAMES])}{more}"


class _Renderer:
    """One rendering and the number of nodes it may still write."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._depth = 0

    def render(self, term: Term, outer: int) -> str:
        self._left -= 1
        if self._left < 0 or self._depth == _DEEPEST:
            return "..."
        self._depth += 1
        text, strength = self._parts(term)
        self._depth -= 1
        return f"({text})" if strength < outer else text

    def _parts(self, term: Term) -> tuple[str, int]:
        match term.op:
            case Op.SYMBOL | Op.BOUND:
                return str(term.value), 100
            case Op.CONST:
                return _constant(term), 100
            case Op.NOT:
                return self._negation(term.args[0])
            case Op.ITE:
                test, one, two = (self.render(arg, 5) for arg in term.args)
                return f"{one} if {test} else {two}", 4
            case Op.LT | Op.LE if term.args[0].op is Op.CONST:
                return self._flipped(term, _FLIPPED[term.op]), 40
            case op if op in _INFIX:
                sign, strength = _INFIX[op]
                rest = strength if op in (Op.AND, Op.OR, Op.ADD, Op.MUL) else strength + 1
                first, *others = term.args
                parts = [self.render(first, strength), *(self.render(a, rest) for a in others)]
                return sign.join(parts), strength
            case op if op in SEARCHES:
                return self._search(term), 100
            case _:
                return f"{term.op}({', '.join(self.render(arg, 0) for arg in term.args)})", 100

    def _search(self, term: Term) -> str:
        """Where the variable ranges, the condition (and the value), and what holds without one."""
        limit, variable, *bodies, fallback = (self.render(arg, 0) for arg in term.args)
        where = f"{variable} in 1..min({limit}, {term.value})"
        return f"{term.op}({where}: {': '.join(bodies)}; else {fallback})"

    def _flipped(self, term: Term, sign: str) -> str:
        """The comparison with its constant on the right."""
        return sign.join(self.render(arg, 41) for arg in reversed(term.args))

    def _negation(self, term: Term) -> tuple[str, int]:
        sign = " != " if term.op is Op.EQ else _NEGATED.get(term.op)
        if term.op in _NEGATED and term.args[0].op is Op.CONST:
            sign = {Op.LT: " <= ", Op.LE: " < "}[term.op]
            return self._flipped(term, sign), 40
        if sign is None or (term.op is not Op.EQ and term.args[0].sort_name == "float"):
            return f"not {self.render(term, 30)}", 30
        return sign.join(self.render(arg, 41) for arg in term.args), 40


def _constant(term: Term) -> str:
    if not isinstance(term.value, FloatValue):
        return str(term.value)
    number = term.value.number
    if term.sort == 64:
        return repr(number)
    shortest = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next(text for text in shortest if _same_float32(float(text), number)) + "f"


def _same_float32(one: float, two: float) -> bool:
    return repr(round_to(one, 32)) == repr(two)
