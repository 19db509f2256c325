"""The `explain` and `replay` commands: one obligation told in full, one state executed again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from routeproof.spec.errors import InputError, RouteproofError
from routeproof.spec.obligation import Claim, Obligation, Reach, Rows
from routeproof.spec.terms import Bool, Term, all_of

from .counterexample import Replayer
from .discharge import discharge, result_of
from .readings.smtlib import script
from .registry import load_obligations, pick
from .report import print_counterexample
from .rows import parse_json, read_value
from .solver import Options
from .unrolling import unroll

__all__ = ["run_explain", "run_replay"]

_LONGEST_FORMULA = 400


def run_explain(subject: str, files: Sequence[Path], form: str) -> int:
    """Explain an obligation or an error code."""
    codes = {one.code: one for one in _error_classes(RouteproofError)}
    if subject in codes:
        print(f"{subject}: {codes[subject].__doc__}")  # noqa: T201 - the output
        return 0
    known = load_obligations(files)
    if subject not in known:
        pick("obligation or error code", subject, [*known, *codes])
    obligation = known[subject]
    statement = obligation.statement()
    if form == "smtlib":
        if not isinstance(statement, Claim):
            raise InputError(f"{subject} is not a claim about terms: it has no SMT-LIB text")
        print(query(statement, obligation.title), end="")  # noqa: T201 - the output
        return 0
    console = Console(soft_wrap=True, highlight=False)
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
    refuting = unroll((*claim.conditions.values(), ~all_of(*claim.goals.values())))
    return script([one for one in refuting if isinstance(one, Bool)], [title, "unsat: it holds"])


def _head(console: Console, obligation: Obligation) -> None:
    console.print(f"[bold]{escape(obligation.id)}[/bold]\n  {escape(obligation.title)}")
    console.print(f"  source    {escape(str(obligation.source))}")
    console.print(f"  written   {escape(obligation.location)}")
    console.print(f"  expected  {obligation.expected}")
    if obligation.note:
        console.print(f"  note      {escape(obligation.note)}")


def _claim(console: Console, claim: Claim, form: str) -> None:
    for heading, parts in (("assuming", claim.assuming), ("goal", claim.goals)):
        if parts:
            console.print(f"[bold]{heading}[/bold]")
        for name, term in parts.items():
            label = "" if name == heading else f"{name}: "
            console.print(f"  {escape(label + formula(term, form))}")
    if claim.envelope:
        console.print("[bold]envelope[/bold]")
        for bound in claim.envelope.bounds:
            console.print(f"  {escape(str(bound))}")


def formula(term: Term, form: str) -> str:
    """The term as readable mathematics, through SymPy."""
    from .readings.symbolic import latex, pretty

    text = latex(term) if form == "latex" else pretty(term)
    return text if len(text) <= _LONGEST_FORMULA or form == "latex" else _cut(text)


def _cut(text: str) -> str:
    return f"{text[:_LONGEST_FORMULA]} ... ({len(text):,} characters; --latex or --smtlib show all)"


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


def run_replay(path: Path, files: Sequence[Path]) -> int:
    """Execute every counterexample in the file; 0 if each still breaks its obligation."""
    try:
        data = parse_json(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error.reason}") from error
    known = load_obligations(files)
    found = [_saved(one, str(path)) for one in _counterexamples(data, str(path))]
    console = Console(soft_wrap=True, highlight=False)
    broken = [_replay_one(console, known, name, state, str(path)) for name, state in found]
    return 0 if all(broken) else 1


def _counterexamples(data: Any, where: str) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected a JSON object")
    if "obligations" in data and isinstance(data["obligations"], list):
        reports = [one for one in data["obligations"] if isinstance(one, dict)]
        return [one["counterexample"] for one in reports if one.get("counterexample")]
    return [data]


def _saved(data: Any, where: str) -> tuple[str, Mapping[str, Any]]:  # noqa: ANN401 - JSON
    for key, kind in (("schema_version", int), ("obligation", str), ("state", dict)):
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            raise InputError(f"{where}: a counterexample needs {key!r} ({kind.__name__})")
    if data["schema_version"] != 1:
        raise InputError(f"{where}: schema_version {data['schema_version']} is not 1")
    return data["obligation"], data["state"]


def _replay_one(
    console: Console,
    known: Mapping[str, Obligation],
    name: str,
    data: Mapping[str, Any],
    where: str,
) -> bool:
    statement = known[pick("obligation", name, known)].statement()
    if not isinstance(statement, Claim):
        raise InputError(f"{where}: {name} is not a claim about states; run check instead")
    replayer = Replayer(statement)
    names = {symbol.name: symbol for symbol in replayer.symbols}
    for key in data:
        if key not in names:
            raise InputError(f"{where}: {name} has no input {key!r}")
    missing = names.keys() - data.keys()
    if missing:
        raise InputError(f"{where}: no value for {', '.join(sorted(missing))}")
    state = {key: read_value(names[key], data[key], f"{where}: {key}") for key in names}
    fails = replayer.fails(state)
    word = "still breaks" if fails else "no longer breaks"
    console.print(f"{escape(name)}: the state {word} it")
    print_counterexample(console, replayer.execute(state), full=True)
    return fails
