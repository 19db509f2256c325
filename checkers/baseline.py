"""Baselines: surprises that somebody accepts, each with a reason and a last day.

What is unknown or malformed cannot be accepted: nobody knows what that would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from routeproof.spec.errors import InputError, refuse
from routeproof.spec.obligation import Verdict

from .discharge import Acceptance, Result
from .formats.reading import read_report
from .report import SCHEMA_VERSION, dump
from .values import Json, read_json
from .writing import write_whole

__all__ = ["Accepted", "apply", "read_baseline", "run_baseline", "today"]

_KEYS = ("id", "verdict", "reason", "expires")


@dataclass(frozen=True, slots=True)
class Accepted:
    """One line of a baseline: this verdict of this obligation, through the day `expires`."""

    id: str
    verdict: str
    reason: str
    expires: str


def today() -> date:
    """The date in UTC, the same for everybody who looks at one run."""
    return datetime.now(UTC).date()


def read_baseline(path: Path) -> dict[str, Accepted]:
    """What the file accepts, by id; `InputError` with the place if it is no baseline."""
    data, where = read_json(path), str(path)
    if isinstance(data, dict) and "obligations" in data:
        refuse(where, "a report, not a baseline: routeproof baseline makes one of it")
    if not isinstance(data, dict) or repr(data.get("schema_version")) != str(SCHEMA_VERSION):
        refuse(where, f"expected a baseline of schema_version {SCHEMA_VERSION}")
    entries = data.get("accepted")
    if not isinstance(entries, list):
        refuse(where, "'accepted' is no list")
    found: dict[str, Accepted] = {}
    for number, entry in enumerate(entries, 1):
        one = _accepted(entry, f"{where}, entry {number}")
        if one.id in found:
            refuse(f"{where}, entry {number}", f"{one.id} is accepted twice")
        found[one.id] = one
    return found


def _accepted(data: Json, where: str) -> Accepted:
    if not isinstance(data, dict) or set(data) != set(_KEYS):
        refuse(where, f"expected an object of {', '.join(_KEYS)}")
    for key in _KEYS:
        if not isinstance(data[key], str) or not data[key].strip():
            refuse(where, f"{key} is no text, or an empty one")
        if not data[key].isprintable():
            refuse(where, f"{key} is not one printable line")
    if data["verdict"] not in _ACCEPTABLE:
        refuse(where, f"{data['verdict']!r} cannot be accepted, only {', '.join(_ACCEPTABLE)}")
    _day(data["expires"], where)
    return Accepted(**data)


_ACCEPTABLE = tuple(str(one) for one in Verdict if one is not Verdict.UNKNOWN)


def _day(text: str, where: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        refuse(where, f"{text!r} is no date such as 2027-01-31")
    if day.isoformat() != text:
        refuse(where, f"{text!r} is not written as {day.isoformat()}")
    return day


def apply(results: Iterable[Result], baseline: Mapping[str, Accepted], now: date) -> list[Result]:
    """The results, each surprise with what the baseline says of it."""
    return [_judged(result, baseline.get(result.id), now) for result in results]


def _judged(result: Result, accepted: Accepted | None, now: date) -> Result:
    if not accepted or not _is_it(result, accepted):
        return replace(result, acceptance=None)
    expired = now > date.fromisoformat(accepted.expires)
    return replace(result, acceptance=Acceptance(accepted.reason, accepted.expires, expired))


def _is_it(result: Result, accepted: Accepted) -> bool:
    return _can_be(result) and str(result.decision.verdict) == accepted.verdict


def _can_be(result: Result) -> bool:
    return result.surprises and not result.decision.malformed


def needless(results: Iterable[Result], baseline: Mapping[str, Accepted]) -> list[str]:
    """Ids that the baseline accepts although they are as expected."""
    return [one.id for one in results if one.as_expected and one.id in baseline]


def run_baseline(report: Path, reason: str, expires: str, file: Path) -> str:
    """Accept the report's surprises; returns what was done, in a line.

    What the file accepts already stays as it is, unless it has expired or is as expected now.
    """
    day = _day(expires, "--expires")
    if day < today():
        raise InputError(f"--expires {expires}: that day is over")
    if not reason.strip():
        raise InputError("--reason: say why")
    if not reason.strip().isprintable():
        raise InputError("--reason: say why in one printable line")
    known = read_baseline(file) if file.exists() else {}
    results = read_report(report).results
    surprises = {one.id: str(one.decision.verdict) for one in results if _can_be(one)}
    kept = {
        name: one
        for name, one in known.items()
        if name not in {result.id for result in results}
        or (surprises.get(name) == one.verdict and today() <= date.fromisoformat(one.expires))
    }
    added = {
        name: Accepted(name, verdict, reason.strip(), expires)
        for name, verdict in surprises.items()
        if name not in kept
    }
    write_whole(file, _text((kept | added).values()))
    gone = len(known.keys() - kept.keys() - added.keys())
    left = sum(result.decision.verdict is Verdict.UNKNOWN for result in results)
    unknown = f"; {left} unknown or malformed, which cannot be accepted" if left else ""
    return f"{file}: {len(added)} added, {len(kept)} kept, {gone} removed{unknown}"


def _text(accepted: Iterable[Accepted]) -> str:
    entries: Sequence[Accepted] = sorted(accepted, key=lambda one: one.id)
    return dump({"schema_version": SCHEMA_VERSION, "accepted": [asdict(one) for one in entries]})
