"""The bound is attained: less is not enough, for every route and phase.

Each claim says that its bound has a byte to spare, and is refuted by an invocation at the corner of
a plain envelope. Of a bound that grew, for whatever reason, it would be proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from routeproof.models.ort.gqa import bounds as level1
from routeproof.models.ort.gqa.problem import QUANTIZATION, BoundsProblem
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.terms import TRUE, IntDomain, Term, boolean, integer, symbol_int

from .bounds import short_name
from .plain import KV, backends, corner, launch, need, plain_bounds
from .sources import FUNCTION_SOURCES

__all__ = ["TIGHT"]

_TOKENS = symbol_int("sequence_length", IntDomain(2, 64))
_CAPACITY = symbol_int("capacity", IntDomain(1, 2**31 - 1))
_EIGHT_BITS: Mapping[str, Term] = {
    "cache_element_size": integer(1),
    "kv_cache_bit_width": integer(8),
    "k_quantization": QUANTIZATION["per_tensor"],
    "v_quantization": QUANTIZATION["per_tensor"],
}
_SOURCE = FUNCTION_SOURCES["bounds"]
_BLOCK = 256
"""Tokens of KV per block of Flash for head size 64."""


@dataclass(frozen=True, slots=True)
class Corner:
    """One route and phase: what of the plain envelope differs, and how many bytes are spare.

    The invocation is the envelope's corner.
    """

    name: str
    what: str
    route: str
    phase: str
    note: str
    changes: Mapping[str, Term] = field(default_factory=dict)
    spare: int = 0

    @property
    def bounds(self) -> BoundsProblem:
        """The envelope: only this route, only this phase."""
        prompt = self.phase != "decode"
        return plain_bounds(
            reachable_backends=backends(self.route),
            prompt_reachable=boolean(prompt),
            decode_reachable=boolean(not prompt),
            **{"sequence_length_bound": _TOKENS} if prompt else {},
            **self.changes,
        )

    @property
    def state(self) -> level1.State:
        """The state of the phase."""
        first, chunk = level1.prompt_states(self.bounds)
        return {"first": first, "chunk": chunk, "decode": level1.decode_state()}[self.phase]


def _kv(blocks: int) -> Mapping[str, Term]:
    """A capacity of so many whole blocks."""
    return {"present_kv_cache_capacity_bound": integer(blocks * _BLOCK)}


def _windowed(corner: Corner) -> Corner:
    """The same with a windowed cache."""
    return Corner(
        f"{corner.name}.windowed",
        f"{corner.what}, windowed cache",
        corner.route,
        corner.phase,
        "The bound counts staging for several tokens, compaction for one, and no more.",
        {**corner.changes, "is_windowed_kv_cache": TRUE},
    )


_GROUP = {"num_heads": integer(2), "present_kv_cache_capacity_bound": _CAPACITY}
_ANY = {"present_kv_cache_capacity_bound": _CAPACITY}
_LINEAR = (
    Corner(
        "mea.prompt",
        "a prompt of 2 heads, 1 KV head",
        "memory_efficient",
        "first",
        "K and V are expanded over the whole capacity.",
        _GROUP,
    ),
    Corner(
        "mea.decode",
        "one token of 2 heads, 1 KV head",
        "memory_efficient",
        "decode",
        "K and V are expanded over the whole capacity.",
        _GROUP,
    ),
    Corner(
        "unfused.prompt",
        "a prompt",
        "unfused",
        "first",
        "The scores cover the whole capacity.",
        _ANY,
    ),
    Corner(
        "unfused.decode",
        "one token",
        "unfused",
        "decode",
        "The scores cover the whole capacity.",
        _ANY,
    ),
    Corner(
        "flash.first",
        "a short first prompt, 8 blocks of KV",
        "flash",
        "first",
        "The heuristic takes a split per block.",
        _kv(8),
    ),
    Corner(
        "flash.chunk",
        "a short chunk behind 8-bit KV, 8 blocks",
        "flash",
        "chunk",
        "A later prompt dequantises the cache, which the first does not.",
        {**_kv(8), **_EIGHT_BITS},
    ),
    Corner(
        "flash.decode",
        "one token, 1 to 8 blocks of KV",
        "flash",
        "decode",
        "The heuristic takes a split per block.",
        {"present_kv_cache_capacity_bound": _BLOCK * symbol_int("kv_blocks", IntDomain(1, 8))},
    ),
)
_WINDOWED = tuple(map(_windowed, _LINEAR))
_CEILING = (
    Corner(
        "flash.decode.by-device",
        "one token, 8 blocks of KV on 4 multiprocessors",
        "flash",
        "decode",
        "A split per multiprocessor, not per block.",
        {**_kv(8), "multi_processor_count": integer(4)},
    ),
    Corner(
        "flash.decode.by-128",
        "one token, 256 blocks of KV on 200 multiprocessors",
        "flash",
        "decode",
        "128 splits, whatever the blocks and multiprocessors.",
        {**_kv(256), "multi_processor_count": integer(200)},
    ),
    Corner(
        "flash-fast-decode.chunk",
        "several tokens, 8 blocks of KV",
        "flash_fast_decode",
        "chunk",
        "Fast decode is sized for the longest chunk.",
        _kv(8),
    ),
    Corner(
        "flash-fast-decode.chunk.local-window",
        "several tokens, a window of 4 blocks in 16 of KV",
        "flash_fast_decode",
        "chunk",
        "The window is what is split, not the capacity.",
        {**_kv(16), "local_window_size": integer(4 * _BLOCK)},
    ),
)
_XQA = (
    Corner(
        "xqa",
        "one token, one head of size 64, any device",
        "xqa",
        "decode",
        "The paddings are counted in full: of 127 + 1,023 bytes at most 768 are used.",
        {
            "present_kv_cache_capacity_bound": KV,
            "multi_processor_count": symbol_int("multi_processor_count", IntDomain(1, 132)),
        },
        spare=382,
    ),
)


def _tight(corner_: Corner) -> Obligation:
    spare = f"{corner_.spare + 1:,} bytes" if corner_.spare else "one byte"

    @obligation(
        f"ort.gqa.bound.tight.{corner_.name}",
        f"{short_name(corner_.route)}, {corner_.what}: {spare} less than the bound is enough",
        source=_SOURCE,
        expect="refuted",
        note=corner_.note,
    )
    def statement() -> Claim:
        envelope = corner_.bounds
        problem = corner(envelope, corner_.state)
        recipe = need(envelope, problem, corner_.route)
        bound = level1.aggregate(envelope)
        needed, most = recipe.layout.total_workspace_bytes, bound.output.total_workspace_bytes
        return Claim(
            needed <= most - 1 - corner_.spare,
            {"the bound is ok": bound.ok, "the recipe is ok": recipe.ok},
            shows={"needed bytes": needed, "bound bytes": most},
            launches=launch(envelope, problem, corner_.route),
        )

    return statement


TIGHT = tuple(map(_tight, (*_LINEAR, *_WINDOWED, *_CEILING, *_XQA)))
