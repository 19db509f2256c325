"""The `check` command: run obligations, report as they finish, write each report whole."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from routeproof.spec.errors import InputError
from routeproof.spec.text import closest

from .discharge import Result
from .pool import run
from .registry import load_obligations, select_obligations
from .report import Output, dump, exit_status, print_result, print_summary, to_json
from .solver import Options

__all__ = ["Request", "destinations", "run_check", "with_progress"]

FORMATS = ("text", "json")
T = TypeVar("T")


def destinations(outputs: Sequence[str]) -> list[tuple[str, Path]]:
    """`[FORMAT=]FILE` options as format and path; a bad one fails before anything runs."""
    found: list[tuple[str, Path]] = []
    for output in outputs:
        form, named, rest = output.partition("=")
        path = Path(rest if named else output)
        form = form if named else "json" if path.suffix == ".json" else "text"
        if any(path.resolve() == other.resolve() for _, other in found):
            raise InputError(f"--output {output}: {path} is given twice")
        if path.suffix == ".py":
            raise InputError(f"--output {output}: a report is no .py file; is the name missing?")
        if form not in FORMATS:
            raise InputError(f"--output {output}: unknown format {form!r}{closest(form, FORMATS)}")
        try:
            if path.is_dir():
                raise IsADirectoryError
            if _is_plain(path):
                with _beside(path.resolve()):
                    pass
        except OSError as error:
            raise InputError(f"--output {output}: cannot write {path}") from error
        found.append((form, path))
    return found


@dataclass(frozen=True, slots=True)
class Request:
    """What to decide: ids and globs, files of the user's own, how, and by how many workers."""

    patterns: Sequence[str]
    files: Sequence[Path]
    options: Options
    jobs: int


def run_check(request: Request, form: str, outputs: Sequence[tuple[str, Path]]) -> int:
    """Decide the chosen obligations; the exit status says whether all is as expected."""
    chosen = select_obligations(load_obligations(request.files), request.patterns)
    order = [one.id for one in chosen]
    started = time.monotonic()
    console = Output(soft_wrap=True, emoji=False)
    done: dict[str, Result] = {}
    interrupted = False
    try:
        with closing(run(chosen, request.files, request.options, request.jobs)) as arriving:
            for result in _in_order(
                with_progress(arriving, len(chosen), lambda one: one.id), order, done
            ):
                if form == "text":
                    print_result(console, result)
    except KeyboardInterrupt:
        interrupted = True
    results = [done[name] for name in order if name in done]
    seconds = time.monotonic() - started if console.is_terminal else None
    if interrupted:
        if form == "text":
            console.print(f"\n{len(results)} of {len(order)} obligations decided")
        raise KeyboardInterrupt
    if form == "text":
        print_summary(console, results, seconds)
    else:
        print(dump(to_json(results)), end="")  # noqa: T201 - the report is the output
        for result in results:
            if result.decision.malformed:
                print(f"routeproof: {result.decision.reason}", file=sys.stderr)  # noqa: T201
    for kind, path in outputs:
        _write(path, _report(kind, results))
    return exit_status(results)


def _in_order(
    arriving: Iterator[Result], order: Sequence[str], done: dict[str, Result]
) -> Iterator[Result]:
    """The results in listed order, each as soon as all before it are there."""
    following = iter(order)
    expected = next(following, None)
    for result in arriving:
        done[result.id] = result
        while expected in done:
            yield done[expected]
            expected = next(following, None)


def with_progress(arriving: Iterator[T], total: int, describe: Callable[[T], str]) -> Iterator[T]:
    """A bar on a terminal's standard error while items arrive; nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from arriving
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        for item in arriving:
            progress.update(task, advance=1, description=describe(item))
            yield item


def _report(kind: str, results: Sequence[Result]) -> str:
    if kind == "json":
        return dump(to_json(results))
    console = Console(file=io.StringIO(), force_terminal=False, record=True, width=200, emoji=False)
    for result in results:
        print_result(console, result)
    print_summary(console, results, None)
    return console.export_text()


def _write(path: Path, text: str) -> None:
    """Write the whole file or leave what was there; a device or a pipe is written as it is."""
    try:
        _write_whole(path, text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _write_whole(path: Path, text: str) -> None:
    if not _is_plain(path):
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()  # a link stays a link
    with _beside(target) as draft:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)


def _is_plain(path: Path) -> bool:
    return path.is_file() or not path.exists()


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    draft.chmod(0o644)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
