"""What a person sees while results arrive, on a terminal's standard error; nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from .announcing import Announcement, warn

__all__ = ["Board", "with_progress"]

T = TypeVar("T")


class Board:
    """A bar for the whole run, and below it a line per obligation in work: engine and elapsed."""

    def __init__(self, total: int) -> None:
        """Nothing is shown before `showing`."""
        self._console = Console(stderr=True)
        bar = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        line = (TextColumn("  {task.description}", markup=False), TimeElapsedColumn())
        stage = TextColumn("{task.fields[stage]}", style="dim", markup=False)
        self._whole = Progress(*bar, console=self._console)
        self._works = Progress(*line, stage, console=self._console)
        self._task = self._whole.add_task("", total=total)
        self._lines: dict[str, TaskID] = {}
        self._warned: set[str] = set()

    def hear(self, name: str, said: Announcement) -> None:
        """Show the stage that the obligation has reached; print a warning, once, above the bar."""
        if said.kind == "warning" and said.text not in self._warned:
            self._warned.add(said.text)
            warn(said.text)
        if said.kind != "stage" or not self._console.is_terminal:
            return
        if name not in self._lines:
            self._lines[name] = self._works.add_task(name, total=None, stage=said.text)
        self._works.update(self._lines[name], stage=said.text)

    def showing(self, arriving: Iterator[T], describe: Callable[[T], str]) -> Iterator[T]:
        """The items as they arrive, the board shown meanwhile; `describe` gives the id."""
        if not self._console.is_terminal:
            yield from arriving
            return
        group = Group(self._whole, self._works)
        with Live(group, console=self._console, transient=True):
            for item in arriving:
                self._whole.advance(self._task)
                if (line := self._lines.pop(describe(item), None)) is not None:
                    self._works.remove_task(line)
                yield item


def with_progress(arriving: Iterator[T], total: int, describe: Callable[[T], str]) -> Iterator[T]:
    """A bar with the latest item while items arrive."""
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
