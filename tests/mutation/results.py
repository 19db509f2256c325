"""What `check` said of each changed model, kept between runs, and told as a line or as a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .changes import CHANGES, Change
from .stages import CONFORMS, kind_of

__all__ = ["Caught", "caught", "line", "load", "page", "save"]

_STAGES = ("near", "the rest", "rows")
_PAGE = """\
# Changes of the model that `check` catches

Each row is one change of `models/ort/gqa`, made by script (`tests/mutation/changes.py`), with a
state on which the changed model and the original answer differently: none is equivalent. The state
is a plain call with only the named fields moved; the field shown is the first that differs. For
each one `routeproof check` is run on a copy of the package in up to three stages: the obligations
near the changed file (`tests/mutation/stages.py`), all others about the model, and last `conforms`,
the recorded rows of the real code. A surprise in a stage is a surprise of the whole, so the first
stage that has one is the last to run. *Caught by* counts by kind the obligations whose verdict is
not the expected one, among those of the stages run: how many of the others would notice is not
known. An `unknown` counts for nothing, and no obligation compares the model's text, a hash or a
snapshot.

{total} of the {listed} listed changes were run for this page: {caught} make `check` exit with 1,
{alone} of them without the `conforms` obligations.
Of the {aggregate} changes of the aggregate and of the splits and head sizes that it takes
(`bounds.py`, `split.py`, `capabilities.py`), obligations of the kinds `bound` and `split` catch
{by_bounds}.

```sh
PYTHONPATH=tests python -m mutation.run                                # every change
PYTHONPATH=tests python -m mutation.run 'xqa-*' --results kept.json    # some, kept
PYTHONPATH=tests python -m mutation.run --results kept.json --write    # the rest, then this page
```

| change | what kind | where it shows | caught by | in stage |
|---|---|---|---|---|
{rows}

## By kind of obligation

| kind | changes it catches, in the stages run |
|---|---:|
{kinds}
"""
_BOUNDED = ("bounds.py", "split.py", "capabilities.py")


@dataclass(frozen=True, slots=True)
class Caught:
    """What `check` said of one changed model in so many stages; obligations stand under kinds."""

    name: str
    exit_status: int
    stages: int
    surprises: Mapping[str, Sequence[str]]
    unknown: Mapping[str, str]
    differs: Sequence[str]
    seconds: float

    @property
    def without_conforms(self) -> int:
        """The exit status with the conforms obligations left out, by the rule of `check`."""
        if any(kind != CONFORMS for kind in self.surprises):
            return 1
        return 3 if self.unknown else 0


def caught(name: str, reports: Sequence[Any], differs: Sequence[str], seconds: float) -> Caught:
    """The surprises of the stages' reports by kind, and what stayed unknown and why."""
    surprises: dict[str, list[str]] = {}
    unknown: dict[str, str] = {}
    for one in (one for report in reports for one in report["obligations"]):
        if one["verdict"] == "unknown":
            unknown[one["id"]] = one["reason"]
        elif not one["as_expected"]:
            surprises.setdefault(kind_of(one["id"]), []).append(one["id"])
    statuses = {report["summary"]["exit_status"] for report in reports}
    status = next(status for status in (1, 3, 0) if status in statuses)
    return Caught(name, status, len(reports), surprises, unknown, differs, round(seconds, 1))


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
        f"{one.name:40} exit {one.exit_status} in stage {one.stages}: "
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
        aggregate=sum(change.file in _BOUNDED for change in done),
        by_bounds=sum(
            change.file in _BOUNDED and not {"bound", "split"}.isdisjoint(one.surprises)
            for change, one in zip(done, found, strict=True)
        ),
        rows="\n".join(map(_row, done, found)),
        kinds="\n".join(_kinds(found)),
    )


def _row(change: Change, one: Caught) -> str:
    moved = ", ".join(f"{name}={_shown(value)}" for name, value in change.state.moved.items())
    where = f"`{change.state.function.removeprefix('ort.gqa.')}` at {moved}: `{one.differs[0]}`"
    stage = _STAGES[one.stages - 1]
    return (
        f"| `{change.name}` ({change.file}): {change.what} | {change.kind} | {where} "
        f"| {_counts(one) or '**nothing**'} | {stage} |"
    )


def _kinds(found: Sequence[Caught]) -> Iterator[str]:
    kinds = dict.fromkeys(kind for one in found for kind in one.surprises)
    for kind in kinds:
        yield f"| {kind} | {sum(kind in one.surprises for one in found)} |"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
