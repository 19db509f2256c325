"""The solvers on the written queries, then the portfolio on the built claims.

Processor time on both sides. The portfolio runs in this process, which is warm; building the claim
is timed apart, and writing the query is not timed at all, since either side is given its input.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from routeproof.checkers.decide import Decision, decide_claim
from routeproof.checkers.explaining import query
from routeproof.checkers.registry import build, load_obligations
from routeproof.checkers.solver import Options
from routeproof.spec.obligation import Claim, Obligation, Verdict

from .asking import Record, Tell, ask
from .runs import SOLVERS, Run

__all__ = ["Comparison", "Settings", "bounds", "compare"]

_BOUNDS: Final = "ort.gqa.bound.*"
_NO_BOUNDS: Final = ("ort.gqa.bound.status", "ort.gqa.bound.restated.*")  # about the bound itself
_REPETITIONS: Final = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """How the solvers are asked: seeds 0, 1, ..., runs at a time, where the queries are kept."""

    seeds: int
    jobs: int
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

    def answers(self, solver: str) -> bool:
        """Whether it answers by the median, which then is not the limit itself."""
        return 2 * self.unanswered(solver) <= len(self.runs[solver])

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
        and not any(fnmatchcase(one.id, pattern) for pattern in _NO_BOUNDS)
        and one.expected is Verdict.PROVED
        and any(fnmatchcase(one.id, pattern) for pattern in patterns or ("*",))
    ]


def compare(
    obligations: Sequence[Obligation], settings: Settings, record: Record, tell: Tell
) -> Iterator[Comparison]:
    """All runs of the solvers, then each obligation in turn; `tell` hears what is under way."""
    built = [_built(obligation) for obligation in obligations]
    queries = [settings.folder / f"{obligation.id}.smt2" for obligation in obligations]
    for obligation, (claim, _), file in zip(obligations, built, queries, strict=True):
        file.write_text(query(claim, obligation.title), encoding="utf-8")
    ask(queries, settings.seeds, settings.jobs, record, tell)
    decide_claim(built[0][0], Options())  # the first decision also imports
    for obligation, (claim, seconds), file in zip(obligations, built, queries, strict=True):
        tell(f"{obligation.id}: portfolio")
        decision, decided = _decided(claim)
        runs = {solver: record.runs(file, solver, settings.seeds) for solver in SOLVERS}
        yield Comparison(obligation.id, decision.verdict, decision.engine, seconds, decided, runs)


def _built(obligation: Obligation) -> tuple[Claim, float]:
    started = _processor_time()
    claim = build(obligation)
    seconds = _processor_time() - started
    if not isinstance(claim, Claim):
        raise TypeError(f"{obligation.id} is not a claim")
    return claim, seconds


def _decided(claim: Claim) -> tuple[Decision, float]:
    """The last decision, and the median seconds."""
    taken = []
    for _ in range(_REPETITIONS):
        started = _processor_time()
        decision = decide_claim(claim, Options())
        taken.append(_processor_time() - started)
    return decision, statistics.median(taken)


def _processor_time() -> float:
    """Seconds so far of this process, all threads, and of the children it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
