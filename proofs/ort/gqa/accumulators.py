"""The closed form for Flash's split accumulators: its table, its bound, and what each part is for.

Step by step, each assuming by name what the one before states: splits times work items are within
the split work of every device, which every count of work items and of KV blocks is tried for; hence
so are rows of partial results, by 64 query tokens per item and by the group of heads; hence they
are within the closed form's rows; hence bytes are within its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from routeproof.models.ort.gqa import accumulators, flash
from routeproof.models.ort.gqa.accumulators import AccumulatorsInput
from routeproof.models.ort.gqa.problem import INT32_MAX, STATUS, FlashConfig, Problem
from routeproof.models.ort.gqa.split import (
    MAX_SPLITS,
    kv_blocks,
    selected_split_count,
    work_items,
)
from routeproof.models.ort.gqa.split_work import MOST_MULTIPROCESSORS, SPLIT_WORK, split_work_of
from routeproof.models.ort.gqa.validation import is_positive_int32
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import symbols
from routeproof.spec.terms import (
    Bool,
    Int,
    IntDomain,
    align_up,
    all_of,
    boolean,
    ceil_div,
    implies,
    integer,
    ite,
    minimum,
    symbol_int,
)

from .envelopes import INT64
from .sources import FUNCTION_SOURCES

__all__ = ["BYTES", "BY_WORK", "ONE_LESS", "SPLIT_WORKS", "WITHIN"]

_HEURISTIC, _RECIPE = FUNCTION_SOURCES["flash_runtime"], FUNCTION_SOURCES["flash"]
_WORK = symbol_int("work_items", IntDomain(1, 2**63 - 1))
_BLOCKS = symbol_int("kv_blocks", IntDomain(1, 2**31 - 1))
_DEVICES_EACH = 8


# The split work of every device


def _devices(first: int, last: int) -> Int:
    """Any device of so many multiprocessors."""
    return symbol_int("multi_processor_count", IntDomain(first, last))


def _split_work(device: Int, last: int, most: Int) -> Claim:
    """Splits times work items are at most so many, wherever there is more than one split."""
    splits = selected_split_count(_WORK, _BLOCKS, device)
    return Claim(
        implies(splits > 1, splits * _WORK <= most),
        shows={"splits": splits, "splits of all work items": splits * _WORK, "split work": most},
        # Work for 0.8 of the device is enough; beyond (c - 1)^2 blocks c splits are eligible.
        settles={
            "work_items": -(-4 * last // 5),
            "kv_blocks": (min(MAX_SPLITS, last) - 1) ** 2 + 1,
        },
    )


def _tabulated(first: int, last: int) -> Obligation:
    @obligation(
        f"ort.gqa.accumulators.split-work.{first}-{last}",
        f"{first} to {last} multiprocessors: splits of all work items are within the split work",
        source=_HEURISTIC,
        note="Every count of work items and of KV blocks is tried, up to where each settles.",
    )
    def statement() -> Claim:
        device = _devices(first, last)
        return _split_work(device, last, split_work_of(device))

    return statement


def _one_less(device: int) -> Obligation:
    @obligation(
        f"ort.gqa.accumulators.split-work.{device}.one-less",
        f"{device} multiprocessors: one less than the split work is never exceeded",
        source=_HEURISTIC,
        expect="refuted",
        note="The twin: the split work is reached.",
    )
    def statement() -> Claim:
        most = integer(SPLIT_WORK[device].split_work - 1)
        return _split_work(integer(device), device, most)

    return statement


SPLIT_WORKS = tuple(
    _tabulated(first, first + _DEVICES_EACH - 1)
    for first in range(1, MOST_MULTIPROCESSORS + 1, _DEVICES_EACH)
)
ONE_LESS = tuple(map(_one_less, (59, 142)))


@obligation(
    "ort.gqa.accumulators.split-work.reached",
    "the split work of every device is reached, where the table says",
    source=_HEURISTIC,
    note="Flash's rows and the closed form's are the same there: no smaller table is true.",
)
def reached() -> Claim:
    """One input per device, of various shapes."""
    return Claim(
        {
            f"{row['multi_processor_count']} multiprocessors": _is_reached(row)
            for row in accumulators.attained()
        }
    )


def _is_reached(row: Mapping[str, int | bool]) -> Bool:
    fast = boolean(row["fast_decode"])
    sizes = {name: integer(value) for name, value in row.items() if name != "fast_decode"}
    bounds = AccumulatorsInput(**sizes, fast_decode=fast)
    batch, tokens = bounds.batch_size_bound, bounds.sequence_length_bound
    heads = ite(fast, bounds.kv_num_heads, bounds.num_heads)
    length = flash.split_kv_length(bounds.kv_length_bound, bounds.local_window_size, fast)
    splits = selected_split_count(
        work_items(batch, heads, tokens),
        kv_blocks(length, bounds.head_size_bound),
        bounds.multi_processor_count,
    )
    rows = ite(splits > 1, splits * batch * tokens * bounds.num_heads, 0)
    return all_of(accumulators.layout(bounds).result.rows == rows)


@obligation(
    "ort.gqa.accumulators.split-work.ten-waves",
    "no device's split work exceeds ten times its multiprocessors",
    source=_HEURISTIC,
    note="Hence at most 640 rows per multiprocessor and query head that shares a KV head.",
)
def ten_waves() -> Claim:
    """The simplest formula that holds on every device of the table."""
    device = _devices(1, MOST_MULTIPROCESSORS)
    return Claim(split_work_of(device) <= 10 * device, shows={"split work": split_work_of(device)})


@obligation(
    "ort.gqa.accumulators.split-work.fewer-than-ten-waves",
    "every device's split work is below ten times its multiprocessors",
    source=_HEURISTIC,
    expect="refuted",
    note="The twin: 59 multiprocessors are split into ten waves, and so are multiples of them.",
)
def fewer_than_ten_waves() -> Claim:
    """590 splits of all work items on 59."""
    device = _devices(1, MOST_MULTIPROCESSORS)
    return Claim(split_work_of(device) < 10 * device, shows={"split work": split_work_of(device)})


# Rows


def _covered(longest: Int, sequence_length: Int, tile: int = 64) -> Int:
    """Query tokens that the items of a query have room for, each at most a tile's."""
    return minimum(longest, tile) * ceil_div(sequence_length, 64)


def _tokens(tile: int) -> Claim:
    tokens, longest = (
        symbol_int(name, IntDomain(1, INT32_MAX)) for name in ("sequence_length", "longest")
    )
    return Claim(tokens <= _covered(longest, tokens, tile), {"no longer": tokens <= longest})


@obligation(
    "ort.gqa.accumulators.tokens",
    "work items of 64 query tokens, or of the longest query if that is shorter, cover a query",
    source=_HEURISTIC,
)
def tokens() -> Claim:
    """One item per 64 tokens begun."""
    return _tokens(64)


@obligation(
    "ort.gqa.accumulators.tokens.half",
    "work items of 32 query tokens cover a query",
    source=_HEURISTIC,
    expect="refuted",
    note="The twin: an item has up to 64.",
)
def tokens_half() -> Claim:
    """A query of 33 tokens is one item."""
    return _tokens(32)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A way to run Flash: whether work is counted by KV heads, and how long a query may be."""

    words: str
    fast: bool
    one_token: bool = False

    def tokens(self, free: Int) -> Int:
        """Query tokens."""
        return integer(1) if self.one_token else free

    def group(self, heads: Int, kv_heads: Int) -> Int:
        """Query heads for each head that work is counted by."""
        return heads // kv_heads if self.fast else integer(1)


_KINDS = {
    "regular": _Kind("regular Flash", fast=False),
    "fast-decode": _Kind("fast decode of several tokens (older ladder)", fast=True),
    "fast-decode.one-token": _Kind("fast decode of one token", fast=True, one_token=True),
}


def _by_work(kind: _Kind, *, grouped: bool = True, tile: int = 64) -> Claim:
    """Rows are within the split work, by tokens per item and by heads per head of work."""
    free, most = symbols(Problem), symbols(AccumulatorsInput, "bound")
    batch, heads, kv_heads = free.batch_size, free.num_heads, free.kv_num_heads
    longest, tokens = most.sequence_length_bound, kind.tokens(free.sequence_length)
    splits = symbol_int("splits", IntDomain(2, MAX_SPLITS))
    work = work_items(batch, kv_heads if kind.fast else heads, tokens)
    rows = splits * batch * tokens * heads
    group = kind.group(heads, kv_heads) if grouped else integer(1)
    bound = group * minimum(longest, tile) * most.split_work
    return Claim(
        rows <= bound,
        {
            "positive int32": is_positive_int32(batch, tokens, heads, kv_heads, longest),
            "whole groups": heads % kv_heads == 0,
            "query length within its bound": tokens <= longest,
            "work items cover it (ort.gqa.accumulators.tokens)": tokens
            <= _covered(longest, tokens),
            "splits of all work items are within the split work (ort.gqa.accumulators.split-work.*)"
            "": splits * work <= most.split_work,
        },
        shows={"work items": work, "rows": rows, "most": bound},
    )


def _rows_by_work(name: str, kind: _Kind) -> Obligation:
    @obligation(
        f"ort.gqa.accumulators.by-work.{name}",
        f"{kind.words}: rows are within split work, times tokens per item, times group",
        source=_RECIPE,
        note="Whatever the split count is, from 2.",
    )
    def statement() -> Claim:
        return _by_work(kind)

    return statement


BY_WORK = tuple(_rows_by_work(*item) for item in _KINDS.items())


@obligation(
    "ort.gqa.accumulators.by-work.fast-decode.without-group",
    "fast decode: rows are within split work, times tokens per item",
    source=_RECIPE,
    expect="refuted",
    note="The twin: work is counted by KV heads, and every query head has rows.",
)
def without_group() -> Claim:
    """Two query heads that share a KV head."""
    return _by_work(_KINDS["fast-decode"], grouped=False)


@obligation(
    "ort.gqa.accumulators.by-work.regular.half",
    "regular Flash: rows are within split work, times 32 tokens per item",
    source=_RECIPE,
    expect="refuted",
    note="The twin: a query of 64 tokens is one item.",
)
def half_tokens() -> Claim:
    """33 tokens are, too."""
    return _by_work(_KINDS["regular"], tile=32)


_SEVERAL = "several splits have rows within the split work"


def _rows(kind: _Kind, *, window: bool | None = None, by_work: bool = True) -> Claim:
    """The recipe's rows are within the closed form's, by split work or by the most splits."""
    bounds = replace(symbols(AccumulatorsInput, "most"), fast_decode=boolean(kind.fast))
    if window is False:
        bounds = replace(bounds, local_window_size=integer(-1))
    free, length = symbols(Problem), symbol_int("kv_length", INT64)
    problem = replace(
        free,
        num_heads=bounds.num_heads,
        kv_num_heads=bounds.kv_num_heads,
        sequence_length=kind.tokens(free.sequence_length),
    )
    device, fast = bounds.multi_processor_count, boolean(kind.fast)
    need = flash.layout(problem, FlashConfig(length, bounds.local_window_size, device, fast))
    closed, splits = accumulators.layout(bounds), need.layout.selected_split_count
    rows = splits * problem.batch_size * problem.sequence_length * problem.num_heads
    group = kind.group(bounds.num_heads, bounds.kv_num_heads)
    within_work = rows <= group * minimum(bounds.sequence_length_bound, 64) * bounds.split_work
    most = {
        "batch": (problem.batch_size, bounds.batch_size_bound),
        "query length": (problem.sequence_length, bounds.sequence_length_bound),
        "head size": (problem.head_size, bounds.head_size_bound),
        "KV length": (length, bounds.kv_length_bound),
    }
    return Claim(
        implies(splits > 1, rows <= closed.layout.rows),
        {
            "the closed form is ok": closed.ok,
            "the recipe is ok": need.ok,
            **{f"{name} within its bound": all_of(n >= 1, n <= m) for name, (n, m) in most.items()},
            **({"a local window": bounds.local_window_size >= 1} if window else {}),
            **(
                {f"{_SEVERAL} (ort.gqa.accumulators.by-work.*)": implies(splits > 1, within_work)}
                if by_work
                else {}
            ),
        },
        shows={"splits": splits, "rows": rows, "most": closed.layout.rows},
    )


def _within(name: str, *, window: bool | None = None) -> Obligation:
    kind = _KINDS[name]
    where = "" if window is None else f", {'a' if window else 'no'} local window"

    @obligation(
        f"ort.gqa.accumulators.rows.{name}{'.local-window' if window else ''}",
        f"{kind.words}{where}: rows are within the closed form's",
        source=_RECIPE,
    )
    def statement() -> Claim:
        return _rows(kind, window=window)

    return statement


WITHIN = (
    _within("regular"),
    *(
        _within(name, window=window)
        for name in ("fast-decode", "fast-decode.one-token")
        for window in (False, True)
    ),
)


@obligation(
    "ort.gqa.accumulators.rows.regular.any-split-work",
    "regular Flash, whatever the split work is said to be: rows are within the closed form's",
    source=_RECIPE,
    expect="refuted",
    note="The twin: the split work is an input, which has to be the device's.",
)
def any_split_work() -> Claim:
    """With none at all there are no rows."""
    return _rows(_KINDS["regular"], by_work=False)


# Bytes


_REGIONS = {
    "softmax_lse_accumulator": "partial log-sum-exp",
    "output_accumulator": "partial output",
}


@dataclass(frozen=True, slots=True)
class _Sized:
    """The regions for any split count, and the closed form's for any number of rows."""

    problem: Problem
    splits: Int
    rows: Int
    head_size: Int

    @property
    def need(self) -> Recipe:
        """What Flash carves."""
        return flash.buffers(Checks(STATUS), self.problem, self.splits)

    @property
    def closed(self) -> Recipe:
        """What the closed form carves."""
        return accumulators.buffers(Checks(STATUS), self.rows, self.head_size)

    def is_within(self, region: str) -> Bool:
        """The region is at most the closed form's."""
        return self.need.regions[region].size <= self.closed.regions[region].size

    @property
    def valid(self) -> Bool:
        """Extents as the recipe accepts them, and a head size within its bound."""
        one = self.problem
        extents = one.batch_size, one.sequence_length, one.num_heads, one.head_size
        return all_of(*(extent >= 1 for extent in extents), one.head_size <= self.head_size)


def _sized() -> _Sized:
    return _Sized(
        symbols(Problem),
        symbol_int("splits", IntDomain(1, MAX_SPLITS)),
        symbol_int("rows", IntDomain(0)),
        symbol_int("bound.head_size_bound", IntDomain(1, 256)),
    )


def _region(region: str) -> Obligation:
    @obligation(
        f"ort.gqa.accumulators.bytes.{region.replace('_', '-')}",
        f"no more rows, no wider heads: no more bytes of {_REGIONS[region]}",
        source=_RECIPE,
        note="Whatever the split count is, and however many rows.",
    )
    def statement() -> Claim:
        sized = _sized()
        problem = sized.problem
        rows = sized.splits * problem.batch_size * problem.sequence_length * problem.num_heads
        several = implies(sized.splits > 1, rows <= sized.rows)
        return Claim(
            sized.is_within(region),
            {
                "a valid problem": sized.valid,
                "several splits have at most the rows (ort.gqa.accumulators.rows.*)": several,
            },
        )

    return statement


BYTES = tuple(map(_region, _REGIONS))


def _total(*, padded: bool) -> Claim:
    sized = _sized()
    lse, need, closed = sized.need.regions["softmax_lse"].size, sized.need, sized.closed
    return Claim(
        need.total <= (align_up(lse, 256) if padded else lse) + closed.total,
        {
            "a valid problem": sized.valid,
            **{
                f"{words} is within (ort.gqa.accumulators.bytes.*)": sized.is_within(region)
                for region, words in _REGIONS.items()
            },
        },
        shows={"needed bytes": need.total, "log-sum-exp bytes": lse, "closed form": closed.total},
    )


@obligation(
    "ort.gqa.accumulators.bytes.total",
    "Flash needs at most its log-sum-exp, padded, and the closed form's total",
    source=_RECIPE,
)
def total() -> Claim:
    """The padding between the closed form's regions is in its total."""
    return _total(padded=True)


@obligation(
    "ort.gqa.accumulators.bytes.total.unpadded",
    "Flash needs at most its log-sum-exp and the closed form's total",
    source=_RECIPE,
    expect="refuted",
    note="The twin: accumulators start at multiples of 256 bytes.",
)
def unpadded() -> Claim:
    """The padding before the closed form's regions is not in its total."""
    return _total(padded=False)
