"""Rows: what the real code computed, replayed by the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from routeproof.spec.interpret import Value
from routeproof.spec.obligation import Rows, Verdict

from .announcing import stage
from .counterexample import Counterexample
from .decide import Decision
from .evaluator import exactly, recorded
from .values import Json

__all__ = ["replay_rows"]


def replay_rows(rows: Rows) -> Decision:
    """`replayed` when every recorded row is reproduced; otherwise the first that differs."""
    stage("replay")
    total = matched = 0
    first: Counterexample | None = None
    for row in recorded(rows):
        total += 1
        matched += row.matches
        if not row.matches and first is None:
            first = _difference(row.state, row.want, row.got)
    verdict = Verdict.REPLAYED if matched == total and total else Verdict.REFUTED
    return Decision(
        verdict,
        "replay",
        f"{matched} of {total} rows match",
        first,
        axes={"row": f"{rows.resource}, {total} rows"},
        evidence={"rows": total, "matched": matched},
    )


def _difference(state: Mapping[str, Value], want: Json, got: Json) -> Counterexample:
    wanted, given = dict(_flat(want)), dict(_flat(got))
    differ = [
        path for path in wanted | given if exactly(wanted.get(path)) != exactly(given.get(path))
    ]
    shows = {f"{path} (recorded)": wanted.get(path, "absent") for path in differ}
    shows |= {f"{path} (model)": given.get(path, "absent") for path in differ}
    moved = tuple(name for name, value in state.items() if value not in (0, "none"))
    return Counterexample(state, dict(sorted(shows.items())), {}, tuple(differ), moved)


def _flat(data: Json, path: str = "") -> Iterator[tuple[str, Value]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}".lstrip("."))
    else:
        yield path, exactly(data) if isinstance(data, list) else data
