"""Decide every bound obligation by the portfolio, by z3 and by cvc5; compare processor times."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from routeproof.spec.obligation import Obligation

from .asking import Record
from .compare import Comparison, Settings, bounds, compare
from .report import HEADER, as_json, row, summary

_INTERRUPTED: Final = 130


def main() -> int:
    """Measure and print; status 1 if a solver contradicts a proof, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="solvers", description=__doc__)
    parser.add_argument("--seeds", type=_count, default=5, help="per solver [5]")
    parser.add_argument("--limit", type=_seconds, default=20.0, help="seconds per run [20]")
    parser.add_argument("--jobs", type=_count, default=1, help="solver runs at a time [1]")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="repeat no run found here, append the new ones"
    )
    parser.add_argument("--ids", nargs="+", default=(), metavar="GLOB", help="only these [all]")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="[text]")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the queries (.smt2) here")
    options = parser.parse_args()
    obligations = bounds(options.ids)
    if not obligations:
        parser.error("no bound obligation has such an id: see routeproof list 'ort.gqa.bound.*'")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory() as folder:
        settings = Settings(options.seeds, options.jobs, Path(folder))
        record = Record(options.limit, options.resume)
        return _measured(obligations, settings, record, as_table=options.format == "text")


def _measured(
    obligations: Sequence[Obligation], settings: Settings, record: Record, *, as_table: bool
) -> int:
    """Print rows as they come, and the summary of what there is, be it interrupted or not."""
    done: list[Comparison] = []
    status = 0
    if as_table:
        _say(HEADER)
    try:
        for one in compare(obligations, settings, record, _progress):
            done.append(one)
            if as_table:
                _say(row(one))
    except KeyboardInterrupt:
        status = _INTERRUPTED
    missing = len(obligations) - len(done)
    if as_table:
        _say("", *([f"interrupted: {missing} not measured"] if missing else []))
        if done:
            _say(summary(done, record.limit))
    else:
        _say(as_json(done, record.limit, missing))
    return status or int(any(one.is_contradicted for one in done))


def _say(*lines: str) -> None:
    _progress("")
    print(*lines, sep="\n", flush=True)  # noqa: T201 - a command speaks


def _progress(text: str) -> None:
    """Rewrite the line of progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)  # noqa: T201 - as above


def _count(text: str) -> int:
    """A positive number, digits grouped or not."""
    count = int(text.replace(",", ""))
    if count < 1:
        raise argparse.ArgumentTypeError("must be positive")
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.001 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be positive and finite")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
