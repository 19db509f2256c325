"""Conditions as JSON, so that evidence can hold them: `["lt", "head_size", 8]`.

A symbol is its name, an integer or a truth value is itself, a float is written in base 16 beside
its width, a member of an enum beside the name of that; everything else is an operation and its
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from .errors import InputError, ModelError
from .terms import (
    Bool,
    EnumSort,
    FloatValue,
    Op,
    Term,
    align_up,
    all_of,
    any_of,
    boolean,
    ceil_div,
    float32,
    float64,
    integer,
    ite,
    maximum,
    minimum,
)

__all__ = ["read_condition", "write_term"]

_BUILDERS: Mapping[str, Callable[..., Term]] = {
    "add": lambda one, two: one + two,
    "sub": lambda one, two: one - two,
    "mul": lambda one, two: one * two,
    "floor_div": lambda one, two: one // two,
    "ceil_div": ceil_div,
    "mod": lambda one, two: one % two,
    "align_up": align_up,
    "min": minimum,
    "max": maximum,
    "ite": ite,
    "eq": lambda one, two: one == two,
    "lt": lambda one, two: one < two,
    "le": lambda one, two: one <= two,
    "not": lambda one: ~one,
    "and": all_of,
    "or": any_of,
}
_FLOATS: Mapping[str, Callable[[float], Term]] = {"float32": float32, "float64": float64}


def write_term(term: Term) -> Any:  # noqa: ANN401 - JSON
    """The term as JSON; a `ModelError` where it has an operation that is not written so."""
    if term.op is Op.SYMBOL:
        return term.name
    if isinstance(term.value, FloatValue):
        return {f"float{term.sort}": term.value.number.hex()}
    if isinstance(term.sort, EnumSort) and term.op is Op.CONST:
        return {term.sort.name: term.value}
    if term.op is Op.CONST:
        return term.value
    if term.op not in _BUILDERS:
        raise ModelError(f"{term.op} is not written as JSON")
    return [str(term.op), *map(write_term, term.args)]


def read_condition(data: object, symbols: Mapping[str, Term]) -> Bool:
    """The condition over the symbols, by name; anything else is an `InputError`."""
    try:
        found = _read(data, symbols)
    except (ModelError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{data!r} is no condition: {error}") from error
    if not isinstance(found, Bool):
        raise InputError(f"{data!r} is no condition")
    return found


def _read(data: object, symbols: Mapping[str, Term]) -> Term:
    if isinstance(data, bool):
        return boolean(data)
    if isinstance(data, int):
        return integer(data)
    if isinstance(data, str):
        return symbols[data]
    if isinstance(data, dict):
        ((kind, value),) = data.items()
        if kind in _FLOATS:
            return _FLOATS[kind](float.fromhex(value))
        sorts = {s.sort.name: s.sort for s in symbols.values() if isinstance(s.sort, EnumSort)}
        return sorts[kind][str(value)]
    operation, *args = cast("list[Any]", data)
    return _BUILDERS[operation](*(_read(one, symbols) for one in args))
