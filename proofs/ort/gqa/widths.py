"""Machine widths: where unchecked `size_t` arithmetic wraps, and which counts fit an int32.

The run-time Flash sizing multiplies without a check; it agrees with the checked recipe as long as
that one is ok. For one large node, each route's largest envelope without an overflow is given to
the last token or request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from routeproof.models.ort.gqa import complete, flash, memory_efficient, preparation, xqa
from routeproof.models.ort.gqa.flash_runtime import flash_runtime
from routeproof.models.ort.gqa.problem import (
    BACKEND,
    HEAD_SINK_STORAGE,
    INT32_MAX,
    KV_TYPE,
    PREPROCESS_MODE,
    QUANTIZATION,
    CompleteRoute,
    FlashConfig,
    FlashInput,
    FlashRuntimeInput,
    MemoryEfficientInput,
    PreparationConfig,
    PreparationInput,
    Problem,
    UnfusedConfig,
    XqaConfig,
    XqaInput,
)
from routeproof.models.ort.gqa.sizing import Sizing
from routeproof.models.ort.gqa.split import work_items
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import (
    FALSE,
    TRUE,
    Bool,
    Int,
    IntDomain,
    all_of,
    boolean,
    float32,
    integer,
    symbol_int,
    to_float,
    wrap_unsigned,
)

from .sources import FUNCTION_SOURCES

__all__ = ["BEYOND", "FITS", "INT32"]

_RUNTIME = FUNCTION_SOURCES["flash_runtime"]
_ONE = integer(1)
_DEVICE = integer(108)


def _runtime_agrees(problem: Problem, config: FlashConfig, assuming: Mapping[str, Bool]) -> Claim:
    """What a launch asks for, in arithmetic modulo 2^64, is what the recipe has reserved."""
    asked = flash_runtime(
        FlashRuntimeInput(
            batch_size=problem.batch_size,
            sequence_length=problem.sequence_length,
            total_sequence_length=config.total_sequence_length,
            num_heads=problem.num_heads,
            kv_num_heads=problem.kv_num_heads,
            head_size=problem.head_size,
            multi_processor_count=config.multi_processor_count,
            fast_decode=config.fast_decode,
            local_window_size=config.local_window_size,
            device_major=integer(8),
        )
    )
    reserved = flash.layout(problem, config).layout
    # Products modulo 2^64 are the exact product modulo 2^64, so one wrap at the end is enough.
    sizes = {
        "softmax_lse": (asked.softmax_lse_bytes, reserved.softmax_lse_bytes),
        "softmax_lse_accumulator": (
            asked.softmax_lse_accum_bytes,
            reserved.softmax_lse_accumulator_bytes,
        ),
        "output_accumulator": (asked.out_accum_bytes, reserved.output_accumulator_bytes),
    }
    goals = {name: wrap_unsigned(run, 64) == recipe for name, (run, recipe) in sizes.items()}
    shows = {
        f"{name} ({side})": value
        for name, (run, recipe) in sizes.items()
        for side, value in (("in size_t", wrap_unsigned(run, 64)), ("exact", recipe))
    }
    goals["splits"] = asked.num_splits == reserved.runtime_num_splits
    return Claim(goals, assuming, shows=shows)


@obligation(
    "ort.gqa.width.flash-runtime",
    "the run-time Flash sizing, unchecked size_t, equals the recipe wherever that is ok",
    source=_RUNTIME,
)
def runtime() -> Claim:
    """Regular and fast decode, every shape and device."""
    inputs = symbols(FlashInput)
    recipe = flash.layout(inputs.problem, inputs.config)
    return _runtime_agrees(inputs.problem, inputs.config, {"recipe is ok": recipe.ok})


@obligation(
    "ort.gqa.width.flash-runtime.unchecked",
    "the run-time Flash sizing is exact for every shape of positive int32 sizes",
    source=_RUNTIME,
    expect="refuted",
    note="The twin: without the recipe's status the products wrap.",
)
def runtime_unchecked() -> Claim:
    """2^25 requests, 128 heads of size 64, one token of KV."""
    length = symbol_int("sequence_length", IntDomain(1, INT32_MAX))
    problem = _problem(64, batch=integer(2**25), tokens=length)
    return _runtime_agrees(problem, FlashConfig(_ONE, integer(-1), _DEVICE, FALSE), {})


def _problem(
    head_size: Int | int,
    *,
    batch: Int = _ONE,
    tokens: Int = _ONE,
    capacity: Int = _ONE,
    heads: int = 128,
) -> Problem:
    """A large node: as many heads as KV heads, fp16, rotary, after the first prompt."""
    return Problem(
        qkv_element_size=integer(2),
        cache_element_size=integer(2),
        batch_size=batch,
        sequence_length=tokens,
        num_heads=integer(heads),
        kv_num_heads=integer(heads),
        head_size=integer(head_size),
        present_kv_cache_capacity=capacity,
        past_kv_cache_capacity=integer(0),
        kv_cache_bit_width=integer(0),
        k_quantization=QUANTIZATION["none"],
        v_quantization=QUANTIZATION["none"],
        is_windowed_kv_cache=FALSE,
        is_first_prompt=FALSE,
        do_rotary=TRUE,
        is_packed_qkv=FALSE,
        use_qk_norm=FALSE,
        requires_separate_past_buffer=FALSE,
    )


@dataclass(frozen=True, slots=True)
class Extent:
    """The most requests and tokens (query length and capacity) of a route on the large node."""

    head_size: int
    batch: int
    tokens: int = INT32_MAX

    @property
    def beyond(self) -> Extent:
        """One token more, or one request where tokens are already limited by their int32."""
        if self.tokens < INT32_MAX:
            return replace(self, tokens=self.tokens + 1)
        return replace(self, batch=self.batch + 1)


# Found by bisection with the interpreter; the obligations are what makes them exact.
_EXTENTS: Mapping[str, Extent] = {
    "memory_efficient": Extent(1024, batch=8_192),
    "unfused": Extent(256, batch=256, tokens=8_388_512),
    "flash": Extent(256, batch=130_055),
    "flash_fast_decode": Extent(256, batch=16_777_216),
    "xqa": Extent(256, batch=65_535),
}


def _fills_device(work: Int) -> Bool:
    """The work keeps 0.8 of the multiprocessors busy, so Flash does not split it."""
    return to_float(work, 32) >= float32(0.8) * to_float(_DEVICE, 32)


def _extent(route: str, extent: Extent) -> Claim:
    """Any invocation within the extent has a complete recipe that is ok."""
    fast, backend = route == "flash_fast_decode", route.removesuffix("_fast_decode")
    tokens = IntDomain(1, extent.tokens)
    batch = symbol_int("batch_size", IntDomain(1, extent.batch))
    length = _ONE if route == "xqa" else symbol_int("sequence_length", tokens)
    capacity, kv_length = symbol_int("capacity", tokens), symbol_int("kv_length", tokens)
    problem = _problem(extent.head_size, batch=batch, tokens=length, capacity=capacity)
    config = CompleteRoute(
        BACKEND[backend],
        PreparationConfig(PREPROCESS_MODE[backend], boolean(fast)),
        _xqa_config(_DEVICE),
        FlashConfig(kv_length, integer(-1), _DEVICE, boolean(fast)),
        UnfusedConfig(kv_length),
    )
    need = complete.layout(problem, config)
    # Always so, as the obligation on the work says: solvers do not see it among the products.
    fills = _fills_device(work_items(batch, problem.num_heads, length))
    unsplit = {"the work fills the device": fills} if backend == "flash" else {}
    return Claim(
        need.status == "ok",
        {"KV length within the capacity": kv_length <= capacity, **unsplit},
        shows={"status": need.status, "exact bytes": need.layout.total_workspace_bytes},
    )


def _xqa_config(device: Int) -> XqaConfig:
    """A device 8.0 of that many multiprocessors, an unquantised cache, no head sink."""
    none = KV_TYPE["none"], HEAD_SINK_STORAGE["none"]
    return XqaConfig(integer(8), integer(0), device, *none, FALSE)


@obligation(
    "ort.gqa.overflow.envelope.work",
    "128 heads fill 108 multiprocessors: Flash never splits them",
    source=_RUNTIME,
)
def work() -> Claim:
    """There is at least one work item per head, and 128 are more than 0.8 of 108."""
    batch, length = (
        symbol_int(name, IntDomain(1, INT32_MAX)) for name in ("batch_size", "sequence_length")
    )
    items = symbol_int("work_items", IntDomain(128, 2**63 - 1))
    return Claim(
        {
            "128 items": work_items(batch, integer(128), length) >= 128,
            "128 or more fill the device": _fills_device(items),
        }
    )


def _name(route: str) -> str:
    return route.replace("_", "-").replace("memory-efficient", "mea")


def _title(route: str, extent: Extent) -> str:
    tokens = "any" if extent.tokens == INT32_MAX else f"{extent.tokens:,}"
    sizes = f"{extent.batch:,} requests, {tokens} tokens"
    return f"{_name(route)}, 128 heads of {extent.head_size}: {sizes} do not overflow"


def _fits(route: str, extent: Extent) -> Obligation:
    @obligation(
        f"ort.gqa.overflow.envelope.{_name(route)}.fits",
        _title(route, extent),
        source=FUNCTION_SOURCES["complete"],
    )
    def statement() -> Claim:
        return _extent(route, extent)

    return statement


def _beyond(route: str, extent: Extent) -> Obligation:
    @obligation(
        f"ort.gqa.overflow.envelope.{_name(route)}.beyond",
        _title(route, extent),
        source=FUNCTION_SOURCES["complete"],
        expect="refuted",
        note="The twin: one more than the largest envelope.",
    )
    def statement() -> Claim:
        return _extent(route, extent)

    return statement


FITS = tuple(_fits(*item) for item in _EXTENTS.items())
# XQA has no twin: its grid ends before any size does.
BEYOND = tuple(_beyond(name, one.beyond) for name, one in _EXTENTS.items() if name != "xqa")


def _prepared() -> tuple[Sizing[preparation.PreparationLayout], tuple[str, ...]]:
    inputs = symbols(PreparationInput)
    fields = ("effective_kv_cache_capacity", "sequence_length_vector_count")
    return preparation.layout(inputs.problem, inputs.route), fields


def _by_flash() -> tuple[Sizing[flash.FlashLayout], tuple[str, ...]]:
    inputs = symbols(FlashInput)
    return flash.layout(inputs.problem, inputs.config), (
        "split_heuristic_head_count",
        "split_heuristic_kv_length",
        "selected_split_count",
        "runtime_num_splits",
        "rounded_head_size",
    )


def _by_xqa() -> tuple[Sizing[xqa.XqaLayout], tuple[str, ...]]:
    inputs = symbols(XqaInput)
    fields = ("subsequences_per_sequence", "m_tile_size")
    return xqa.layout(inputs.problem, inputs.config), fields


def _by_mea() -> tuple[Sizing[memory_efficient.MemoryEfficientLayout], tuple[str, ...]]:
    inputs = symbols(MemoryEfficientInput)
    sizing = memory_efficient.layout(inputs.problem, inputs.effective_kv_cache_capacity)
    return sizing, ("effective_kv_cache_capacity",)


_Counted = tuple[Sizing[Any], tuple[str, ...]]
"""A recipe of any layout, and the names of the fields that count something else than bytes."""

_COUNTED: Mapping[str, Callable[[], _Counted]] = {
    "preparation": _prepared,
    "flash": _by_flash,
    "xqa": _by_xqa,
    "mea": _by_mea,
}


def _int32(name: str, build: Callable[[], _Counted]) -> Obligation:
    @obligation(
        f"ort.gqa.width.int32.{name}",
        f"{name}: where the status is ok, counts, lengths and tile sizes fit an int32",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        sizing, fields = build()
        values = {field: getattr(sizing.layout, field) for field in fields}
        return Claim(
            {field: all_of(value >= 0, value <= INT32_MAX) for field, value in values.items()},
            {"status is ok": sizing.ok},
            shows=values,
        )

    return statement


INT32 = tuple(_int32(*item) for item in _COUNTED.items())


@obligation(
    "ort.gqa.width.int32.preparation.row-bytes",
    "preparation: the bytes of a cache row fit an int32",
    source=FUNCTION_SOURCES["preparation"],
    expect="refuted",
    note="The head size alone does, and is not limited by preparation.",
)
def row_bytes() -> Claim:
    """One request and token, 128 heads, for the unfused route."""
    head_size = symbol_int("head_size", IntDomain(8, INT32_MAX, multiple_of=8))
    sizing = preparation.layout(
        _problem(head_size), PreparationConfig(PREPROCESS_MODE["unfused"], FALSE)
    )
    value = sizing.layout.cache_row_bytes
    return Claim(value <= INT32_MAX, {"status is ok": sizing.ok}, shows={"row bytes": value})


@obligation(
    "ort.gqa.width.int32.xqa.sequence-count",
    "xqa: the sequences, requests times KV heads, fit an int32",
    source=FUNCTION_SOURCES["xqa"],
    expect="refuted",
    note="The grid admits 65,535 of each, whose product needs 32 unsigned bits.",
)
def sequence_count() -> Claim:
    """65,535 heads of size 64, as many KV heads, on 108 multiprocessors."""
    batch = symbol_int("batch_size", IntDomain(1, 65_535))
    sizing = xqa.layout(_problem(64, batch=batch, heads=65_535), _xqa_config(_DEVICE))
    value = sizing.layout.sequence_count
    return Claim(value <= INT32_MAX, {"status is ok": sizing.ok}, shows={"sequences": value})


@obligation(
    "ort.gqa.width.int32.xqa.subsequence-count",
    "xqa: the stretches of all sequences fit an int32, for a device as large as is accepted",
    source=FUNCTION_SOURCES["xqa"],
    expect="refuted",
    note="The recipe accepts any 32-bit unsigned count of multiprocessors.",
)
def subsequence_count() -> Claim:
    """256 requests with the longest cache, 128 heads of size 64."""
    device = symbol_int("multi_processor_count", IntDomain(1, 2**32 - 1))
    problem = _problem(64, batch=integer(256), capacity=integer(INT32_MAX))
    sizing = xqa.layout(problem, _xqa_config(device))
    value = sizing.layout.subsequence_count
    return Claim(value <= INT32_MAX, {"status is ok": sizing.ok}, shows={"stretches": value})
