"""What `check` said of each changed model, kept between runs, and told as a line or as a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .changes import CHANGES, Change

__all__ = ["Caught", "caught", "line", "load", "page", "save"]

_CONFORMS = "conforms"

_PAGE = """\
# Changes of the model that `check` catches

Each row is one change of `models/ort/gqa`, made by script (`tests/mutation/changes.py`), with a
state on which the changed model and the original answer differently: none is equivalent. The state
is a plain call with only the named fields moved; the field shown is the first that differs. For
each one the whole of `routeproof check` is run on a copy of the package. *Caught by* counts the
obligations whose verdict is not the expected one, by kind; an `unknown` counts for nothing, and no
obligation compares the model's text, a hash or a snapshot.

{total} of the {listed} listed changes were run for this page: {caught} make `check` exit with 1,
{alone} of them with the `conforms` obligations (recorded rows of the real code) left out.

```sh
PYTHONPATH=tests python -m mutation.run                                # every change
PYTHONPATH=tests python -m mutation.run 'xqa-*' --results kept.json    # some, kept
PYTHONPATH=tests python -m mutation.run --results kept.json --write    # the rest, then this page
```

| change | what kind | where it shows | caught by | without conforms |
|---|---|---|---|---|
{rows}

## By kind of obligation

| kind | changes it catches |
|---|---:|
{kinds}
"""


@dataclass(frozen=True, slots=True)
class Caught:
    """What `check` said of one changed model; obligations stand under the kind in their id."""

    name: str
    exit_status: int
    surprises: Mapping[str, Sequence[str]]
    unknown: Mapping[str, str]
    differs: Sequence[str]
    seconds: float

    @property
    def without_conforms(self) -> int:
        """The exit status with the conforms obligations left out, by the rule of `check`."""
        if any(kind != _CONFORMS for kind in self.surprises):
            return 1
        return 3 if self.unknown else 0


def caught(name: str, report: Any, differs: Sequence[str], seconds: float) -> Caught:
    """The surprises of a report by kind, and what stayed unknown and why."""
    surprises: dict[str, list[str]] = {}
    unknown: dict[str, str] = {}
    for one in report["obligations"]:
        if one["verdict"] == "unknown":
            unknown[one["id"]] = one["reason"]
        elif not one["as_expected"]:
            surprises.setdefault(_kind(one["id"]), []).append(one["id"])
    status = report["summary"]["exit_status"]
    return Caught(name, status, surprises, unknown, differs, round(seconds, 1))


def _kind(obligation: str) -> str:
    """The kind of an obligation, which its id names third: `ort.gqa.layout.xqa.inside`."""
    return obligation.split(".")[2]


def load(path: Path | None) -> dict[str, Caught]:
    """The results kept in a file, by change."""
    if path is None or not path.exists():
        return {}
    return {name: Caught(**one) for name, one in json.loads(path.read_text("utf-8")).items()}


def save(path: Path | None, kept: Mapping[str, Caught]) -> None:
    """Keep the results in a file, if one is given."""
    if path is not None:
        text = json.dumps({name: asdict(one) for name, one in kept.items()}, indent=1)
        path.write_text(f"{text}\n", encoding="utf-8")


def line(one: Caught) -> str:
    """One change on one line."""
    unknown = f"; unknown {len(one.unknown)}" if one.unknown else ""
    return (
        f"{one.name:40} exit {one.exit_status}, without conforms {one.without_conforms}: "
        f"{_counts(one) or 'nothing'}{unknown} ({one.seconds:.0f} s)"
    )


def _counts(one: Caught) -> str:
    return ", ".join(f"{kind} {len(ids)}" for kind, ids in one.surprises.items())


def page(kept: Mapping[str, Caught]) -> str:
    """The page about every change that has a result."""
    done = [change for change in CHANGES if change.name in kept]
    found = [kept[change.name] for change in done]
    return _PAGE.format(
        listed=len(CHANGES),
        total=len(found),
        caught=sum(one.exit_status == 1 for one in found),
        alone=sum(one.without_conforms == 1 for one in found),
        rows="\n".join(map(_row, done, found)),
        kinds="\n".join(_kinds(found)),
    )


def _row(change: Change, one: Caught) -> str:
    moved = ", ".join(f"{name}={_shown(value)}" for name, value in change.state.moved.items())
    where = f"`{change.state.function.removeprefix('ort.gqa.')}` at {moved}: `{one.differs[0]}`"
    alone = "yes" if one.without_conforms == 1 else "no"
    return (
        f"| `{change.name}` ({change.file}): {change.what} | {change.kind} | {where} "
        f"| {_counts(one) or '**nothing**'} | {alone} |"
    )


def _kinds(found: Sequence[Caught]) -> Iterator[str]:
    kinds = dict.fromkeys(kind for one in found for kind in one.surprises)
    for kind in kinds:
        yield f"| {kind} | {sum(kind in one.surprises for one in found)} |"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
