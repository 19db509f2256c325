"""MatMulNBits: which route a problem takes, and the f32 weight that one of them dequantises.

Source: the CUDA MatMulNBits kernel of onnx-genai, August 2026 (ac9c7dd06); the dequantised weight
is one raw allocation per call there, and not governed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from routeproof.spec.function import Adapter, Function, Source
from routeproof.spec.recipe import SIZE_MAX
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import Bool, Enum, EnumSort, Int, all_of, any_of, integer, ite

from .tensors import MOST_EXTENTS, Tensor, extent, from_end, read_tensor
from .vocabulary import U64

__all__ = ["ROUTE", "Problem", "Weights", "function", "route", "rows", "weights"]

ROUTE = EnumSort(
    "f32_route",
    (
        "none",
        "dequant_cublas_gemm",
        "gemm_tiled_accuracy4",
        "gemv_accuracy4_blockwise_int8",
        "gemv_accuracy4_int8",
        "gemv_int8_f32",
        "gemv_int8_f32_block128",
        "gemv_f32_general_bs_int8",
        "gemv_int4_f32_block128",
        "gemv_f32_general_bs_int4",
        "gemv_f32",
    ),
)
_F16_WEIGHT_LIMIT = 1 << 30  # bytes
_F16_ROWS = 8


@dataclass(frozen=True, slots=True)
class Problem(Record):
    """The node's attributes and inputs: K and N are the weight's, `a` the activations."""

    K: U64
    N: U64
    bits: U64
    block_size: U64
    accuracy_level: U64
    a: Tensor
    zero_points: Bool
    group_indices: Bool
    bias: Bool


@dataclass(frozen=True, slots=True)
class Weights(Record):
    """Rows M, the route, and the bytes of a weight dequantised to f32; exact, whatever fits."""

    has_rows: Bool
    m: Int
    f32_route: Annotated[Enum, ROUTE]
    uses_dequant_f32: Bool
    uses_dequant_f16_head: Bool
    dequant_weight_bytes: Int


def rows(a: Tensor) -> Int:
    """M: the product of all extents but the last."""
    product: Int = integer(1)
    for place in range(MOST_EXTENTS):
        product = product * ite(a.rank > place + 1, extent(a, place), 1)
    return product


def dequantises(problem: Problem) -> Bool:
    """A is f32 and the weight is dequantised whole: the GEMM route."""
    tiled = all_of(problem.bits == 4, problem.accuracy_level == 4, problem.block_size == 32)
    gemm = any_of(problem.group_indices, all_of(rows(problem.a) != 1, ~tiled))
    return all_of(_fits(problem), problem.a.dtype == "f32", gemm)


def _fits(problem: Problem) -> Bool:
    return all_of(problem.a.rank >= 1, from_end(problem.a, 1) == problem.K)


def route(problem: Problem) -> Enum:
    """The f32 route, first match; none unless A is f32 with K columns."""
    bits, block, zeros = problem.bits, problem.block_size, problem.zero_points
    accurate = problem.accuracy_level == 4
    ladder = (
        (~all_of(_fits(problem), problem.a.dtype == "f32"), "none"),
        (dequantises(problem), "dequant_cublas_gemm"),
        (rows(problem.a) != 1, "gemm_tiled_accuracy4"),
        (all_of(bits == 4, accurate, block == 32, zeros), "gemv_accuracy4_blockwise_int8"),
        (all_of(bits == 4, accurate, block == 32), "gemv_accuracy4_int8"),
        (all_of(bits == 8, block == 32), "gemv_int8_f32"),
        (all_of(bits == 8, block == 128, zeros), "gemv_int8_f32_block128"),
        (bits == 8, "gemv_f32_general_bs_int8"),
        (all_of(block == 128, zeros), "gemv_int4_f32_block128"),
        (accurate, "gemv_f32_general_bs_int4"),
    )
    found: Enum = ROUTE["gemv_f32"]
    for guard, name in reversed(ladder):
        found = ite(guard, ROUTE[name], found)
    return found


def weights(problem: Problem) -> Weights:
    """The route and what it dequantises."""
    half = all_of(
        _fits(problem),
        problem.a.dtype.is_in("f16", "bf16"),
        rows(problem.a) >= _F16_ROWS,
        problem.K * problem.N * 2 <= _F16_WEIGHT_LIMIT,
        ~problem.group_indices,
    )
    used = dequantises(problem)
    return Weights(
        has_rows=problem.a.rank >= 1,
        m=rows(problem.a),
        f32_route=route(problem),
        uses_dequant_f32=used,
        uses_dequant_f16_head=half,
        dequant_weight_bytes=ite(used, problem.K * problem.N * 4, 0),
    )


def _read(data: Any, where: str) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(data, dict) or not {"a_dtype", "a_shape"} <= set(data):
        return data
    rest = {key: one for key, one in data.items() if key not in ("a_dtype", "a_shape")}
    a = {"dtype": data["a_dtype"], "shape": data["a_shape"], "present": True}
    return rest | {"a": read_tensor(a, f"{where}: a")}


def _write(_: Any, __: str, found: Any) -> Any:  # noqa: ANN401 - JSON
    bytes_ = found["dequant_weight_bytes"]
    return {
        "m": found["m"] if found["has_rows"] else None,
        "f32_route": None if found["f32_route"] == "none" else found["f32_route"],
        "uses_dequant_f32": found["uses_dequant_f32"],
        "uses_dequant_f16_head": found["uses_dequant_f16_head"],
        "dequant_weight_bytes": "overflow" if bytes_ > SIZE_MAX else bytes_,
    }


def function() -> Function:
    """`genai.matmul_nbits`."""
    inputs = symbols(Problem)
    return Function(
        "genai.matmul_nbits",
        "Routes and dequantised weights of MatMulNBits",
        Source("onnx-genai, CUDA plugin, MatMulNBits", "route choice", "ac9c7dd06"),
        inputs,
        {"out": weights(inputs)},
        adapter=Adapter(_read, _write),
    )
