"""The `bound` command: ask, answer, write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import click

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.progress import with_progress
from routeproof.checkers.registry import load_function, load_presets, load_question
from routeproof.checkers.report import table_output

from .answer import Answer, answer
from .matrix import Row, as_text, chosen, rows
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


def run_matrix(devices: str, document: Mapping[str, Any], form: str) -> int:
    """Print the table of every published model on each device."""
    names = chosen(devices, document)
    found = list(_with_bar(rows(names, document), len(names) * len(load_presets("models"))))
    click.echo(as_text(found, form), nl=False)
    return 3 if any(row.status == "safe bound" for row in found) else 0


def _with_bar(arriving: Iterator[Row], total: int) -> Iterator[Row]:
    return with_progress(arriving, total, lambda row: f"{row.model} on {row.device}")


def run_emit(name: str, language: str) -> int:
    """Print the function as source text, with tests.

    They are the inputs on which it is proved to be needed in full, and those at its boundaries.
    """
    from routeproof.checkers.emit import emit
    from routeproof.checkers.emitting.plan import plan
    from routeproof.checkers.vectors import boundary_vectors, looked_up

    function = load_function(name)
    plan(function)  # what cannot be written is refused before anything is searched for
    evaluate = Evaluator(function)
    attained = ({"in": row} for row in function.attained())
    boundary = (vector.row for vector in boundary_vectors(function).vectors)
    given = (evaluate.state(row, name) for row in (*attained, *boundary))
    states = [looked_up(function, state) for state in given]
    rows = [{"in": evaluate.inputs(state), **evaluate.outputs(state)} for state in states]
    click.echo(emit(function, cast("Any", language), rows), nl=False)
    return 0


def run_vectors(name: str, form: str, base: Path | None) -> int:
    """Print boundary-value vectors of the function."""
    from routeproof.checkers import vectors

    click.echo(vectors.run_vectors(name, cast("Any", form), base), nl=False)
    return 0


def exit_status(found: Answer) -> int:
    """0 where every answer is definite, `unavailable` included; 3 where one is a bound only."""
    return 3 if any(entry.status == "safe bound" for entry in found.entries) else 0
