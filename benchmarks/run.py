#!/usr/bin/env python3
"""Measure what the project promises of its own speed and memory, and print it as one table.

Each figure is the median of several repetitions in one run. Only the standard library, NumPy and
the installed package are needed; memory of a process tree is read from /proc where there is one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import cast

import numpy as np

from routeproof.checkers.bounding.answer import answer
from routeproof.checkers.counterexample import Replayer
from routeproof.checkers.evaluator import Evaluator, write_row
from routeproof.checkers.maximise import Maximum, maximise
from routeproof.checkers.readings.vectorised import compile_numpy, values
from routeproof.checkers.registry import (
    function_names,
    load_function,
    load_obligations,
    load_question,
)
from routeproof.checkers.sampling import Sampler, constants_of
from routeproof.checkers.solver import solver_version
from routeproof.checkers.values import parse_json
from routeproof.kernels_ref.arena import Arena
from routeproof.kernels_ref.backends import load
from routeproof.kernels_ref.gqa import crosscheck, oracle, tensors
from routeproof.kernels_ref.gqa.draw import draw
from routeproof.kernels_ref.gqa.plan import UNNEEDED, plan
from routeproof.models.catalogue import OWN
from routeproof.models.presets import published
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.objective import Case, Question
from routeproof.spec.obligation import Claim
from routeproof.spec.records import leaves
from routeproof.spec.terms import Bool, EnumSort, Term, all_of, free_symbols

SCRIPT = Path(sys.executable).with_name("routeproof")
ROWS = "routeproof.proofs.ort.gqa"
SAMPLED = "ort.gqa.layout.flash.inside"
SAMPLE_BATCHES = 3
LAUNCHES = 2_000
SCHEMA_VERSION = 1
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `limit` is the requirement, if there is one."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the value is within its limit."""
        return self.limit is None or self.value <= self.limit


def timed(action: Callable[[], object], repeat: int) -> float:
    """Median seconds of the action."""
    return statistics.median(_once(action) for _ in range(repeat))


def _once(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _silently(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command


def startup(repeat: int) -> Iterator[Figure]:
    """What `--help` costs beyond an empty interpreter; the two take turns, for equal load."""
    empty, helped = [], []
    for _ in range(repeat):
        empty.append(_once(lambda: _silently([sys.executable, "-c", "pass"])))
        helped.append(_once(lambda: _silently([str(SCRIPT), "--help"])))
    base, cost = statistics.median(empty), statistics.median(helped)
    yield Figure("python -c pass", base, "s")
    yield Figure("routeproof --help", cost, "s")
    yield Figure("--help beyond python", cost - base, "s", limit=0.2)


def kernels(repeat: int, jobs: int) -> Iterator[Figure]:
    """Drawn launches in planned memory: all of the command, and a launch over plain attention."""
    command = [str(SCRIPT), "replay", "--random", str(LAUNCHES), "--seed", "1", "-j", str(jobs)]
    wall = timed(lambda: _silently(command), repeat)
    yield Figure(f"replay, {LAUNCHES:,} drawn launches", wall, "s", limit=60)
    host = load("numpy")
    drawn = [draw(number, 1) for number in range(LAUNCHES // 10)]
    runs = [(one.launch, plan(one.recipe), tensors.draw(one.launch, 0)) for one in drawn]
    done = [
        crosscheck.execute(launch, given, Arena(of, UNNEEDED, host)) for launch, of, given in runs
    ]
    plain = timed(
        lambda: [oracle.check(*run[::2], one) for run, one in zip(runs, done, strict=True)], repeat
    )
    whole = timed(
        lambda: [crosscheck.crosscheck(launch, of, host, 0) for launch, of, _ in runs], repeat
    )
    yield Figure("a launch over plain attention", whole / plain, "times", note="both executions")


def check(repeat: int, jobs: int) -> Iterator[Figure]:
    """Wall clock and memory of the whole `routeproof check`, and again with all verdicts kept."""
    runs = [_checked(jobs, "--no-cache") for _ in range(repeat)]
    wall, busy, largest, together = map(statistics.median, zip(*runs, strict=True))
    yield Figure("routeproof check", wall, "s", limit=60.0, note=f"{jobs} worker processes")
    yield Figure("check, processor time", busy, "s", note="all processes; other load hardly counts")
    yield Figure("check, largest process", largest / MEBIBYTE, "MiB", note="peak resident set")
    if together:
        note = "peak sum of resident sets, shared pages counted once per process"
        yield Figure("check, all processes", together / MEBIBYTE, "MiB", limit=1024.0, note=note)
    with tempfile.TemporaryDirectory() as folder:
        keeping, _, _, _ = _checked(jobs, "--cache-dir", folder)
        kept = [_checked(jobs, "--cache-dir", folder)[0] for _ in range(repeat)]
    again = statistics.median(kept)
    yield Figure("check, verdicts being kept", keeping, "s", note="from an empty cache")
    yield Figure("check, all verdicts kept", again, "s", limit=2.0, note="one process")
    yield Figure("check, anew over kept", wall / again, "times")


def _checked(jobs: int, *options: str) -> tuple[float, float, float, float]:
    """Seconds, processor seconds, bytes of the largest process, most bytes of all at one time."""
    command = [str(SCRIPT), "check", "--jobs", str(jobs), *options]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - as above
    watch = _Watch(process.pid)
    watch.start()
    _, status, usage = os.wait4(process.pid, 0)  # with the workers that the command waited for
    seconds = time.perf_counter() - started
    watch.stop()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"routeproof check ended with status {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    busy = usage.ru_utime + usage.ru_stime
    return seconds, busy, float(usage.ru_maxrss * unit), float(watch.peak)


class _Watch(threading.Thread):
    """Samples the memory of a command and its workers every 50 ms; keeps the largest sum."""

    def __init__(self, leader: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._leader = leader
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.05):
            self.peak = max(self.peak, _resident(self._leader))

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _resident(leader: int) -> int:
    """Bytes of the resident sets of the command and its workers; 0 without /proc."""
    pages = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[3]) == leader:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")


def evaluation(repeat: int) -> Iterator[Figure]:
    """Rows per second of each modelled function, from JSON text to JSON text."""
    for name in (one for one in function_names() if one not in OWN):
        lines = _rows(name.rpartition(".")[2])
        evaluate = Evaluator(load_function(name))
        seconds = timed(lambda: _evaluate(evaluate, lines), repeat)  # noqa: B023 - called at once
        yield Figure(f"eval {name}", len(lines) / seconds, "rows/s", note=f"{len(lines)} rows")


def _rows(name: str) -> list[str]:
    packed = resources.files(ROWS).joinpath(f"rows/{name}.jsonl.gz").read_bytes()
    return gzip.decompress(packed).decode().splitlines()


def _evaluate(evaluate: Evaluator, lines: Sequence[str]) -> None:
    for line in lines:
        write_row(evaluate(parse_json(line, "row"), "row"))


def readings(repeat: int) -> Iterator[Figure]:
    """States per second of the Flash recipe, by NumPy and by the reference interpreter."""
    terms = tuple(leaves(load_function("ort.gqa.flash").outputs["out"]).values())
    symbols = free_symbols(*terms)
    few, many = 1_000, 200_000
    drawn = _geometries(symbols, many)
    states = [_state(symbols, drawn, row) for row in range(few)]
    sweep, interpret = compile_numpy(terms), compile_terms(terms)
    sweep({name: column[:few] for name, column in drawn.items()})
    answers = sweep(drawn)
    _agree(terms, answers, [interpret(state) for state in states])
    vectorised = many / timed(lambda: sweep(drawn), repeat)
    one_by_one = few / timed(lambda: [interpret(state) for state in states], repeat)
    yield Figure("Flash recipe, NumPy", vectorised, "states/s", note=f"{many:,} states")
    yield Figure("Flash recipe, interpreter", one_by_one, "states/s", note=f"{few:,} states")
    yield Figure("NumPy against interpreter", vectorised / one_by_one, "times")


def _geometries(symbols: Sequence[Term], count: int) -> dict[str, np.ndarray]:
    """Geometries as models have them, most of which the recipe accepts."""
    draw = np.random.default_rng(0)
    choices: dict[str, Sequence[int]] = {
        "qkv_element_size": (2,),
        "cache_element_size": (2,),
        "num_heads": (8, 16, 32),
        "kv_num_heads": (1, 2, 4, 8),
        "head_size": (64, 96, 128, 256),
        "multi_processor_count": (24, 82, 108, 132),
        "local_window_size": (-1, 1024),
    }
    columns = {}
    for symbol in symbols:
        field = symbol.name.rpartition(".")[2]
        if isinstance(symbol, Bool):
            columns[symbol.name] = draw.random(count) < 0.1  # few are rejected
        elif isinstance(symbol.sort, EnumSort):
            columns[symbol.name] = np.zeros(count, np.int8)
        elif field in choices:
            columns[symbol.name] = draw.choice(np.array(choices[field], np.int64), count)
        else:
            columns[symbol.name] = np.exp2(draw.random(count) * 13).astype(np.int64)
    return columns


def _state(symbols: Sequence[Term], columns: dict[str, np.ndarray], row: int) -> dict[str, Value]:
    return {s.name: values(s, columns[s.name][row : row + 1])[0] for s in symbols}


def _agree(terms: Sequence[Term], columns: Sequence[np.ndarray], rows: list[list[Value]]) -> None:
    """A fast reading that is wrong is not fast: the two must agree before they are timed."""
    swept = [values(term, column) for term, column in zip(terms, columns, strict=True)]
    for at, row in enumerate(rows):
        if [one[at % len(one)] for one in swept] != row:
            raise SystemExit(f"NumPy and the interpreter differ on state {at}")


def sampler(repeat: int) -> Iterator[Figure]:
    """One full look of the sampler for a state that breaks a true claim."""
    claim = load_obligations()[SAMPLED].statement()
    if not isinstance(claim, Claim):
        raise SystemExit(f"{SAMPLED} is not a claim")
    conditions, goal = tuple(claim.conditions.values()), all_of(*claim.goals.values())
    replayer = Replayer(claim)
    looking = Sampler(
        all_of(*conditions, ~goal), replayer.symbols, constants_of((*conditions, goal))
    )
    start = replayer.completed({})
    seconds = timed(lambda: looking.find(replayer.fails, start, SAMPLE_BATCHES, 0), repeat)
    yield Figure("sampler, one full look", seconds, "s", note=SAMPLED)


def bound(repeat: int) -> Iterator[Figure]:
    """Exact maxima: a cold command, every published model in a warm process, all states tried."""
    command = [str(SCRIPT), "bound", "--preset", "qwen2.5-1.5b", "--device", "L4", "--query"]
    cold = timed(lambda: _silently([*command, "1..1024", "--total", "1..1152"]), repeat)
    yield Figure("bound, cold", cold, "s", limit=2.0, note="a new process, lemmas decided")
    slowest, name = max(
        (_warm(name, device, repeat), f"{name} on {device}")
        for name in (entry["name"] for entry in published("models"))
        for device in ("A100-SXM4-80GB", "H100-SXM5-80GB")
    )
    note = f"{name}; batch 1..64, 131,072 tokens"
    yield Figure("bound, slowest model", slowest, "s", limit=0.1, note=note)
    case = next(
        one
        for one in _asked("Qwen2.5-1.5B-Instruct", "L4", 2048, "1").cases
        if one.objective.name == "flash.chunk"
    )
    most = cast("Maximum", maximise(case)).size
    swept = timed(lambda: _swept(case, most), 1)
    found = timed(lambda: maximise(case), repeat)
    yield Figure("bound against all states", swept / found, "times", note="chunks by Flash, 2,048")


def _asked(name: str, device: str, tokens: int, batch: str) -> Question:
    """The question for a model on a device with everything within the tokens."""
    lengths = f"1..{tokens}"
    envelope = {"batch": batch, "query": lengths, "total": lengths}
    options = {"cudnn": "off"}
    return load_question(
        {"node": name, "device": device, "kernel_options": options, "envelope": envelope}
    )


def _warm(name: str, device: str, repeat: int) -> float:
    """Seconds of an answer in a process that has answered another envelope before."""
    answer(_asked(name, device, 1024, "1..64"))
    tokens = iter(range(131_072, 0, -512))
    return timed(lambda: answer(_asked(name, device, next(tokens), "1..64")), repeat)


def _swept(case: Case, most: int) -> None:
    """The same maximum by evaluating every state, a query length at a time."""
    sweep = compile_numpy((case.objective.size,))
    _, query, total = case.objective.axes
    coded = {name: value for name, value in case.facts.items() if not isinstance(value, str)}
    low, high = case.domain.ranges[query]
    found = 0
    for length in range(low, high + 1):
        totals = np.arange(length + 1, case.domain.ranges[total][1] + 1)
        (sizes,) = sweep({**_members(case), **coded, query.name: length, total.name: totals})
        found = max(found, int(sizes.max()))
    if found != most:
        raise SystemExit(f"the maximum is {found}, not {most}")


def _members(case: Case) -> dict[str, int]:
    """Enum facts by their index."""
    return {
        one.name: one.sort.members.index(str(case.facts[one.name]))
        for one in free_symbols(case.objective.size)
        if isinstance(one.sort, EnumSort)
    }


def measure(repeat: int, jobs: int) -> Iterator[Figure]:
    """Every figure, the quick ones first."""
    yield from startup(5 * repeat)
    yield from evaluation(repeat)
    yield from readings(repeat)
    yield from sampler(repeat)
    yield from bound(repeat)
    yield from kernels(repeat, jobs)
    yield from check(repeat, jobs)


def machine(cores: int) -> dict[str, object]:
    """The machine in general words."""
    return {
        "cores": cores,
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "solver": solver_version(),
    }


def confine(cores: int) -> int:
    """Keep this process and its children on so many cores, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        return os.cpu_count() or 1
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, chosen)
    return len(chosen)


def line(figure: Figure) -> str:
    """The figure as a row of the table."""
    digits = 3 if figure.unit == "s" else 0
    limit = "" if figure.limit is None else f"{'within' if figure.met else 'OVER'} {figure.limit:g}"
    value = f"{figure.value:12,.{digits}f} {figure.unit:9}"
    return f"{figure.name:30} {value} {limit:12} {figure.note}".rstrip()


def main() -> int:
    """Measure, print, write; status 1 if a requirement is missed and --enforce is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3, help="repetitions per figure [3]")
    parser.add_argument("--cores", type=int, default=2, help="cores to stay on [2]")
    parser.add_argument("--output", type=Path, help="also write the figures as JSON")
    parser.add_argument("--enforce", action="store_true", help="fail if a requirement is missed")
    options = parser.parse_args()
    cores = confine(options.cores)
    described = machine(cores)
    print(", ".join(f"{key} {value}" for key, value in described.items()), end="\n\n")  # noqa: T201
    figures = []
    for figure in measure(options.repeat, cores):
        figures.append(figure)
        print(line(figure), flush=True)  # noqa: T201 - the table is the output
    if options.output:
        rows = [{**asdict(one), "met": one.met} for one in figures]
        document = {"schema_version": SCHEMA_VERSION, "machine": described, "figures": rows}
        options.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return int(options.enforce and not all(figure.met for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
