"""Flash's split heuristic: over how many thread blocks one row's KV length is divided.

Source: `num_splits_heuristic` in `onnxruntime/contrib_ops/cuda/bert/flash_attention/flash_api.cc`
(81fd9888). Widths are part of the meaning: efficiencies are float32, the 0.85 is a double and the
0.8 a float. An all-double port differs on about one triple in 500.
"""

from __future__ import annotations

from routeproof.spec.terms import (
    Bool,
    Float,
    Int,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    float64,
    greatest,
    ite,
    minimum,
    to_float,
    widen,
)

__all__ = [
    "BLOCK_M",
    "MAX_SPLITS",
    "block_n",
    "fills_device",
    "is_eligible",
    "kv_blocks",
    "most_tokens_per_item",
    "selected_split_count",
    "split_ceiling",
    "work_items",
]

MAX_SPLITS = 128
BLOCK_M = 64


def block_n(head_size: Int) -> Int:
    """KV tokens per block, by head size (elements)."""
    return ite(head_size <= 64, 256, ite(head_size <= 128, 128, 64))


def kv_blocks(kv_length: Int, head_size: Int) -> Int:
    """Blocks that cover the KV length (tokens)."""
    return ceil_div(kv_length, block_n(head_size))


def work_items(batch_size: Int, heads: Int, sequence_length: Int) -> Int:
    """Independent blocks of work before any split: one per row, head and 64 query tokens."""
    return batch_size * heads * ceil_div(sequence_length, BLOCK_M)


def most_tokens_per_item(sequence_length: Int) -> Int:
    """Query tokens that one item of work covers at most."""
    return minimum(sequence_length, BLOCK_M)


def split_ceiling(kv_blocks: Int, multiprocessors: Int) -> Int:
    """The most splits the heuristic considers, whatever the work."""
    return minimum(MAX_SPLITS, multiprocessors, kv_blocks)


def is_eligible(splits: Int, kv_blocks: Int) -> Bool:
    """One split less would leave every split with more blocks."""
    return any_of(splits == 1, ceil_div(kv_blocks, splits) != ceil_div(kv_blocks, splits - 1))


def fills_device(work: Int, multiprocessors: Int) -> Bool:
    """The work alone keeps 0.8 of the multiprocessors busy: nothing is split."""
    # 0.8f against a double 0.8 is not decided by the rows; the source writes 0.8f.
    return to_float(work, 32) >= float32(0.8) * to_float(multiprocessors, 32)


def _efficiency(work: Int, splits: Int, multiprocessors: Int) -> Float:
    """The share of multiprocessors busy over all waves, in float32."""
    waves = to_float(work * splits, 32) / to_float(multiprocessors, 32)
    return waves / ceiling(waves)


def selected_split_count(work: Int, kv_blocks: Int, multiprocessors: Int) -> Int:
    """The fewest eligible splits within 85 % of the best efficiency, or 1 for work enough."""
    filled = fills_device(work, multiprocessors)
    limit = ite(filled, 1, split_ceiling(kv_blocks, multiprocessors))
    best = greatest(
        "splits",
        limit,
        where=lambda splits: is_eligible(splits, kv_blocks),
        value=lambda splits: _efficiency(work, splits, multiprocessors),
        start=float32(0.0),
        at_most=MAX_SPLITS,
    )
    enough = float64(0.85) * widen(best)
    return first(
        "splits",
        limit,
        lambda splits: (
            is_eligible(splits, kv_blocks)
            & (widen(_efficiency(work, splits, multiprocessors)) >= enough)
        ),
        otherwise=1,
        at_most=MAX_SPLITS,
    )
