"""The aggregate bounds every route: whoever runs within the envelope needs at most its bytes.

One obligation per route, phase and cache mode: if the bound's status is ok, then so is the
recipe's, and its bytes do not exceed the bound. Rotary embedding, packed QKV, QK-norm,
quantisation, bit width and the other phase's flag stay free in each.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.bounds import aggregate
from routeproof.models.ort.gqa.preparation import cache_row_bytes
from routeproof.models.ort.gqa.problem import BoundsInput
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import align_up

from .envelopes import Admitted, admitted
from .sources import FUNCTION_SOURCES

__all__ = ["LINEAR", "SEPARATE", "WINDOWED", "short_name"]

_SOURCE = FUNCTION_SOURCES["bounds"]
_PHASES = {
    "memory_efficient": ("prompt", "decode"),
    "unfused": ("prompt", "decode"),
    "flash": ("first", "chunk", "decode"),
}
_WORDS = {
    "prompt": "a prompt",
    "first": "a first prompt",
    "single": "a first prompt of one token",
    "chunk": "several tokens with past",
    "decode": "one token with past",
}


@obligation(
    "ort.gqa.bound.status",
    "the bound's status is ok exactly where none of its checks fails",
    source=_SOURCE,
)
def status() -> Claim:
    """What the other obligations assume of the bound is its status."""
    bound = aggregate(symbols(BoundsInput).bounds)
    return Claim((bound.output.status == "ok") == bound.ok)


def _claim(state: Admitted) -> Claim:
    """If the bound is ok, then so is the recipe, and its bytes are within the bound."""
    bound, used = state.bound.output.total_workspace_bytes, state.need.layout
    return Claim(
        {
            "the recipe is ok": state.need.ok,
            "bytes within the bound": used.total_workspace_bytes <= bound,
        },
        state.assuming,
        shows={
            "preparation bytes": used.preparation.total_preparation_bytes,
            "backend bytes": used.backend_bytes,
            "needed bytes": used.total_workspace_bytes,
            "bound bytes": bound,
            "recipe status": state.need.status,
        },
    )


def short_name(route: str) -> str:
    """A route as ids spell it."""
    return route.replace("_", "-").replace("memory-efficient", "mea")


def _linear(route: str, phase: str) -> Obligation:
    @obligation(
        f"ort.gqa.bound.{short_name(route)}.{phase}",
        f"{short_name(route)}, {_WORDS[phase]}: within the bound",
        source=_SOURCE,
    )
    def statement() -> Claim:
        return _claim(admitted(route, phase))

    return statement


def _fast_decode(phase: str, *, window: bool) -> Obligation:
    @obligation(
        f"ort.gqa.bound.flash-fast-decode.{phase}{'.local-window' if window else ''}",
        f"fast decode, {_WORDS[phase]}, {'a' if window else 'no'} local window: within the bound",
        source=_SOURCE,
    )
    def statement() -> Claim:
        return _claim(admitted("flash_fast_decode", phase, local_window=window))

    return statement


def _windowed(route: str, phase: str, *, packed: bool, one_token: bool = False) -> Obligation:
    mode = "packed" if packed else "unpacked"

    @obligation(
        f"ort.gqa.bound.{short_name(route)}.{phase}.windowed.{mode}"
        f"{'.one-token-bound' if one_token else ''}",
        f"{short_name(route)}, windowed {mode} cache, {_WORDS[phase]}: within the bound"
        f"{' for a query of one token' if one_token else ''}",
        source=_SOURCE,
    )
    def statement() -> Claim:
        return _claim(
            admitted(route, phase, windowed=True, packed=packed, one_token_bound=one_token)
        )

    return statement


LINEAR = tuple(_linear(route, phase) for route, phases in _PHASES.items() for phase in phases)
FAST_DECODE = tuple(
    _fast_decode(phase, window=window) for phase in ("chunk", "decode") for window in (False, True)
)
WINDOWED = tuple(
    _windowed(route, phase, packed=packed)
    for route, phases in _PHASES.items()
    for phase in (*phases, "single")
    for packed in (False, True)
)
# Of a prompt of one token the bound stages nothing, unlike of a longer one.
ONE_TOKEN = tuple(
    _windowed(route, "single", packed=packed, one_token=True)
    for route in _PHASES
    for packed in (False, True)
)


def _xqa(head_size: int, *, windowed: bool) -> Obligation:
    mode = ".windowed" if windowed else ""

    @obligation(
        f"ort.gqa.bound.xqa.{head_size}{mode}",
        f"xqa, head size {head_size}{', windowed cache' if windowed else ''}: within the bound",
        source=_SOURCE,
    )
    def statement() -> Claim:
        return _claim(admitted("xqa", "decode", windowed=windowed, head_size=head_size))

    return statement


XQA = tuple(_xqa(size, windowed=windowed) for windowed in (False, True) for size in (64, 128, 256))


def _separate(route: str, phase: str) -> Obligation:
    @obligation(
        f"ort.gqa.bound.{short_name(route)}.{phase}.separate-past",
        f"{short_name(route)}, preserved past, {_WORDS[phase]}: "
        "within the bound plus the past, padded",
        source=_SOURCE,
        note="The adapter adds the past tensor on top of the routes' maximum.",
    )
    def statement() -> Claim:
        kept, without = admitted(route, phase, separate=True), admitted(route, phase)
        problem = kept.problem
        past = (
            problem.batch_size
            * problem.kv_num_heads
            * problem.past_kv_cache_capacity
            * cache_row_bytes(problem)
        )
        need, rest = (one.need.layout.total_workspace_bytes for one in (kept, without))
        bound = kept.bound.output.total_workspace_bytes
        return Claim(
            {
                "the past adds itself, padded": need == align_up(past, 256) + rest,
                "the rest is within the bound": rest <= bound,
            },
            {**kept.assuming, "there is a past tensor": past > 0},
            shows={"past bytes": past, "needed bytes": need, "bound bytes": bound},
        )

    return statement


SEPARATE = tuple(_separate(route, phase) for route, phases in _PHASES.items() for phase in phases)
