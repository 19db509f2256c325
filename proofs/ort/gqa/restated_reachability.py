"""Restates which outcomes of the ladder some Run can reach, from static facts alone.

Source: group_query_attention.cc, ComputeInternal, ONNX Runtime, onnxruntime/contrib_ops/cuda/bert/,
in two revisions: `older` is mid 2026, `newest` is bcdb68db.

A Run chooses is_first_prompt, sequence_length, kv_sequence_length, past_key_shared,
past_value_shared, past_kv_format_bnsh, xqa_shared_memory_ok, cudnn_is_stable and
cudnn_is_supported; nothing here mentions them. Every Run-dependent guard can be made to fail (a
first prompt leaves XQA and fast decode, a failing probe leaves cuDNN), so of the routes above only
the Flash and MEA cores, which no Run changes, can hide a route. A route that a core or bias check
already excludes is not excluded again.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import LadderFacts
from routeproof.proofs.ort.gqa.restated_eligibility import (
    cudnn_core_whatever_format,
    flash_core,
    memory_efficient_core,
    xqa_core,
)
from routeproof.proofs.ort.gqa.restated_routing import (
    attention_bias_with_quantized_cache,
    attention_bias_with_smooth_softmax_or_head_sink,
    bias_is_served,
    case_a_newest,
    case_a_older,
    is_quantized,
    is_smooth,
    memory_efficient_core_older,
    partition_facts,
    unfused_has_type,
    xqa_core_older,
)
from routeproof.spec.terms import Bool, all_of

__all__ = [
    "reachable_attention_bias_with_quantized_cache_newest",
    "reachable_attention_bias_with_quantized_cache_older",
    "reachable_attention_bias_with_smooth_softmax_or_head_sink_newest",
    "reachable_attention_bias_with_smooth_softmax_or_head_sink_older",
    "reachable_cudnn_newest",
    "reachable_cudnn_older",
    "reachable_flash_fast_decode_newest",
    "reachable_flash_fast_decode_older",
    "reachable_flash_newest",
    "reachable_flash_older",
    "reachable_memory_efficient_newest",
    "reachable_memory_efficient_older",
    "reachable_newest",
    "reachable_no_route_newest",
    "reachable_no_route_older",
    "reachable_no_route_quantized_cache_newest",
    "reachable_no_route_quantized_cache_older",
    "reachable_older",
    "reachable_partial_past_present_alias_older",
    "reachable_unfused_cache_type_mismatch_newest",
    "reachable_unfused_cache_type_mismatch_older",
    "reachable_unfused_newest",
    "reachable_unfused_older",
    "reachable_windowed_cache_requires_alias_newest",
    "reachable_xqa_newest",
    "reachable_xqa_older",
]


# The newest revision, bcdb68db.


def reachable_xqa_newest(facts: LadderFacts) -> Bool:
    """The seq-free core."""
    return xqa_core(partition_facts(facts))


def reachable_cudnn_newest(facts: LadderFacts) -> Bool:
    """The core, the past format aside."""
    return cudnn_core_whatever_format(partition_facts(facts))


def reachable_flash_newest(facts: LadderFacts) -> Bool:
    """The Flash core."""
    return flash_core(partition_facts(facts))


def reachable_flash_fast_decode_newest(facts: LadderFacts) -> Bool:
    """The Flash core, decode enabled, and a plain cache: no quantisation, QK-norm or window."""
    return all_of(
        flash_core(partition_facts(facts)),
        ~facts.disable_flash_decode,
        ~is_quantized(facts),
        ~facts.use_qk_norm,
        ~facts.is_windowed_kv_cache,
    )


def reachable_memory_efficient_newest(facts: LadderFacts) -> Bool:
    """The MEA core without the Flash core."""
    partition = partition_facts(facts)
    return memory_efficient_core(partition) & ~flash_core(partition)


def reachable_unfused_newest(facts: LadderFacts) -> Bool:
    """Case B, and a cache of Q's type, unquantised, with plain softmax."""
    plain = ~is_quantized(facts) & ~is_smooth(facts)
    return ~case_a_newest(facts) & plain & unfused_has_type(facts)


def reachable_unfused_cache_type_mismatch_newest(facts: LadderFacts) -> Bool:
    """As unfused, on a cache of another type."""
    plain = ~is_quantized(facts) & ~is_smooth(facts)
    return ~case_a_newest(facts) & plain & ~unfused_has_type(facts)


def reachable_no_route_quantized_cache_newest(facts: LadderFacts) -> Bool:
    """Case B on a quantised cache."""
    return ~case_a_newest(facts) & is_quantized(facts) & ~facts.has_attention_bias


def reachable_no_route_newest(facts: LadderFacts) -> Bool:
    """Case B on an unquantised cache: a past that is not BNSH has no route."""
    return ~case_a_newest(facts) & ~is_quantized(facts) & bias_is_served(facts)


def reachable_windowed_cache_requires_alias_newest(facts: LadderFacts) -> Bool:
    """A windowed cache: nothing static makes past and present one buffer."""
    return facts.is_windowed_kv_cache & bias_is_served(facts)


def reachable_attention_bias_with_quantized_cache_newest(facts: LadderFacts) -> Bool:
    """Every Run fails: bias on a quantised cache."""
    return attention_bias_with_quantized_cache(facts)


def reachable_attention_bias_with_smooth_softmax_or_head_sink_newest(facts: LadderFacts) -> Bool:
    """Every Run fails: bias with smooth softmax on an unquantised cache."""
    return attention_bias_with_smooth_softmax_or_head_sink(facts)


def reachable_newest(facts: LadderFacts) -> dict[str, Bool]:
    """By outcome of the newest revision, whether some Run can reach it."""
    return {
        "xqa": reachable_xqa_newest(facts),
        "cudnn": reachable_cudnn_newest(facts),
        "flash": reachable_flash_newest(facts),
        "flash_fast_decode": reachable_flash_fast_decode_newest(facts),
        "memory_efficient": reachable_memory_efficient_newest(facts),
        "unfused": reachable_unfused_newest(facts),
        "attention_bias_with_quantized_cache": (
            reachable_attention_bias_with_quantized_cache_newest(facts)
        ),
        "attention_bias_with_smooth_softmax_or_head_sink": (
            reachable_attention_bias_with_smooth_softmax_or_head_sink_newest(facts)
        ),
        "windowed_cache_requires_alias": reachable_windowed_cache_requires_alias_newest(facts),
        "unfused_cache_type_mismatch": reachable_unfused_cache_type_mismatch_newest(facts),
        "no_route_quantized_cache": reachable_no_route_quantized_cache_newest(facts),
        "no_route": reachable_no_route_newest(facts),
    }


# The older revision, mid 2026.


def reachable_xqa_older(facts: LadderFacts) -> Bool:
    """What XQA asks at partition time."""
    return xqa_core_older(facts)


def reachable_cudnn_older(facts: LadderFacts) -> Bool:
    """The core, the past format aside."""
    return cudnn_core_whatever_format(partition_facts(facts))


def reachable_flash_older(facts: LadderFacts) -> Bool:
    """The Flash core."""
    return flash_core(partition_facts(facts))


def reachable_flash_fast_decode_older(facts: LadderFacts) -> Bool:
    """The Flash core, decode enabled, and a cache without quantisation or QK-norm."""
    return all_of(
        flash_core(partition_facts(facts)),
        ~facts.disable_flash_decode,
        ~is_quantized(facts),
        ~facts.use_qk_norm,
    )


def reachable_memory_efficient_older(facts: LadderFacts) -> Bool:
    """The MEA core, a quantised cache included, without the Flash core."""
    return memory_efficient_core_older(facts) & ~flash_core(partition_facts(facts))


def reachable_unfused_older(facts: LadderFacts) -> Bool:
    """Case B, and a cache of Q's type, unquantised, with plain softmax."""
    plain = ~is_quantized(facts) & ~is_smooth(facts)
    return ~case_a_older(facts) & plain & unfused_has_type(facts)


def reachable_unfused_cache_type_mismatch_older(facts: LadderFacts) -> Bool:
    """As unfused, on a cache of another type."""
    plain = ~is_quantized(facts) & ~is_smooth(facts)
    return ~case_a_older(facts) & plain & ~unfused_has_type(facts)


def reachable_no_route_quantized_cache_older(facts: LadderFacts) -> Bool:
    """Case B on a quantised cache."""
    return ~case_a_older(facts) & is_quantized(facts) & ~facts.has_attention_bias


def reachable_no_route_older(facts: LadderFacts) -> Bool:
    """Case B on an unquantised cache: a past that is not BNSH has no route."""
    return ~case_a_older(facts) & ~is_quantized(facts) & bias_is_served(facts)


def reachable_partial_past_present_alias_older(facts: LadderFacts) -> Bool:
    """Any node that bias does not stop: nothing static makes the two pairs alias alike."""
    return bias_is_served(facts)


def reachable_attention_bias_with_quantized_cache_older(facts: LadderFacts) -> Bool:
    """Every Run fails: bias on a quantised cache."""
    return attention_bias_with_quantized_cache(facts)


def reachable_attention_bias_with_smooth_softmax_or_head_sink_older(facts: LadderFacts) -> Bool:
    """Every Run fails: bias with smooth softmax on an unquantised cache."""
    return attention_bias_with_smooth_softmax_or_head_sink(facts)


def reachable_older(facts: LadderFacts) -> dict[str, Bool]:
    """By outcome of the older revision, whether some Run can reach it."""
    return {
        "xqa": reachable_xqa_older(facts),
        "cudnn": reachable_cudnn_older(facts),
        "flash": reachable_flash_older(facts),
        "flash_fast_decode": reachable_flash_fast_decode_older(facts),
        "memory_efficient": reachable_memory_efficient_older(facts),
        "unfused": reachable_unfused_older(facts),
        "attention_bias_with_quantized_cache": (
            reachable_attention_bias_with_quantized_cache_older(facts)
        ),
        "attention_bias_with_smooth_softmax_or_head_sink": (
            reachable_attention_bias_with_smooth_softmax_or_head_sink_older(facts)
        ),
        "partial_past_present_alias": reachable_partial_past_present_alias_older(facts),
        "unfused_cache_type_mismatch": reachable_unfused_cache_type_mismatch_older(facts),
        "no_route_quantized_cache": reachable_no_route_quantized_cache_older(facts),
        "no_route": reachable_no_route_older(facts),
    }
