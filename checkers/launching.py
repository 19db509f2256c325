"""Launches that reference kernels execute in planned memory: one shown, or many drawn and counted.

Kernels are reached by name; nothing here knows what they compute.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from routeproof.spec.execution import Fault, Kernels, LaunchReport, RegionBytes

from .progress import with_progress
from .registry import load_kernels
from .report import SCHEMA_VERSION, dump, table_output

__all__ = ["RECIPE", "run_random", "show_launch"]

RECIPE = "ort.gqa.complete"
_CHUNK = 20
_SHOWN_FAULTS = 10


def show_launch(console: Console, run: Callable[[], LaunchReport], device: str) -> bool:
    """Execute a launch and print its regions, or its fault; whether it has none."""
    try:
        report = run()
    except Fault as fault:
        console.print(f"  kernels on {device}: fault: {fault}", markup=False)
        return False
    console.print(f"  kernels on {device}: {report.extents}", markup=False)
    if report.on_paper:
        console.print(f"  carved on paper, no memory touched: {report.on_paper}", markup=False)
    table = _table("region", "planned", "allocated", "touched")
    whole = RegionBytes(
        "total",
        report.total,
        sum(region.allocated for region in report.regions),
        sum(region.touched for region in report.regions),
    )
    for one in (*report.regions, whole):
        touched = "-" if report.on_paper else f"{one.touched:,}"
        table.add_row(f"  {one.name}", f"{one.planned:,}", f"{one.allocated:,}", touched)
    console.print(table)
    notes = {region.name: region.note for region in report.regions if region.note}
    for note, places in _by_note(notes).items():
        console.print(f"  left untouched in {places}: {note}", markup=False)
    if not report.on_paper:
        console.print(
            f"  executed twice, under different poison, with the same bits; at most "
            f"{report.peak:,} bytes in use at once; maximum error {report.error:.2g}",
            markup=False,
        )
    return True


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(f"  {first}")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _by_note(notes: Mapping[str, str]) -> dict[str, str]:
    """Where each reason applies."""
    found: dict[str, list[str]] = {}
    for place, note in sorted(notes.items()):
        found.setdefault(note, []).append(place)
    return {note: ", ".join(places) for note, places in found.items()}


@dataclass(slots=True)
class _Sums:
    """What many launches showed: counts, bytes per region of each route, errors and faults."""

    launches: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    regions: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    taken: int = 0
    root: int = 0
    faults: list[tuple[int, Fault]] = field(default_factory=list)

    def add(self, number: int, found: LaunchReport | Fault) -> None:
        """One more launch."""
        self.launches += 1
        if isinstance(found, Fault):
            self.faults.append((number, found))
            return
        marks = {
            "route": found.route,
            **found.counted,
            "several splits": "yes" if found.splits > 1 else "no",
            "padding": "yes" if found.is_padded else "no",
            "output": "constant" if found.is_constant else "varied",
            "execution": "on paper" if found.on_paper else "twice",
        }
        for name, value in marks.items():
            self.counts.setdefault(name, Counter())[value] += 1
        for region in found.regions:
            key = (found.route, region.name)
            bytes_ = (1, region.planned, region.allocated, region.touched)
            so_far = self.regions.setdefault(key, [0, 0, 0, 0])
            self.regions[key] = [one + two for one, two in zip(so_far, bytes_, strict=True)]
            if region.note:
                self.notes[key] = region.note
        kind = found.counted.get("type", "any")
        self.errors[kind] = max(self.errors.get(kind, 0.0), found.error)
        self.taken, self.root = self.taken + found.taken, self.root + found.total


def run_random(count: int, seed: int, backend: str, jobs: int, form: str) -> int:
    """Run launches 0 to `count` - 1 of a seed; 1 if any has a fault."""
    device = load_kernels(RECIPE, backend).device
    sums = _Sums()
    arriving = _results(count, seed, backend, 1 if backend == "cupy" else jobs)
    for number, found in with_progress(arriving, count, lambda item: f"launch {item[0]}"):
        sums.add(number, found)
    if form == "json":
        click.echo(dump(_as_json(sums, seed, backend, device)), nl=False)
    else:
        _print(table_output(), sums, seed, device)
    return 1 if sums.faults else 0


def _results(
    count: int, seed: int, backend: str, jobs: int
) -> Iterator[tuple[int, LaunchReport | Fault]]:
    chunks = [range(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK)]
    if jobs == 1 or len(chunks) == 1:
        kernels = load_kernels(RECIPE, backend)
        for chunk in chunks:
            yield from ((number, _one(kernels, number, seed)) for number in chunk)
        return
    workers = min(jobs, len(chunks))
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_ignore_interrupts) as pool:
        for found in pool.map(_some, chunks, [seed] * len(chunks), [backend] * len(chunks)):
            yield from found


def _ignore_interrupts() -> None:
    """Ctrl-C is the command's: a worker ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _some(
    numbers: Sequence[int], seed: int, backend: str
) -> list[tuple[int, LaunchReport | Fault]]:
    """A worker's share."""
    kernels = load_kernels(RECIPE, backend)
    return [(number, _one(kernels, number, seed)) for number in numbers]


def _one(kernels: Kernels, number: int, seed: int) -> LaunchReport | Fault:
    try:
        return kernels.random(number, seed)
    except Fault as fault:
        return fault


def _print(console: Console, sums: _Sums, seed: int, device: str) -> None:
    console.print(f"{sums.launches:,} launches of seed {seed} on {device}", markup=False)
    for name, counts in sums.counts.items():
        said = ", ".join(f"{one:,} {value}" for value, one in sorted(counts.items()))
        console.print(f"  {name:14}  {said}", markup=False)
    table = _table("route, region", "launches", "planned", "allocated", "touched")
    for key, bytes_ in sorted(sums.regions.items()):
        table.add_row(f"  {', '.join(key)}", *map("{:,}".format, bytes_))
    console.print(table)
    for note, places in _by_note({" ".join(one): note for one, note in sums.notes.items()}).items():
        console.print(f"  left untouched in {places}: {note}", markup=False)
    if sums.taken != sums.root:
        console.print(
            f"  the allocator took {sums.taken:,} bytes for {sums.root:,} planned", markup=False
        )
    for kind, error in sorted(sums.errors.items()):
        console.print(f"  maximum error, {kind}: {error:.2g}", markup=False)
    for number, fault in sums.faults[:_SHOWN_FAULTS]:
        console.print(f"fault in launch {number}: {fault}", markup=False)
        console.print(f"  {_saved(fault)}", markup=False)
    if (more := len(sums.faults) - _SHOWN_FAULTS) > 0:
        console.print(f"and {more:,} more faults", markup=False)
    console.print("no fault" if not sums.faults else f"{len(sums.faults):,} faults", markup=False)


def _saved(fault: Fault) -> str:
    """The launch as `replay` reads it."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "launch": fault.run})


def _as_json(sums: _Sums, seed: int, backend: str, device: str) -> Mapping[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "backend": backend,
        "device": device,
        "seed": seed,
        "launches": sums.launches,
        "counts": {name: dict(sorted(one.items())) for name, one in sums.counts.items()},
        "regions": [
            {
                "route": route,
                "region": region,
                **dict(zip(("launches", "planned", "allocated", "touched"), bytes_, strict=True)),
                "note": sums.notes.get((route, region), ""),
            }
            for (route, region), bytes_ in sorted(sums.regions.items())
        ],
        "allocator": {"planned": sums.root, "taken": sums.taken},
        "max_error": dict(sorted(sums.errors.items())),
        "faults": [
            {"number": number, "region": one.region, "problem": one.problem, "launch": one.run}
            for number, one in sums.faults
        ],
    }
