"""Which routes the partition-time facts allow, whatever a Run brings.

Source: `onnxruntime/contrib_ops/cuda/bert/group_query_attention_eligibility.h` (0994faae), the
predicates named `IsGQA...EligibleSeqFree`. None is monotone in head size or group size: rejecting
the largest geometry does not exclude smaller ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.spec.function import Function, Source
from routeproof.spec.records import Record, symbols
from routeproof.spec.terms import Bool, Enum, all_of, float32, implies

from .capabilities import (
    flash_supports,
    has_fp8,
    mea_has_kernel,
    xqa_has_group_size,
    xqa_has_head_size,
)
from .guard import Guard
from .problem import STATUS, EligibilityFacts
from .validation import same_name

__all__ = [
    "EligibilityOutput",
    "cudnn_core",
    "eligibility",
    "flash_core",
    "function",
    "mea_core",
    "xqa_core",
]


@dataclass(frozen=True, slots=True)
class EligibilityOutput(Record):
    """Output of `ort.gqa.eligibility`."""

    status: Enum
    xqa: Bool
    cudnn_sdpa_core: Bool
    flash: Bool
    memory_efficient: Bool


def _has_xqa_cache(facts: EligibilityFacts) -> Bool:
    """Quantised inputs need an 8-bit cache with supported scales; others compare no types."""
    scales = ("per_tensor", "per_channel")
    return implies(
        facts.is_inputs_quantized,
        all_of(
            facts.cache_type.is_in("int8", "fp8"),
            facts.k_quant_type.is_in(*scales),
            facts.v_quant_type.is_in(*scales),
        ),
    )


def xqa_core(facts: EligibilityFacts) -> Guard:
    """The core of XQA, before phase, aliasing and the shared-memory probe."""
    quantized = facts.is_inputs_quantized
    fp8_cache = all_of(quantized, facts.cache_type == "fp8")
    group = xqa_has_group_size(facts.num_heads, facts.kv_num_heads, quantized)
    return Guard(
        (
            ("enabled", facts.enable_xqa),
            ("unidirectional", facts.is_unidirectional),
            ("no_attention_bias", ~facts.has_attention_bias),
            ("device", facts.device_major >= 8),
            ("no_softcap", facts.softcap == float32(0.0)),
            ("qk_norm", facts.qk_norm_ok),
            ("smooth_softmax", facts.smooth_softmax_supported),
            ("cache", _has_xqa_cache(facts)),
            ("fp8_device", implies(fp8_cache, has_fp8(facts.device_major, facts.device_minor))),
            ("head_size", xqa_has_head_size(facts.head_size)),
            ("group_size", group),
        )
    )


def cudnn_core(facts: EligibilityFacts) -> Guard:
    """The core of cuDNN SDPA, before its probes is_stable and is_supported."""
    return Guard(
        (
            ("no_attention_bias", ~facts.has_attention_bias),
            ("unquantized", ~facts.is_inputs_quantized),
            ("same_type", same_name(facts.element_type, facts.cache_type)),
            ("no_softcap", facts.softcap == float32(0.0)),
            ("no_smooth_softmax", ~facts.use_smooth_softmax),
            ("no_head_sink", ~facts.has_head_sink),
            ("no_local_window", facts.local_window_size == -1),
            ("bnsh_past", facts.past_kv_format_bnsh),
            ("enabled", facts.cudnn_enabled),
        )
    )


def flash_core(facts: EligibilityFacts) -> Guard:
    """The core of Flash, which is its whole guard."""
    supported = flash_supports(
        facts.device_major, facts.head_size, facts.num_heads, facts.kv_num_heads
    )
    return Guard(
        (
            ("no_attention_bias", ~facts.has_attention_bias),
            ("enabled", ~facts.disable_flash_attention),
            ("supported", supported),
        )
    )


def mea_core(facts: EligibilityFacts) -> Guard:
    """The core of MEA, which is its whole guard."""
    kernel = mea_has_kernel(
        facts.element_type, facts.device_major, facts.device_minor, facts.head_size
    )
    return Guard(
        (
            ("enabled", ~facts.disable_memory_efficient_attention),
            ("unquantized", ~facts.is_inputs_quantized),
            ("no_attention_bias", ~facts.has_attention_bias),
            ("kernel", kernel),
        )
    )


def eligibility(facts: EligibilityFacts) -> EligibilityOutput:
    """Every core at once; the status is always ok."""
    return EligibilityOutput(
        status=STATUS["ok"],
        xqa=xqa_core(facts).holds,
        cudnn_sdpa_core=cudnn_core(facts).holds,
        flash=flash_core(facts).holds,
        memory_efficient=mea_core(facts).holds,
    )


def function() -> Function:
    """`ort.gqa.eligibility`."""
    inputs = symbols(EligibilityFacts)
    return Function(
        "ort.gqa.eligibility",
        "Routes that partition-time facts allow",
        Source(
            "onnxruntime/contrib_ops/cuda/bert/group_query_attention_eligibility.h",
            "IsGQA...EligibleSeqFree",
            "0994faae",
        ),
        inputs,
        {"out": eligibility(inputs)},
    )
