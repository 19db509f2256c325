"""The `check` and `merge` commands: results as they come, and reports that are whole or absent."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Obligation
from routeproof.spec.text import closest

from .announcing import warn
from .baseline import Accepted, apply, needless, today
from .caching.sources import read_sources
from .discharge import Result
from .formats.reading import read_report
from .formats.table import FORMATS, format_of, written
from .progress import Board
from .registry import load_obligations, select_obligations
from .report import Output, Shard, exit_status, print_result, print_summary
from .running import Request, decide_all
from .sharding import merged, part_of
from .siblings import imported_files
from .writing import probe, write_whole

__all__ = ["Delivery", "destinations", "run_check", "run_merge"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where results go: the format of standard output, files, and what a baseline accepts."""

    form: str = "text"
    outputs: Sequence[tuple[str, Path]] = ()
    baseline: Mapping[str, Accepted] = field(default_factory=dict)


def destinations(outputs: Sequence[str], read: Sequence[Path] = ()) -> list[tuple[str, Path]]:
    """`[FORMAT=]FILE` options as format and path; a bad one fails before anything runs.

    A file that is read may not be written: a second run would not find it as the first did.
    """
    found: list[tuple[str, Path]] = []
    for output in outputs:
        form, named, rest = output.partition("=")
        path = Path(rest if named else output)
        form = form if named else format_of(path)
        if any(path.resolve() == other.resolve() for _, other in found):
            raise InputError(f"--output {output}: {path} is given twice")
        if any(path.resolve() == other.resolve() for other in read):
            raise InputError(f"--output {output}: {path} is read by the same command")
        if path.suffix == ".py":
            raise InputError(f"--output {output}: a report is no .py file; is the name missing?")
        if form not in FORMATS:
            raise InputError(f"--output {output}: unknown format {form!r}{closest(form, FORMATS)}")
        try:
            probe(path)
        except OSError as error:
            why = f": {error.strerror}" if error.strerror else ""
            raise InputError(f"--output {output}: cannot write {path}{why}") from error
        found.append((form, path))
    return found


def run_check(request: Request, delivery: Delivery, part: tuple[int, int] | None = None) -> int:
    """Decide the chosen obligations; the exit status says whether all is as expected."""
    chosen: Sequence[Obligation] = select_obligations(
        load_obligations(request.files), request.patterns
    )
    shard: Shard | None = None
    if part:
        accepted = sorted(delivery.baseline.items())
        shared = (request.options, request.seconds, accepted, _contents(request.files))
        chosen, shard = part_of(chosen, *part, *shared)
    started = time.monotonic()
    console = Output(soft_wrap=True, highlight=False, emoji=False)
    done: list[Result] = []
    try:
        with closing(_in_order(_arriving(chosen, request, delivery), chosen, done)) as ordered:
            for result in ordered:
                if delivery.form == "text":
                    print_result(console, result)
    except KeyboardInterrupt:
        _interrupted(console, delivery.form, done, chosen)
        raise
    seconds = time.monotonic() - started if console.is_terminal else None
    if delivery.form == "text":
        print_summary(console, done, seconds)
    return _deliver(done, delivery, shard)


def _contents(files: Sequence[Path]) -> list[str]:
    """A digest of every file that says what is claimed: those given and beside them, or ours."""
    if not files:
        return [read_sources().package]
    found = [*files, *imported_files()]
    return sorted(blake2b(one.read_bytes()).hexdigest() for one in found)


def _arriving(
    chosen: Sequence[Obligation], request: Request, delivery: Delivery
) -> Iterator[Result]:
    board, now = Board(len(chosen)), today()
    with closing(decide_all(chosen, request, board.hear)) as arriving:
        for result in board.showing(arriving, lambda one: one.id):
            yield from apply([result], delivery.baseline, now)


def _in_order(
    arriving: Iterable[Result], chosen: Sequence[Obligation], done: list[Result]
) -> Generator[Result]:
    """The results in listed order, each as soon as all before it are there.

    When the arriving ends early, `done` has those that were yielded, then the others.
    """
    waiting: dict[str, Result] = {}
    following = iter(chosen)
    expected = next(following, None)
    try:
        for result in arriving:
            waiting[result.id] = result
            while expected and expected.id in waiting:
                done.append(waiting.pop(expected.id))
                yield done[-1]
                expected = next(following, None)
    finally:
        done += waiting.values()


def _interrupted(
    console: Output, form: str, done: Sequence[Result], chosen: Sequence[Obligation]
) -> None:
    """What was decided before the interrupt, as far as it has not been printed."""
    if form != "text":
        return
    printed = next(
        (at for at, (one, two) in enumerate(zip(done, chosen, strict=False)) if one.id != two.id),
        len(done),
    )
    for result in done[printed:]:
        print_result(console, result)
    console.print(f"\n{len(done)} of {len(chosen)} obligations decided")


def run_merge(reports: Sequence[Path], delivery: Delivery) -> int:
    """The parts of a run as the whole; the exit status is that of the whole."""
    results = merged([read_report(path) for path in reports])
    if delivery.baseline:
        results = apply(results, delivery.baseline, today())
    if delivery.form == "text":
        console = Output(soft_wrap=True, highlight=False, emoji=False)
        for result in results:
            print_result(console, result)
        print_summary(console, results, None)
    return _deliver(results, delivery, None)


def _deliver(results: Sequence[Result], delivery: Delivery, shard: Shard | None) -> int:
    """Write all reports but the text that is printed as it comes; returns the exit status."""
    if delivery.form != "text":
        if isinstance(sys.stdout, io.TextIOWrapper):  # XML says so; a locale may say otherwise
            sys.stdout.reconfigure(encoding="utf-8", errors="strict")
        print(written(delivery.form, results, shard), end="")  # noqa: T201 - it is the output
        for result in results:
            if result.decision.malformed:
                print(f"routeproof: {result.decision.reason}", file=sys.stderr)  # noqa: T201
    for kind, path in delivery.outputs:
        write_whole(path, written(kind, results, shard))
    if delivery.form == "github" and (step := os.environ.get("GITHUB_STEP_SUMMARY")):
        with Path(step).open("a", encoding="utf-8") as file:
            file.write(written("markdown", results))
    for name in needless(results, delivery.baseline):
        warn(f"baseline: {name} is as expected and need not be accepted")
    return exit_status(results)
