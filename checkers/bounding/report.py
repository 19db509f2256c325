"""An answer as text, JSON or CSV; equal answers give equal bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from routeproof.checkers.report import dump
from routeproof.spec.objective import Fact

from .answer import Answer, Entry

__all__ = [
    "LENGTHS",
    "SCHEMA_VERSION",
    "as_csv",
    "as_json",
    "fact_value",
    "print_facts",
    "print_text",
    "ratio",
    "shown_bytes",
    "shown_lengths",
]

SCHEMA_VERSION = 1
_UNLIMITED = 1_000
_COLUMNS = (
    "phase",
    "route",
    "alias",
    "status",
    "exact_bytes",
    "structural_bytes",
    "unfused_bytes",
)
_STYLES = {"exact": "green", "safe bound": "yellow", "unavailable": "red"}
LENGTHS = ("batch_size", "sequence_length", "total_sequence_length")


def ratio(larger: int | None, exact: int | None) -> float | None:
    """How many times the exact bytes; None where either is unknown or nothing is needed."""
    return larger / exact if larger is not None and exact else None


def as_json(answer: Answer) -> str:
    """One object with a stable schema; bytes that are not known are null."""
    question = answer.question
    return dump(
        {
            "schema_version": SCHEMA_VERSION,
            "status": answer.verdict,
            "reason": answer.reason,
            "exact_bytes": answer.exact_bytes,
            "structural_bytes": answer.structural_bytes,
            "closed_bytes": answer.closed_bytes,
            "unfused_bytes": answer.unfused_bytes,
            "facts": [asdict(one) for one in question.facts],
            "conditional_on": list(question.conditional_on),
            "routes": [_entry(one) for one in answer.entries],
            "errors": [
                {"phase": phase, "error": error, "alias": alias}
                for phase, error, alias in question.errors
            ],
            "proof": {"regimes": answer.regimes, "lemmas": dict(answer.lemmas)},
        }
    )


def _entry(entry: Entry) -> dict[str, Any]:
    found = asdict(entry)
    found["attained_at"] = dict(entry.attained_at) if entry.attained_at else None
    found["ratios"] = {
        "structural": ratio(entry.structural_bytes, entry.exact_bytes),
        "unfused": ratio(entry.unfused_bytes, entry.exact_bytes),
    }
    return found


def as_csv(answer: Answer) -> str:
    """A line per phase, route and alias state; bytes that are not known are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_COLUMNS, *LENGTHS, "reason"))
    for entry in answer.entries:
        at = entry.attained_at or {}
        lengths = (at.get(name, "") for name in LENGTHS)
        writer.writerow((*(getattr(entry, name) for name in _COLUMNS), *lengths, entry.reason))
    return text.getvalue()


def print_text(console: Console, answer: Answer) -> None:
    """Facts, a table, the largest state region by region, and what the answer rests on."""
    print_facts(console, answer.question.facts)
    table = _table(answer)
    unlimited = console.options.update(max_width=_UNLIMITED)
    needed = console.measure(table, options=unlimited).maximum
    console.width = max(console.width, needed)  # no figure is cut short
    console.print()
    console.print(table)
    _print_whole(console, answer)
    for phase, error, alias in answer.question.errors:
        console.print(f"error           {phase}, alias {alias}: {error}", style="yellow")
    conditions = answer.question.conditional_on
    if conditions:
        console.print(f"declared only   {', '.join(conditions)}: nothing enforces it")
    if not answer.entries:
        return
    open_lemmas = [name for name, word in answer.lemmas.items() if not word.startswith("proved")]
    engines = sorted({word.split()[-1] for word in answer.lemmas.values()})
    console.print(
        f"proof           {answer.regimes:,} regimes, each at its corner; {len(answer.lemmas)} "
        f"lemmas over all facts, {len(open_lemmas) or 'none'} open (by {', '.join(engines)}); "
        "every maximum executed"
    )


def print_facts(console: Console, facts: Iterable[Fact]) -> None:
    """A line per section and origin; of a preset its source."""
    for section, line in _facts(facts):
        console.print(Text.assemble((f"{section:23}", "bold"), line))


def _facts(facts: Iterable[Fact]) -> Iterator[tuple[str, str]]:
    lines: dict[tuple[str, str], list[str]] = {}
    for one in facts:
        if one.name == "preset":
            yield f"{one.section} preset", f"{one.value}, by {one.origin}"
            continue
        origin = one.origin.partition(" ")[0]
        lines.setdefault((one.section, origin), []).append(f"{one.name}={fact_value(one.value)}")
    for (section, origin), parts in lines.items():
        yield f"{section} {origin}", ", ".join(parts)


def fact_value(value: object) -> str:
    """A fact's value as options write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value in (None, "") else str(value)


def _table(answer: Answer) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("phase", "route", "alias"):
        table.add_column(name, no_wrap=True)
    for name in ("exact", "structural", "/ exact", "unfused", "/ exact"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("attained at", no_wrap=True)
    for entry in answer.entries:
        exact = entry.exact_bytes
        table.add_row(
            entry.phase,
            entry.route,
            entry.alias,
            Text(shown_bytes(exact, entry.status), style=_STYLES[entry.status]),
            shown_bytes(entry.structural_bytes),
            _times(entry.structural_bytes, exact),
            shown_bytes(entry.unfused_bytes),
            _times(entry.unfused_bytes, exact),
            _place(entry),
        )
    return table


def shown_bytes(size: int | None, otherwise: str = "unavailable") -> str:
    """With thousands separated, or the word for why there are none."""
    return otherwise if size is None else f"{size:,}"


def _times(larger: int | None, exact: int | None) -> str:
    found = ratio(larger, exact)
    return "" if found is None else f"{found:,.1f}x"


def _place(entry: Entry) -> str:
    if entry.attained_at is None:
        return entry.reason
    return shown_lengths(entry.attained_at)


def shown_lengths(state: Mapping[str, Any]) -> str:
    """Batch, query and total length of a state."""
    batch, query, total = (state[name] for name in LENGTHS)
    return f"batch {batch:,}, query {query:,}, total {total:,}"


def _print_whole(console: Console, answer: Answer) -> None:
    console.print()
    word = answer.status if not answer.reason else f"{answer.status}: {answer.reason}"
    console.print(f"status          {word}", style=_STYLES[answer.status])
    for name in ("exact", "closed", "structural", "unfused"):
        size = getattr(answer, f"{name}_bytes")
        console.print(f"{name:15} {shown_bytes(size)}{'' if size is None else ' bytes'}")
    if answer.exact_bytes is not None:
        largest = next(one for one in answer.entries if one.exact_bytes == answer.exact_bytes)
        place = f"{largest.phase} by {largest.route}, alias {largest.alias}"
        console.print(f"largest         {place}")
        for region in largest.regions:
            console.print(f"  {region.name:42} {region.bytes:>15,} at {region.offset_bytes:,}")
