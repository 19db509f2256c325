"""A JSON report read back: the results that it was written from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeproof.checkers.decisions import decision_from_json
from routeproof.checkers.discharge import Acceptance, Result
from routeproof.checkers.report import SCHEMA_VERSION, Shard, to_json
from routeproof.checkers.values import Json, read_json, shown
from routeproof.spec.errors import InputError, refuse
from routeproof.spec.obligation import Verdict

__all__ = ["Report", "read_report"]


@dataclass(frozen=True, slots=True)
class Report:
    """A run, or a part of one, and the version of the tool that made it."""

    path: Path
    version: str
    shard: Shard | None
    results: Sequence[Result]


def read_report(path: Path) -> Report:
    """The report in a file; `InputError` with the place if it is none, or not whole."""
    try:
        return _report(read_json(path), path)
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply") from error


def _report(data: Json, path: Path) -> Report:
    where = str(path)
    if not isinstance(data, dict) or repr(data.get("schema_version")) != str(SCHEMA_VERSION):
        refuse(where, f"expected a report of schema_version {SCHEMA_VERSION}, as check writes it")
    entries = _field(data, "obligations", list, where)
    results = [_result(one, f"{where}, obligation {at}") for at, one in enumerate(entries, 1)]
    ids = [one.id for one in results]
    if twice := next((name for name, count in Counter(ids).items() if count > 1), None):
        refuse(where, f"{twice} is there twice")
    shard = data.get("shard")
    part = None if shard is None else _shard(shard, where)
    version = _field(data, "routeproof", str, where)
    _compare(data, {**to_json(results, part), "routeproof": version}, where)
    return Report(path, version, part, results)


def _compare(data: Json, written: Json, where: str) -> None:
    """Refuse what `check` would not have written of these results: a total that is none of them."""
    if isinstance(data, dict) and isinstance(written, dict):
        for name in data | written:
            if name not in data or name not in written:
                refuse(where, f"{name!r} is {'unknown' if name in data else 'missing'}")
            _compare(data[name], written[name], f"{where}: {name}")
    elif isinstance(data, list) and isinstance(written, list) and len(data) == len(written):
        for at, (one, other) in enumerate(zip(data, written, strict=True), 1):
            _compare(one, other, f"{where} {at}")
    elif (isinstance(data, bool), data) != (isinstance(written, bool), written):
        refuse(where, f"{shown(data)} does not agree with the rest, which says {shown(written)}")


def _field(data: Json, name: str, kind: type, where: str) -> Any:  # noqa: ANN401 - JSON
    """A field of the type; numbers of no other type than asked for."""
    if not isinstance(data, dict):
        refuse(where, "expected an object")
    found = data.get(name)
    if type(found) is not kind and not (kind is float and type(found) is int):
        refuse(where, f"{name!r} is missing or no {kind.__name__}")
    return found


def _shard(data: Json, where: str) -> Shard:
    at = f"{where}: shard"
    index, count, total = (_field(data, name, int, at) for name in ("index", "count", "total"))
    if not 1 <= index <= count or total < 0:
        refuse(at, f"there is no part {index} of {count} of {total} obligations")
    return Shard(
        index, count, total, *(_field(data, name, str, at) for name in ("selection", "run"))
    )


def _result(data: Json, where: str) -> Result:
    name = _field(data, "id", str, where)
    at = f"{where} ({name})"
    expected = _field(data, "expected", str, at)
    if expected not in (Verdict.PROVED, Verdict.REFUTED, Verdict.REPLAYED):
        refuse(at, f"{expected!r} is never expected")
    given = data.get("acceptance")
    return Result(
        name,
        _field(data, "title", str, at),
        _field(data, "source", str, at),
        _field(data, "revision", str, at),
        _field(data, "location", str, at),
        Verdict(expected),
        _decision(data, at),
        _field(data, "seconds", float, at),
        None if given is None else _acceptance(given, at),
    )


def _acceptance(data: Json, where: str) -> Acceptance:
    at = f"{where}: acceptance"
    return Acceptance(
        _field(data, "reason", str, at),
        _field(data, "expires", str, at),
        _field(data, "expired", bool, at),
    )


_ENFORCED: Mapping[str | None, bool | None] = {None: None, "enforced": True, "declared only": False}


def _decision(data: Json, where: str) -> Any:  # noqa: ANN401 - JSON
    """The parts of an entry that are its decision."""
    assurance = _field(data, "assurance", dict, where)
    envelope = assurance.get("envelope")
    if not (envelope is None or isinstance(envelope, str)) or envelope not in _ENFORCED:
        refuse(where, f"no envelope is {envelope!r}")
    shown = data.get("counterexample")
    if isinstance(shown, dict):
        shown = {k: v for k, v in shown.items() if k not in ("schema_version", "obligation")}
    names = ("verdict", "engine", "reason", "axes", "assumptions", "conditional_on", "evidence")
    try:
        return decision_from_json(
            {
                **{name: data.get(name) for name in (*names, "malformed")},
                "counterexample": shown,
                "second_solver": assurance.get("second_solver"),
                "cached": assurance.get("cached"),
                "enforced": _ENFORCED[envelope],
                "kind": data.get("kind") or "",
            }
        )
    except InputError as error:
        raise InputError(f"{where}: {error.args[0]}") from error
