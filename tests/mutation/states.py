"""States of the modelled functions, written as what differs from a plain call."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["State", "at", "leaves"]

Json = Any

_PROBLEM: Mapping[str, Json] = {
    "qkv_element_size": 2,
    "cache_element_size": 2,
    "batch_size": 1,
    "sequence_length": 1,
    "num_heads": 8,
    "kv_num_heads": 2,
    "head_size": 64,
    "present_kv_cache_capacity": 1024,
    "past_kv_cache_capacity": 0,
    "kv_cache_bit_width": 0,
    "k_quantization": "none",
    "v_quantization": "none",
    "is_windowed_kv_cache": False,
    "is_first_prompt": False,
    "do_rotary": False,
    "is_packed_qkv": False,
    "use_qk_norm": False,
    "requires_separate_past_buffer": False,
}
_PREPARATION = {"preprocess_mode": "flash", "use_flash_attention_fast_decode": False}
_XQA = {
    "device_major": 8,
    "device_minor": 0,
    "multi_processor_count": 108,
    "kv_type": "none",
    "head_sink_storage": "none",
    "is_bf16": False,
}
_FLASH = {
    "total_sequence_length": 1024,
    "local_window_size": -1,
    "multi_processor_count": 108,
    "fast_decode": False,
}
_BOUNDS = {
    "qkv_element_size": 2,
    "cache_element_size": 2,
    "batch_size_bound": 1,
    "sequence_length_bound": 64,
    "num_heads": 8,
    "kv_num_heads": 2,
    "head_size_bound": 64,
    "present_kv_cache_capacity_bound": 1024,
    "kv_cache_bit_width": 0,
    "k_quantization": "none",
    "v_quantization": "none",
    "is_windowed_kv_cache": False,
    "do_rotary": False,
    "is_packed_qkv": False,
    "use_qk_norm": False,
    "prompt_reachable": True,
    "decode_reachable": True,
    "reachable_backends": ["flash"],
    "device_major": 8,
    "device_minor": 0,
    "multi_processor_count": 108,
    "is_bf16": False,
    "xqa_kv_type": "none",
    "xqa_head_sink_storage": "none",
    "head_sink_may_be_prepacked": False,
    "local_window_size": -1,
}
_ELIGIBILITY = {
    "element_type": "fp16",
    "cache_type": "fp16",
    "enable_xqa": True,
    "is_unidirectional": True,
    "has_attention_bias": False,
    "device_major": 8,
    "device_minor": 0,
    "softcap": 0.0,
    "qk_norm_ok": True,
    "smooth_softmax_supported": True,
    "is_inputs_quantized": False,
    "head_size": 64,
    "num_heads": 8,
    "kv_num_heads": 2,
    "k_quant_type": "none",
    "v_quant_type": "none",
    "use_smooth_softmax": False,
    "has_head_sink": False,
    "local_window_size": -1,
    "past_kv_format_bnsh": True,
    "cudnn_enabled": True,
    "disable_flash_attention": False,
    "disable_memory_efficient_attention": False,
}
# The ladder's plain Run takes XQA; turned off, it takes fast decode.
_LADDER = {
    "element_type": "fp16",
    "cache_type": "fp16",
    "k_quant_type": "none",
    "v_quant_type": "none",
    "kv_scales_same_tensor": False,
    "enable_xqa": True,
    "is_unidirectional": True,
    "has_attention_bias": False,
    "device_major": 8,
    "device_minor": 0,
    "is_first_prompt": False,
    "sequence_length": 1,
    "kv_sequence_length": 1,
    "past_key_shared": True,
    "past_value_shared": True,
    "softcap": 0.0,
    "use_qk_norm": False,
    "smooth_softmax": False,
    "has_head_sink": False,
    "num_heads": 8,
    "kv_num_heads": 2,
    "head_size": 64,
    "xqa_shared_memory_ok": True,
    "local_window_size": -1,
    "past_kv_format_bnsh": True,
    "enable_cudnn_flash_attention": False,
    "auto_enable_cudnn_flash_attention": False,
    "cudnn_is_stable": True,
    "cudnn_is_supported": True,
    "disable_flash_attention": False,
    "disable_flash_decode": False,
    "disable_memory_efficient_attention": False,
    "is_windowed_kv_cache": False,
}
_PLAIN: Mapping[str, Json] = {
    "ort.gqa.preparation": {"problem": _PROBLEM, "route": _PREPARATION},
    "ort.gqa.xqa": {"problem": _PROBLEM, "config": _XQA},
    "ort.gqa.flash": {"problem": _PROBLEM, "config": _FLASH},
    "ort.gqa.mea": {"problem": _PROBLEM, "effective_kv_cache_capacity": 1024},
    "ort.gqa.unfused": {"problem": _PROBLEM, "total_sequence_length": 1024},
    "ort.gqa.complete": {
        "problem": _PROBLEM,
        "route": {
            "backend": "flash",
            "preparation": _PREPARATION,
            "xqa": _XQA,
            "flash": _FLASH,
            "unfused": {"total_sequence_length": 1024},
        },
    },
    "ort.gqa.bounds": {"bounds": _BOUNDS},
    "ort.gqa.eligibility": _ELIGIBILITY,
    "ort.gqa.ladder": _LADDER,
    "ort.gqa.classifier": {
        "batch_size": 1,
        "sequence_length": 1,
        "total_sequence_length": 64,
        "total_sequence_length_on_cpu": True,
        "has_past": True,
        "past_sequence_length": 63,
    },
    "ort.gqa.flash_runtime": {
        "batch_size": 1,
        "sequence_length": 1,
        "total_sequence_length": 1024,
        "num_heads": 8,
        "kv_num_heads": 2,
        "head_size": 64,
        "multi_processor_count": 108,
        "fast_decode": False,
        "local_window_size": -1,
        "device_major": 8,
    },
}


@dataclass(frozen=True, slots=True)
class State:
    """An input of a modelled function: all of it, and what of it was moved from the plain call."""

    function: str
    inputs: Mapping[str, Json]
    moved: Mapping[str, Json]

    @property
    def row(self) -> Mapping[str, Json]:
        """The input as `routeproof eval` reads it."""
        return {"in": self.inputs}


def at(function: str, **moved: Json) -> State:
    """A plain call of `ort.gqa.<function>` with every field of the given names moved."""
    name = f"ort.gqa.{function}"
    inputs = copy.deepcopy(_PLAIN[name])
    for field, value in moved.items():
        if not _move(inputs, field, value):
            raise KeyError(f"{name} has no field {field!r}")
    return State(name, inputs, moved)


def _move(record: dict[str, Json], field: str, value: Json) -> bool:
    """Move every field of that name, however deep; whether there was one."""
    inner = [_move(part, field, value) for part in record.values() if isinstance(part, dict)]
    if field in record:
        record[field] = value
    return field in record or any(inner)


def leaves(record: Mapping[str, Json], path: str = "") -> Iterator[tuple[str, Json]]:
    """The fields of a nested record with their dotted paths."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
