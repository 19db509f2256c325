"""C against NumPy on every mix: the same answers, and then how long each takes for them."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from . import flash, model
from .mixes import MIXES, MULTIPROCESSORS, Mix, draw
from .native import Native
from .states import STATUSES, Answers

__all__ = ["Comparison", "measure"]

_SAMPLE: Final = 2_000
_SAMPLE_PER_STATUS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """One mix: medians in processor seconds, what was compared, and whether it agreed."""

    mix: str
    states: int
    c_seconds: float
    numpy_seconds: float
    ratio: float
    search_share: float
    statuses: dict[str, int]
    equal: bool
    sampled: int
    equal_to_model: bool


def measure(repetitions: int, states: int = 1_000_000) -> list[Comparison]:
    """Every mix; the two sides take turns, for equal load."""
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        native = Native(Path(folder))
        return [_compare(native, draw(name, states), repetitions) for name in MIXES]


def _compare(native: Native, mix: Mix, repetitions: int) -> Comparison:
    count = len(mix.states)
    by_c = Answers.empty(count)
    searched = native.sweep(mix.states, MULTIPROCESSORS, by_c)
    by_numpy = flash.sweep(mix.states, MULTIPROCESSORS)
    sample = _sample(mix, by_c)
    by_model = model.answer(mix.states.take(sample), MULTIPROCESSORS)
    c_times, numpy_times = [], []
    for _ in range(repetitions):
        c_times.append(_seconds(lambda: native.sweep(mix.states, MULTIPROCESSORS, by_c)))
        numpy_times.append(_seconds(lambda: flash.sweep(mix.states, MULTIPROCESSORS)))
    c_median, numpy_median = statistics.median(c_times), statistics.median(numpy_times)
    return Comparison(
        mix=mix.name,
        states=count,
        c_seconds=c_median,
        numpy_seconds=numpy_median,
        ratio=c_median / numpy_median,
        search_share=searched / count,
        statuses=dict(zip(STATUSES, np.bincount(by_c.status, minlength=4).tolist(), strict=True)),
        equal=by_numpy.equals(by_c),
        sampled=len(sample),
        equal_to_model=by_c.take(sample).equals(by_model),
    )


def _sample(mix: Mix, answers: Answers) -> NDArray[np.intp]:
    """Rows for the model: some of any kind, every way to be odd, and of each status enough."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(len(mix.states))[:_SAMPLE], mix.odd[:_SAMPLE_PER_STATUS]]
    rows += [
        np.flatnonzero(answers.status == status)[:_SAMPLE_PER_STATUS]
        for status in range(len(STATUSES))
    ]
    return np.unique(np.concatenate(rows))


def _seconds(action: Callable[[], object]) -> float:
    """Processor time: both sides are one thread, and other work on the machine hardly counts."""
    started = time.process_time()
    action()
    return time.process_time() - started
