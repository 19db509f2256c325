#!/usr/bin/env python3
"""Measure whether a larger envelope takes longer to decide: one bound obligation per route.

Each claim is decided with its query length and cache capacity bounded by ever larger numbers of
tokens, up to all int32. Processor time, medians; the sizes take turns, for equal load.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from routeproof.checkers.decide import decide_claim
from routeproof.checkers.registry import build, load_obligations
from routeproof.checkers.solver import Options
from routeproof.spec.obligation import Claim, Verdict
from routeproof.spec.terms import Int, free_symbols

ROUTES: Final = (
    "ort.gqa.bound.mea.prompt",
    "ort.gqa.bound.unfused.prompt",
    "ort.gqa.bound.flash.chunk",
    "ort.gqa.bound.flash-fast-decode.chunk",
    "ort.gqa.bound.xqa.128",
)
TOKENS: Final = (1_024, 1 << 14, 1 << 20, 1 << 26, (1 << 31) - 1)
BOUNDED: Final = ("bound.sequence_length_bound", "bound.present_kv_cache_capacity_bound")
MOST_SPREAD: Final = 1.5


@dataclass(frozen=True, slots=True)
class Costs:
    """Median seconds per size of the envelope (tokens)."""

    id: str
    engines: Sequence[str]
    seconds: Mapping[int, float]

    @property
    def spread(self) -> float:
        """The largest median over the smallest."""
        return max(self.seconds.values()) / min(self.seconds.values())


def restricted(claim: Claim, most: int) -> Claim:
    """The claim where query length and capacity are bounded by so many tokens."""
    symbols = {one.name: one for one in free_symbols(*claim.conditions.values())}
    added = {}
    for name in BOUNDED:
        bound = symbols[name]
        if not isinstance(bound, Int):
            raise TypeError(f"{name} is not an integer")
        added[f"{name} is at most {most:,}"] = bound <= most
    return replace(claim, assuming={**claim.assuming, **added})


def measured(name: str, repeat: int) -> Costs:
    """Decide the obligation at every size, so many times."""
    claim = build(load_obligations()[name])
    if not isinstance(claim, Claim):
        raise TypeError(f"{name} is not a claim")
    claims = {most: restricted(claim, most) for most in TOKENS}
    taken: dict[int, list[float]] = {most: [] for most in TOKENS}
    engines = {_decided(name, one)[0] for one in claims.values()}  # not counted: it also imports
    for _ in range(repeat):
        for most, one in claims.items():
            taken[most].append(_decided(name, one)[1])
    medians = {most: statistics.median(seconds) for most, seconds in taken.items()}
    return Costs(name, sorted(engines), medians)


def _decided(name: str, claim: Claim) -> tuple[str, float]:
    """The engine that proved the claim, and processor seconds."""
    started = time.process_time()
    decision = decide_claim(claim, Options())
    seconds = time.process_time() - started
    if decision.verdict is not Verdict.PROVED:
        raise SystemExit(f"{name}: {decision.verdict} within a smaller envelope")
    return decision.engine, seconds


def together(costs: Sequence[Costs]) -> Costs:
    """All obligations as one: their seconds added per size."""
    engines = sorted({engine for one in costs for engine in one.engines})
    total = {most: sum(one.seconds[most] for one in costs) for most in TOKENS}
    return Costs("all together", engines, total)


def line(one: Costs) -> str:
    """The obligation as a row of the table, in milliseconds."""
    columns = "".join(f"{1000 * one.seconds[most]:10.1f}" for most in TOKENS)
    name = one.id.removeprefix("ort.gqa.bound.")
    return f"{name:24}{columns}  {one.spread:11.2f}   {', '.join(one.engines)}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=7, help="repetitions per size [7]")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="[text]")
    options = parser.parse_args()
    costs = [measured(name, options.repeat) for name in ROUTES]
    costs.append(together(costs))
    worst = max(one.spread for one in costs)
    met = worst <= MOST_SPREAD
    if options.format == "json":
        rows = [{**asdict(one), "spread": one.spread} for one in costs]
        document = {"obligations": rows, "worst": worst, "limit": MOST_SPREAD, "met": met}
        print(json.dumps(document, indent=2))  # noqa: T201 - the output
        return 0
    sizes = "".join(f"{most:>10}" for most in ("1,024", "2^14", "2^20", "2^26", "2^31 - 1"))
    print(f"{'decide (ms), tokens <=':24}{sizes}  max / min     engine")  # noqa: T201 - as above
    print(*map(line, costs), sep="\n")  # noqa: T201 - as above
    print(f"\nworst {worst:.2f}, required {MOST_SPREAD}: {'met' if met else 'NOT MET'}")  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
