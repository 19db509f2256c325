"""Copies of the package to change and to run, so that the working tree is never touched.

A copy has the package's folders in place of links and imports as `routeproof`.
"""

from __future__ import annotations

import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .changes import Change
from .states import State, leaves

__all__ = [
    "ROOT",
    "MutationError",
    "apply",
    "changed",
    "check",
    "differences",
    "evaluate",
    "original",
]

ROOT = Path(__file__).resolve().parents[2]
_LAYERS = ("spec", "models", "checkers", "kernels_ref", "proofs")
_MODEL = "routeproof/models/ort/gqa"
_LAUNCH = "from routeproof.checkers.cli import main; main()"

Json = Any


class MutationError(click.ClickException):
    """A change, or what it was applied to, is not as the list says."""

    exit_code = 2


def original(tree: Path) -> Path:
    """Copy the package as it is installed, compiled so that an edit is always noticed."""
    package = tree / "routeproof"
    package.mkdir(parents=True)
    shutil.copy2(ROOT / "src/routeproof/__init__.py", package)
    no_caches = shutil.ignore_patterns("__pycache__")
    for layer in _LAYERS:
        shutil.copytree(ROOT / layer, package / layer, ignore=no_caches)
    by_content = py_compile.PycInvalidationMode.CHECKED_HASH  # times are too coarse for this
    compileall.compile_dir(package, quiet=1, invalidation_mode=by_content)
    return tree


@contextmanager
def changed(tree: Path, change: Change) -> Iterator[Path]:
    """Copy the tree, with the change in it, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="routeproof-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(tree, copy)
        path = copy / _MODEL / change.file
        path.write_text(apply(change, path.read_text(encoding="utf-8")), encoding="utf-8")
        yield copy


def apply(change: Change, text: str) -> str:
    """The text of the file with the change in it."""
    found = text.count(change.old)
    if found != 1:
        raise MutationError(
            f"{change.name}: the old text occurs {found} times in {change.file}, not once:\n"
            f"{change.old}"
        )
    return text.replace(change.old, change.new)


def _routeproof(tree: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line of the package in the tree."""
    command = [sys.executable, "-c", _LAUNCH, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(
        command, cwd=tree, env=environment, input=text, capture_output=True, text=True, check=False
    )


def evaluate(tree: Path, states: Sequence[State]) -> list[Json]:
    """The outputs on the states, in order; one run for each function."""
    found: dict[int, Json] = {}
    for function in dict.fromkeys(state.function for state in states):
        places = [place for place, state in enumerate(states) if state.function == function]
        rows = "".join(f"{json.dumps(states[place].row)}\n" for place in places)
        run = _routeproof(tree, "eval", function, text=rows)
        if run.returncode:
            raise MutationError(f"eval {function} exited with {run.returncode}: {run.stderr}")
        found |= dict(zip(places, map(json.loads, run.stdout.splitlines()), strict=True))
    return [found[place] for place in range(len(states))]


def differences(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[str]:
    """The output fields that differ, with both values."""
    pairs = zip(leaves(before), leaves(after), strict=True)
    return [f"{name}: {old} -> {new}" for (name, old), (_, new) in pairs if old != new]


def check(tree: Path, patterns: Sequence[str] = (), *, jobs: int = 2, timeout: int = 60) -> Json:
    """The JSON report of `check` in the tree; its exit status is the one that it reports."""
    limits = ("--jobs", str(jobs), "--timeout", str(timeout), "--format", "json")
    run = _routeproof(tree, "check", *limits, *patterns)
    if run.returncode not in (0, 1, 3):
        raise MutationError(f"check exited with {run.returncode}: {run.stderr}")
    report = json.loads(run.stdout)
    if report["summary"]["exit_status"] != run.returncode:
        raise MutationError(f"check exited with {run.returncode}, which is not what it reports")
    return report
