"""Runs of a solver, each contained in a child process: an answer in time, or the whole limit."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SOLVERS", "Run", "run"]

SOLVERS: Final = ("z3", "cvc5")
_CHILD: Final = Path(__file__).with_name("child.py")
_GRACE: Final = 3.0  # seconds to start in, and to stop in


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `unsat`, `sat`, or how it failed to answer, which counts as the limit."""

    seed: int
    said: str
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether there was an answer within the limit."""
        return self.said in ("sat", "unsat")


def run(solver: str, file: Path, seed: int, limit: float) -> Run:
    """Ask the solver once, for at most so many seconds."""
    command = [sys.executable, "-P", str(_CHILD), solver, str(file), str(seed), str(limit)]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit + _GRACE,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return Run(seed, "overran and was ended", limit)
    except subprocess.CalledProcessError as error:  # out of memory, or the solver's own fault
        return Run(seed, f"ended with status {error.returncode}", limit)
    answer = json.loads(done.stdout)
    said, seconds = str(answer["said"]), float(answer["seconds"])
    if seconds > limit:
        return Run(seed, f"{said} after the limit", limit)
    found = Run(seed, said, seconds)
    return found if found.answered else Run(seed, said, limit)
