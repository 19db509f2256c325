"""Two protocols of onnx-genai, each invariant proved by induction: any number of steps, any sizes.

The modules are checked there for one choice of constants. Here the number of models and of requests
is fixed, and capacity, footprints, prompts, outputs and grants are any integers. What cannot fail
in any state whatever is pointed out, and so is what is not inductive without a guard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from routeproof.checkers.induction import inductive
from routeproof.models.genai.co_residency import co_residency
from routeproof.models.genai.kv_admission import Pool, kv_admission
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.protocol import Protocol
from routeproof.spec.terms import Int, IntDomain, symbol_int

__all__ = ["ADMISSION", "CANNOT_FAIL", "RESIDENCY", "UNGUARDED"]

_SIZE = IntDomain(0, None)
_MODELS, _REQUESTS = 4, 4
_RESIDENCY = Source("onnx-genai, specs/tla/CoResidency.tla", "invariants", "ac9c7dd06")
_ADMISSION = Source("onnx-genai, specs/tla/KvAdmission.tla", "invariants", "ac9c7dd06")
_USING: Mapping[tuple[str, str], Sequence[str]] = {
    ("KvAdmission", "NoOverCharge"): ("TypeOK",),
    ("KvAdmission", "SafeOrder"): ("TypeOK", "CapacityRespected"),
    ("KvAdmission", "ProgressPossible"): ("TypeOK", "CapacityRespected", "SafeOrder"),
}
_WORDS = {
    "CapacityRespected": "no more is held than there is",
    "PinnedStaysResident": "a pinned model has not served a negative number of requests",
    "ServedOnlyWhenResident": "nor has any model that served",
    "ProgressPossible": "some work can still be finished",
    "NoWastedResidency": "no model is evicted before it served a request",
    "TypeOK": "no request has more prompt or output than it asked for",
    "ExtentsConserved": "what is held and what is needed make the peak",
    "TerminalReleasesAll": "when all are finished nothing is held",
    "NoOverCharge": "no request holds more than its peak",
    "ResidentCanDrain": "what a resident still needs fits beside what it holds",
    "SafeOrder": "some order of the requests finishes all",
}


def _sizes(name: str, count: int) -> list[Int]:
    return [symbol_int(f"{name}[{number}]", _SIZE) for number in range(1, count + 1)]


@cache
def _residency(*, guarded: bool = True) -> Protocol:
    """Four models, the first of them pinned."""
    return co_residency(
        _MODELS,
        capacity=symbol_int("capacity", _SIZE),
        footprints=_sizes("footprint", _MODELS),
        pinned=1,
        requests=symbol_int("requests", _SIZE),
        retires_before_evict=guarded,
    )


@cache
def _admission(*, guarded: bool = True) -> Protocol:
    """Four requests of any shape."""
    capacity, chunk, width = (symbol_int(name, _SIZE) for name in ("capacity", "chunk", "width"))
    prompts, outputs = _sizes("prompt", _REQUESTS), _sizes("output", _REQUESTS)
    return kv_admission(Pool(capacity, None, chunk, width, prompts, outputs, guarded))


def _slug(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _invariant(protocol: Protocol, prefix: str, source: Source, name: str) -> Obligation:
    @obligation(
        f"genai.protocol.{prefix}.{_slug(name)}",
        f"{protocol.name}: {_WORDS[name]}, after any number of steps",
        source=source,
    )
    def statement() -> Claim:
        return inductive(protocol, (name,), _USING.get((protocol.name, name), ()))

    return statement


RESIDENCY = tuple(
    _invariant(_residency(), "co-residency", _RESIDENCY, name) for name in _residency().invariants
)
ADMISSION = tuple(
    _invariant(_admission(), "kv-admission", _ADMISSION, name) for name in _admission().invariants
)


def _cannot_fail(name: str) -> Obligation:
    @obligation(
        f"genai.protocol.co-residency.{_slug(name)}.cannot-fail",
        f"CoResidency: {_WORDS[name]}, in every state whatever",
        source=_RESIDENCY,
        note="It compares a natural number with 0: as an invariant it says nothing.",
    )
    def statement() -> Claim:
        return Claim(_residency().invariants[name])

    return statement


CANNOT_FAIL = tuple(map(_cannot_fail, ("PinnedStaysResident", "ServedOnlyWhenResident")))


def _unguarded(prefix: str, source: Source, name: str) -> Obligation:
    @obligation(
        f"genai.protocol.{prefix}.{_slug(name)}.unguarded",
        f"without the guard: {_WORDS[name]}, after any number of steps",
        source=source,
        expect="refuted",
        note="The twin: one step breaks it.",
    )
    def statement() -> Claim:
        build = {"co-residency": _residency, "kv-admission": _admission}[prefix]
        protocol = build(guarded=False)
        return inductive(protocol, (name,), _USING.get((protocol.name, name), ()))

    return statement


UNGUARDED = (
    _unguarded("co-residency", _RESIDENCY, "NoWastedResidency"),
    _unguarded("kv-admission", _ADMISSION, "SafeOrder"),
)
