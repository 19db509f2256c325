"""The `reach` command: print the proved decision table of a route for each ladder revision."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from routeproof.spec.ladder import Ladder
from routeproof.spec.obligation import Reach, Verdict

from .decide import Decision
from .reach import decide_reach
from .registry import load_ladders, pick
from .report import SCHEMA_VERSION, Output, dump
from .solver import Options

__all__ = ["run_reach"]


def run_reach(name: str, outcome: str, revision: str | None, form: str, options: Options) -> int:
    """Compute, prove and print; 0 when every table is proved, 3 when one stays unknown."""
    ladders = load_ladders(name)
    chosen = [pick("revision", revision, ladders)] if revision else list(ladders)
    outcome = outcome.replace("-", "_")
    pick("outcome", outcome, [one for key in chosen for one in ladders[key].outcomes])
    tables = {
        key: decide_reach(Reach(ladders[key], outcome), options)
        for key in chosen
        if outcome in ladders[key].outcomes
    }
    if form == "json":
        print(dump(_document(name, outcome, tables)), end="")  # noqa: T201 - the output
    else:
        console = Output(soft_wrap=True, highlight=False, emoji=False)
        for key, decision in tables.items():
            title = f"[bold]{escape(outcome)}[/bold] on {name}, {key} ladder"
            _print(console, title, ladders[key], decision)
    verdicts = {decision.verdict for decision in tables.values()}
    return 0 if verdicts == {Verdict.PROVED} else 3 if Verdict.UNKNOWN in verdicts else 1


def _document(name: str, outcome: str, tables: dict[str, Decision]) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "ladder": name,
        "outcome": outcome,
        "revisions": {
            key: {
                "verdict": str(decision.verdict),
                "reason": decision.reason,
                "admitted": list(decision.assumptions),
                "table": decision.evidence.get("table"),
            }
            for key, decision in tables.items()
        },
    }


def _print(console: Console, title: str, ladder: Ladder, decision: Decision) -> None:
    console.print(title)
    table = decision.evidence.get("table")
    if decision.verdict is not Verdict.PROVED or not isinstance(table, list):
        console.print(f"  {decision.verdict}: {escape(decision.reason)}\n")
        return
    if not table:
        console.print("  never: no Run takes it")
    common = [fact for fact in table[0] if all(fact in row for row in table)] if table[1:] else []
    if common:
        console.print(f"  in every row: {escape(' and '.join(common))}")
    for number, row in enumerate(table, 1):
        rest = [fact for fact in row if fact not in common]
        console.print(f"  {number:3}. {escape(' and '.join(rest)) or 'always'}")
    given = "; ".join(decision.assumptions) or "any facts"
    runtime = ", ".join(fact.name for fact in ladder.runtime)
    console.print(
        "  [green]proved[/green]: some Run takes it if and only if a row holds;"
        " each row is prime, none is redundant"
    )
    console.print(f"  [dim]for all states with: {escape(given)}[/dim]")
    console.print(f"  [dim]free at run time: {escape(runtime)}[/dim]\n")
