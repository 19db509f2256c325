"""The complete route is its parts: preparation, then the backend at the next multiple of 256.

The parts are proved equal to their closed forms by themselves (`absolute`); here only what joins
them is stated a second time: which part is asked, in which order failures count, where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from routeproof.models.ort.gqa import (
    complete,
    flash,
    memory_efficient,
    preparation,
    unfused,
    xqa,
)
from routeproof.models.ort.gqa.problem import CompleteInput
from routeproof.models.ort.gqa.sizing import Sizing
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import leaves, symbols
from routeproof.spec.terms import Bool, Enum, Int, Term, all_of, ite, minimum

from .recipes import equal
from .restated_common import SIZE_MAX, first_match, padded
from .restated_complete import disagrees
from .sources import FUNCTION_SOURCES

__all__ = ["BACKENDS", "ROUTES"]

_SOURCE = FUNCTION_SOURCES["complete"]
BACKENDS = ("xqa", "flash", "memory_efficient", "unfused")


def _parts(inputs: CompleteInput, backend: str) -> tuple[Mapping[str, Term], Mapping[str, Term]]:
    """The outputs of preparation and of the backend, sized for what the route hands them."""
    problem, route = inputs.problem, inputs.route
    windowed = problem.is_windowed_kv_cache
    staged = windowed & (problem.sequence_length > 1)
    stored = problem.present_kv_cache_capacity
    capacity = ite(staged, stored + problem.sequence_length, stored)

    def clamped(length: Int) -> Int:
        return ite(windowed, minimum(length, capacity), length)

    before = preparation.layout(problem, route.preparation)
    flash_config = replace(
        route.flash, total_sequence_length=clamped(route.flash.total_sequence_length)
    )
    behind: Mapping[str, Callable[[], Sizing[Any]]] = {
        "xqa": lambda: xqa.layout(problem, route.xqa),
        "flash": lambda: flash.layout(problem, flash_config),
        "memory_efficient": lambda: memory_efficient.layout(problem, capacity),
        "unfused": lambda: unfused.layout(problem, clamped(route.unfused.total_sequence_length)),
    }
    return _fields(before), _fields(behind[backend]())


def _fields(sizing: Sizing[Any]) -> Mapping[str, Term]:
    return {"status": sizing.status, **leaves(sizing.layout)}


def _composed(backend: str, kind: str) -> Claim:
    inputs = symbols(CompleteInput)
    model = leaves(complete.function().outputs["out"])
    before, behind = _parts(inputs, backend)
    prepared = cast("Int", before["total_preparation_bytes"])
    need = cast("Int", behind["total_backend_bytes"])
    start, present = padded(prepared), need > 0
    total = ite(present, start + need, prepared)
    status = first_match(
        (disagrees(inputs), "invalid_argument"),
        (cast("Enum", before["status"]) != "ok", cast("Enum", before["status"])),
        (cast("Enum", behind["status"]) != "ok", cast("Enum", behind["status"])),
        (total > SIZE_MAX, "overflow"),
    )
    assuming = {"backend": inputs.route.backend == backend}
    if kind == "status":
        return Claim(
            cast("Enum", model["status"]) == status,
            assuming,
            shows={"model": model["status"], "restated": status},
        )
    goals: dict[str, Bool] = {
        "backend": cast("Enum", model["backend"]) == backend,
        "backend_offset_bytes": equal(model["backend_offset_bytes"], ite(present, start, 0)),
        "backend_bytes": equal(model["backend_bytes"], need),
        "total_workspace_bytes": equal(model["total_workspace_bytes"], total),
    }
    for name, fields in (("preparation", before), (backend, behind)):
        goals |= {
            f"{name}.{field}": equal(model[f"{name}.{field}"], term)
            for field, term in fields.items()
            if field != "status"
        }
    ok = cast("Enum", model["status"]) == "ok"
    parts_ok = all_of(
        cast("Enum", before["status"]) == "ok", cast("Enum", behind["status"]) == "ok"
    )
    return Claim(goals, {**assuming, "status is ok": ok, "both parts are ok": parts_ok})


def _route(backend: str, kind: str) -> Obligation:
    what = {
        "status": "the status is the first failure of its parts",
        "fields": "its fields are those of its parts, the backend behind the preparation",
    }[kind]

    @obligation(
        f"ort.gqa.absolute.complete.{backend.replace('_', '-')}.{kind}",
        f"complete {backend} route: {what}",
        source=_SOURCE,
    )
    def statement() -> Claim:
        return _composed(backend, kind)

    return statement


ROUTES = tuple(_route(backend, kind) for backend in BACKENDS for kind in ("status", "fields"))


@obligation(
    "ort.gqa.absolute.complete.no-recipe",
    "complete: cuDNN is unavailable and an invalid backend an invalid argument, before all else",
    source=_SOURCE,
)
def no_recipe() -> Claim:
    """Whatever the rest of the input."""
    backend = symbols(CompleteInput).route.backend
    status = cast("Enum", leaves(complete.function().outputs["out"])["status"])
    return Claim(
        {
            "cudnn": (backend != "cudnn") | (status == "unavailable"),
            "invalid": (backend != "invalid") | (status == "invalid_argument"),
        }
    )


@obligation(
    "ort.gqa.absolute.complete.defaults",
    "complete: on a failure every other field is its default",
    source=_SOURCE,
)
def defaults() -> Claim:
    """0 and false, one split, backend unfused."""
    model = leaves(complete.function().outputs["out"])
    goals: dict[str, Bool] = {}
    for name, term in model.items():
        if isinstance(term, Bool):
            goals[name] = ~term
        elif isinstance(term, Int):
            goals[name] = term == (1 if name.endswith("selected_split_count") else 0)
    goals["backend"] = cast("Enum", model["backend"]) == "unfused"
    return Claim(goals, {"status is not ok": cast("Enum", model["status"]) != "ok"})
