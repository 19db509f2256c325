"""The `explain` command: one obligation told in full, or what an error code means."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, cast

from rich.console import Console
from rich.markup import escape

from routeproof.spec.errors import InputError, RouteproofError
from routeproof.spec.obligation import Claim, Obligation, Reach, Rows
from routeproof.spec.terms import Bool, all_of

from . import pool  # noqa: F401 - has an error of its own, which has a code
from .discharge import discharge, result_of
from .formulas import Formulas
from .readings.smtlib import script
from .registry import build, load_obligations, pick, shown_path
from .report import Output, print_counterexample
from .solver import Options
from .telling import tell_derivation, tell_enumeration
from .unrolling import unroll, unrolled_size

__all__ = ["query", "run_explain"]

_MOST_WRITTEN = 1_000_000


def run_explain(subject: str, files: Sequence[Path], form: str) -> int:
    """Explain an obligation or an error code."""
    codes = {one.code: one for one in _error_classes(RouteproofError)}
    if subject in codes:
        print(f"{subject}: {codes[subject].__doc__}")  # noqa: T201 - the output
        return 0
    known = load_obligations(files)
    of_files = f" of {', '.join(map(str, files))}" if files else ""
    if subject not in known:
        pick(f"obligation{of_files} or error code", subject, [*known, *codes])
    obligation = known[subject]
    statement = build(obligation)
    if form == "smtlib":
        if not isinstance(statement, Claim):
            raise InputError(f"{subject} is not a claim about terms: it has no SMT-LIB text")
        print(query(statement, obligation.title), end="")  # noqa: T201 - the output
        return 0
    console = Output(soft_wrap=True, highlight=False, emoji=False)
    _head(console, obligation)
    if isinstance(statement, Claim):
        _claim(console, statement, form)
    elif isinstance(statement, Reach):
        console.print(
            f"[bold]statement[/bold]\n  when some Run takes {statement.outcome!r} on "
            f"{statement.ladder.name}, as a table of prime rows, none redundant"
        )
    elif isinstance(statement, Rows):
        console.print(
            f"[bold]statement[/bold]\n  {statement.function} reproduces every row of "
            f"{statement.resource}"
        )
    _story(console, obligation)
    return 0


def _error_classes(root: type[RouteproofError]) -> Iterator[type[RouteproofError]]:
    yield root
    for child in root.__subclasses__():
        yield from _error_classes(child)


def query(claim: Claim, title: str) -> str:
    """The exact query of a claim: unsatisfiable means that the claim holds."""
    refuting = (*claim.conditions.values(), ~all_of(*claim.goals.values()))
    if unrolled_size(refuting) > _MOST_WRITTEN:
        raise InputError(f"{title}: its searches are too long to be written out")
    written = cast("tuple[Bool, ...]", unroll(refuting))
    return script(written, [title, "unsat: it holds"])


def _head(console: Console, obligation: Obligation) -> None:
    console.print(f"[bold]{escape(obligation.id)}[/bold]\n  {escape(obligation.title)}")
    console.print(f"  source    {escape(str(obligation.source))}")
    console.print(f"  written   {escape(shown_path(obligation.location))}")
    console.print(f"  expected  {obligation.expected}")
    if obligation.note:
        console.print(f"  note      {escape(obligation.note)}")


def _claim(console: Console, claim: Claim, form: str) -> None:
    told = Formulas(claim, form)
    for heading, parts in (("assuming", told.assumptions), ("goal", told.goals)):
        if parts:
            console.print(f"[bold]{heading}[/bold]")
        for name, text in parts.items():
            label = "" if name == heading else f"{name}: "
            console.print(escape(indent(label + text, "  ")))
    if claim.envelope:
        console.print("[bold]envelope[/bold]")
        for bound in claim.envelope.bounds:
            console.print(f"  {escape(str(bound))}")


def _story(console: Console, obligation: Obligation) -> None:
    started = time.monotonic()
    result = result_of(obligation, discharge(obligation, Options()), started)
    decision = result.decision
    console.print("[bold]axes[/bold] (the claim is about every combination)")
    for name, domain in decision.axes.items():
        console.print(f"  {escape(name):32} {escape(domain)}")
    for bound in decision.conditional_on:
        console.print(f"[bold]conditional on[/bold]\n  {escape(bound)}")
    console.print("[bold]how it was decided[/bold]")
    console.print(
        f"  engine {decision.engine}, {result.seconds:.2f} s, {decision.evidence.get('solver', '')}"
    )
    derivation = _list(decision.evidence.get("derivation"))
    statement = build(obligation) if derivation else None
    if isinstance(statement, Claim):
        for line in tell_derivation(statement, derivation):
            console.print(f"  {escape(line)}")
    if isinstance(enumeration := decision.evidence.get("enumeration"), dict):
        for line in tell_enumeration(enumeration):
            console.print(f"  {escape(line)}")
    for line in _list(decision.evidence.get("stands_for")):
        console.print(f"  abstracted: {escape(line)}")
    for row in _list(decision.evidence.get("table")):
        console.print(f"  row: {escape(' and '.join(row) or 'always')}")
    if decision.counterexample:
        console.print("[bold]counterexample[/bold] (executed, minimised)")
        print_counterexample(console, decision.counterexample, full=True)
    expected = "as expected" if result.as_expected else f"expected {result.expected}"
    because = f": {decision.reason}" if decision.reason else ""
    console.print(f"[bold]verdict[/bold]\n  {decision.verdict} ({expected}){escape(because)}")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
