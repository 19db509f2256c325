"""A pool of warm worker processes, each of which decides one obligation at a time.

A worker that overruns its wall clock or its memory is killed and replaced; the obligation it was
on becomes `unknown`. Workers load the obligations themselves: only ids, results and announcements
travel.
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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from routeproof.spec.errors import InternalError, ModelError, RouteproofError
from routeproof.spec.obligation import Obligation, Verdict

from .announcing import Announcement, listening
from .caching.verdicts import Cache, cached_decision
from .decide import Decision
from .discharge import Result, discharge, result_of
from .process import prepare
from .registry import load_obligations
from .solver import Options

__all__ = ["Work", "run"]

_GRACE_SECONDS = 5.0
_SPARE_MEGABYTES = 1024  # beside the solver's: interpreter, terms, columns of an enumeration
_LOADING_SECONDS = 60.0  # for the interpreter and all obligations, on a busy machine
_CONTEXT = multiprocessing.get_context("spawn")


Watch = Callable[[str, Announcement], None]


def _unwatched(_: str, said: Announcement) -> None:
    if said.kind == "warning":
        print(f"routeproof: {said.text}", file=sys.stderr)  # noqa: T201 - as without workers


@dataclass(frozen=True, slots=True)
class Work:
    """How to decide: files of the user's own, options, where verdicts are kept, until when.

    `until` is a time of the monotonic clock, in seconds; `watch` hears what is said of an id.
    """

    files: Sequence[Path]
    options: Options
    cache: Cache | None = None
    until: float | None = None
    watch: Watch = _unwatched


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

    def megabytes(self) -> int:
        """The memory that the process has in use (MiB)."""
        import psutil

        try:
            used: int = psutil.Process(self.process.pid).memory_info().rss
        except psutil.Error:  # it has just ended, which is found when it should answer
            return 0
        return used >> 20

    def give_up(self, reason: str) -> Decision:
        self.end()
        return Decision(Verdict.UNKNOWN, "none", reason)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(obligations: Sequence[Obligation], work: Work, jobs: int) -> Generator[Result]:
    """Results as they come, in no particular order; closing the iterator ends every worker."""
    waiting = deque(obligations)
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.busy for worker in workers):
            if work.until is not None and time.monotonic() >= work.until:
                yield from _given_up(workers, waiting)
                return
            while waiting and len(workers) < min(jobs, len(obligations)):
                workers.append(_start(work))
            for worker in workers:
                if worker.busy is None and waiting:
                    worker.give(waiting[0])
                    work.watch(waiting.popleft().id, Announcement("stage", "starting"))
            yield from _collect(workers, work)
    finally:
        for worker in workers:
            worker.end()


def _given_up(workers: Sequence[_Worker], waiting: Sequence[Obligation]) -> Iterator[Result]:
    """What is not decided when the time for all is up."""
    late = Decision(Verdict.UNKNOWN, "none", "not decided in the time for the run (--max-seconds)")
    for worker in workers:
        if worker.busy:
            yield result_of(worker.busy, late, worker.since)
    for obligation in waiting:
        yield result_of(obligation, late, time.monotonic())


def _collect(workers: list[_Worker], work: Work) -> Iterator[Result]:
    """Wait a moment, hand over what is finished, and part with workers that have ended."""
    ready = wait([worker.pipe for worker in workers if worker.busy], timeout=0.1)
    for worker in list(workers):
        if worker.busy is None:
            continue
        said = _answer(worker) if worker.pipe in ready else None
        if isinstance(said, Announcement):
            work.watch(worker.busy.id, said)
        found = said if isinstance(said, Decision) else _patience(worker, work.options)
        if found is None:
            continue
        obligation, worker.busy = worker.busy, None
        if worker.pipe.closed:
            workers.remove(worker)
        yield result_of(obligation, found, worker.since)


def _answer(worker: _Worker) -> Decision | Announcement | None:
    """What a worker says: that it has loaded, what it is at, its decision, or the error it met."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        return worker.give_up("the worker process died (out of memory?)")
    if isinstance(message, BaseException):
        raise message
    if isinstance(message, Decision | Announcement):
        return message
    worker.has_loaded, worker.since = True, time.monotonic()
    return None


def _patience(worker: _Worker, options: Options) -> Decision | None:
    """The solver's own limits come first; these end what ignores them."""
    seconds = options.limits.seconds + _GRACE_SECONDS
    if worker.overran(seconds):
        return worker.give_up(f"stopped after {seconds:.0f} s of wall clock")
    megabytes = options.limits.megabytes + _SPARE_MEGABYTES
    if worker.megabytes() > megabytes:
        return worker.give_up(f"stopped at {megabytes:,} MiB of memory (--memory)")
    return None


def _start(work: Work) -> _Worker:
    here, there = _CONTEXT.Pipe()
    given = (there, work.files, work.options, work.cache)
    process = _CONTEXT.Process(target=_work, args=given, daemon=True)
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


def _work(pipe: Connection, files: Sequence[Path], options: Options, cache: Cache | None) -> None:
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
            with listening(pipe.send):
                obligation = _known(known, name)
                found = (
                    cached_decision(obligation, options, cache)
                    if cache
                    else discharge(obligation, options)
                )
            pipe.send(found)
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
