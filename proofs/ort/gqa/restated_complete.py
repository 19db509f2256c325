"""Restates the complete route: preparation, and behind it the part of one backend.

Source: group_query_attention_workspace_routes.cc, ONNX Runtime,
onnxruntime/contrib_ops/cuda/bert/, September 2026. Offsets and sizes are bytes; those of the
backend's own fields count from the start of the backend's part, which `backend_offset_bytes` gives.
"""

from __future__ import annotations

from dataclasses import replace

from routeproof.models.ort.gqa.problem import (
    BACKEND,
    CompleteInput,
    FlashInput,
    MemoryEfficientInput,
    PreparationInput,
    UnfusedInput,
    XqaInput,
)
from routeproof.proofs.ort.gqa.restated_common import (
    Fields,
    first_match,
    offset_if_present,
    only_if,
    padded,
    too_large,
)
from routeproof.proofs.ort.gqa.restated_fallback import (
    memory_efficient_sizes,
    memory_efficient_status,
    memory_efficient_total,
    unfused_sizes,
    unfused_status,
    unfused_total,
)
from routeproof.proofs.ort.gqa.restated_flash import (
    flash_sizes,
    flash_splits,
    flash_status,
    flash_total,
)
from routeproof.proofs.ort.gqa.restated_preparation import (
    effective_capacity,
    preparation_sizes,
    preparation_status,
    preparation_total,
)
from routeproof.proofs.ort.gqa.restated_xqa import xqa_sizes, xqa_status, xqa_total
from routeproof.spec.terms import Bool, Enum, Int, any_of, ite, minimum

__all__ = [
    "clamped_kv_length",
    "complete",
    "complete_backend_bytes",
    "complete_status",
    "complete_total",
    "flash_part",
    "memory_efficient_part",
    "preparation_part",
    "stacked",
    "unfused_part",
    "xqa_part",
]


def clamped_kv_length(inp: CompleteInput, total_sequence_length: Int) -> Int:
    """KV length in tokens: T, for a windowed cache at most the effective capacity.

    T is clamped before the backend checks it.
    """
    clamped = minimum(total_sequence_length, effective_capacity(inp.problem))
    return ite(inp.problem.is_windowed_kv_cache, clamped, total_sequence_length)


def preparation_part(inp: CompleteInput) -> PreparationInput:
    """What preparation is asked."""
    return PreparationInput(inp.problem, inp.route.preparation)


def xqa_part(inp: CompleteInput) -> XqaInput:
    """What XQA is asked."""
    return XqaInput(inp.problem, inp.route.xqa)


def flash_part(inp: CompleteInput) -> FlashInput:
    """What Flash is asked: the KV length is clamped."""
    config = inp.route.flash
    length = clamped_kv_length(inp, config.total_sequence_length)
    return FlashInput(inp.problem, replace(config, total_sequence_length=length))


def memory_efficient_part(inp: CompleteInput) -> MemoryEfficientInput:
    """What MEA is asked: the effective capacity."""
    return MemoryEfficientInput(inp.problem, effective_capacity(inp.problem))


def unfused_part(inp: CompleteInput) -> UnfusedInput:
    """What unfused is asked: the KV length is clamped."""
    length = clamped_kv_length(inp, inp.route.unfused.total_sequence_length)
    return UnfusedInput(inp.problem, length)


def of_backend(backend: Enum, xqa: Int, flash: Int, memory_efficient: Int, unfused: Int) -> Int:
    """The number of the backend that was asked for."""
    fallback = ite(backend == "memory_efficient", memory_efficient, unfused)
    return ite(backend == "xqa", xqa, ite(backend == "flash", flash, fallback))


def splits_of(inp: CompleteInput, splits: Int | None) -> Int:
    """The given number of Flash splits, or the heuristic's own."""
    return flash_splits(flash_part(inp)) if splits is None else splits


def complete_backend_bytes(inp: CompleteInput, splits: Int | None = None) -> Int:
    """Bytes of the backend's part."""
    p = inp.problem
    return of_backend(
        inp.route.backend,
        xqa_total(xqa_part(inp)),
        flash_total(p, splits_of(inp, splits)),
        memory_efficient_total(p, effective_capacity(p)),
        unfused_total(p, unfused_part(inp).total_sequence_length),
    )


def stacked(preparation: Int, backend: Int) -> Int:
    """Bytes of a backend's part behind the preparation; an empty one adds no rounding."""
    return ite(backend > 0, padded(preparation) + backend, preparation)


def backend_start(inp: CompleteInput) -> Int:
    """Offset (bytes) at which a backend's part starts if it is not empty."""
    return padded(preparation_total(preparation_part(inp)))


def complete_total(inp: CompleteInput, splits: Int | None = None) -> Int:
    """Bytes of the whole route."""
    preparation = preparation_total(preparation_part(inp))
    return stacked(preparation, complete_backend_bytes(inp, splits))


def disagrees(inp: CompleteInput) -> Bool:
    """Preparation was configured for another route than the backend's.

    Fast decode is compared for Flash alone: the public text reads the Flash configuration for no
    other backend (group_query_attention_workspace_routes.cc, September 2026); no row decides.
    """
    route = inp.route
    backend, preparation = route.backend, route.preparation
    served = ("xqa", "flash", "memory_efficient", "unfused")
    same_mode = any_of(
        *((backend == name) & (preparation.preprocess_mode == name) for name in served)
    )
    other_decode = route.flash.fast_decode != preparation.use_flash_attention_fast_decode
    return ~same_mode | ((backend == "flash") & other_decode)


def complete_status(inp: CompleteInput, splits: Int | None = None) -> Enum:
    """The first check that fails: the route itself, preparation, the backend, the total."""
    backend, count = inp.route.backend, splits_of(inp, splits)
    preparation = preparation_status(preparation_part(inp))
    xqa, flash = xqa_status(xqa_part(inp)), flash_status(flash_part(inp), count)
    memory_efficient = memory_efficient_status(memory_efficient_part(inp))
    unfused = unfused_status(unfused_part(inp))
    return first_match(
        (backend == "invalid", "invalid_argument"),
        (backend == "cudnn", "unavailable"),
        (disagrees(inp), "invalid_argument"),
        (preparation != "ok", preparation),
        ((backend == "xqa") & (xqa != "ok"), xqa),
        ((backend == "flash") & (flash != "ok"), flash),
        ((backend == "memory_efficient") & (memory_efficient != "ok"), memory_efficient),
        ((backend == "unfused") & (unfused != "ok"), unfused),
        (too_large(complete_total(inp, count)), "overflow"),
    )


def nested(name: str, fields: Fields) -> Fields:
    """The fields under the name of the record that holds them."""
    return {f"{name}.{field}": term for field, term in fields.items()}


def complete(inp: CompleteInput, splits: Int | None = None) -> Fields:
    """Every output field; records of other backends, and all of them on a failure, are defaults.

    `splits` replaces the Flash heuristic's own number of splits.
    """
    status, count, chosen = complete_status(inp, splits), splits_of(inp, splits), inp.route.backend
    ok, backend_bytes = status == "ok", complete_backend_bytes(inp, splits)
    offset = offset_if_present(backend_start(inp), backend_bytes > 0)
    flash = flash_sizes(flash_part(inp), count)
    mea = memory_efficient_sizes(memory_efficient_part(inp))
    return {
        "status": status,
        "backend": ite(ok, chosen, BACKEND["unfused"]),
        **nested("preparation", only_if(ok, preparation_sizes(preparation_part(inp)))),
        **only_if(ok, {"backend_offset_bytes": offset, "backend_bytes": backend_bytes}),
        **nested("xqa", only_if(ok & (chosen == "xqa"), xqa_sizes(xqa_part(inp)))),
        **nested("flash", only_if(ok & (chosen == "flash"), flash, {"selected_split_count": 1})),
        **nested("memory_efficient", only_if(ok & (chosen == "memory_efficient"), mea)),
        **nested("unfused", only_if(ok & (chosen == "unfused"), unfused_sizes(unfused_part(inp)))),
        **only_if(ok, {"total_workspace_bytes": complete_total(inp, splits)}),
    }
