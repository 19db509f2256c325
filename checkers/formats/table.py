"""The formats of `check` and `merge` by name, and the endings of files that choose one."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from routeproof.checkers.discharge import Result
from routeproof.checkers.report import Shard, dump, print_result, print_summary, to_json

__all__ = ["FORMATS", "format_of", "written"]

FORMATS = ("text", "json", "junit", "sarif", "github", "markdown")
_ENDINGS = {".json": "json", ".xml": "junit", ".sarif": "sarif", ".md": "markdown"}


def format_of(path: Path) -> str:
    """The format that a file's ending asks for, or else text."""
    return _ENDINGS.get(path.suffix, "text")


def written(form: str, results: Sequence[Result], shard: Shard | None = None) -> str:
    """The whole report as text."""
    return dump(to_json(results, shard)) if form == "json" else _writer(form)(results)


def _writer(form: str) -> Callable[[Sequence[Result]], str]:
    """The function of the format; its library is imported here."""
    if form == "junit":
        from .junit import to_junit

        return to_junit
    if form == "sarif":
        from .sarif import to_sarif

        return to_sarif
    from .github import to_github, to_markdown

    known: Mapping[str, Callable[[Sequence[Result]], str]] = {
        "text": _text,
        "github": to_github,
        "markdown": to_markdown,
    }
    return known[form]


def _text(results: Sequence[Result]) -> str:
    console = Console(file=io.StringIO(), force_terminal=False, record=True, width=200, emoji=False)
    for result in results:
        print_result(console, result)
    print_summary(console, results, None)
    return console.export_text()
