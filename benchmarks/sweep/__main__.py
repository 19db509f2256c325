"""Sweep a million complete Flash routes per mix in C and in NumPy, and compare the two."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from .compare import Comparison, measure
from .native import CompilerMissingError


def main() -> int:
    """Measure and print; status 1 if answers differ, 2 without a C compiler."""
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__)
    parser.add_argument("--states", type=_count, default=1_000_000, help="per mix [1,000,000]")
    parser.add_argument("--repetitions", type=_count, default=5, help="of each side [5]")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="[text]")
    options = parser.parse_args()
    try:
        comparisons = measure(options.repetitions, options.states)
    except CompilerMissingError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command speaks
        return 2
    as_json = options.format == "json"
    print(_json(comparisons) if as_json else _table(comparisons))  # noqa: T201 - as above
    return int(not all(one.equal and one.equal_to_model for one in comparisons))


def _count(text: str) -> int:
    """A positive number, digits grouped or not."""
    count = int(text.replace(",", ""))
    if count < 1:
        raise argparse.ArgumentTypeError("must be positive")
    return count


def _json(comparisons: Sequence[Comparison]) -> str:
    return json.dumps([asdict(one) for one in comparisons], indent=2)


def _table(comparisons: Sequence[Comparison]) -> str:
    lines = ["mix       C (s)    NumPy (s)  C / NumPy  search  C = NumPy  = model (sample)"]
    lines += [
        f"{one.mix:8}  {one.c_seconds:<8.3f} {one.numpy_seconds:<9.3f}  {one.ratio:<9.2f}  "
        f"{one.search_share:<6.1%}  {_says(one.equal):9}  "
        f"{_says(one.equal_to_model)} ({one.sampled:,})"
        for one in comparisons
    ]
    return "\n".join(lines)


def _says(yes: bool) -> str:
    return "yes" if yes else "NO"


if __name__ == "__main__":
    sys.exit(main())
