"""The aggregate with Flash's accumulators in closed form: what an estimator could ship instead.

Every state is sized as `bounds.py` sizes it, but for Flash and fast decode, whose split
accumulators are those of `accumulators.py`: at most the split work of the device, however long the
cache is. The formula is this project's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe
from routeproof.spec.records import Int64, Record, symbols
from routeproof.spec.terms import Bool, Int, boolean, ite

from . import accumulators
from .accumulators import AccumulatorsInput
from .bounds import (
    Aggregate,
    RouteBound,
    State,
    accumulated,
    flash_state,
    route_behind,
    steps,
)
from .problem import STATUS, BoundsProblem, Problem
from .sizing import Sizing
from .split_work import split_work_table

__all__ = ["ClosedBoundsInput", "aggregate", "buffers", "flash_bound", "function"]


@dataclass(frozen=True, slots=True)
class ClosedBoundsInput(Record):
    """Input of `ort.gqa.closed_bounds`.

    `split_work` is the device's entry in `SPLIT_WORK`; `fast_decode_is_one_token` says that the
    ladder lets fast decode run a single token only, as the newest does.
    """

    bounds: BoundsProblem
    split_work: Int64
    fast_decode_is_one_token: Bool


def flash_bound(
    closed: ClosedBoundsInput, state: State, *, fast: bool = False
) -> Sizing[RouteBound]:
    """Flash's buffers in a state for the rows of the closed form."""
    bounds = closed.bounds
    if fast:
        one_token = closed.fast_decode_is_one_token
        state = State(ite(one_token, 1, state.sequence_length), state.is_first_prompt)
    problem, prepared = flash_state(bounds, state, fast=fast)
    checks = Checks(STATUS)
    rows = accumulators.most_rows(
        checks,
        AccumulatorsInput(
            batch_size_bound=problem.batch_size,
            sequence_length_bound=problem.sequence_length,
            num_heads=problem.num_heads,
            kv_num_heads=problem.kv_num_heads,
            head_size_bound=problem.head_size,
            kv_length_bound=prepared.layout.effective_kv_cache_capacity,
            multi_processor_count=bounds.multi_processor_count,
            local_window_size=bounds.local_window_size,
            fast_decode=boolean(fast),
            split_work=closed.split_work,
        ),
    )
    return route_behind(prepared, checks, buffers(checks, problem, rows).total)


def buffers(checks: Checks, problem: Problem, rows: Int) -> Recipe:
    """Log-sum-exp and the accumulators of so many rows (bytes), fp32 each."""
    recipe = Recipe(checks)
    lse = checks.product(4, problem.batch_size, problem.num_heads, problem.sequence_length)
    recipe.carve("softmax_lse", lse)
    recipe.carve("accumulators", accumulators.buffers(checks, rows, problem.head_size).total)
    return recipe


def aggregate(closed: ClosedBoundsInput) -> Aggregate:
    """The bound (bytes) with its status, and the routes that it covers."""
    bounds = closed.bounds

    def sized(bounds: BoundsProblem, state: State, *, fast: bool = False) -> Sizing[RouteBound]:
        return flash_bound(replace(closed, bounds=bounds), state, fast=fast)

    return accumulated(bounds, steps(bounds, sized))


def function() -> Function:
    """`ort.gqa.closed_bounds`."""
    inputs = symbols(ClosedBoundsInput)
    return Function(
        "ort.gqa.closed_bounds",
        "Level-1 bound with Flash's accumulators in closed form",
        Source("docs/closed-form.md", "the formula", "this project's own"),
        inputs,
        {"out": aggregate(inputs).output},
        {"split_work": split_work_table("bounds.multi_processor_count")},
    )
