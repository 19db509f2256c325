"""The `replay` command: execute saved counterexamples again, from a file or a whole report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Claim

from .counterexample import Replayer
from .registry import build, load_obligations, pick
from .report import Output, print_counterexample
from .values import read_json, read_state

__all__ = ["run_replay"]


def run_replay(path: Path, files: Sequence[Path]) -> int:
    """Execute every counterexample in the file; 0 if each still breaks its obligation."""
    data = read_json(path)
    known = load_obligations(files)
    found = [_saved(one, str(path)) for one in _counterexamples(data, str(path))]
    console = Output(soft_wrap=True, highlight=False, emoji=False)
    claims, others = {}, []
    for name, state in found:
        statement = build(known[pick("obligation", name, known)])
        if isinstance(statement, Claim):
            claims[name] = (statement, state)
        else:
            others.append(name)
    if not found:
        console.print(f"{path}: no counterexample to replay", markup=False)
    elif not claims:
        raise InputError(f"{path}: {', '.join(others)} is decided by check alone")
    for name in others:
        console.print(f"{escape(name)}: not a claim about states, decided by check alone")
    broken = [_replay_one(console, name, *claim, str(path)) for name, claim in claims.items()]
    return 0 if all(broken) else 1


def _counterexamples(data: Any, where: str) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected a JSON object")
    if "obligations" not in data:
        return [data]
    if "schema_version" not in data:
        raise InputError(f"{where}: a report needs 'schema_version'")
    _is_version_1(data, where)
    reports = data["obligations"]
    if not isinstance(reports, list) or not all(isinstance(one, dict) for one in reports):
        raise InputError(f"{where}: 'obligations' is not a list of objects")
    if not all("counterexample" in one for one in reports):
        raise InputError(f"{where}: an obligation of a report has a 'counterexample', or null")
    return [one["counterexample"] for one in reports if one["counterexample"]]


def _is_version_1(data: Mapping[str, Any], where: str) -> None:
    if repr(data.get("schema_version")) != "1":
        raise InputError(f"{where}: schema_version {data.get('schema_version')} is not 1")


def _saved(data: Any, where: str) -> tuple[str, Mapping[str, Any]]:  # noqa: ANN401 - JSON
    for key, kind in (("schema_version", int), ("obligation", str), ("state", dict)):
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            raise InputError(f"{where}: a counterexample needs {key!r} ({kind.__name__})")
    _is_version_1(data, where)
    return data["obligation"], data["state"]


def _replay_one(
    console: Console, name: str, claim: Claim, data: Mapping[str, Any], where: str
) -> bool:
    replayer = Replayer(claim)
    state = read_state(replayer.symbols, data, f"{where}: {name}")
    fails = replayer.fails(state)
    word = "still breaks" if fails else "no longer breaks"
    console.print(f"{escape(name)}: the state {word} it")
    print_counterexample(console, replayer.execute(state), full=True)
    return fails
