"""A pool of warm worker processes, each of which decides one obligation at a time.

A worker that overruns its wall clock or its memory is killed and replaced; the obligation it was
on becomes `unknown`. Workers load the obligations themselves: only ids and results travel.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from routeproof.spec.errors import InternalError, ModelError, RouteproofError
from routeproof.spec.obligation import Obligation, Verdict

from .decide import Decision
from .discharge import Result, discharge, result_of
from .process import prepare
from .registry import load_obligations
from .solver import Options

__all__ = ["run"]

_GRACE_SECONDS = 5.0
_LOADING_SECONDS = 60.0  # for the interpreter and all obligations, on a busy machine
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(slots=True)
class _Worker:
    """One process, the pipe to it, and what it is busy with since when."""

    process: BaseProcess
    pipe: Connection
    busy: Obligation | None = None
    since: float = 0.0
    has_loaded: bool = False

    def give(self, obligation: Obligation) -> None:
        self.busy, self.since = obligation, time.monotonic()
        with suppress(OSError):  # that the process has died is found when it should answer
            self.pipe.send(obligation.id)

    def overran(self, seconds: float) -> bool:
        allowed = seconds if self.has_loaded else seconds + _LOADING_SECONDS
        return time.monotonic() - self.since > allowed

    def give_up(self, reason: str) -> Decision:
        self.end()
        return Decision(Verdict.UNKNOWN, "none", reason)

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
            while waiting and len(workers) < min(jobs, len(obligations)):
                workers.append(_start(files, options))
            for worker in workers:
                if worker.busy is None and waiting:
                    worker.give(waiting.popleft())
            yield from _collect(workers, options)
    finally:
        for worker in workers:
            worker.end()


def _collect(workers: list[_Worker], options: Options) -> Iterator[Result]:
    """Wait a moment, hand over what is finished, and part with workers that have ended."""
    ready = wait([worker.pipe for worker in workers if worker.busy], timeout=0.1)
    for worker in list(workers):
        if worker.busy is None:
            continue
        decision = _answer(worker) if worker.pipe in ready else _patience(worker, options)
        if decision is None:
            continue
        obligation, worker.busy = worker.busy, None
        if worker.pipe.closed:
            workers.remove(worker)
        yield result_of(obligation, decision, worker.since)


def _answer(worker: _Worker) -> Decision | None:
    """What a worker says: that it has loaded, or its decision, or the error it met."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        return worker.give_up("the worker process died (out of memory?)")
    if isinstance(message, BaseException):
        raise message
    if isinstance(message, Decision):
        return message
    worker.has_loaded, worker.since = True, time.monotonic()
    return None


def _patience(worker: _Worker, options: Options) -> Decision | None:
    """The solver's own limits come first; this one ends what ignores them."""
    seconds = options.limits.seconds + _GRACE_SECONDS
    if worker.overran(seconds):
        return worker.give_up(f"stopped after {seconds:.0f} s of wall clock")
    return None


def _start(files: Sequence[Path], options: Options) -> _Worker:
    here, there = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_work, args=(there, files, options), daemon=True)
    with _interrupts_held_back():
        process.start()
    there.close()
    return _Worker(process, here)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process started here never sees Ctrl-C, which is the parent's to answer."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # on its first start it would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection, files: Sequence[Path], options: Options) -> None:
    """The worker's life: an id in, a decision (or the error) out, until the pipe closes."""
    sys.stdout = sys.stderr  # standard output is the parent's report
    prepare()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    known = load_obligations(files)
    pipe.send("loaded")
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(discharge(_known(known, name), options))
        except RouteproofError as error:
            pipe.send(Decision(Verdict.UNKNOWN, "none", str(error), malformed=True))
        except MemoryError:
            pipe.send(Decision(Verdict.UNKNOWN, "none", "out of memory"))
        except Exception:  # noqa: BLE001 - reported to the parent with its traceback
            pipe.send(InternalError(f"{name}: {traceback.format_exc()}"))


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers: they end themselves."""
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os._exit(1)


def _known(known: Mapping[str, Obligation], name: str) -> Obligation:
    if name not in known:
        raise ModelError(f"{name}: the file declares other ids each time it is loaded")
    return known[name]
