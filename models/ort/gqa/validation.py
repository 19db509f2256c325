"""The checks that several recipes share, each stated once.

Sources, all under `onnxruntime/contrib_ops/cuda/bert/`: `group_query_attention_workspace.cc` and
`group_query_attention_workspace_xqa_flash.cc` (bcdb68db), and
`group_query_attention_workspace_mea_unfused.cc` (f3ecb97e).
"""

from __future__ import annotations

from routeproof.spec.recipe import Checks
from routeproof.spec.terms import Bool, Enum, Int, all_of, any_of

from .problem import INT32_MAX, Problem

__all__ = [
    "is_positive_int32",
    "is_quantized",
    "refused_by_fast_decode",
    "require_geometry",
    "require_unquantized",
    "same_name",
]


def is_positive_int32(*values: Int) -> Bool:
    """Every value lies in 1..INT32_MAX."""
    return all_of(*(all_of(value >= 1, value <= INT32_MAX) for value in values))


def is_quantized(k_quantization: Enum, v_quantization: Enum) -> Bool:
    """K or V is quantised; the enumerator `invalid` counts as quantised."""
    return any_of(k_quantization != "none", v_quantization != "none")


def same_name(one: Enum, two: Enum) -> Bool:
    """Both are the member of one name, whatever their sorts."""
    common = [name for name in one.members.members if name in two.members.members]
    return any_of(*(all_of(one == name, two == name) for name in common))


def require_geometry(checks: Checks, problem: Problem) -> None:
    """What every recipe asks of its shape: int32 extents, whole groups, 2-byte Q/K/V elements."""
    shape = is_positive_int32(
        problem.batch_size,
        problem.sequence_length,
        problem.num_heads,
        problem.kv_num_heads,
        problem.head_size,
    )
    whole_groups = problem.num_heads % problem.kv_num_heads == 0
    checks.require(shape & whole_groups & (problem.qkv_element_size == 2), "invalid_argument")


def require_unquantized(checks: Checks, problem: Problem, kv_length: Int) -> None:
    """The checks of MEA and unfused, in order; `kv_length` is in tokens.

    D % 8 and D <= 1024 are not among them.
    """
    require_geometry(checks, problem)
    quantized = is_quantized(problem.k_quantization, problem.v_quantization)
    checks.require(~quantized, "unavailable")
    checks.require(is_positive_int32(kv_length), "invalid_argument")


def refused_by_fast_decode(problem: Problem) -> Bool:
    """The invocation is one that Flash fast decode never serves."""
    return any_of(
        problem.is_first_prompt,
        problem.is_windowed_kv_cache,
        is_quantized(problem.k_quantization, problem.v_quantization),
        problem.use_qk_norm,
    )
