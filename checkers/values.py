"""JSON from outside as values of symbols: every error names what and where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from routeproof.spec import floats
from routeproof.spec.errors import InputError, refuse
from routeproof.spec.interpret import Value
from routeproof.spec.terms import Bool, EnumSort, Float, Term
from routeproof.spec.text import closest

__all__ = ["Json", "parse_json", "read_json", "read_state", "read_value", "shown"]

Json = Any


def read_json(path: Path) -> Json:
    """The JSON value in a file."""
    try:
        return parse_json(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error.reason}") from error


def parse_json(text: str, where: str) -> Json:
    """The JSON value; malformed text or a repeated key is an `InputError` naming the place."""

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        keys = [key for key, _ in pairs]
        repeated = next((key for key in keys if keys.count(key) > 1), None)
        if repeated is not None:
            raise InputError(f"{where}: key {repeated!r} is given twice")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}, column {error.colno}: malformed JSON: {error.msg}") from error
    except RecursionError as error:
        raise InputError(f"{where}: malformed JSON: nested too deeply") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: malformed JSON: {error}") from error


def read_state(symbols: Iterable[Term], data: Json, where: str) -> dict[str, Value]:
    """A value for each symbol, and for nothing else."""
    names = {symbol.name: symbol for symbol in symbols}
    if not isinstance(data, Mapping):
        refuse(where, f"expected an object with a value per input, got {shown(data)}")
    for key in data:
        if key not in names:
            refuse(where, f"no input {key!r}{closest(key, names)}")
    missing = names.keys() - data.keys()
    if missing:
        refuse(where, f"no value for {', '.join(sorted(missing))}")
    return {key: read_value(names[key], data[key], f"{where}: {key}") for key in names}


def read_value(symbol: Term, data: Json, at: str) -> Value:
    """The JSON value as a value of the symbol; `at` names the place in errors."""
    if isinstance(symbol, Bool):
        if not isinstance(data, bool):
            refuse(at, f"expected true or false, got {shown(data)}")
        return data
    if isinstance(symbol.sort, EnumSort):
        members = symbol.sort.members
        if not isinstance(data, str) or data not in members:
            hint = closest(data, members) if isinstance(data, str) else ""
            refuse(at, f"{shown(data)} is not one of {', '.join(members)}{hint}")
        return data
    if isinstance(symbol, Float) and data in ("nan", "inf", "-inf"):
        return float(data)
    if isinstance(data, bool) or not isinstance(data, int | float):
        refuse(at, f"expected a number, got {shown(data)}")
    if isinstance(symbol, Float):
        if isinstance(data, int):
            return floats.from_integer(data, symbol.width)
        return floats.round_to(data, symbol.width)
    if not isinstance(data, int):
        refuse(at, f"expected an integer, got {shown(data)}")
    if symbol.domain and data not in symbol.domain:
        refuse(at, f"{shown(data)} is outside {symbol.domain}")
    return data


def shown(data: Json) -> str:
    """The JSON text, shortened."""
    text = json.dumps(data)
    return text if len(text) <= 40 else f"{text[:37]}..."
