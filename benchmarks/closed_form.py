#!/usr/bin/env python3
"""Write the table of `docs/closed-form.md` from `models/ort/gqa/split_work.py`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from routeproof.models.ort.gqa.split_work import MOST_MULTIPROCESSORS, SPLIT_WORK

PAGE: Final = Path(__file__).parents[1] / "docs" / "closed-form.md"
TABLE: Final = re.compile(r"(?<=<!-- table -->\n).*(?=<!-- /table -->)", re.DOTALL)
# One device of each multiprocessor count, by NVIDIA's names.
DEVICES: Final[Mapping[int, str]] = {
    10: "A2",
    14: "Jetson AGX Orin 32GB",
    16: "Jetson AGX Orin 64GB",
    22: "RTX 2000 Ada",
    24: "GeForce RTX 4060",
    28: "GeForce RTX 3060 12GB",
    30: "GeForce RTX 5060",
    40: "T4",
    46: "GeForce RTX 4070",
    48: "GeForce RTX 5070",
    56: "A30",
    58: "L4",
    68: "GeForce RTX 3080 10GB",
    72: "A10",
    76: "GeForce RTX 4080",
    80: "V100-SXM2-32GB",
    82: "GeForce RTX 3090",
    84: "RTX A6000",
    92: "L20",
    108: "A100-SXM4-80GB",
    114: "H100-PCIE-80GB",
    128: "GeForce RTX 4090",
    132: "H100-SXM5-80GB",
    142: "L40S",
    148: "B200",
    170: "GeForce RTX 5090",
    188: "RTX PRO 6000 Blackwell",
}


def lines() -> Iterator[str]:
    """The table, and the largest c of all."""
    yield "| SM | such as | W(SM) | c(SM) |"
    yield "|---:|---|---:|---:|"
    for device, name in DEVICES.items():
        work = SPLIT_WORK[device].split_work
        yield f"| {device} | {name} | {work:,} | {work / device:.2f} |"
    most = max(one.split_work / device for device, one in SPLIT_WORK.items())
    where = [str(device) for device, one in SPLIT_WORK.items() if one.split_work == most * device]
    yield ""
    yield (
        f"The largest c(SM) up to {MOST_MULTIPROCESSORS} multiprocessors is {most:.2f}, "
        f"on {', '.join(where)}."
    )


def main() -> int:
    """Write the page, or with --check say whether it is as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; end with 1 if it differs"
    )
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    table = "".join(f"{line}\n" for line in lines())
    text = TABLE.sub(table, page)
    if options.check:
        return int(text != page)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
