"""Decisions as JSON and back: what one run has found, for another to read.

A NaN or an infinity comes back as the text that a report has for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Verdict

from .counterexample import Counterexample
from .decide import Decision
from .report import plain
from .values import Json

__all__ = ["decision_from_json", "decision_to_json"]


def decision_to_json(decision: Decision) -> dict[str, Json]:
    """Every field by its name."""
    data: dict[str, Json] = plain(asdict(decision))
    return data


def decision_from_json(data: Json) -> Decision:
    """The decision that was written; `InputError` naming the field if it is none."""
    given = _object(data, "decision", Decision, _DECISION)
    if given["verdict"] not in set(Verdict):
        raise InputError(f"decision: no verdict {given['verdict']!r}")
    shown = given["counterexample"]
    if shown is not None:
        parts = _object(shown, "counterexample", Counterexample, _COUNTEREXAMPLE)
        given["counterexample"] = Counterexample(**parts)
    return Decision(**{**given, "verdict": Verdict(given["verdict"])})


def _object(
    data: Json, what: str, kind: type, checks: Mapping[str, Callable[[Json], bool]]
) -> dict[str, Any]:
    """The fields of an object, lists as tuples, once each is there and of its type."""
    names = [one.name for one in fields(kind)]
    if not isinstance(data, dict) or set(data) != set(names):
        raise InputError(f"{what}: expected an object of {', '.join(names)}")
    for name in names:
        if not checks[name](data[name]):
            raise InputError(f"{what}: {name} cannot be {data[name]!r}")
    return {name: tuple(one) if isinstance(one, list) else one for name, one in data.items()}


def _is_text(data: Json) -> bool:
    return isinstance(data, str)


def _is_flag(data: Json) -> bool:
    return isinstance(data, bool)


def _is_optional(check: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda data: data is None or check(data)


def _are(check: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda data: isinstance(data, list) and all(map(check, data))


def _maps_to(check: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda data: isinstance(data, dict) and all(map(check, data.values()))


def _is_value(data: Json) -> bool:
    return isinstance(data, bool | int | float | str)


def _is_any(_: Json) -> bool:
    return True


_DECISION: Mapping[str, Callable[[Json], bool]] = {
    "verdict": _is_text,
    "engine": _is_text,
    "reason": _is_text,
    "counterexample": _is_any,
    "axes": _maps_to(_is_text),
    "assumptions": _are(_is_text),
    "conditional_on": _are(_is_text),
    "second_solver": _is_optional(_is_text),
    "evidence": _maps_to(_is_any),
    "enforced": _is_optional(_is_flag),
    "malformed": _is_flag,
    "cached": _is_flag,
    "kind": lambda data: data in ("claim", "rows", "reach", ""),
}
_COUNTEREXAMPLE: Mapping[str, Callable[[Json], bool]] = {
    "state": _maps_to(_is_value),
    "shows": _maps_to(_is_value),
    "conditions": _maps_to(_is_flag),
    "broken": _are(_is_text),
    "moved": _are(_is_text),
    "movable": _are(_is_text),
}
