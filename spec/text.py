"""Readable infix text of a term, for messages, tables and decision rows."""

from __future__ import annotations

from .terms import FloatValue, Op, Term

__all__ = ["render"]

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
_NEGATED = {Op.EQ: " != ", Op.LT: " >= ", Op.LE: " > "}


def render(term: Term) -> str:
    """Infix text; `a > 3` rather than `not a <= 3`, functions by their name in `spec.terms`."""
    return _render(term, 0)


def _render(term: Term, outer: int) -> str:
    text, strength = _parts(term)
    return f"({text})" if strength < outer else text


def _parts(term: Term) -> tuple[str, int]:
    match term.op:
        case Op.SYMBOL | Op.BOUND:
            return str(term.value), 100
        case Op.CONST:
            return _constant(term), 100
        case Op.NOT:
            return _negation(term.args[0])
        case Op.ITE:
            test, one, two = (_render(arg, 5) for arg in term.args)
            return f"{one} if {test} else {two}", 4
        case op if op in _INFIX:
            sign, strength = _INFIX[op]
            rest = strength if op in (Op.AND, Op.OR, Op.ADD, Op.MUL) else strength + 1
            first, *others = term.args
            return sign.join([_render(first, strength), *(_render(arg, rest) for arg in others)]), strength
        case _:
            return f"{term.op}({', '.join(_render(arg, 0) for arg in term.args)})", 100


def _negation(term: Term) -> tuple[str, int]:
    if term.op in _NEGATED and term.args[0].sort_name != "float":
        return _NEGATED[term.op].join(_render(arg, 41) for arg in term.args), 40
    if term.op is Op.EQ:
        return " != ".join(_render(arg, 41) for arg in term.args), 40
    return f"not {_render(term, 30)}", 30


def _constant(term: Term) -> str:
    if isinstance(term.value, FloatValue):
        return f"{term.value.number!r}{'f' if term.sort == 32 else ''}"  # noqa: PLR2004 - the width
    return str(term.value)
