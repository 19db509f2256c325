"""The `bound` command: ask, answer, write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from routeproof.checkers.registry import load_question
from routeproof.checkers.report import table_output

from .answer import Answer, answer
from .plot import check_plot, write_plot
from .report import as_csv, as_json, print_text

__all__ = ["exit_status", "run_bound"]


def run_bound(document: Mapping[str, Any], form: str, plot: Path | None = None) -> int:
    """Print the answer, and draw it; 3 if some maximum is only bounded."""
    if plot:
        check_plot(plot)
    found = answer(load_question(document))
    if form == "text":
        print_text(table_output(), found)
    else:
        click.echo(as_json(found) if form == "json" else as_csv(found), nl=False)
    if plot:
        write_plot(plot, found)
    return exit_status(found)


def exit_status(found: Answer) -> int:
    """0 where every answer is definite, `unavailable` included; 3 where one is a bound only."""
    return 3 if any(entry.status == "safe bound" for entry in found.entries) else 0
