"""A complete route: preparation, then the selected backend behind it in one allocation.

Source: `GetGQACompleteWorkspaceRecipe` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_routes.cc` (September 2026).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from routeproof.spec.function import Function, Source
from routeproof.spec.recipe import Checks, Recipe, Region
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import Enum, Int, ite, minimum

from . import flash, memory_efficient, preparation, unfused, xqa
from .flash import FlashLayout
from .memory_efficient import MemoryEfficientLayout
from .preparation import PreparationLayout
from .problem import BACKEND, STATUS, CompleteInput, CompleteRoute, Problem
from .sizing import ZERO, Sizing, report
from .unfused import UnfusedLayout
from .validation import same_name
from .xqa import XqaLayout

__all__ = ["CompleteLayout", "CompleteOutput", "behind", "function", "kv_length", "layout"]


@dataclass(frozen=True, slots=True)
class CompleteLayout(Record):
    """Offsets and sizes in bytes; the parts of backends not selected keep their defaults."""

    backend: Enum = BACKEND["unfused"]
    preparation: PreparationLayout = field(default_factory=PreparationLayout)
    backend_offset_bytes: Int = ZERO
    backend_bytes: Int = ZERO
    xqa: XqaLayout = field(default_factory=XqaLayout)
    flash: FlashLayout = field(default_factory=FlashLayout)
    memory_efficient: MemoryEfficientLayout = field(default_factory=MemoryEfficientLayout)
    unfused: UnfusedLayout = field(default_factory=UnfusedLayout)
    total_workspace_bytes: Int = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOutput(CompleteLayout):
    """Output of `ort.gqa.complete`."""

    status: Enum


def kv_length(problem: Problem, length: Int) -> Int:
    """The KV length (tokens) that Flash and unfused are sized for: a window caps it."""
    # Clamped before the backend checks it; the rows do not tell this from the other order.
    capped = minimum(length, preparation.effective_capacity(problem))
    return ite(problem.is_windowed_kv_cache, capped, length)


def _require_consistent(checks: Checks, route: CompleteRoute) -> None:
    """The route names a backend with a recipe, and preparation prepares for that backend."""
    # Fast decode is compared for Flash alone: other backends ignore Flash's configuration. A
    # preparation for fast decode fails on its own unless its mode is Flash.
    backend, prepared = route.backend, route.preparation
    same_phase = route.flash.fast_decode == prepared.use_flash_attention_fast_decode
    checks.require(backend != "cudnn", "unavailable")
    checks.require(same_name(prepared.preprocess_mode, backend), "invalid_argument")
    checks.require(same_phase, "invalid_argument", when=backend == "flash")


def behind(checks: Checks, prepared: PreparationLayout, need: Int) -> tuple[Recipe, Region]:
    """The allocation (bytes) and, in it, the backend's region at the next multiple of 256."""
    allocation = Recipe(checks, start=prepared.total_preparation_bytes)
    return allocation, allocation.carve("backend", need)


def layout(problem: Problem, route: CompleteRoute) -> Sizing[CompleteLayout]:
    """The layout of the selected backend behind its preparation."""
    prepared = preparation.layout(problem, route.preparation)
    flash_length = kv_length(problem, route.flash.total_sequence_length)
    unfused_length = kv_length(problem, route.unfused.total_sequence_length)
    by_xqa = xqa.layout(problem, route.xqa)
    by_flash = flash.layout(problem, replace(route.flash, total_sequence_length=flash_length))
    by_mea = memory_efficient.layout(problem, prepared.layout.effective_kv_cache_capacity)
    by_unfused = unfused.layout(problem, unfused_length)

    checks = Checks(STATUS)
    _require_consistent(checks, route)
    checks.include(prepared.checks)
    need = ZERO
    for name, part_checks, part_bytes in (
        ("xqa", by_xqa.checks, by_xqa.layout.total_backend_bytes),
        ("flash", by_flash.checks, by_flash.layout.total_backend_bytes),
        ("memory_efficient", by_mea.checks, by_mea.layout.total_backend_bytes),
        ("unfused", by_unfused.checks, by_unfused.layout.total_backend_bytes),
    ):
        checks.include(part_checks, when=route.backend == name)
        need = ite(route.backend == name, part_bytes, need)
    allocation, backend = behind(checks, prepared.layout, need)
    return Sizing(
        checks,
        CompleteLayout(
            backend=route.backend,
            preparation=prepared.layout,
            backend_offset_bytes=backend.offset,
            backend_bytes=backend.size,
            xqa=select(route.backend == "xqa", by_xqa.layout, XqaLayout()),
            flash=select(route.backend == "flash", by_flash.layout, FlashLayout()),
            memory_efficient=select(
                route.backend == "memory_efficient", by_mea.layout, MemoryEfficientLayout()
            ),
            unfused=select(route.backend == "unfused", by_unfused.layout, UnfusedLayout()),
            total_workspace_bytes=allocation.total,
        ),
    )


def function() -> Function:
    """`ort.gqa.complete`."""
    inputs = symbols(CompleteInput)
    return Function(
        "ort.gqa.complete",
        "Preparation and the selected backend in one allocation",
        Source(
            "onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace_routes.cc",
            "GetGQACompleteWorkspaceRecipe",
            "September 2026",
        ),
        inputs,
        {"out": report(CompleteOutput, layout(inputs.problem, inputs.route))},
    )
