"""The `diff` command: read both sides, compare what both have, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from routeproof.checkers.bounding.answer import answer
from routeproof.checkers.report import table_output
from routeproof.spec.errors import refuse

from .bounds import Bounds, bounds_of, compare_bounds
from .report import Diff, as_json, print_text
from .sides import Side, read_sides
from .verdicts import Verdicts, compare_ladders, compare_reports

__all__ = ["run_diff"]


def run_diff(
    names: tuple[str, str],
    options: Mapping[str, Any],
    patterns: Sequence[str],
    jobs: int,
    form: str,
) -> int:
    """Print what differs; the exit status is the larger where two apply, as that of diff(1)."""
    sides = read_sides(names, options)
    verdicts, unjudged = _verdicts(sides, patterns, jobs)
    first, second = map(_bounds, sides)
    moved = compare_bounds(first, second) if first and second else None
    found = Diff(sides, verdicts, unjudged, moved)
    if form == "text":
        print_text(table_output(), found)
    else:
        click.echo(as_json(found), nl=False)
    return found.exit_status


def _verdicts(
    sides: tuple[Side, Side], patterns: Sequence[str], jobs: int
) -> tuple[Verdicts | None, str]:
    """Both sides' verdicts, or why there is nothing to compare."""
    first, second = sides
    if first.verdicts is not None and second.verdicts is not None:
        return compare_reports((first.verdicts, second.verdicts), patterns), ""
    if first.ladder and first.ladder == second.ladder:
        return None, "quantify over all facts; the ladder is the same, so that none can change"
    if first.ladder and second.ladder:
        return compare_ladders((first.ladder, second.ladder), patterns, jobs), ""
    if patterns:
        refuse("--obligations", "there are bounds to compare, and no verdicts")
    return None, "not compared: an answer of bound has none"


def _bounds(side: Side) -> Bounds | None:
    return bounds_of(answer(side.question)) if side.question else side.bounds
