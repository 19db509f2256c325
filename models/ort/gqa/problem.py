"""The vocabulary of ONNX Runtime's CUDA GroupQueryAttention: enumerators and input records.

Field names and enumerators are those of the public headers
`onnxruntime/contrib_ops/cuda/bert/group_query_attention_workspace.h` (revision bcdb68db) and
`group_query_attention_eligibility.h` (0994faae). Integers are the machine's 64-bit integers; which
of them a function accepts is part of that function. Nothing here computes a size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from routeproof.spec.recipe import status_sort
from routeproof.spec.records import EnumSet, Float32, Int64, Record
from routeproof.spec.terms import Bool, Enum, EnumSort

__all__ = [
    "AGGREGATE_BACKEND",
    "BACKEND",
    "CACHE_TYPE",
    "ELEMENT_TYPE",
    "HEAD_SINK_STORAGE",
    "INT32_MAX",
    "KV_TYPE",
    "PREPROCESS_MODE",
    "QUANTIZATION",
    "STATUS",
    "BoundsInput",
    "BoundsProblem",
    "ClassifierInput",
    "CompleteInput",
    "CompleteRoute",
    "EligibilityFacts",
    "FlashConfig",
    "FlashInput",
    "FlashRuntimeInput",
    "LadderFacts",
    "MemoryEfficientInput",
    "PreparationConfig",
    "PreparationInput",
    "Problem",
    "UnfusedConfig",
    "UnfusedInput",
    "XqaConfig",
    "XqaInput",
]

INT32_MAX = 2**31 - 1
STATUS = status_sort("invalid_argument", "overflow", "unavailable")
QUANTIZATION = EnumSort("quantization", ("none", "per_tensor", "per_channel", "invalid"))
PREPROCESS_MODE = EnumSort(
    "preprocess_mode", ("xqa", "flash", "memory_efficient", "unfused", "invalid")
)
BACKEND = EnumSort("backend", ("xqa", "cudnn", "flash", "memory_efficient", "unfused", "invalid"))
AGGREGATE_BACKEND = EnumSort(
    "aggregate_backend",
    ("xqa", "cudnn", "flash", "flash_fast_decode", "memory_efficient", "unfused"),
)
KV_TYPE = EnumSort("kv_type", ("none", "int8", "fp8", "invalid"))
HEAD_SINK_STORAGE = EnumSort(
    "head_sink_storage", ("none", "dynamic_conversion", "prepacked_fp32", "invalid")
)
ELEMENT_TYPE = EnumSort("element_type", ("fp16", "bf16"))
CACHE_TYPE = EnumSort("cache_type", ("fp16", "bf16", "int8", "uint8", "fp8"))

Quantization = Annotated[Enum, QUANTIZATION]


@dataclass(frozen=True, slots=True)
class Problem(Record):
    """One GQA invocation as every workspace recipe sees it (sizes in elements, not bytes)."""

    qkv_element_size: Int64
    cache_element_size: Int64
    batch_size: Int64
    sequence_length: Int64
    num_heads: Int64
    kv_num_heads: Int64
    head_size: Int64
    present_kv_cache_capacity: Int64
    past_kv_cache_capacity: Int64
    kv_cache_bit_width: Int64
    k_quantization: Quantization
    v_quantization: Quantization
    is_windowed_kv_cache: Bool
    is_first_prompt: Bool
    do_rotary: Bool
    is_packed_qkv: Bool
    use_qk_norm: Bool
    requires_separate_past_buffer: Bool


@dataclass(frozen=True, slots=True)
class PreparationConfig(Record):
    """The route that preparation prepares for."""

    preprocess_mode: Annotated[Enum, PREPROCESS_MODE]
    use_flash_attention_fast_decode: Bool


@dataclass(frozen=True, slots=True)
class XqaConfig(Record):
    """Device and cache facts of the XQA recipe."""

    device_major: Int64
    device_minor: Int64
    multi_processor_count: Int64
    kv_type: Annotated[Enum, KV_TYPE]
    head_sink_storage: Annotated[Enum, HEAD_SINK_STORAGE]
    is_bf16: Bool


@dataclass(frozen=True, slots=True)
class FlashConfig(Record):
    """Lengths and device facts of the Flash recipe; a window of -1 is no window."""

    total_sequence_length: Int64
    local_window_size: Int64
    multi_processor_count: Int64
    fast_decode: Bool


@dataclass(frozen=True, slots=True)
class UnfusedConfig(Record):
    """The KV length of the unfused recipe."""

    total_sequence_length: Int64


@dataclass(frozen=True, slots=True)
class CompleteRoute(Record):
    """Everything a complete route reads beside the problem; other backends' parts are ignored."""

    backend: Annotated[Enum, BACKEND]
    preparation: PreparationConfig
    xqa: XqaConfig
    flash: FlashConfig
    unfused: UnfusedConfig


@dataclass(frozen=True, slots=True)
class PreparationInput(Record):
    """Input of `ort.gqa.preparation`."""

    problem: Problem
    route: PreparationConfig


@dataclass(frozen=True, slots=True)
class XqaInput(Record):
    """Input of `ort.gqa.xqa`."""

    problem: Problem
    config: XqaConfig


@dataclass(frozen=True, slots=True)
class FlashInput(Record):
    """Input of `ort.gqa.flash`."""

    problem: Problem
    config: FlashConfig


@dataclass(frozen=True, slots=True)
class MemoryEfficientInput(Record):
    """Input of `ort.gqa.mea`."""

    problem: Problem
    effective_kv_cache_capacity: Int64


@dataclass(frozen=True, slots=True)
class UnfusedInput(Record):
    """Input of `ort.gqa.unfused`."""

    problem: Problem
    total_sequence_length: Int64


@dataclass(frozen=True, slots=True)
class CompleteInput(Record):
    """Input of `ort.gqa.complete`."""

    problem: Problem
    route: CompleteRoute


@dataclass(frozen=True, slots=True)
class BoundsProblem(Record):
    """Component-wise upper bounds, immutable facts and reachable backends of the aggregate."""

    qkv_element_size: Int64
    cache_element_size: Int64
    batch_size_bound: Int64
    sequence_length_bound: Int64
    num_heads: Int64
    kv_num_heads: Int64
    head_size_bound: Int64
    present_kv_cache_capacity_bound: Int64
    kv_cache_bit_width: Int64
    k_quantization: Quantization
    v_quantization: Quantization
    is_windowed_kv_cache: Bool
    do_rotary: Bool
    is_packed_qkv: Bool
    use_qk_norm: Bool
    prompt_reachable: Bool
    decode_reachable: Bool
    reachable_backends: Annotated[EnumSet, AGGREGATE_BACKEND]
    device_major: Int64
    device_minor: Int64
    multi_processor_count: Int64
    is_bf16: Bool
    xqa_kv_type: Annotated[Enum, KV_TYPE]
    xqa_head_sink_storage: Annotated[Enum, HEAD_SINK_STORAGE]
    head_sink_may_be_prepacked: Bool
    local_window_size: Int64


@dataclass(frozen=True, slots=True)
class BoundsInput(Record):
    """Input of `ort.gqa.bounds`."""

    bounds: BoundsProblem


@dataclass(frozen=True, slots=True)
class EligibilityFacts(Record):
    """Input of `ort.gqa.eligibility`: partition-time facts only."""

    element_type: Annotated[Enum, ELEMENT_TYPE]
    cache_type: Annotated[Enum, CACHE_TYPE]
    enable_xqa: Bool
    is_unidirectional: Bool
    has_attention_bias: Bool
    device_major: Int64
    device_minor: Int64
    softcap: Float32
    qk_norm_ok: Bool
    smooth_softmax_supported: Bool
    is_inputs_quantized: Bool
    head_size: Int64
    num_heads: Int64
    kv_num_heads: Int64
    k_quant_type: Quantization
    v_quant_type: Quantization
    use_smooth_softmax: Bool
    has_head_sink: Bool
    local_window_size: Int64
    past_kv_format_bnsh: Bool
    cudnn_enabled: Bool
    disable_flash_attention: Bool
    disable_memory_efficient_attention: Bool


@dataclass(frozen=True, slots=True)
class LadderFacts(Record):
    """Input of `ort.gqa.ladder`: what ComputeInternal reads to pick a route."""

    element_type: Annotated[Enum, ELEMENT_TYPE]
    cache_type: Annotated[Enum, CACHE_TYPE]
    k_quant_type: Quantization
    v_quant_type: Quantization
    kv_scales_same_tensor: Bool
    enable_xqa: Bool
    is_unidirectional: Bool
    has_attention_bias: Bool
    device_major: Int64
    device_minor: Int64
    is_first_prompt: Bool
    sequence_length: Int64
    kv_sequence_length: Int64
    past_key_shared: Bool
    past_value_shared: Bool
    softcap: Float32
    use_qk_norm: Bool
    smooth_softmax: Bool
    has_head_sink: Bool
    num_heads: Int64
    kv_num_heads: Int64
    head_size: Int64
    xqa_shared_memory_ok: Bool
    local_window_size: Int64
    past_kv_format_bnsh: Bool
    enable_cudnn_flash_attention: Bool
    auto_enable_cudnn_flash_attention: Bool
    cudnn_is_stable: Bool
    cudnn_is_supported: Bool
    disable_flash_attention: Bool
    disable_flash_decode: Bool
    disable_memory_efficient_attention: Bool
    is_windowed_kv_cache: Bool


@dataclass(frozen=True, slots=True)
class ClassifierInput(Record):
    """Input of `ort.gqa.classifier`."""

    batch_size: Int64
    sequence_length: Int64
    total_sequence_length: Int64
    total_sequence_length_on_cpu: Bool
    has_past: Bool
    past_sequence_length: Int64


@dataclass(frozen=True, slots=True)
class FlashRuntimeInput(Record):
    """Input of `ort.gqa.flash_runtime`."""

    batch_size: Int64
    sequence_length: Int64
    total_sequence_length: Int64
    num_heads: Int64
    kv_num_heads: Int64
    head_size: Int64
    multi_processor_count: Int64
    fast_decode: Bool
    local_window_size: Int64
    device_major: Int64
