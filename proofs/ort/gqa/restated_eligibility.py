"""Restates the seq-free eligibility: which routes partition-time facts alone do not rule out.

Source: group_query_attention_eligibility.h, ONNX Runtime, onnxruntime/contrib_ops/cuda/bert/,
revision 0994faae; `flash_is_supported` is flash_attention/flash_api.cc, revision 81fd9888. Head
sizes are in elements; the device version is (major, minor).
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import STATUS, EligibilityFacts
from routeproof.proofs.ort.gqa.restated_common import Fields
from routeproof.proofs.ort.gqa.restated_flash_runtime import flash_is_supported
from routeproof.spec.terms import Bool, Enum, Int, all_of, any_of, float32, ite

__all__ = [
    "cudnn_core",
    "cudnn_core_whatever_format",
    "eligibility",
    "flash_core",
    "has_memory_efficient_kernel",
    "memory_efficient_core",
    "same_type",
    "xqa_core",
    "xqa_geometry",
    "xqa_quantized_cache",
]


def same_type(element_type: Enum, cache_type: Enum) -> Bool:
    """Q and the cache have one type; an integer or FP8 cache never has Q's."""
    return any_of(*((element_type == name) & (cache_type == name) for name in ("fp16", "bf16")))


def xqa_geometry(head_size: Int, num_heads: Int, kv_num_heads: Int, quantized: Bool) -> Bool:
    """A kernel is compiled for the head size (elements) and the group size of this cache.

    The group size is an integer quotient: that it is whole is not looked at here.
    """
    group = num_heads // kv_num_heads
    return all_of(
        head_size.is_in(64, 128, 256),
        ite(quantized, group.is_in(4, 8, 16, 32), group.is_in(1, 2, 4, 5, 8, 16, 32)),
    )


def xqa_quantized_cache(cache_type: Enum, major: Int, minor: Int) -> Bool:
    """The cache is int8, or FP8 on a device of compute capability 8.9 or at least 9.0."""
    fp8_device = (major >= 9) | ((major == 8) & (minor == 9))
    return (cache_type == "int8") | ((cache_type == "fp8") & fp8_device)


def xqa_core(facts: EligibilityFacts) -> Bool:
    """XQA may run: the types are looked at only when the inputs are quantised."""
    f = facts
    scaled = all_of(
        f.k_quant_type.is_in("per_tensor", "per_channel"),
        f.v_quant_type.is_in("per_tensor", "per_channel"),
        xqa_quantized_cache(f.cache_type, f.device_major, f.device_minor),
    )
    return all_of(
        f.enable_xqa,
        f.is_unidirectional,
        ~f.has_attention_bias,
        f.device_major >= 8,
        f.softcap == float32(0.0),
        f.qk_norm_ok,
        f.smooth_softmax_supported,
        ~f.is_inputs_quantized | scaled,
        xqa_geometry(f.head_size, f.num_heads, f.kv_num_heads, f.is_inputs_quantized),
    )


def cudnn_core_whatever_format(facts: EligibilityFacts) -> Bool:
    """The cuDNN SDPA route may run if the past turns out to be BNSH."""
    f = facts
    return all_of(
        f.cudnn_enabled,
        ~f.has_attention_bias,
        ~f.is_inputs_quantized,
        same_type(f.element_type, f.cache_type),
        f.softcap == float32(0.0),
        ~f.use_smooth_softmax,
        ~f.has_head_sink,
        f.local_window_size == -1,
    )


def cudnn_core(facts: EligibilityFacts) -> Bool:
    """The cuDNN SDPA route may run."""
    return cudnn_core_whatever_format(facts) & facts.past_kv_format_bnsh


def flash_core(facts: EligibilityFacts) -> Bool:
    """Flash may run."""
    f = facts
    supported = flash_is_supported(f.device_major, f.head_size, f.num_heads, f.kv_num_heads)
    return all_of(~f.has_attention_bias, ~f.disable_flash_attention, supported)


def has_memory_efficient_kernel(facts: EligibilityFacts) -> Bool:
    """A kernel exists for the head size, and for the element type on this device."""
    f = facts
    fp16_device = (f.device_major > 5) | ((f.device_major == 5) & (f.device_minor >= 3))
    device = ite(f.element_type == "fp16", fp16_device, f.device_major >= 8)
    return all_of(f.head_size % 8 == 0, f.head_size <= 1024, device)


def memory_efficient_core(facts: EligibilityFacts) -> Bool:
    """MEA may run."""
    f = facts
    return all_of(
        ~f.disable_memory_efficient_attention,
        ~f.is_inputs_quantized,
        ~f.has_attention_bias,
        has_memory_efficient_kernel(f),
    )


def eligibility(facts: EligibilityFacts) -> Fields:
    """Every output field; there is no failing status."""
    return {
        "status": STATUS["ok"],
        "xqa": xqa_core(facts),
        "cudnn_sdpa_core": cudnn_core(facts),
        "flash": flash_core(facts),
        "memory_efficient": memory_efficient_core(facts),
    }
