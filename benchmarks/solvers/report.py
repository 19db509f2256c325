"""What was measured, as a table with its summary or as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from .compare import Comparison
from .runs import SOLVERS

__all__ = ["HEADER", "as_json", "row", "summary"]

_MOST_PORTFOLIO: Final = 0.050  # seconds
_LEAST_RATIO: Final = 20.0
_LEAST_OBLIGATIONS: Final = 20
_HARD: Final = 0.2  # seconds of the faster solver, beyond which the ratio counts

HEADER: Final = (
    "obligation                                       engine    portfolio (s)"
    "    z3 (s)  out    cvc5 (s)  out  faster / portfolio"
)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure and its requirement; None where nothing was measured for it."""

    name: str
    value: float | None
    requirement: str
    met: bool | None


def row(one: Comparison) -> str:
    """The obligation as a row of the table; `out` counts the runs without an answer in time."""
    solvers = "".join(
        f"  {one.median(name):{width}.3f}  {one.unanswered(name):3}"
        for name, width in zip(SOLVERS, (8, 10), strict=True)
    )
    least = ">=" if _is_least(one) else ""
    name = one.id.removeprefix("ort.gqa.bound.")
    return (
        f"{name:47}  {one.engine:10}{one.portfolio_seconds:13.3f}{solvers}"
        f"  {f'{least}{one.ratio:.1f}':>18}"
    )


def summary(comparisons: Sequence[Comparison], limit: float) -> str:
    """The figures against their requirements."""
    lines = [
        "processor time; out: runs without an answer, each counted as the limit",
        ">=: neither solver answers by the median, so that the ratio is at least this",
        *(_line(figure) for figure in _figures(comparisons)),
    ]
    lines += [
        f"{name}: {sum(one.answers(name) for one in comparisons)} of {len(comparisons)} "
        f"obligations answered by the median within {limit:g} s"
        for name in SOLVERS
    ]
    lines += [
        f"{name}: {sum(one.unanswered(name) for one in comparisons)} of "
        f"{sum(len(one.runs[name]) for one in comparisons)} runs without an answer in {limit:g} s"
        for name in SOLVERS
    ]
    lines += [f"CONTRADICTED: {one.id}" for one in comparisons if one.is_contradicted]
    return "\n".join(lines)


def as_json(comparisons: Sequence[Comparison], limit: float, missing: int) -> str:
    """Every run, and the figures; `missing` obligations were not measured."""
    rows = [
        {
            **asdict(one),
            "medians": {name: one.median(name) for name in SOLVERS},
            "unanswered": {name: one.unanswered(name) for name in SOLVERS},
            "ratio": one.ratio,
            "ratio_is_least": _is_least(one),
        }
        for one in comparisons
    ]
    answered = {name: sum(one.answers(name) for one in comparisons) for name in SOLVERS}
    figures = [asdict(figure) for figure in _figures(comparisons)]
    document = {
        "limit": limit,
        "missing": missing,
        "answered": answered,
        "obligations": rows,
        "figures": figures,
    }
    return json.dumps(document, indent=2)


def _is_least(one: Comparison) -> bool:
    """Whether neither solver answers mostly, so that the ratio only has a least value."""
    return not any(map(one.answers, SOLVERS))


def _figures(comparisons: Sequence[Comparison]) -> list[_Figure]:
    by_calculus = [one.portfolio_seconds for one in comparisons if one.engine == "calculus"]
    slowest = max(by_calculus, default=None)
    hard = [one for one in comparisons if one.faster_solver > _HARD]
    ratio = statistics.geometric_mean(one.ratio for one in hard) if hard else None
    least = ", at least" if any(map(_is_least, hard)) else ""
    count = len(comparisons)
    return [
        _Figure("obligations", count, f">= {_LEAST_OBLIGATIONS}", count >= _LEAST_OBLIGATIONS),
        _Figure(
            f"slowest of {len(by_calculus)} by the calculus (s)",
            slowest,
            f"<= {_MOST_PORTFOLIO:.3f}",
            None if slowest is None else slowest <= _MOST_PORTFOLIO,
        ),
        _Figure(
            f"geometric mean ratio of {len(hard)} beyond {_HARD} s{least}",
            ratio,
            f">= {_LEAST_RATIO:g}",
            None if ratio is None else ratio >= _LEAST_RATIO,
        ),
    ]


def _line(figure: _Figure) -> str:
    value = "none" if figure.value is None else f"{figure.value:.3f}".removesuffix(".000")
    said = {True: "met", False: "NOT MET", None: "not measured"}[figure.met]
    return f"{figure.name:52} {value:>10}   {figure.requirement:9}  {said}"
