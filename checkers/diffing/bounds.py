"""Bounds of two sides beside each other: what moves, by how much, and at which state.

At a state where one side needs most the other side is executed too, dispatch and recipe, so that a
bound that moves is explained by a Run and not by two numbers. A saved answer cannot be executed:
the code that gave it may be another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from routeproof.checkers.bounding.answer import Answer, Entry
from routeproof.checkers.bounding.executing import Executed, execute_run
from routeproof.spec.errors import InternalError, refuse
from routeproof.spec.objective import Fact, Question

__all__ = [
    "BoundChange",
    "Bounds",
    "BoundsDiff",
    "Most",
    "Whole",
    "bounds_of",
    "compare_bounds",
    "difference",
    "factor",
    "read_answer",
]

_Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Whole:
    """What holds over all phases, routes and alias states (bytes)."""

    status: str
    exact_bytes: int | None
    structural_bytes: int | None
    unfused_bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The bounds of one side by phase, route and alias; `question` is None for a saved answer."""

    facts: tuple[Fact, ...]
    entries: Mapping[_Place, Entry]
    errors: tuple[_Place, ...]
    whole: Whole
    question: Question | None


@dataclass(frozen=True, slots=True)
class BoundChange:
    """An entry that is another on the other side, or is not there."""

    place: _Place
    sides: tuple[Entry | None, Entry | None]

    @property
    def kind(self) -> str:
        """Seen from A."""
        first, second = self.sides
        return "appeared" if first is None else "disappeared" if second is None else "moved"


@dataclass(frozen=True, slots=True)
class SameState:
    """A state where A or B or both need most (`of`), and where a Run ends there on either side."""

    phase: str
    alias: str
    of: str
    state: Mapping[str, Any]
    ends: tuple[Executed | None, Executed | None]


@dataclass(frozen=True, slots=True)
class Most:
    """What an estimator has to reserve for a phase and alias state: the most over all routes."""

    route: str
    status: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class BoundsDiff:
    """Everything that is to be said of two sides' bounds."""

    sides: tuple[Bounds, Bounds]
    changes: tuple[BoundChange, ...]
    unchanged: int
    states: tuple[SameState, ...]
    maxima: Mapping[tuple[str, str], tuple[Most | None, Most | None]]

    @property
    def errors(self) -> tuple[tuple[_Place, ...], tuple[_Place, ...]]:
        """The errors that Runs reach on one side alone."""
        first, second = (side.errors for side in self.sides)
        return (
            tuple(one for one in first if one not in second),
            tuple(one for one in second if one not in first),
        )

    @property
    def differs(self) -> bool:
        """Whether any bound or error is another."""
        first, second = (side.whole for side in self.sides)
        return bool(self.changes or any(self.errors) or first != second)

    @property
    def undecided(self) -> bool:
        """Whether some maximum is only bounded, so that what moves is not known."""
        return any(
            entry.status == "safe bound" for side in self.sides for entry in side.entries.values()
        )


def bounds_of(answer: Answer) -> Bounds:
    """The bounds of an answer that was just computed."""
    return Bounds(
        answer.question.facts,
        {_place(one): one for one in answer.entries},
        answer.question.errors,
        Whole(answer.verdict, answer.exact_bytes, answer.structural_bytes, answer.unfused_bytes),
        answer.question,
    )


def compare_bounds(first: Bounds, second: Bounds) -> BoundsDiff:
    """Both sides, entry by entry, in the order of phases."""
    places = list(dict.fromkeys((*first.entries, *second.entries)))
    phases = list(dict.fromkeys(phase for phase, _, _ in places))
    places.sort(key=lambda place: phases.index(place[0]))
    pairs = [BoundChange(one, (first.entries.get(one), second.entries.get(one))) for one in places]
    changes = tuple(one for one in pairs if _is_other(one))
    sides = (first, second)
    return BoundsDiff(
        sides=sides,
        changes=changes,
        unchanged=len(pairs) - len(changes),
        states=tuple(_states(sides, changes)),
        maxima={
            (phase, alias): (_most(first, phase, alias), _most(second, phase, alias))
            for phase, _, alias in places
        },
    )


def difference(before: int | None, after: int | None) -> int | None:
    """Bytes that B needs more than A; None where either is unknown."""
    return after - before if before is not None and after is not None else None


def factor(before: int | None, after: int | None) -> float | None:
    """How many times A's bytes B needs; None where either is unknown or A needs none."""
    return after / before if before and after is not None else None


def _place(entry: Entry) -> _Place:
    return entry.phase, entry.route, entry.alias


def _is_other(pair: BoundChange) -> bool:
    first, second = pair.sides
    return first is None or second is None or _bounds(first) != _bounds(second)


def _bounds(entry: Entry) -> tuple[object, ...]:
    return entry.status, entry.exact_bytes, entry.structural_bytes, entry.unfused_bytes


def _states(sides: tuple[Bounds, Bounds], changes: tuple[BoundChange, ...]) -> Iterator[SameState]:
    """Every state that attains one of the changed maxima, once, executed on both sides."""
    found: dict[tuple[object, ...], dict[int, Entry]] = {}
    for change in changes:
        for at, entry in enumerate(change.sides):
            if entry and entry.attained_at:
                key = (entry.phase, entry.alias, *sorted(entry.attained_at.items()))
                found.setdefault(key, {})[at] = entry
    for owners in found.values():
        entry = next(iter(owners.values()))
        state = dict(entry.attained_at or {})
        first, second = (_executed(one, state, owners.get(at)) for at, one in enumerate(sides))
        of = " and ".join("AB"[at] for at in sorted(owners))
        yield SameState(entry.phase, entry.alias, of, state, (first, second))


def _executed(side: Bounds, state: Mapping[str, Any], own: Entry | None) -> Executed | None:
    """Where a Run ends; the side's own maximum has to be confirmed."""
    if side.question is None:
        return Executed(own.route, "", "ok", own.exact_bytes, ()) if own else None
    found = execute_run(side.question, state)
    if own and (found.route, found.bytes) != (own.route, own.exact_bytes):
        raise InternalError(
            f"{own.phase} by {own.route}: {own.exact_bytes} bytes, but {dict(state)} takes "
            f"{found.route} and {found.bytes}"
        )
    return found


def _most(side: Bounds, phase: str, alias: str) -> Most | None:
    """Without a bound on one route there is none over all; None where no route is reached."""
    entries = [
        entry for (one, _, other), entry in side.entries.items() if (one, other) == (phase, alias)
    ]
    for entry in entries:
        if entry.exact_bytes is None:
            return Most(entry.route, entry.status, None)
    if not entries:
        return None
    largest = max(entries, key=lambda entry: entry.exact_bytes or 0)
    return Most(largest.route, largest.status, largest.exact_bytes)


_SIZES = ("exact_bytes", "structural_bytes", "unfused_bytes")


def read_answer(data: Mapping[str, Any], where: str) -> Bounds:
    """The bounds of a JSON answer of `bound`."""
    if repr(data.get("schema_version")) != "1":
        refuse(where, "expected an answer of schema_version 1, as bound writes it")
    entries = [_read_entry(one, where) for one in _list(data, "routes", where)]
    errors = [
        tuple(_text(one, key, f"{where}: errors") for key in ("phase", "error", "alias"))
        for one in _list(data, "errors", where)
    ]
    by_place = {_place(one): one for one in entries}
    if len(by_place) < len(entries):
        refuse(where, "a phase, route and alias state is told twice")
    exact, structural, unfused = (_size(data, key, where) for key in _SIZES)
    return Bounds(
        tuple(_read_fact(one, f"{where}: facts") for one in _list(data, "facts", where)),
        by_place,
        tuple((phase, error, alias) for phase, error, alias in errors),
        Whole(_text(data, "status", where), exact, structural, unfused),
        None,
    )


def _read_entry(data: Any, where: str) -> Entry:  # noqa: ANN401 - JSON
    at = f"{where}: routes"
    phase, route, alias, status, reason = (
        _text(data, key, at) for key in ("phase", "route", "alias", "status", "reason")
    )
    exact, structural, unfused = (_size(data, key, at) for key in _SIZES)
    state = data.get("attained_at")
    names = ("batch_size", "sequence_length", "total_sequence_length")
    is_state = isinstance(state, dict) and all(type(state.get(name)) is int for name in names)
    if (exact is not None) != is_state:
        refuse(at, "exact bytes come with 'attained_at', the state that needs them")
    return Entry(
        phase,
        route,
        alias,
        status,
        exact_bytes=exact,
        attained_at=state,
        structural_bytes=structural,
        unfused_bytes=unfused,
        reason=reason,
    )


def _read_fact(data: Any, where: str) -> Fact:  # noqa: ANN401 - JSON
    section, name, origin = (_text(data, key, where) for key in ("section", "name", "origin"))
    value = data.get("value")
    if not isinstance(value, str | int | float | None):
        refuse(where, f"the value of {section}.{name} is no single value")
    return Fact(section, name, value, origin)


def _list(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = data.get(key)
    if not isinstance(found, list):
        refuse(where, f"an answer of bound has {key!r}, a list")
    return found


def _text(data: Any, key: str, where: str) -> str:  # noqa: ANN401 - JSON
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, str):
        refuse(where, f"{key!r} is not a text")
    return found


def _size(data: Mapping[str, Any], key: str, where: str) -> int | None:
    found = data.get(key, False)
    if found is not None and type(found) is not int:
        refuse(where, f"{key!r} is neither a number of bytes nor null")
    return found
