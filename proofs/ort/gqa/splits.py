"""The split heuristic: its ceiling on every device, and examples that tell its widths apart."""

from __future__ import annotations

from routeproof.models.ort.gqa.split import kv_blocks, selected_split_count
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import Int, IntDomain, integer, minimum, symbol_int

from .sources import FUNCTION_SOURCES

_SOURCE = FUNCTION_SOURCES["flash_runtime"]
_WORK = symbol_int("work_items", IntDomain(1, 2**63 - 1))
_BLOCKS = symbol_int("kv_blocks", IntDomain(1, 2**31 - 1))
_DEVICE = symbol_int("multi_processor_count", IntDomain(1, 2**63 - 1))


@obligation(
    "ort.gqa.split.ceiling",
    "the split count never exceeds 128, the multiprocessors or the KV blocks, and is at least 1",
    source=_SOURCE,
)
def ceiling() -> Claim:
    """Whatever the work: batch, heads and query length do not appear."""
    splits = selected_split_count(_WORK, _BLOCKS, _DEVICE)
    return Claim(
        {
            "at least one": splits >= 1,
            "at most the ceiling": splits <= minimum(128, _DEVICE, _BLOCKS),
        },
        shows={"splits": splits, "ceiling": minimum(128, _DEVICE, _BLOCKS)},
    )


@obligation(
    "ort.gqa.split.ceiling.half",
    "the split count never exceeds 64 either",
    source=_SOURCE,
    expect="refuted",
    note="The twin of the ceiling: half of its constant.",
)
def lower_ceiling() -> Claim:
    """128 is reached."""
    splits = selected_split_count(_WORK, _BLOCKS, _DEVICE)
    return Claim(splits <= minimum(64, _DEVICE, _BLOCKS), shows={"splits": splits})


@obligation(
    "ort.gqa.split.examples",
    "the published examples, in which another arithmetic gives another count",
    source=_SOURCE,
)
def examples() -> Claim:
    """All-double arithmetic, or a best efficiency over all candidates, gives 17 for the 20s."""

    def splits(work: int, blocks: Int, device: int) -> Int:
        return selected_split_count(integer(work), blocks, integer(device))

    narrow = integer(64)
    return Claim(
        {
            "68 SMs, work 3, 97 blocks": splits(3, integer(97), 68) == 20,
            "24 SMs, 24,577 tokens": splits(1, kv_blocks(integer(24_577), narrow), 24) == 20,
            "13,824 tokens": splits(2, kv_blocks(integer(13_824), narrow), 108) == 54,
            "13,825 tokens": splits(2, kv_blocks(integer(13_825), narrow), 108) == 28,
        }
    )


@obligation(
    "ort.gqa.split.three-quarters",
    "work for three quarters of the multiprocessors does not fill them: 4 blocks are split",
    source=_SOURCE,
)
def three_quarters() -> Claim:
    """81 items on 108: 4 splits keep all busy over 3 waves, one split a quarter idle."""
    splits = selected_split_count(integer(81), integer(4), integer(108))
    return Claim(splits == 4, shows={"splits": splits})
