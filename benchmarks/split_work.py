#!/usr/bin/env python3
"""Write `models/ort/gqa/split_work.py`: the split work of every device, and where it is reached.

Every count of work items and of KV blocks is tried, up to where the heuristic settles, by the
model's own terms; of KV blocks that the heuristic does not tell apart, the first. What the table
says is proved apart from this: `routeproof check 'ort.gqa.accumulators.*'`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import numpy as np

from routeproof.checkers.grouping import grouped
from routeproof.checkers.readings.vectorised import Grid
from routeproof.models.ort.gqa.split import MAX_SPLITS, selected_split_count
from routeproof.models.ort.gqa.split_work import MOST_MULTIPROCESSORS, Peak
from routeproof.spec.terms import IntDomain, integer, ite, symbol_int

PAGE: Final = Path(__file__).parents[1] / "models" / "ort" / "gqa" / "split_work.py"
FIRST: Final = "SPLIT_WORK: Mapping[int, Peak] = {\n"
WORK: Final = symbol_int("work_items", IntDomain(1, MOST_MULTIPROCESSORS))
BLOCKS: Final = symbol_int("kv_blocks", IntDomain(1, (MAX_SPLITS - 1) ** 2 + 1))


def peak(multiprocessors: int) -> Peak:
    """The split work of a device, and where it is first reached."""
    splits = selected_split_count(WORK, BLOCKS, integer(multiprocessors))
    split_work = ite(splits > 1, splits * WORK, 0)
    settled = (min(MAX_SPLITS, multiprocessors) - 1) ** 2 + 1
    ranges = {WORK: range(1, multiprocessors + 1), BLOCKS: range(1, settled + 1)}
    work = np.array(ranges[WORK])
    blocks = grouped((split_work,), BLOCKS, ranges).values
    axes = {WORK: work, BLOCKS: blocks}
    (found,) = Grid((split_work,), axes)(axes)
    at = int(found.argmax())
    return Peak(int(found[at]), int(work[at // len(blocks)]), int(blocks[at % len(blocks)]))


def written(devices: range) -> str:
    """The module as it is, with the entries of some devices anew."""
    lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
    before = lines.index(FIRST)
    for device in devices:
        entry = ", ".join(map(str, peak(device)))
        lines[before + device] = f"    {device}: Peak({entry}),\n"
    return "".join(lines)


def main() -> int:
    """Write the module, or with --check say whether it is as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, end with 1 if it differs"
    )
    options = parser.parse_args()
    text = written(range(1, MOST_MULTIPROCESSORS + 1))
    if options.check:
        return int(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
