"""The `replay` command on a file: a counterexample, a whole report, or a launch that was drawn.

States are executed by the interpreter. Where the claim says which launch a state stands for,
kernels run it in the memory that its recipe plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from routeproof.spec.errors import InputError
from routeproof.spec.interpret import State, compile_terms
from routeproof.spec.obligation import Claim, Invocation
from routeproof.spec.records import leaves, nested

from .counterexample import Replayer
from .launching import RECIPE, show_launch
from .registry import build, load_kernels, load_obligations, pick
from .report import Output, print_counterexample
from .values import read_json, read_state

__all__ = ["run_replay"]


@dataclass(frozen=True, slots=True)
class _Saved:
    """A saved counterexample and the claim that it is said to break."""

    name: str
    claim: Claim
    state: Mapping[str, Any]


def run_replay(path: Path, files: Sequence[Path], kernels: str) -> int:
    """Execute everything in the file; 0 if each state still breaks its obligation, without a fault.

    `kernels` is the backend, or `none`.
    """
    data = read_json(path)
    if isinstance(data, dict) and "launch" in data:
        if files:
            raise InputError(f"{files[0]}: a launch needs no obligations")
        return _replay_launch(data, str(path), kernels)
    known = load_obligations(files)
    found = [_named(one, str(path)) for one in _counterexamples(data, str(path))]
    console = Output(soft_wrap=True, highlight=False, emoji=False)
    claims, others = [], []
    for name, state in found:
        statement = build(known[pick("obligation", name, known)])
        if isinstance(statement, Claim):
            claims.append(_Saved(name, statement, state))
        else:
            others.append(name)
    if not found:
        console.print(f"{path}: no counterexample to replay", markup=False)
    elif not claims:
        raise InputError(f"{path}: {', '.join(others)} is decided by check alone")
    for name in others:
        console.print(f"{escape(name)}: not a claim about states, decided by check alone")
    fine = [_replay_one(console, one, str(path), kernels) for one in claims]
    return 0 if all(fine) else 1


def _replay_launch(data: Mapping[str, Any], where: str, kernels: str) -> int:
    """Run a launch that was drawn at random again."""
    if not isinstance(data["launch"], dict):
        raise InputError(f"{where}: 'launch' is not an object")
    if unknown := data.keys() - {"schema_version", "launch"}:
        raise InputError(f"{where}: unknown key {min(unknown)!r} beside 'launch'")
    _is_version_1(data, where)
    if kernels == "none":
        raise InputError(f"{where}: a launch needs --kernels numpy or cupy")
    runner = load_kernels(RECIPE, kernels)
    console = Output(soft_wrap=True, highlight=False, emoji=False)
    return 0 if show_launch(console, lambda: runner.run(data["launch"]), runner.device) else 1


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
    if "schema_version" not in data:
        raise InputError(f"{where}: needs 'schema_version'")
    if repr(data.get("schema_version")) != "1":
        raise InputError(f"{where}: schema_version {data.get('schema_version')} is not 1")


def _named(data: Any, where: str) -> tuple[str, Mapping[str, Any]]:  # noqa: ANN401 - JSON
    for key, kind in (("schema_version", int), ("obligation", str), ("state", dict)):
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            raise InputError(f"{where}: a counterexample needs {key!r} ({kind.__name__})")
    _is_version_1(data, where)
    return data["obligation"], data["state"]


def _replay_one(console: Console, one: _Saved, where: str, kernels: str) -> bool:
    """Whether the state still breaks the claim, and its launch runs without a fault."""
    replayer = Replayer(one.claim)
    state = read_state(replayer.symbols, one.state, f"{where}: {one.name}")
    fails = replayer.fails(state)
    word = "still breaks" if fails else "no longer breaks"
    console.print(f"{escape(one.name)}: the state {word} it")
    print_counterexample(console, replayer.execute(state), full=True)
    if one.claim.launches is None or kernels == "none":
        return fails
    return _runs(console, one.claim.launches, state, kernels) and fails


def _runs(console: Console, launches: Invocation, state: State, kernels: str) -> bool:
    """Whether the state's launch runs without a fault, or is one that cannot be."""
    runner = load_kernels(launches.function, kernels)
    inputs = leaves(launches.inputs)
    values = compile_terms(tuple(inputs.values()))(state)
    row = nested(dict(zip(inputs, values, strict=True)))
    try:
        return show_launch(console, lambda: runner.row(row), runner.device)
    except InputError as error:
        console.print(f"  kernels: not run: {error.args[0]}", markup=False)
        return True
