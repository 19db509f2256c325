"""The oracle's cases as documents that `routeproof bound` reads."""

from dataclasses import replace
from typing import Any

from bound.independent import Case

_CACHES = {
    ("fp16", 2, 0): "fp16",
    ("bf16", 2, 0): "bf16",
    ("int8", 1, 8): "int8",
    ("fp8", 1, 8): "fp8",
    ("uint8", 1, 4): "int4",
}


def usual(case: Case) -> Case | None:
    """The case, if a document can say it, with the capacity that a windowed cache has.

    Documents know neither quantised caches with unusual widths nor aliases of no past, and one
    scale tensor only where K and V are quantised alike.
    """
    node, envelope = case.node, case.envelope
    quantised = node.k_quantization != "none" or node.v_quantization != "none"
    cache = (node.cache_type, node.cache_element_size, node.kv_cache_bit_width)
    if cache not in _CACHES or quantised != (cache[1] == 1):
        return None
    alike = quantised and node.k_quantization == node.v_quantization
    node = replace(node, kv_scales_same_tensor=alike and node.kv_scales_same_tensor)
    if node.is_windowed_kv_cache:
        envelope = replace(envelope, past_capacity=node.local_window_size)
    return case._replace(node=node, envelope=envelope) if envelope.past_capacity else None


def document(case: Case, revision: str, alias: str = "any") -> dict[str, Any]:
    """The case as a document."""
    node, device, options, envelope = case
    cache = (node.cache_type, node.cache_element_size, node.kv_cache_bit_width)
    return {
        "node": {
            "num_heads": node.num_heads,
            "kv_num_heads": node.kv_num_heads,
            "head_size": node.head_size,
            "type": node.element_type,
            "cache": _CACHES[cache],
            "quantization": node.k_quantization,
            "v_quantization": node.v_quantization,
            "same_scale_tensor": node.kv_scales_same_tensor,
            "rotary": node.do_rotary,
            "packed": node.is_packed_qkv,
            "qk_norm": node.use_qk_norm,
            "window": node.local_window_size if node.local_window_size > 0 else "none",
            "windowed_cache": node.is_windowed_kv_cache,
            "softcap": node.softcap,
            "smooth_softmax": node.smooth_softmax,
            "head_sink": node.head_sink_storage,
            "attention_bias": node.has_attention_bias,
            "causal": node.is_unidirectional,
        },
        "device": {"sm": f"{device.major}.{device.minor}", "sms": device.sms},
        "kernel_options": {
            "xqa": options.enable_xqa,
            "cudnn": options.cudnn,
            "flash": not options.disable_flash,
            "flash_decode": not options.disable_flash_decode,
            "memory_efficient": not options.disable_mea,
        },
        "envelope": {
            "batch": list(envelope.batch),
            "query": list(envelope.query),
            "total": list(envelope.total),
            "past_capacity": envelope.past_capacity,
            "allow_query_above_total": envelope.allow_query_above_total,
        },
        "ladder": revision,
        "alias": alias,
    }
