"""Every question to the solvers, some at a time, and the record of those already answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from .runs import SOLVERS, Run, run

__all__ = ["Record", "Tell", "ask"]

_PACKAGES: Final = {"z3": "z3-solver", "cvc5": "cvc5"}

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Key:
    """All that a run depends on, but the machine; the limit in seconds, SHA-256 of the query."""

    solver: str
    version: str
    seed: int
    limit: float
    digest: str


class Record:
    """Finished runs, under one limit; kept in a file of JSON lines too, where one is named."""

    def __init__(self, limit: float, file: Path | None) -> None:
        self.limit = limit
        self._file = file
        self._runs: dict[_Key, Run] = {}
        if file:
            file.touch()  # fails now rather than after the first run
            self._runs.update(map(_read, file.read_text(encoding="utf-8").splitlines()))

    def runs(self, query: Path, solver: str, seeds: int) -> list[Run]:
        """The runs of a solver, by seed; all must be there."""
        return [self._runs[self._key(query, solver, seed)] for seed in range(seeds)]

    def __contains__(self, question: tuple[Path, str, int]) -> bool:
        return self._key(*question) in self._runs

    def add(self, query: Path, solver: str, found: Run) -> None:
        """Remember a run, at once in the file unless it is worth another."""
        key = self._key(query, solver, found.seed)
        self._runs[key] = found
        if self._file and found.is_final:
            line = {
                "query": query.stem,
                **asdict(key),
                "said": found.said,
                "seconds": found.seconds,
            }
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def _key(self, query: Path, solver: str, seed: int) -> _Key:
        return _Key(solver, version(_PACKAGES[solver]), seed, self.limit, _digest(query))


def ask(queries: Sequence[Path], seeds: int, jobs: int, record: Record, tell: Tell) -> None:
    """Have the record hold every solver's run of every query and seed, `jobs` at a time.

    A seed goes through all queries before the next, so that what an interrupted record holds is
    balanced. `tell` hears what is under way.
    """
    questions = (
        (query, solver, seed) for seed in range(seeds) for query in queries for solver in SOLVERS
    )
    new = [question for question in questions if question not in record]
    asyncio.run(_ask_all(new, jobs, record, tell))


async def _ask_all(
    questions: Sequence[tuple[Path, str, int]], jobs: int, record: Record, tell: Tell
) -> None:
    waiting = iter(enumerate(questions, 1))

    async def work() -> None:
        for at, (query, solver, seed) in waiting:
            tell(f"{at}/{len(questions)} {query.stem}: {solver}, seed {seed}")
            record.add(query, solver, await run(solver, query, seed, record.limit))

    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(work())


def _read(line: str) -> tuple[_Key, Run]:
    has = json.loads(line)
    key = _Key(*(has[name] for name in ("solver", "version", "seed", "limit", "digest")))
    return key, Run(key.seed, has["said"], has["seconds"])


@cache
def _digest(query: Path) -> str:
    return hashlib.sha256(query.read_bytes()).hexdigest()
