"""The recipe's side: what the models say of a launch, as the plan that an arena is made from.

This is the only module here that reads a model. Kernels import none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from routeproof.kernels_ref.arena import Plan, Planned
from routeproof.models.catalogue import FUNCTIONS
from routeproof.models.ort.gqa.question import regions
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.program import Program
from routeproof.spec.records import flat, leaves, nested

__all__ = ["UNNEEDED", "answers", "plan"]

_FUSED = (
    "the fused append writes the rotated Q to qkv_preprocess and K to the cache "
    "(ExtremeDecoding in group_query_attention_impl.cu): reserved, never used"
)
_Q_ALONE = (
    "PrepareQKV (group_query_attention_impl.cu) writes Q here and new K and V to the cache alone: "
    "reserved, never used"
)
UNNEEDED: Mapping[str, str] = {
    "semaphore": "thread blocks count here which of them ends last; these kernels run in order",
    "rotary_q": _FUSED,
    "rotary_k": _FUSED,
    "qkv_preprocess.key": _Q_ALONE,
    "qkv_preprocess.value": _Q_ALONE,
    "qkv_preprocess.room": (
        "the dequantised cache follows Q without alignment (DequantizeFlashAttentionFallback in "
        "group_query_attention_impl.cu): 256 bytes of room, never used"
    ),
    "compaction": "rows move only where a full cache takes a token and keeps older ones",
}


@cache
def _program(function: str) -> tuple[tuple[str, ...], Program[Value]]:
    model = import_module(FUNCTIONS[function]).function()
    named = {
        f"{output}.{path}": term
        for output, record in model.outputs.items()
        for path, term in leaves(record).items()
    }
    return tuple(named), compile_terms(tuple(named.values()))


def answers(function: str, row: Mapping[str, Any]) -> dict[str, Value]:
    """What a modelled function answers to a row, by dotted path."""
    names, program = _program(function)
    return dict(zip(names, program(flat(row)), strict=True))


def plan(recipe: Mapping[str, Value]) -> Plan:
    """The plan of an `ort.gqa.complete` answer whose status is ok (bytes)."""
    found = [
        Planned(name.rpartition(".")[2], offset, size)
        for name, offset, size in regions(nested(recipe))
    ]
    return Plan(tuple(found), int(recipe["out.total_workspace_bytes"]))
