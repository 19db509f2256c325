"""Change the model, one place at a time, and see which obligations notice.

    PYTHONPATH=tests python -m mutation.run                       every change, one line each
    PYTHONPATH=tests python -m mutation.run 'xqa-*' --results F   some, kept in F for later
    PYTHONPATH=tests python -m mutation.run --results F --write   the rest, then docs/mutation.md

A change is caught when `check` exits with 1, in whichever stage (see `stages.py`); one that only
leaves something unknown (3) is not.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click

from .changes import CHANGES, Change
from .results import Caught, caught, line, load, page, save
from .stages import stages
from .tree import ROOT, MutationError, changed, check, differences, evaluate, original

_UNCHANGED = "(unchanged)"


def _unchanged(tree: Path, jobs: int, timeout: int) -> Caught:
    """Check the original: were it to fail, a failing change would say nothing."""
    started = time.monotonic()
    report = check(tree, jobs=jobs, timeout=timeout)
    plain = caught(_UNCHANGED, [report], (), time.monotonic() - started)
    if plain.surprises:
        raise MutationError(f"the unchanged model fails: {plain.surprises}")
    return plain


def _try(tree: Path, change: Change, jobs: int, timeout: int) -> Caught:
    """Make the change, see that the state tells it, and check the changed model."""
    started = time.monotonic()
    (before,) = evaluate(tree, [change.state])
    with changed(tree, change) as copy:
        (after,) = evaluate(copy, [change.state])
        differs = differences(before, after)
        if not differs:
            raise MutationError(f"{change.name}: the state does not tell the change")
        reports = []
        for patterns in stages(change):
            reports.append(check(copy, patterns, jobs=jobs, timeout=timeout))
            if reports[-1]["summary"]["exit_status"] == 1:
                break
    return caught(change.name, reports, differs, time.monotonic() - started)


def _run(
    changes: Sequence[Change], kept: Mapping[str, Caught], jobs: int, timeout: int
) -> Iterator[Caught]:
    """Each change in turn, after the unchanged model has passed once."""
    with tempfile.TemporaryDirectory(prefix="routeproof-") as folder:
        tree = original(Path(folder) / "tree")
        if _UNCHANGED not in kept:
            yield _unchanged(tree, jobs, timeout)
        for change in changes:
            yield _try(tree, change, jobs, timeout)


def _wanted(patterns: Sequence[str], kept: Mapping[str, Caught]) -> list[Change]:
    """The changes that match, or else all that have no result yet."""
    if not patterns:
        return [change for change in CHANGES if change.name not in kept]
    for pattern in patterns:
        if not any(fnmatchcase(change.name, pattern) for change in CHANGES):
            raise MutationError(f"no change matches {pattern!r}")
    return [
        change
        for change in CHANGES
        if any(fnmatchcase(change.name, pattern) for pattern in patterns)
    ]


def _write(kept: Mapping[str, Caught]) -> None:
    """Write the page about every change that has a result."""
    (ROOT / "docs/mutation.md").write_text(page(kept), encoding="utf-8")


@click.command()
@click.argument("patterns", nargs=-1, metavar="[NAME | GLOB]...")
@click.option("--results", type=click.Path(path_type=Path), help="Keep results here; go on later.")
@click.option("--write", is_flag=True, help="Write docs/mutation.md about all that have a result.")
@click.option("--jobs", default=2, show_default=True, help="Worker processes of each check.")
@click.option("--timeout", default=60, show_default=True, help="Seconds per obligation.")
def main(
    *, patterns: tuple[str, ...], results: Path | None, write: bool, jobs: int, timeout: int
) -> None:
    """Run the changes and say which obligations caught each one (exit 1: not all were)."""
    kept = load(results)
    changes = _wanted(patterns, kept)
    for one in _run(changes, kept, jobs, timeout) if changes else ():
        kept[one.name] = one
        save(results, kept)
        click.echo(line(one))
    if write:
        _write(kept)
    if any(kept[name].exit_status != 1 for name in kept if name != _UNCHANGED):
        sys.exit(1)


if __name__ == "__main__":
    main()
