"""Facts from documents: a mapping of names to values read into a typed record of plain Python.

This is a plain reader, in front of the terms: texts as options give them (`on`, `1..64`) and values
as TOML and JSON give them (true, 64, [1, 64]) mean the same. Errors name the field and the closest
name or the values it takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from routeproof.spec.errors import refuse
from routeproof.spec.objective import Fact
from routeproof.spec.text import closest

__all__ = ["INT32_MAX", "Range", "read_facts"]

INT32_MAX = 2**31 - 1
_SWITCH = {"on": True, "off": False, "true": True, "false": False, "yes": True, "no": False}
_RANGE = re.compile(r"([0-9]+)(?:\.\.([0-9]+))?")

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Range:
    """All integers from `low` to `high`, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        """As options write it."""
        return str(self.low) if self.low == self.high else f"{self.low}..{self.high}"


def read_facts(
    record: type[R], given: object, section: str, preset: Mapping[str, Any], origin: str
) -> tuple[R, tuple[Fact, ...]]:
    """The record, and every field as a fact: given, from the preset, or the default."""
    if not isinstance(given, Mapping):
        refuse(section, f"expected a table of facts, got {given!r}")
    hints = get_type_hints(record)
    names = [one.name for one in fields(record)]  # type: ignore[arg-type]
    said = {str(key).replace("-", "_"): value for key, value in given.items()}
    for key in said:
        if key not in names:
            refuse(section, f"unknown field {key!r}{closest(key, names)}")
    values: dict[str, Any] = {}
    facts: list[Fact] = []
    for one in fields(record):  # type: ignore[arg-type]
        where = f"{section}.{one.name}"
        if one.name in said:
            values[one.name], source = _value(said[one.name], hints[one.name], where), "given"
        elif one.name in preset:
            values[one.name], source = preset[one.name], origin
        elif one.default is not MISSING:
            values[one.name], source = one.default, "default"
        else:
            refuse(section, f"field {one.name!r} is missing")
        facts.append(Fact(section, one.name, _shown(values[one.name]), source))
    return record(**values), tuple(facts)


def _shown(value: Any) -> str | int | float | bool | None:  # noqa: ANN401 - any field
    return str(value) if isinstance(value, Range) else value


def _value(data: object, hint: Any, where: str) -> Any:  # noqa: ANN401 - as the annotation says
    kinds = get_args(hint) if get_origin(hint) is not Literal else ()
    if type(None) in kinds:
        if data is None or data == "none":
            return None
        hint = next(kind for kind in kinds if kind is not type(None))
    if get_origin(hint) is Literal:
        return _choice(data, get_args(hint), where)
    return {int: _integer, bool: _switch, float: _number, Range: _range, str: _text}[hint](
        data, where
    )


def _choice(data: object, allowed: tuple[str, ...], where: str) -> str:
    text = {True: "on", False: "off"}.get(data) if isinstance(data, bool) else data
    if text not in allowed:
        hint = closest(data, allowed) if isinstance(data, str) else ""
        refuse(where, f"{data!r} is not one of {', '.join(allowed)}{hint.partition('; known')[0]}")
    return str(text)


def _integer(data: object, where: str) -> int:
    if isinstance(data, str) and re.fullmatch(r"-?[0-9]{1,20}", data.strip()):
        data = int(data)
    if type(data) is not int:
        refuse(where, f"expected an integer, got {data!r}")
    if not 0 <= data <= INT32_MAX:
        refuse(where, f"{data} is not in 0..{INT32_MAX}")
    return data


def _switch(data: object, where: str) -> bool:
    found = _SWITCH.get(data.lower()) if isinstance(data, str) else data
    if not isinstance(found, bool):
        refuse(where, f"expected on or off, got {data!r}")
    return found


def _number(data: object, where: str) -> float:
    try:
        found = float(data) if isinstance(data, str | int | float) else math.nan
    except ValueError:
        found = math.nan
    if isinstance(data, bool) or not math.isfinite(found):
        refuse(where, f"expected a finite number, got {data!r}")
    return found


def _text(data: object, where: str) -> str:
    if isinstance(data, list) and all(isinstance(one, str) for one in data):
        return ",".join(data)
    if not isinstance(data, str):
        refuse(where, f"expected a text, got {data!r}")
    return data


def _range(data: object, where: str) -> Range:
    match data:
        case bool():
            pass
        case int():
            return _ordered(data, data, where)
        case str() if found := _RANGE.fullmatch(data.replace("_", "").replace(" ", "")):
            return _ordered(int(found[1]), int(found[2] or found[1]), where)
        case [int() as low, int() as high] if bool not in (type(low), type(high)):
            return _ordered(low, high, where)
    return refuse(where, f"expected an integer or a range such as 1..1024, got {data!r}")


def _ordered(low: int, high: int, where: str) -> Range:
    if low > high:
        refuse(where, f"the range {low}..{high} is empty")
    if not 1 <= low <= high <= INT32_MAX:
        refuse(where, f"{low}..{high} is not within 1..{INT32_MAX}")
    return Range(low, high)
