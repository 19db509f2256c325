"""One obligation at a time: the portfolio on the built claim, the solvers on the written query.

Wall clock on both sides. The portfolio runs in this process, which is warm; building the claim is
timed apart, and writing the query is not timed at all, since either side is given its input.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Final

from routeproof.checkers.decide import Decision, decide_claim
from routeproof.checkers.explaining import query
from routeproof.checkers.registry import build, load_obligations
from routeproof.checkers.solver import Options
from routeproof.spec.obligation import Claim, Obligation, Verdict

from .runs import SOLVERS, Run, run

__all__ = ["Comparison", "Settings", "bounds", "compare"]

_BOUNDS: Final = "ort.gqa.bound.*"
_NO_BOUND: Final = "ort.gqa.bound.status"  # about the bound's own checks
_REPETITIONS: Final = 5

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the solvers are asked: seeds 0, 1, ..., seconds per run, where the queries are kept."""

    seeds: int
    limit: float
    folder: Path


@dataclass(frozen=True, slots=True)
class Comparison:
    """One obligation: seconds of the portfolio (median), of building, and the solvers' runs."""

    id: str
    verdict: Verdict
    engine: str
    build_seconds: float
    portfolio_seconds: float
    runs: dict[str, list[Run]]

    def median(self, solver: str) -> float:
        """Median seconds of a solver, at the limit where it did not answer."""
        return statistics.median(one.seconds for one in self.runs[solver])

    def unanswered(self, solver: str) -> int:
        """Runs without an answer in time."""
        return sum(not one.answered for one in self.runs[solver])

    @property
    def faster_solver(self) -> float:
        """Median seconds of the faster solver."""
        return min(map(self.median, self.runs))

    @property
    def ratio(self) -> float:
        """How many times longer the faster solver takes; at least that if no solver answers."""
        return self.faster_solver / self.portfolio_seconds

    @property
    def is_contradicted(self) -> bool:
        """Whether a solver found a state that breaks what should hold, or nothing was proved."""
        said = {one.said for runs in self.runs.values() for one in runs}
        return self.verdict is not Verdict.PROVED or "sat" in said


def bounds(patterns: Sequence[str]) -> list[Obligation]:
    """The bound obligations, or those that match a pattern."""
    return [
        one
        for one in load_obligations().values()
        if fnmatchcase(one.id, _BOUNDS)
        and one.id != _NO_BOUND
        and one.expected is Verdict.PROVED
        and any(fnmatchcase(one.id, pattern) for pattern in patterns or ("*",))
    ]


def compare(
    obligations: Sequence[Obligation], settings: Settings, tell: Tell
) -> Iterator[Comparison]:
    """Each obligation in turn; `tell` hears what is under way."""
    warm = False
    for at, obligation in enumerate(obligations, 1):
        tell_step = partial(_tell, tell, f"{at}/{len(obligations)} {obligation.id}")
        claim, build_seconds = _built(obligation)
        if not warm:
            decide_claim(claim, Options())  # the first decision also imports
            warm = True
        tell_step("portfolio")
        decision, seconds = _decided(claim)
        file = settings.folder / f"{obligation.id}.smt2"
        file.write_text(query(claim, obligation.title), encoding="utf-8")
        runs = _asked(file, settings, tell_step)
        yield Comparison(
            obligation.id, decision.verdict, decision.engine, build_seconds, seconds, runs
        )


def _tell(tell: Tell, subject: str, step: str) -> None:
    tell(f"{subject}: {step}")


def _built(obligation: Obligation) -> tuple[Claim, float]:
    started = time.perf_counter()
    claim = build(obligation)
    seconds = time.perf_counter() - started
    if not isinstance(claim, Claim):
        raise TypeError(f"{obligation.id} is not a claim")
    return claim, seconds


def _decided(claim: Claim) -> tuple[Decision, float]:
    """The last decision, and the median seconds."""
    taken = []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        decision = decide_claim(claim, Options())
        taken.append(time.perf_counter() - started)
    return decision, statistics.median(taken)


def _asked(file: Path, settings: Settings, tell: Tell) -> dict[str, list[Run]]:
    """Every seed of each solver; the two take turns, for equal load."""
    runs: dict[str, list[Run]] = {solver: [] for solver in SOLVERS}
    for seed in range(settings.seeds):
        for solver in SOLVERS:
            tell(f"{solver}, seed {seed}")
            runs[solver].append(run(solver, file, seed, settings.limit))
    return runs
