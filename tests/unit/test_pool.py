"""The pool: complete results, whatever its workers do, and no process left behind."""

import multiprocessing
import re
import signal
import time

import pytest

from routeproof.checkers import pool
from routeproof.checkers.registry import load_obligations
from routeproof.checkers.solver import Limits, Options
from routeproof.spec.errors import InternalError
from routeproof.spec.obligation import Verdict

HEAD = """\
import os, signal, sys, threading
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import IntDomain, symbol_int

SOURCE = Source("a.cc", "f", "r1")
x = symbol_int("x", IntDomain(0, 9))
IN_WORKER = "pytest" not in sys.modules or __import__("multiprocessing").parent_process()
"""
OBLIGATION = """
@obligation("own.{name}", "{name}", source=SOURCE)
def {name}():
    {does}
    return Claim(x <= 9)
"""
FINE = [("one", "pass"), ("two", "pass"), ("three", "pass"), ("four", "pass")]


@pytest.fixture
def run(tmp_path):
    """Return a function that runs obligations, given as name and action, and gives results."""

    def run(*obligations, jobs=2, options=None, prelude="", seconds=None, **more):
        path = tmp_path / "own.py"
        written = (OBLIGATION.format(name=name, does=does) for name, does in obligations)
        path.write_text(HEAD + prelude + "".join(written))
        known = load_obligations([path])
        until = None if seconds is None else time.monotonic() + seconds
        work = pool.Work([path], options or Options(), until=until, **more)
        return pool.run(list(known.values()), work, jobs)

    yield run
    assert multiprocessing.active_children() == []


def verdicts(results):
    """Return the verdict of each obligation by its id."""
    return {result.id: str(result.decision.verdict) for result in results}


@pytest.mark.parametrize("jobs", [1, 5])
def test_every_obligation_has_one_result(run, jobs):
    """However many workers there are."""
    results = list(run(*FINE, jobs=jobs))
    assert sorted(result.id for result in results) == sorted(f"own.{name}" for name, _ in FINE)
    assert set(verdicts(results).values()) == {"proved"}


@pytest.mark.usefixtures("run")
def test_nothing_to_do_starts_nothing():
    """No obligation, no process, no result."""
    assert list(pool.run([], pool.Work([], Options()), 4)) == []


def test_a_worker_that_overruns_is_killed(run, monkeypatch):
    """Its obligation is unknown, with the reason; the others are decided."""
    monkeypatch.setattr(pool, "_GRACE_SECONDS", 0.5)
    options = Options(Limits(seconds=2.0))
    results = list(run(("hangs", "threading.Event().wait()"), *FINE, options=options))
    assert verdicts(results).pop("own.hangs") == "unknown"
    assert list(verdicts(results).values()).count("proved") == len(FINE)
    (hangs,) = [result for result in results if result.id == "own.hangs"]
    assert "wall clock" in hangs.decision.reason
    assert hangs.seconds >= 2.5


def test_a_worker_that_grows_too_large_is_killed(run, monkeypatch):
    """Whatever it is that takes the memory; the others are decided."""
    monkeypatch.setattr(pool, "_SPARE_MEGABYTES", 0)
    greedy = "held = [bytearray(b'x' * (1 << 20)) for _ in range(900)]; threading.Event().wait()"
    results = list(run(("greedy", greedy), *FINE, options=Options(Limits(megabytes=400))))
    assert verdicts(results) == {
        **{f"own.{name}": "proved" for name, _ in FINE},
        "own.greedy": "unknown",
    }
    (reason,) = [one.decision.reason for one in results if one.decision.reason]
    assert reason == "stopped at 400 MiB of memory (--memory)"


def test_the_time_for_the_run_ends_all_that_is_left(run):
    """Busy or waiting; what was decided stays."""
    hangs = ("hangs", "threading.Event().wait()")
    results = list(run(FINE[0], hangs, FINE[1], jobs=1, seconds=3.0))
    assert verdicts(results) == {
        "own.one": "proved",
        "own.hangs": "unknown",
        "own.two": "unknown",
    }
    assert all("--max-seconds" in one.decision.reason for one in results[1:])


def test_no_time_at_all_starts_nothing(run):
    """Everything is unknown."""
    assert set(verdicts(run(*FINE, seconds=0.0)).values()) == {"unknown"}


def test_what_a_worker_says_is_heard(run):
    """The stage each obligation has reached; without a listener it is not kept."""
    heard = []
    list(run(*FINE[:2], watch=lambda name, said: heard.append((name, said.kind, said.text))))
    assert ("own.one", "stage", "starting") in heard
    assert {name for name, kind, text in heard if text == "smt"} <= {"own.one", "own.two"}
    assert {kind for _, kind, _ in heard} == {"stage"}


def test_time_to_load_is_not_time_to_decide(run, monkeypatch):
    """A slow start, on a busy machine, makes nothing unknown."""
    monkeypatch.setattr(pool, "_GRACE_SECONDS", 0.0)
    slow = "if IN_WORKER: threading.Event().wait(2.5)\n"
    (result,) = run(FINE[0], options=Options(Limits(seconds=2.4)), prelude=slow)
    assert result.decision.verdict == "proved"
    assert result.seconds < 2.4


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_worker_that_dies_is_replaced(run, end):
    """Its obligation is unknown; those after it are decided by another."""
    results = list(run(("dies", end), *FINE, ("dies_too", end), jobs=1))
    expected = {f"own.{name}": "proved" for name, _ in FINE}
    assert verdicts(results) == expected | {"own.dies": "unknown", "own.dies_too": "unknown"}
    assert all("died" in result.decision.reason for result in results if "dies" in result.id)


def test_workers_that_die_before_they_are_asked_are_unknown(run):
    """Loading killed the process: nothing is decided, nothing hangs."""
    results = list(run(*FINE, prelude="if IN_WORKER: os._exit(1)\n"))
    assert verdicts(results) == {f"own.{name}": "unknown" for name, _ in FINE}


def test_running_out_of_memory_is_unknown(run):
    """Where Python notices it itself."""
    (result,) = run(("greedy", "raise MemoryError"))
    assert (result.decision.verdict, result.decision.reason) == (Verdict.UNKNOWN, "out of memory")


# Makes the engine itself fail in the worker.
SABOTAGE = """
if IN_WORKER:
    import routeproof.checkers.pool as engine
    engine.discharge = lambda *_: 1 // 0
"""


def test_an_internal_error_surfaces_with_its_traceback(run):
    """It is nobody's verdict, and it carries the id and the line."""
    with pytest.raises(InternalError, match=r"(?s)own\.\w+: .*own\.py.*1 // 0") as error:
        list(run(*FINE, prelude=SABOTAGE))
    assert error.value.code.startswith("RP9")


def test_a_malformed_statement_names_its_obligation(run):
    """The error of the language, with the line; the other obligations are decided."""
    results = list(run(("breaks", "x + True"), ("divides", "1 // 0"), *FINE))
    broken = {one.id: one.decision for one in results if one.decision.malformed}
    assert re.search(r"own\.py:\d+: expected an int", broken["own.breaks"].reason)
    assert re.search(r"own\.py:\d+: ZeroDivisionError", broken["own.divides"].reason)
    assert verdicts(results).keys() - broken.keys() == {f"own.{name}" for name, _ in FINE}


def test_what_a_worker_prints_is_not_the_report(run, capfd):
    """Standard output belongs to the parent."""
    list(run(("prints", "print('hello'); sys.stdout.flush()")))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_closing_early_ends_every_worker(run):
    """The caller had enough, or was interrupted: the fixture finds no process left."""
    results = run(*FINE, ("hangs", "threading.Event().wait()"), jobs=3)
    assert next(results).decision.verdict == "proved"
    assert multiprocessing.active_children()
    results.close()


def test_an_error_ends_every_worker(run):
    """Also those that are busy: the fixture finds no process left."""
    with pytest.raises(InternalError):
        list(run(("hangs", "threading.Event().wait()"), *FINE, prelude=SABOTAGE))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals of POSIX")
def test_an_interrupt_is_the_parents_alone(run, capfd):
    """A worker that Ctrl-C reaches goes on, and says nothing of its own."""
    interrupt = "os.kill(os.getpid(), signal.SIGINT)"
    results = list(run(("interrupted", interrupt), *FINE, jobs=1))
    assert set(verdicts(results).values()) == {"proved"}
    assert "KeyboardInterrupt" not in capfd.readouterr().err
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
