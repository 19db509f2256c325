"""The aggregate with accumulators in closed form bounds Flash and fast decode, in every phase.

Step by step, each assuming by name what the one before states: rows of several splits are within
the closed form's (`ort.gqa.accumulators.rows.*`), hence Flash's buffers are within those of the
closed form, hence behind the preparation too, hence within the aggregate, which takes the largest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from routeproof.models.ort.gqa import (
    accumulators,
    closed_bounds,
    complete,
    flash,
    preparation,
)
from routeproof.models.ort.gqa.bounds import (
    State,
    accumulated,
    decode_state,
    flash_state,
    is_valid,
    prompt_states,
    route_behind,
    steps,
)
from routeproof.models.ort.gqa.closed_bounds import ClosedBoundsInput
from routeproof.models.ort.gqa.preparation import PreparationLayout
from routeproof.models.ort.gqa.problem import STATUS, BoundsInput, FlashConfig, Problem
from routeproof.models.ort.gqa.sizing import Sizing
from routeproof.models.ort.gqa.split import MAX_SPLITS
from routeproof.models.ort.gqa.validation import is_positive_int32, refused_by_fast_decode
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.recipe import Checks
from routeproof.spec.records import symbols
from routeproof.spec.terms import (
    TRUE,
    Bool,
    Int,
    IntDomain,
    align_up,
    all_of,
    any_of,
    boolean,
    implies,
    integer,
    minimum,
    substitute,
    symbol_int,
)

from .aggregate import opened
from .bounds import short_name
from .envelopes import Admitted, admitted, configured
from .restated_common import SIZE_MAX
from .sources import FUNCTION_SOURCES

__all__ = ["BUFFERS", "PREPARED", "STATUSES"]

_SOURCE = FUNCTION_SOURCES["flash"]
_ROWS = symbol_int("rows", IntDomain(0))
_SPLITS = symbol_int("splits", IntDomain(1, MAX_SPLITS))
_WITHIN = "several splits have at most the rows (ort.gqa.accumulators.rows.*)"
_WORDS = {
    "first": "a first prompt",
    "single": "a first prompt of one token",
    "chunk": "several tokens with past",
    "decode": "one token with past",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Flash or fast decode in a phase, and the state that the aggregate sizes it in.

    Of fast decode the newest ladder's aggregate sizes one token only.
    """

    route: str
    phase: str
    windowed: bool = False
    packed: bool | None = None
    window: bool | None = None
    newest: bool = False

    @property
    def name(self) -> str:
        """As ids spell it."""
        parts = [short_name(self.route), self.phase]
        parts += ["windowed", "packed" if self.packed else "unpacked"] if self.windowed else []
        if self.route == "flash_fast_decode":
            parts += ["newest" if self.newest else "older", *["local-window"] * bool(self.window)]
        return ".".join(parts)

    @property
    def words(self) -> str:
        """As titles say it."""
        return f"{short_name(self.route)}, {_WORDS[self.phase]} ({self.name.partition('.')[2]})"

    @property
    def invocation(self) -> Admitted:
        """An admitted invocation."""
        return admitted(
            self.route,
            self.phase,
            windowed=self.windowed,
            packed=self.packed,
            local_window=self.window,
        )

    def sized(self, run: Admitted) -> tuple[Problem, Sizing[PreparationLayout]]:
        """What the aggregate sizes, and its preparation."""
        fast = self.route == "flash_fast_decode"
        first, chunk = prompt_states(run.envelope)
        one_token = self.newest if fast else self.phase == "decode"
        several = first if self.phase in ("first", "single") else chunk
        state: State = decode_state() if one_token else several
        return flash_state(run.envelope, state, fast=fast)


_FLASH = (
    *(Place("flash", phase) for phase in ("first", "chunk", "decode")),
    *(
        Place("flash", phase, windowed=True, packed=packed)
        for phase in ("first", "single", "chunk", "decode")
        for packed in (False, True)
    ),
)
_FAST = tuple(
    Place("flash_fast_decode", phase, window=window, newest=newest)
    for phase, newest in (("chunk", False), ("decode", False), ("decode", True))
    for window in (False, True)
)


def _inside(run: Admitted) -> dict[str, Bool]:
    """All that an invocation assumes but that today's aggregate is ok."""
    assumed = {name: one for name, one in run.assuming.items() if name != "the bound is ok"}
    return {**assumed, "the bound's upfront checks hold": is_valid(run.envelope)}


def _prepared(place: Place) -> Obligation:
    @obligation(
        f"ort.gqa.closed.behind.{place.name}",
        f"{place.words}: no more buffers need no more behind the preparation",
        source=_SOURCE,
        note="Whatever the buffers are.",
    )
    def statement() -> Claim:
        run = place.invocation
        need, most = (symbol_int(name, IntDomain(0)) for name in ("buffers", "closed_form"))
        _, prepared = place.sized(run)
        used = complete.behind(Checks(STATUS), run.need.layout.preparation, need)[0].total
        bound = route_behind(prepared, Checks(STATUS), most)
        return Claim(
            used <= bound.layout.total_workspace_bytes,
            {
                **_inside(run),
                "the bound's preparation is ok": prepared.ok,
                "the buffers are within the closed form's (ort.gqa.closed.buffers.*)": need <= most,
            },
        )

    return statement


def _status(place: Place) -> Obligation:
    @obligation(
        f"ort.gqa.closed.status.{place.name}",
        f"{place.words}: where the bound's preparation is ok, so is the recipe's",
        source=FUNCTION_SOURCES["preparation"],
    )
    def statement() -> Claim:
        run = place.invocation
        config = configured(run.envelope, place.route, run.kv_length)
        _, prepared = place.sized(run)
        return Claim(
            preparation.layout(run.problem, config.preparation).ok,
            {**_inside(run), "the bound's preparation is ok": prepared.ok},
        )

    return statement


PREPARED = tuple(map(_prepared, (*_FLASH, *_FAST)))
STATUSES = tuple(map(_status, (*_FLASH, *_FAST)))


def _buffers() -> tuple[Problem, Problem, dict[str, Bool]]:
    """An invocation of Flash, what its bound is sized for, and that it is no larger."""
    problem, bound = symbols(Problem), symbols(Problem, "bound")
    bound = replace(bound, num_heads=problem.num_heads)
    sizes = ("batch_size", "sequence_length", "head_size", "num_heads")
    return (
        problem,
        bound,
        {
            f"{name.replace('_', ' ')} within its bound": all_of(
                getattr(problem, name) >= 1, getattr(problem, name) <= getattr(bound, name)
            )
            for name in sizes
        },
    )


_PADDED = "within log-sum-exp and closed form (ort.gqa.accumulators.bytes.total)"


@obligation(
    "ort.gqa.closed.buffers.split",
    "several splits: Flash's buffers are within those of the closed form",
    source=_SOURCE,
)
def split() -> Claim:
    """Log-sum-exp and accumulators, padded alike."""
    problem, bound, inside = _buffers()
    need = flash.buffers(Checks(STATUS), problem, _SPLITS)
    closed = accumulators.buffers(Checks(STATUS), _ROWS, bound.head_size).total
    lse = align_up(need.regions["softmax_lse"].size, 256)
    return Claim(
        need.total <= closed_bounds.buffers(Checks(STATUS), bound, _ROWS).total,
        {**inside, "some rows": _ROWS >= 1, _PADDED: need.total <= lse + closed},
    )


@obligation(
    "ort.gqa.closed.buffers.whole",
    "one split: Flash's buffers are within those of the closed form",
    source=_SOURCE,
    note="Whatever its rows are.",
)
def whole() -> Claim:
    """Log-sum-exp alone."""
    problem, bound, inside = _buffers()
    need = flash.buffers(Checks(STATUS), problem, integer(1))
    return Claim(
        need.total <= closed_bounds.buffers(Checks(STATUS), bound, _ROWS).total,
        {**inside, "a number of rows": _ROWS >= 0},
    )


def _accepted(problem: Problem, config: FlashConfig) -> dict[str, Bool]:
    """What an invocation brings beside its sizes; `ort.gqa.closed.behind.*` assume as much."""
    shape = problem.batch_size, problem.sequence_length, problem.num_heads, problem.kv_num_heads
    window, head_size = config.local_window_size, problem.head_size
    served = ~refused_by_fast_decode(problem) if config.fast_decode is TRUE else TRUE
    return {
        "positive int32": is_positive_int32(*shape, head_size, config.total_sequence_length),
        "whole groups of 2-byte elements": all_of(
            problem.num_heads % problem.kv_num_heads == 0, problem.qkv_element_size == 2
        ),
        "Flash serves the head size": all_of(head_size % 8 == 0, head_size <= 256),
        "a device": config.multi_processor_count > 0,
        "a window or none": any_of(window == -1, is_positive_int32(window)),
        **({} if served is TRUE else {"fast decode serves the node": served}),
    }


def _valid_buffers(*, fast: bool, several: bool) -> Obligation:
    name = f"{'fast-decode' if fast else 'regular'}.{'split' if several else 'whole'}"

    @obligation(
        f"ort.gqa.closed.status.buffers.{name}",
        f"{'fast decode' if fast else 'regular Flash'}, {'several splits' if several else 'one'}: "
        "where the closed form's buffers are ok, so are the recipe's",
        source=_SOURCE,
    )
    def statement() -> Claim:
        problem, bound, inside = _buffers()
        config = replace(symbols(FlashConfig), fast_decode=boolean(fast))
        need, checks = flash.layout(problem, config), Checks(STATUS)
        splits = symbol_int("splits", IntDomain(2, MAX_SPLITS)) if several else integer(1)
        (ok,) = substitute((need.ok,), {need.layout.selected_split_count: splits})
        closed = closed_bounds.buffers(checks, bound, _ROWS)
        within = _regions_within(problem, bound, splits, closed.total) if several else {}
        return Claim(
            cast("Bool", ok),
            {
                **inside,
                **_accepted(problem, config),
                "the closed form's buffers are ok": checks.ok,
                **within,
            },
        )

    return statement


def _regions_within(problem: Problem, bound: Problem, splits: Int, most: Int) -> dict[str, Bool]:
    """What `accumulators` and the buffers above say of several splits."""
    need = flash.buffers(Checks(STATUS), problem, splits)
    closed = accumulators.buffers(Checks(STATUS), _ROWS, bound.head_size)
    rows = splits * problem.batch_size * problem.sequence_length * problem.num_heads
    return {
        _WITHIN: all_of(_ROWS >= 1, rows <= _ROWS),
        "regions within (ort.gqa.accumulators.bytes.*)": all_of(
            *(need.regions[name].size <= region.size for name, region in closed.regions.items())
        ),
        "buffers within (ort.gqa.closed.buffers.split)": need.total <= most,
        "the closed form's bytes fit": most <= SIZE_MAX,
    }


BUFFERS = tuple(
    _valid_buffers(fast=fast, several=several)
    for fast in (False, True)
    for several in (True, False)
)


@obligation(
    "ort.gqa.closed.aggregate",
    "the aggregate is ok only where every state that it sizes is, and is at least as large as each",
    source=FUNCTION_SOURCES["bounds"],
    note="Whatever comes of the states.",
)
def aggregate() -> Claim:
    """However the states are sized."""
    bounds = symbols(BoundsInput).bounds
    sizes = [opened(step, f"{place}.{step.backend}") for place, step in enumerate(steps(bounds))]
    whole_bound = accumulated(bounds, sizes)
    most = whole_bound.output.total_workspace_bytes
    return Claim(
        {
            f"{place}. {step.backend}": implies(
                step.reached,
                all_of(step.bound.ok, step.bound.layout.total_workspace_bytes <= most),
            )
            for place, step in enumerate(sizes)
        },
        {"the aggregate is ok": whole_bound.ok},
    )


@obligation(
    "ort.gqa.closed.flash-fast-decode.chunk.newest",
    "fast decode, several tokens with past: within the closed form of one token",
    source=_SOURCE,
    expect="refuted",
    note="The twin: the older ladder lets fast decode run several tokens.",
)
def several_tokens() -> Claim:
    """The newest ladder's bound under the older ladder, rows within the split work all the same."""
    run = admitted("flash_fast_decode", "chunk", local_window=False)
    closed = replace(
        symbols(ClosedBoundsInput),
        bounds=run.envelope,
        fast_decode_is_one_token=boolean(True),
    )
    bound, used, problem = closed_bounds.aggregate(closed), run.need.layout, run.problem
    splits = used.flash.selected_split_count
    rows = splits * problem.batch_size * problem.sequence_length * problem.num_heads
    group = problem.num_heads // problem.kv_num_heads
    tokens = minimum(run.envelope.sequence_length_bound, 64)
    most = bound.output.total_workspace_bytes
    return Claim(
        used.total_workspace_bytes <= most,
        {
            **_inside(run),
            "the bound is ok": bound.ok,
            "rows within the split work": implies(
                splits > 1, rows <= group * tokens * closed.split_work
            ),
            "a device of the table": all_of(closed.split_work >= 0),
        },
        shows={"rows": rows, "needed bytes": used.total_workspace_bytes, "bound bytes": most},
    )
