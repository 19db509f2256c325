"""Verdicts of two sides beside each other: of two reports, or of one obligation on two ladders.

An obligation speaks of a revision where its id has the revision's name as a part; the obligation
whose id differs in that part alone is its counterpart on another revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from routeproof.checkers.counterexample import Counterexample
from routeproof.checkers.discharge import Result
from routeproof.checkers.pool import Work, run
from routeproof.checkers.progress import with_progress
from routeproof.checkers.registry import load_obligations, pick
from routeproof.checkers.solver import Limits, Options
from routeproof.spec.errors import InputError, refuse
from routeproof.spec.obligation import Verdict

__all__ = ["Judged", "Verdicts", "compare_ladders", "compare_reports", "read_report"]

_OPTIONS = Options(Limits(seconds=60))
_UNDECIDED = (Verdict.UNKNOWN, Verdict.DISAGREEMENT)
_Pair = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One obligation with its verdict on one side."""

    id: str
    title: str
    verdict: Verdict
    reason: str
    counterexample: Counterexample | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The obligations of both sides, and the ids of those that one side alone has."""

    compared: tuple[tuple[Judged, Judged], ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def changed(self) -> tuple[tuple[Judged, Judged], ...]:
        """Those whose verdict is another on the other side."""
        return tuple(pair for pair in self.compared if _is_changed(*pair))

    @property
    def undecided(self) -> tuple[tuple[Judged, Judged], ...]:
        """Those that have no verdict on some side, be it the same on both."""
        return tuple(pair for pair in self.compared if _is_undecided(*pair))

    @property
    def telling(self) -> tuple[tuple[Judged, Judged], ...]:
        """Those that are changed or undecided, in order."""
        return tuple(p for p in self.compared if _is_changed(*p) or _is_undecided(*p))

    @property
    def differs(self) -> bool:
        """Whether a verdict changes, or an obligation comes or goes."""
        return bool(self.changed or any(self.only))


def _is_changed(first: Judged, second: Judged) -> bool:
    return first.verdict is not second.verdict


def _is_undecided(first: Judged, second: Judged) -> bool:
    return first.verdict in _UNDECIDED or second.verdict in _UNDECIDED


def compare_reports(
    sides: tuple[Mapping[str, Judged], Mapping[str, Judged]], patterns: Sequence[str]
) -> Verdicts:
    """The verdicts of two reports, id by id."""
    first, second = sides
    pairs = _paired({one: one for one in first}, {one: one for one in second}, patterns)
    return _verdicts(pairs, first, second)


def compare_ladders(ladders: tuple[str, str], patterns: Sequence[str], jobs: int) -> Verdicts:
    """The shipped obligations that both revisions have, decided now on either."""
    known = load_obligations()
    first, second = (_of_ladder(known, name) for name in ladders)
    pairs = _paired(first, second, patterns)
    chosen = [known[one] for pair in pairs if all(pair) for one in pair if one]
    with closing(run(chosen, Work((), _OPTIONS), jobs)) as arriving:
        found = {
            one.id: _judged(one) for one in with_progress(arriving, len(chosen), lambda one: one.id)
        }
    return _verdicts(pairs, found, found)


def _of_ladder(known: Iterable[str], ladder: str) -> dict[str, str]:
    """The ids that name the revision, by what is left when it is taken out."""
    found = {one: one.split(".") for one in known}
    return {
        ".".join("" if part == ladder else part for part in parts): one
        for one, parts in found.items()
        if ladder in parts
    }


def _paired(
    first: Mapping[str, str], second: Mapping[str, str], patterns: Sequence[str]
) -> list[_Pair]:
    """Ids by what they have in common; those where either matches one of the patterns."""
    pairs = [(first.get(key), second.get(key)) for key in dict.fromkeys((*first, *second))]
    known = [one for pair in pairs for one in pair if one]
    for pattern in patterns:
        if not any(fnmatchcase(one, pattern) for one in known):
            pick("obligation", pattern, known)
    return [
        pair
        for pair in pairs
        if not patterns or any(one and fnmatchcase(one, p) for one in pair for p in patterns)
    ]


def _verdicts(
    pairs: Sequence[_Pair], first: Mapping[str, Judged], second: Mapping[str, Judged]
) -> Verdicts:
    return Verdicts(
        tuple((first[a], second[b]) for a, b in pairs if a and b),
        (
            tuple(a for a, b in pairs if a and not b),
            tuple(b for a, b in pairs if b and not a),
        ),
    )


def _judged(result: Result) -> Judged:
    decision = result.decision
    return Judged(
        result.id, result.title, decision.verdict, decision.reason, decision.counterexample
    )


def read_report(data: Mapping[str, Any], where: str) -> dict[str, Judged]:
    """The verdicts of a JSON report of `check`, by id."""
    entries = data["obligations"]
    if repr(data.get("schema_version")) != "1" or not isinstance(entries, list):
        raise InputError(f"{where}: expected a report of schema_version 1, as check writes it")
    found = [_read_judged(one, where) for one in entries]
    by_id = {one.id: one for one in found}
    if len(by_id) < len(found):
        refuse(where, "an obligation is told twice")
    return by_id


def _read_judged(data: Any, where: str) -> Judged:  # noqa: ANN401 - JSON
    for key in ("id", "title", "verdict"):
        if not isinstance(data, dict) or not isinstance(data.get(key), str):
            refuse(where, f"an obligation of a report of check has {key!r}, a text")
    at = f"{where}: {data['id']}"
    if data["verdict"] not in list(Verdict):
        refuse(at, f"{data['verdict']!r} is no verdict")
    return Judged(
        data["id"],
        data["title"],
        Verdict(data["verdict"]),
        str(data.get("reason", "")),
        _read_counterexample(data.get("counterexample"), at),
    )


def _read_counterexample(data: Any, where: str) -> Counterexample | None:  # noqa: ANN401 - JSON
    """As the report shows it; what it was executed on may be another version of the code."""
    if data is None:
        return None
    objects, lists = ("state", "shows", "conditions"), ("broken", "moved", "movable")
    for key in (*objects, *lists):
        kind = dict if key in objects else list
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            refuse(where, f"a counterexample has {key!r} ({kind.__name__})")
        if key in lists and not all(isinstance(one, str) for one in data[key]):
            refuse(where, f"{key!r} of a counterexample is a list of names")
    return Counterexample(
        data["state"],
        data["shows"],
        data["conditions"],
        tuple(data["broken"]),
        tuple(data["moved"]),
        tuple(data["movable"]),
    )
