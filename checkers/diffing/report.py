"""What differs as text or JSON; equal sides give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from routeproof.checkers.bounding.answer import Entry
from routeproof.checkers.bounding.executing import Executed
from routeproof.checkers.bounding.report import (
    fact_value,
    print_facts,
    shown_bytes,
    shown_lengths,
)
from routeproof.checkers.report import counterexample_json, dump, plain, print_counterexample
from routeproof.spec.objective import Fact

from .bounds import Bounds, BoundsDiff, Most, SameState, difference, factor
from .sides import Side
from .verdicts import Judged, Verdicts

__all__ = ["SCHEMA_VERSION", "Diff", "as_json", "print_text"]

SCHEMA_VERSION = 1
_Side = Entry | Executed | Most | None
_Sides = tuple[_Side, _Side]
_Changed = dict[tuple[str, str], tuple[tuple[object, ...], ...]]
_WIDEST = 10_000
_SIZES = ("exact_bytes", "structural_bytes", "unfused_bytes")
_NO_QUESTION = "not compared: no node, device and envelope (see the options of bound)"
_NO_BOUNDS = "not compared: a report of check has none"


@dataclass(frozen=True, slots=True)
class Diff:
    """Both sides, and what was compared; `unjudged` says why no verdicts were."""

    sides: tuple[Side, Side]
    verdicts: Verdicts | None
    unjudged: str
    bounds: BoundsDiff | None

    @property
    def exit_status(self) -> int:
        """3: not all could be told; 1: something differs; 0: nothing does."""
        parts = [one for one in (self.verdicts, self.bounds) if one]
        if any(one.undecided for one in parts):
            return 3
        return 1 if any(one.differs for one in parts) else 0

    @property
    def unbounded(self) -> str:
        """Why no bounds were compared."""
        if self.bounds:
            return ""
        return _NO_BOUNDS if any(one.verdicts is not None for one in self.sides) else _NO_QUESTION


def as_json(found: Diff) -> str:
    """One object with a stable schema; what was not compared is null, with the reason."""
    verdicts, bounds = found.verdicts, found.bounds
    return dump(
        {
            "schema_version": SCHEMA_VERSION,
            **{
                key: {"name": one.name, "kind": one.kind}
                for key, one in zip("ab", found.sides, strict=True)
            },
            "exit_status": found.exit_status,
            "obligations": _verdicts_json(verdicts) if verdicts else None,
            "obligations_note": found.unjudged,
            "bounds": _bounds_json(bounds) if bounds else None,
            "bounds_note": found.unbounded,
        }
    )


def _both(first: object, second: object) -> dict[str, object]:
    return {"a": first, "b": second}


def _verdicts_json(found: Verdicts) -> dict[str, Any]:
    return {
        "compared": len(found.compared),
        "changed": [_both(*map(_judged_json, pair)) for pair in found.changed],
        "undecided": [_both(*map(_judged_json, pair)) for pair in found.undecided],
        "only": _both(*map(list, found.only)),
    }


def _judged_json(found: Judged) -> dict[str, Any]:
    return {
        "id": found.id,
        "title": found.title,
        "verdict": str(found.verdict),
        "reason": found.reason,
        "counterexample": counterexample_json(found.id, found.counterexample),
    }


def _bounds_json(found: BoundsDiff) -> dict[str, Any]:
    common, changed = _facts(found.sides)
    return {
        "facts": {
            "common": [asdict(one) for one in common],
            "changed": [
                {"section": section, "name": name, **_both(list(before), list(after))}
                for (section, name), (before, after) in changed.items()
            ],
        },
        "changes": [
            {
                "change": one.kind,
                **dict(zip(("phase", "route", "alias"), one.place, strict=True)),
                **_both(*map(_entry_json, one.sides)),
                **_moved_json(one.sides),
            }
            for one in found.changes
        ],
        "unchanged": found.unchanged,
        "states": [
            {
                "phase": one.phase,
                "alias": one.alias,
                "of": one.of,
                "state": plain(one.state),
                **_both(*(end and asdict(end) for end in one.ends)),
                **_moved_json(one.ends),
            }
            for one in found.states
        ],
        "maxima": [
            {
                "phase": phase,
                "alias": alias,
                **_both(*(side and asdict(side) for side in pair)),
                **_moved_json(pair),
            }
            for (phase, alias), pair in found.maxima.items()
        ],
        "errors": _both(*(list(map(_error_json, one)) for one in found.errors)),
        "whole": _both(*(asdict(side.whole) for side in found.sides)),
    }


def _entry_json(entry: Entry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    names = ("status", *_SIZES, "reason")
    state = plain(entry.attained_at) if entry.attained_at else None
    return {**{name: getattr(entry, name) for name in names}, "attained_at": state}


def _moved_json(sides: _Sides) -> dict[str, Any]:
    before, after = map(_size, sides)
    return {"difference": difference(before, after), "factor": factor(before, after)}


def _size(side: _Side) -> int | None:
    """The exact bytes of one side, where there are any."""
    return side.exact_bytes if isinstance(side, Entry) else side.bytes if side else None


def _error_json(place: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("phase", "error", "alias"), place, strict=True))


def _facts(sides: tuple[Bounds, Bounds]) -> tuple[list[Fact], _Changed]:
    """The facts that both sides have, and the values of the others; one may be told twice."""
    first, second = ({_key(one) for one in side.facts} for side in sides)
    both = first & second
    others: dict[tuple[str, str], tuple[dict[object, None], dict[object, None]]] = {}
    for at, side in enumerate(sides):
        for one in side.facts:
            if _key(one) not in both:
                found = others.setdefault((one.section, one.name), ({}, {}))
                found[at][one.value] = None
    common = [one for one in sides[0].facts if _key(one) in both]
    return common, {name: tuple(map(tuple, values)) for name, values in others.items()}


def _key(fact: Fact) -> tuple[str, str, str]:
    return fact.section, fact.name, repr(fact.value)


def print_text(console: Console, found: Diff) -> None:
    """The two sides, then verdicts, then bounds."""
    for letter, side in zip("AB", found.sides, strict=True):
        _line(console, letter, f"{side.name}, {side.kind}")
    if found.verdicts:
        _print_verdicts(console, found.verdicts)
    else:
        _line(console, "obligations", found.unjudged)
    if found.bounds:
        _print_bounds(console, found.bounds)
    else:
        _line(console, "bounds", found.unbounded)


def _line(console: Console, label: str, text: str, style: str = "") -> None:
    console.print(Text.assemble((f"{label:23}", "bold"), (text, style)))


def _print_verdicts(console: Console, found: Verdicts) -> None:
    changed, open_ones = found.changed, found.undecided
    told = f"{len(changed) or 'none'} changed" + (f", {len(open_ones)} open" if open_ones else "")
    _line(console, "obligations", f"{len(found.compared)} compared: {told}")
    for letter, names in zip("AB", found.only, strict=True):
        for name in names:
            _line(console, f"  only in {letter}", name)
    for pair in found.telling:
        for letter, one in zip("AB", pair, strict=True):
            style = {"proved": "green", "refuted": "red"}.get(one.verdict, "yellow")
            _line(console, f"  {letter} {one.verdict}", f"{one.id} {one.title}", style)
            if one.reason:
                console.print(f"      {escape(one.reason)}")
            if one.counterexample:
                print_counterexample(console, one.counterexample)


def _print_bounds(console: Console, found: BoundsDiff) -> None:
    common, changed = _facts(found.sides)
    print_facts(console, common)
    for (section, name), pair in changed.items():
        before, after = (", ".join(map(fact_value, values)) or "none" for values in pair)
        _line(console, f"{section} differs", f"{name}: {before} -> {after}")
    console.print()
    console.print(f"bounds          {len(found.changes) or 'none'} changed, {found.unchanged} not")
    if found.changes:
        _print_table(console, _changes(found))
    if found.states:
        console.print("\nat the states that need most, either side executed")
        _print_table(console, _states(found.states))
        if any(end and end.outside for one in found.states for end in one.ends):
            console.print("outside: the envelope of that side does not admit the state")
    console.print("\nmost over all routes")
    _print_table(console, _maxima(found.maxima))
    console.print()
    _print_table(console, _whole(found))
    for letter, errors in zip("AB", found.errors, strict=True):
        for phase, error, alias in errors:
            console.print(f"error only in {letter} {phase}, alias {alias}: {error}", style="yellow")


def _table(*columns: str) -> Table:
    """A table whose sizes stand at the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        right = name in {"A", "B", "B - A", "B / A"}
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    return table


def _print_table(console: Console, table: Table) -> None:
    """Whole on a narrow terminal too: there its lines break, while an ellipsis swallows digits."""
    width = console.width
    needed = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    console.width = max(width, needed)
    console.print(table)
    console.width = width


def _add(table: Table, *cells: str | Text) -> None:
    """A row whose texts stand as they are: those of a saved file are no markup."""
    table.add_row(*(Text(one) if isinstance(one, str) else one for one in cells))


def _changes(found: BoundsDiff) -> Table:
    table = _table("change", "phase", "route", "alias", "A", "B", "B - A", "B / A", "")
    for change in found.changes:
        shown = [
            shown_bytes(side.exact_bytes, side.status) if side else "" for side in change.sides
        ]
        _add(
            table,
            change.kind,
            *change.place,
            *shown,
            *_moved(*map(_size, change.sides)),
            "; ".join(_notes(change.sides)),
        )
    return table


def _notes(sides: tuple[Entry | None, Entry | None]) -> Iterator[str]:
    """Why bytes are not exact, and what else than the exact bytes has moved."""
    for letter, side in zip("AB", sides, strict=True):
        if side and side.reason:
            yield f"{letter}: {side.reason}"
    first, second = sides
    if first and second:
        for name in ("structural", "unfused"):
            before, after = (getattr(side, f"{name}_bytes") for side in (first, second))
            if before != after:
                yield f"{name} {shown_bytes(before)} -> {shown_bytes(after)}"


def _states(states: Sequence[SameState]) -> Table:
    columns = ("most of", "phase", "alias", "state", "A takes", "A", "B takes", "B")
    table = _table(*columns, "B - A", "B / A", "")
    for one in states:
        first, second = one.ends
        ends = zip("AB", one.ends, strict=True)
        outside = "".join(letter for letter, end in ends if end and end.outside)
        _add(
            table,
            one.of,
            one.phase,
            one.alias,
            _state(one.state),
            *_end(first),
            *_end(second),
            *_moved(*map(_size, one.ends)),
            f"outside {outside}" if outside else "",
        )
    return table


def _state(state: Mapping[str, Any]) -> str:
    """The lengths, and the probes that fail; which pairs are aliased is told beside it."""
    off = [name for name, value in state.items() if value is False and not name.startswith("past_")]
    return ", ".join((shown_lengths(state), *(f"{name}=off" for name in off)))


def _end(end: Executed | None) -> tuple[str, str]:
    if end is None:
        return "not executed", ""
    if end.error:
        return end.error, ""
    return end.route, shown_bytes(end.bytes, end.status)


def _maxima(maxima: Mapping[tuple[str, str], tuple[Most | None, Most | None]]) -> Table:
    table = _table("phase", "alias", "A by", "A", "B by", "B", "B - A", "B / A")
    for place, pair in maxima.items():
        shown = [
            part
            for side in pair
            for part in (
                (side.route, shown_bytes(side.bytes, side.status)) if side else ("no route", "")
            )
        ]
        _add(table, *place, *shown, *_moved(*map(_size, pair)))
    return table


def _whole(found: BoundsDiff) -> Table:
    table = _table("whole", "A", "B", "B - A", "B / A")
    sides = [side.whole for side in found.sides]
    _add(table, "status", *(side.status for side in sides))
    for name in _SIZES:
        sizes = [getattr(side, name) for side in sides]
        _add(table, name.removesuffix("_bytes"), *map(shown_bytes, sizes), *_moved(*sizes))
    return table


def _moved(before: int | None, after: int | None) -> tuple[Text, str]:
    """Difference and factor; nothing where nothing moves or a side is unknown."""
    by, times = difference(before, after), factor(before, after)
    style = "red" if (by or 0) > 0 else "green"
    return Text(f"{by:+,}" if by else "", style=style), f"{times:,.2f}x" if by and times else ""
