#!/usr/bin/env python3
"""Write the tables that pages take from a command or from the model.

Each stands between two comments that name it. With `--check` nothing is written, and the status
says whether the pages are as they would be.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from routeproof.models.ort.gqa.split_work import MOST_MULTIPROCESSORS, SPLIT_WORK
from routeproof.models.presets import published

DOCS: Final = Path(__file__).parents[1] / "docs"
SCRIPT: Final = Path(sys.executable).with_name("routeproof")
DEVICES: Final = "A100-SXM4-80GB,L4,RTX 4090,H100-SXM5-80GB"
COLUMNS: Final = 16


def devices() -> Iterator[str]:
    """The split work of the published devices, and the largest c of all."""
    names: dict[int, str] = {}
    for entry in published("devices"):
        names.setdefault(entry["multi_processor_count"], entry["name"])
    yield "| SM | such as | W(SM) | c(SM) |"
    yield "|---:|---|---:|---:|"
    for device, name in sorted(names.items()):
        work = SPLIT_WORK[device].split_work
        yield f"| {device} | {name} | {work:,} | {work / device:.2f} |"
    most = max(one.split_work / device for device, one in SPLIT_WORK.items())
    where = [str(device) for device, one in SPLIT_WORK.items() if one.split_work == most * device]
    yield ""
    yield (
        f"The largest c(SM) up to {MOST_MULTIPROCESSORS} multiprocessors is {most:.2f}, "
        f"on {', '.join(where)}."
    )


def every_device() -> Iterator[str]:
    """The quotient c for every count of multiprocessors, row by row."""
    yield f"| SM | {' | '.join(f'+{column}' for column in range(COLUMNS))} |"
    yield f"|---:|{'---:|' * COLUMNS}"
    for start in range(1, MOST_MULTIPROCESSORS + 1, COLUMNS):
        row = (SPLIT_WORK[device].split_work / device for device in range(start, start + COLUMNS))
        yield f"| {start} | {' | '.join(f'{one:.2f}' for one in row)} |"


def savings() -> Iterator[str]:
    """Every published model on four devices, as the command prints it."""
    yield from _printed("--format", "text").rstrip("\n").split("\n")


def _printed(*options: str) -> str:
    command = [str(SCRIPT), "bound", "--matrix", DEVICES, "--kernel-options", "cudnn=off"]
    done = subprocess.run([*command, *options], check=True, capture_output=True, text=True)  # noqa: S603 - ours
    return done.stdout


def looseness() -> Iterator[str]:
    """How many times the exact maximum the two bounds are, over all models, on both ladders."""
    yield "| device | ladder | structural / exact | closed form / exact |"
    yield "|---|---|---:|---:|"
    for ladder in ("newest", "older"):
        rows = json.loads(_printed("--format", "json", "--ladder", ladder))["rows"]
        for device in dict.fromkeys(row["device"] for row in rows):
            cells = []
            for size in ("structural_bytes", "closed_bytes"):
                times = [row[size] / row["exact_bytes"] for row in rows if row["device"] == device]
                cells.append(f"{statistics.median(times):.2f}, at most {max(times):.2f}")
            yield f"| {device} | {ladder} | {' | '.join(cells)} |"


TABLES: Final[Mapping[str, Mapping[str, Callable[[], Iterator[str]]]]] = {
    "closed-form.md": {"devices": devices, "every device": every_device},
    "savings.md": {"looseness": looseness, "savings": savings},
}


def rewritten(text: str, name: str, lines: Iterator[str]) -> str:
    """The page with the lines between the comments of that name."""
    inside = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    found, count = inside.subn("".join(f"{line}\n" for line in lines).replace("\\", "\\\\"), text)
    if count != 1:
        raise SystemExit(f"no place for {name!r}")
    return found


def main() -> int:
    """Write the pages, or say whether they are as they would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if one differs")
    options = parser.parse_args()
    differs = False
    for page, tables in TABLES.items():
        before = text = (DOCS / page).read_text(encoding="utf-8")
        for name, lines in tables.items():
            text = rewritten(text, name, lines())
        differs |= text != before
        if not options.check:
            (DOCS / page).write_text(text, encoding="utf-8")
    return int(options.check and differs)


if __name__ == "__main__":
    sys.exit(main())
