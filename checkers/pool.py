"""A pool of warm worker processes, each of which decides one obligation at a time.

A worker that overruns its wall clock or its memory is killed and replaced; the obligation it was
on becomes `unknown`. Workers load the obligations themselves: only ids and results travel.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from routeproof.spec.errors import RouteproofError
from routeproof.spec.obligation import Obligation, Verdict

from .decide import Decision
from .discharge import Result, discharge, result_of
from .registry import load_obligations
from .solver import Options

__all__ = ["InternalError", "run"]

_GRACE_SECONDS = 5.0
_CONTEXT = multiprocessing.get_context("spawn")


class InternalError(RouteproofError):
    """A worker failed in a way that is our fault; the message carries its traceback."""

    code = "RP900"


@dataclass(slots=True)
class _Worker:
    """One process, the pipe to it, and what it is busy with since when."""

    process: BaseProcess
    pipe: Connection
    busy: Obligation | None = None
    since: float = 0.0

    def give(self, obligation: Obligation) -> None:
        self.busy, self.since = obligation, time.monotonic()
        self.pipe.send(obligation.id)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(
    obligations: Sequence[Obligation], files: Sequence[Path], options: Options, jobs: int
) -> Generator[Result]:
    """Results as they come, in no particular order; closing the iterator ends every worker."""
    waiting = deque(obligations)
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.busy for worker in workers):
            while waiting and len(workers) < jobs:
                workers.append(_start(files, options))
            for worker in workers:
                if worker.busy is None and waiting:
                    worker.give(waiting.popleft())
            yield from _collect(workers, options)
    finally:
        for worker in workers:
            worker.end()


def _collect(workers: list[_Worker], options: Options) -> Iterator[Result]:
    """Wait a moment, hand over what is finished, and replace workers that overran."""
    ready = wait([worker.pipe for worker in workers if worker.busy], timeout=0.1)
    for worker in list(workers):
        if worker.busy is None:
            continue
        if worker.pipe in ready:
            obligation, started = worker.busy, worker.since
            worker.busy = None
            yield result_of(obligation, _received(worker, workers), started)
        elif time.monotonic() - worker.since > _wall_clock(options):
            obligation, started = worker.busy, worker.since
            worker.end()
            workers.remove(worker)
            reason = f"stopped after {_wall_clock(options):.0f} s of wall clock"
            yield result_of(obligation, Decision(Verdict.UNKNOWN, "none", reason), started)


def _wall_clock(options: Options) -> float:
    """The solver's own limits come first; this one ends what ignores them."""
    return options.limits.seconds + _GRACE_SECONDS


def _received(worker: _Worker, workers: list[_Worker]) -> Decision:
    try:
        message = worker.pipe.recv()
    except EOFError:
        worker.end()
        workers.remove(worker)
        return Decision(Verdict.UNKNOWN, "none", "the worker process died (out of memory?)")
    if isinstance(message, BaseException):
        raise message
    if not isinstance(message, Decision):
        raise InternalError(f"unexpected message {message!r}")
    return message


def _start(files: Sequence[Path], options: Options) -> _Worker:
    here, there = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_work, args=(there, files, options), daemon=True)
    process.start()
    there.close()
    return _Worker(process, here)


def _work(pipe: Connection, files: Sequence[Path], options: Options) -> None:
    """The worker's life: an id in, a decision (or the error) out, until the pipe closes."""
    known = load_obligations(files)
    while True:
        try:
            name = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            pipe.send(discharge(known[name], options))
        except RouteproofError as error:
            pipe.send(type(error)(f"{known[name].location}: {name}: {error.args[0]}"))
        except MemoryError:
            pipe.send(Decision(Verdict.UNKNOWN, "none", "out of memory"))
        except KeyboardInterrupt:
            return
        except Exception:  # noqa: BLE001 - reported to the parent with its traceback
            pipe.send(InternalError(f"{name}: {traceback.format_exc()}"))
