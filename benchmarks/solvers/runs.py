"""Runs of a solver, each contained in a child process: an answer in time, or the whole limit.

Time is processor time, so that other work on the machine does not turn an answer into none.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SOLVERS", "Run", "run"]

SOLVERS: Final = ("z3", "cvc5")
_CHILD: Final = Path(__file__).with_name("child.py")
_PATIENCE: Final = 15  # wall clock allowed per processor time: how busy the machine may be
_GRACE: Final = 30.0  # seconds of wall clock to start and to stop in
_ENDED: Final = "ended from outside"


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

    @property
    def is_final(self) -> bool:
        """Whether the solver itself came to this: if not, it is worth another run."""
        return self.said != _ENDED


async def run(solver: str, file: Path, seed: int, limit: float) -> Run:
    """Ask the solver once, for at most so many seconds of processor time."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(_CHILD), solver, str(file), str(seed), str(limit)),
        stdout=PIPE,
        stderr=DEVNULL,
        process_group=0,  # an interrupt from the keyboard is not for the solver to interpret
    )
    try:
        async with asyncio.timeout(_PATIENCE * limit + _GRACE):
            output, _ = await child.communicate()
    except TimeoutError:
        return Run(seed, _ENDED, limit)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        return Run(seed, _failure(child.returncode), limit)
    answer = json.loads(output)
    said, seconds = str(answer["said"]), float(answer["seconds"])
    if seconds > limit:
        return Run(seed, f"{said} after the limit", limit)
    found = Run(seed, said, seconds)
    return found if found.answered else Run(seed, said, limit)


def _failure(status: int) -> str:
    """How a child failed that printed nothing: too late, out of memory, by the solver's fault."""
    match -status:
        case signal.SIGXCPU:
            return "no answer within the limit"
        case signal.SIGKILL | signal.SIGTERM:
            return _ENDED
    return f"ended with status {status}"
