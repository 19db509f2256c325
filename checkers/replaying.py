"""The `replay` command: execute saved counterexamples again, from a file or a whole report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Claim, Obligation

from .counterexample import Replayer
from .discharge import build
from .registry import load_obligations, pick
from .report import print_counterexample
from .rows import parse_json, read_value

__all__ = ["run_replay"]


def run_replay(path: Path, files: Sequence[Path]) -> int:
    """Execute every counterexample in the file; 0 if each still breaks its obligation."""
    try:
        data = parse_json(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error.reason}") from error
    known = load_obligations(files)
    found = [_saved(one, str(path)) for one in _counterexamples(data, str(path))]
    console = Console(soft_wrap=True, highlight=False, emoji=False)
    if not found:
        console.print(f"{path}: no counterexample to replay", markup=False)
    broken = [_replay_one(console, known, name, state, str(path)) for name, state in found]
    return 0 if all(broken) else 1


def _counterexamples(data: Any, where: str) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected a JSON object")
    if "obligations" in data and isinstance(data["obligations"], list):
        reports = [one for one in data["obligations"] if isinstance(one, dict)]
        return [one["counterexample"] for one in reports if one.get("counterexample")]
    return [data]


def _saved(data: Any, where: str) -> tuple[str, Mapping[str, Any]]:  # noqa: ANN401 - JSON
    for key, kind in (("schema_version", int), ("obligation", str), ("state", dict)):
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            raise InputError(f"{where}: a counterexample needs {key!r} ({kind.__name__})")
    if data["schema_version"] != 1:
        raise InputError(f"{where}: schema_version {data['schema_version']} is not 1")
    return data["obligation"], data["state"]


def _replay_one(
    console: Console,
    known: Mapping[str, Obligation],
    name: str,
    data: Mapping[str, Any],
    where: str,
) -> bool:
    statement = build(known[pick("obligation", name, known)])
    if not isinstance(statement, Claim):
        raise InputError(f"{where}: {name} is not a claim about states; run check instead")
    replayer = Replayer(statement)
    names = {symbol.name: symbol for symbol in replayer.symbols}
    for key in data:
        if key not in names:
            raise InputError(f"{where}: {name} has no input {key!r}")
    missing = names.keys() - data.keys()
    if missing:
        raise InputError(f"{where}: no value for {', '.join(sorted(missing))}")
    state = {key: read_value(names[key], data[key], f"{where}: {key}") for key in names}
    fails = replayer.fails(state)
    word = "still breaks" if fails else "no longer breaks"
    console.print(f"{escape(name)}: the state {word} it")
    print_counterexample(console, replayer.execute(state), full=True)
    return fails
