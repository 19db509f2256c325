"""The aggregate is what its sources say, stated a second time: state by state, then the loop.

A bound that is too large keeps every promise of `bounds`; it does not stay equal to this one. Each
state is compared with its preparation, which `absolute` compares, and Flash's buffers, compared
below, taken from the model; the loop over the states with their results left open, so that it holds
whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from routeproof.models.ort.gqa import flash, preparation
from routeproof.models.ort.gqa.bounds import RouteBound, Step, accumulated, steps
from routeproof.models.ort.gqa.preparation import PreparationLayout
from routeproof.models.ort.gqa.problem import AGGREGATE_BACKEND, STATUS, BoundsInput, Problem
from routeproof.models.ort.gqa.sizing import Sizing
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.recipe import Checks
from routeproof.spec.records import leaves, symbols
from routeproof.spec.terms import (
    FALSE,
    Bool,
    Int,
    IntDomain,
    all_of,
    symbol_enum,
    symbol_int,
)

from .bounds import short_name
from .recipes import equal
from .restated_bounds import Result, State, aggregated, is_accepted, states
from .restated_common import first_match, too_large
from .restated_complete import stacked
from .restated_flash import MAX_SPLITS, flash_total
from .sources import FUNCTION_SOURCES

__all__ = ["BYTES", "LOOP", "STATUSES", "opened"]

_SOURCE = FUNCTION_SOURCES["bounds"]
_BOUNDS = symbols(BoundsInput).bounds
_GENERAL = ("decode", "first", "chunk")
_PLACES: Mapping[str, tuple[str, ...]] = {
    "memory_efficient": _GENERAL,
    "unfused": _GENERAL,
    "flash": _GENERAL,
    "flash_fast_decode": ("chunk",),
    "xqa": ("64", "128", "256"),
}


def _buffers(problem: Problem, splits: Int) -> Int:
    """Bytes of Flash's buffers in the model."""
    return flash.buffers(Checks(STATUS), problem, splits).total


def _sides(backend: str, place: int) -> tuple[Step, State, Sizing[PreparationLayout]]:
    """A state of a backend by its place: the model's step, the restated state, its preparation."""
    found = [step for step in steps(_BOUNDS) if step.backend == backend]
    lacking = Step(backend, FALSE, Sizing(Checks(STATUS), RouteBound()))  # never reached
    state = states(_BOUNDS, _buffers)[backend][place]
    prepared = preparation.layout(state.preparation.problem, state.preparation.route)
    return found[place] if place < len(found) else lacking, state, prepared


def _total(prepared: Sizing[PreparationLayout], state: State) -> Int:
    """Bytes of the preparation and of the backend behind it."""
    return stacked(prepared.layout.total_preparation_bytes, state.backend_bytes)


def _status(backend: str, place: int) -> Obligation:
    @obligation(
        f"ort.gqa.bound.restated.{short_name(backend)}.{_PLACES[backend][place]}.status",
        f"{short_name(backend)}, {_PLACES[backend][place]}: sized when the sources say so, "
        "failing with the first failure of its parts",
        source=_SOURCE,
    )
    def statement() -> Claim:
        step, state, prepared = _sides(backend, place)
        status = first_match(
            (prepared.status != "ok", prepared.status),
            (state.refused, "unavailable"),
            (too_large(_total(prepared, state)), "overflow"),
        )
        # What fails upfront is decided without any state; the others hold there too.
        fallback = backend in ("memory_efficient", "unfused")
        return Claim(
            {"sized": step.reached == state.wanted, "status": step.bound.status == status},
            {"the upfront checks hold": is_accepted(_BOUNDS)} if fallback else {},
            shows={"status": step.bound.status, "restated status": status},
        )

    return statement


def _bytes(backend: str, place: int) -> Obligation:
    @obligation(
        f"ort.gqa.bound.restated.{short_name(backend)}.{_PLACES[backend][place]}.bytes",
        f"{short_name(backend)}, {_PLACES[backend][place]}: its bytes are the restated ones",
        source=_SOURCE,
    )
    def statement() -> Claim:
        step, state, prepared = _sides(backend, place)
        needed, total = step.bound.layout.total_workspace_bytes, _total(prepared, state)
        return Claim(
            needed == total,
            {"the state is ok": step.bound.ok},
            shows={"bytes": needed, "restated bytes": total},
        )

    return statement


_ALL = tuple((backend, place) for backend, names in _PLACES.items() for place in range(len(names)))
STATUSES = tuple(_status(*one) for one in _ALL)
BYTES = tuple(_bytes(*one) for one in _ALL)


@obligation(
    "ort.gqa.bound.restated.flash.buffers",
    "Flash's buffers are the restated ones for any number of splits, not only the selected one",
    source=FUNCTION_SOURCES["flash"],
)
def flash_buffers() -> Claim:
    """The bound takes the most splits that the heuristic considers."""
    problem, splits = symbols(Problem), symbol_int("splits", IntDomain(1, MAX_SPLITS))
    shape = (problem.batch_size, problem.sequence_length, problem.num_heads, problem.head_size)
    model, restated = _buffers(problem, splits), flash_total(problem, splits)
    return Claim(
        model == restated,
        {"dimensions are positive": all_of(*(size >= 1 for size in shape))},
        shows={"bytes": model, "restated bytes": restated},
    )


def _result(wanted: Bool, name: str) -> Result:
    """A state's result, left open."""
    return Result(wanted, symbol_enum(f"{name}.status", STATUS), symbol_int(f"{name}.bytes"))


def opened(step: Step, name: str) -> Step:
    """The step with the same open result."""
    result, checks = _result(step.reached, name), Checks(STATUS)
    checks.adopt(result.status)
    return replace(step, bound=Sizing(checks, RouteBound(result.total)))


def _loop(name: str, title: str, *fields: str) -> Obligation:
    @obligation(
        f"ort.gqa.bound.restated.{name}",
        f"{title}, whatever comes of the states",
        source=_SOURCE,
    )
    def statement() -> Claim:
        count: dict[str, int] = {}
        sizes = []
        for step in steps(_BOUNDS):
            place = count[step.backend] = count.get(step.backend, -1) + 1
            sizes.append(opened(step, f"{step.backend}.{place}"))
        results = {
            backend: [_result(one.wanted, f"{backend}.{place}") for place, one in enumerate(row)]
            for backend, row in states(_BOUNDS, _buffers).items()
        }
        model, restated = leaves(accumulated(_BOUNDS, sizes).output), aggregated(_BOUNDS, results)
        return Claim(
            {field: equal(model[field], restated[field]) for field in fields},
            shows={
                f"{field} ({side})": side_fields[field]
                for field in fields
                for side, side_fields in (("model", model), ("restated", restated))
            },
        )

    return statement


LOOP = (
    _loop("status", "the aggregate's status is that of its first failure", "status"),
    _loop("total", "the total is that of the largest state sized", "total_workspace_bytes"),
    _loop(
        "persistent",
        "prepacked bytes and their scratch are those of the head sink",
        "persistent_prepack_bytes",
        "initialization_scratch_bytes",
    ),
    _loop(
        "backends",
        "the sized backends are those with a state sized before any fails",
        *(f"sized_backends.{name}" for name in AGGREGATE_BACKEND.members),
    ),
)
