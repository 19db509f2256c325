"""Reports of a run: JSON with a stable schema, and text for people.

Text in a pipe carries no times and no colour, so that equal runs give equal bytes.
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from routeproof import __version__
from routeproof.spec.interpret import Value
from routeproof.spec.obligation import Verdict

from .counterexample import Counterexample
from .discharge import Result

__all__ = [
    "SCHEMA_VERSION",
    "Output",
    "Shard",
    "exit_status",
    "line",
    "print_counterexample",
    "print_result",
    "print_summary",
    "summary",
    "table_output",
    "tally",
    "to_json",
    "told",
    "visible",
]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `count` of a run of `total` obligations.

    `selection` is a digest of their ids, `run` one of all else that parts of one run share: how was
    decided, and what is accepted.
    """

    index: int
    count: int
    total: int
    selection: str
    run: str


class Output(Console):
    """A console on which a closed pipe is an error like any other, with its own exit status."""

    def on_broken_pipe(self) -> None:
        """Raise what the library would turn into exit status 1."""
        raise BrokenPipeError


def table_output() -> Output:
    """A console for tables: in a pipe wide enough for them to stay whole."""
    console = Output(emoji=False, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDE
    return console


_WIDE = 200
_FEW = 3
_ENVELOPE = {None: None, True: "enforced", False: "declared only"}
_COLOURS = {"proved": "green", "refuted": "green", "replayed": "green"}


def exit_status(results: Sequence[Result]) -> int:
    """2: a malformed statement; 1: a surprise; 3: something unknown; 0: all as expected."""
    if any(result.decision.malformed for result in results):
        return 2
    if any(result.surprises and result.fails for result in results):
        return 1
    return 3 if any(result.fails for result in results) else 0


def to_json(results: Sequence[Result], shard: Shard | None = None) -> dict[str, Any]:
    """The run as one JSON object; integers are exact, NaN and infinities are strings."""
    return {
        "schema_version": SCHEMA_VERSION,
        "routeproof": __version__,
        "shard": asdict(shard) if shard else None,
        "obligations": [_obligation(result) for result in results],
        "summary": summary(results),
    }


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Counts, and the exit status."""
    verdicts = Counter(str(result.decision.verdict) for result in results)
    return {
        "total": len(results),
        "as_expected": sum(result.as_expected for result in results),
        "surprises": sum(result.surprises and result.fails for result in results),
        "accepted": sum(result.is_accepted for result in results),
        "unknown": verdicts[Verdict.UNKNOWN],
        "malformed": sum(result.decision.malformed for result in results),
        "verdicts": {str(verdict): verdicts[verdict] for verdict in Verdict},
        "exit_status": exit_status(results),
    }


def tally(counts: Mapping[str, Any]) -> dict[str, int]:
    """How many of each verdict there are; what is malformed has none."""
    verdicts = {**counts["verdicts"], "malformed": counts["malformed"]}
    verdicts["unknown"] -= counts["malformed"]
    return {name: number for name, number in verdicts.items() if number}


def _obligation(result: Result) -> dict[str, Any]:
    decision = result.decision
    return {
        "id": result.id,
        "title": result.title,
        "source": result.source,
        "revision": result.revision,
        "location": result.location,
        "expected": str(result.expected),
        "verdict": str(decision.verdict),
        "as_expected": result.as_expected,
        "acceptance": asdict(result.acceptance) if result.acceptance else None,
        "kind": decision.kind or None,
        "malformed": decision.malformed,
        "reason": decision.reason,
        "assurance": {
            "engine": decision.engine,
            "derivation_checked": False,
            "second_solver": decision.second_solver,
            "exhaustive": _exhaustive(decision.evidence.get("enumeration")),
            "cached": decision.cached,
            "envelope": _ENVELOPE[decision.enforced],
        },
        "engine": decision.engine,
        "seconds": round(result.seconds, 3),
        "axes": dict(decision.axes),
        "assumptions": list(decision.assumptions),
        "conditional_on": list(decision.conditional_on),
        "counterexample": counterexample_json(result.id, decision.counterexample),
        "evidence": plain(decision.evidence),
    }


def _exhaustive(enumeration: object) -> dict[str, Any] | None:
    """How many states were tried, and up to where those symbols that settle."""
    if not isinstance(enumeration, dict):
        return None
    return {name: enumeration.get(name) for name in ("states", "admitted", "settles")}


def counterexample_json(name: str, found: Counterexample | None) -> dict[str, Any] | None:
    """The counterexample as `routeproof replay` reads it."""
    if found is None:
        return None
    body: dict[str, Any] = plain(asdict(found))
    return {"schema_version": SCHEMA_VERSION, "obligation": name, **body}


def plain(data: Any) -> Any:  # noqa: ANN401 - JSON
    """The data with tuples as lists and non-finite floats as strings: strict JSON."""
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return repr(data)
    return data


def visible(text: str) -> str:
    """The text without what XML and terminals forbid; lines and tabs stay."""
    return "".join(
        one if one in "\n\t" or _is_shown(one) else "\N{REPLACEMENT CHARACTER}" for one in text
    )


def line(text: str) -> str:
    """The text on one line: a second one could begin with what a CI system takes for a command."""
    return visible(text).replace("\n", "\N{REPLACEMENT CHARACTER}")


def _is_shown(character: str) -> bool:
    code = ord(character)
    controls = code < 0x20 or 0x7F <= code <= 0x9F
    return not (controls or 0xD800 <= code <= 0xDFFF or code in (0xFFFE, 0xFFFF))


def print_result(console: Console, result: Result) -> None:
    """One line; a surprise or an unknown also says what was expected, why, and at which state."""
    verdict = result.decision.verdict
    good = result.as_expected
    mark, colour = ("✓", _COLOURS[verdict]) if good else ("✗", "red")
    if result.is_accepted:
        mark, colour = "~", "yellow"
    if verdict is Verdict.UNKNOWN:
        mark, colour = "?", "yellow"
    if result.decision.malformed:
        console.print(f"[red]! malformed[/] {escape(result.id)}", soft_wrap=True)
        console.print(f"    {escape(line(result.decision.reason))}", soft_wrap=True)
        return
    title = escape(line(result.title))
    head = f"[{colour}]{mark} {verdict:9}[/] {escape(result.id)} [dim]{title}[/dim]"
    took = "cached" if result.decision.cached else f"{result.seconds:.2f}s"
    time = f"{result.decision.engine} {took}" if console.is_terminal else ""
    console.print(f"{head} [dim]{time}[/dim]" if time else head, soft_wrap=True)
    found = result.decision.counterexample
    if good:
        said = f"at {_at(found)}" if found else _scope(result)
        if said:
            console.print(f"            [dim]{escape(line(said))}[/dim]", soft_wrap=True)
        return
    reason = f": {result.decision.reason}" if result.decision.reason else ""
    below = [
        f"expected {result.expected}{reason}",
        f"{result.source} @ {result.revision}",
        result.location,
    ]
    if given := result.acceptance:
        told = "accepted until" if result.is_accepted else "no longer accepted, which ended on"
        below.append(f"{told} {given.expires}: {given.reason}")
    for one in below:
        console.print(f"    {escape(line(one))}", soft_wrap=True)
    if found:
        print_counterexample(console, found)


def told(result: Result) -> str:
    """What is printed of the result in a pipe, as lines."""
    text = io.StringIO()
    print_result(Output(file=text, force_terminal=False, soft_wrap=True, emoji=False), result)
    return text.getvalue().rstrip("\n")


def _scope(result: Result) -> str:
    """What a proof is about: how many inputs, under which conditions."""
    decision = result.decision
    if decision.verdict is not Verdict.PROVED:
        return decision.reason
    if not decision.axes:
        return "without inputs: by evaluation, or true by construction"
    scope = f"for all values of {_count(len(decision.axes), 'input')}"
    if decision.assumptions:
        scope += f", given: {'; '.join(decision.assumptions)}"
    if decision.conditional_on:
        scope += f", conditional on {'; '.join(decision.conditional_on)}"
    return scope


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _at(found: Counterexample) -> str:
    """The inputs that tell, on one line."""
    told = [f"{_short(name)}={show(found.state[name])}" for name in _telling(found)]
    return ", ".join(told) or "every input at its rest value"


def _telling(found: Counterexample) -> tuple[str, ...]:
    """All inputs if they are few, else those away from rest."""
    return tuple(found.state) if len(found.state) <= _FEW else found.moved


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def show(value: Value) -> str:
    """A value as people write it: thousands separated, booleans in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_counterexample(console: Console, found: Counterexample, *, full: bool = False) -> None:
    """Inputs, then what they lead to, then what breaks."""
    inputs = {n: v for n, v in found.state.items() if full or n in _telling(found)}
    shows = {n: v for n, v in found.shows.items() if full or v}
    broken = dict.fromkeys(found.broken, "")
    parts = (("input", inputs), ("gives", shows), ("breaks", broken))
    width = max((len(name) for _, part in parts for name in part), default=0)
    for label, part in parts:
        for name, value in part.items():
            head = label if name == next(iter(part)) or part is broken else ""
            row = f"      {head:6}  {name:{width}}  {show(value)}".rstrip()
            console.print(line(row), markup=False, highlight=False, soft_wrap=True)
    hidden = len(found.state) - len(inputs)
    if hidden:
        console.print(
            f"      [dim]{_count(hidden, 'other input')} at rest: false, the first member,"
            " the low end; explain shows all[/dim]"
        )
    if found.movable:
        names = escape(line(", ".join(found.movable)))
        console.print(f"      [dim]not shown to be minimal in: {names}[/dim]")


def print_summary(console: Console, results: Sequence[Result], seconds: float | None) -> None:
    """Totals by verdict, and whether the run is as expected."""
    counts = summary(results)
    verdicts = ", ".join(f"{n} {name}" for name, n in tally(counts).items())
    took = f" in {seconds:.1f}s" if seconds is not None else ""
    console.print(f"\n{_count(counts['total'], 'obligation')}{took}: {verdicts or 'none'}")
    rest = ", the rest was decided" if counts["malformed"] < counts["total"] else ""
    or_accepted = " or accepted" if counts["accepted"] else ""
    text = {
        0: f"[green]every verdict is as expected{or_accepted}[/green]",
        1: f"[red]{counts['surprises']} not as expected[/red]",
        2: f"[red]{counts['malformed']} malformed[/red]{rest}",
        3: f"[yellow]{counts['unknown']} unknown[/yellow], nothing else surprising",
    }[exit_status(results)]
    accepted = f", {counts['accepted']} accepted" if counts["accepted"] else ""
    console.print(f"{text}{accepted}")


def dump(document: Mapping[str, Any]) -> str:
    """Indented JSON text with a final newline."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
