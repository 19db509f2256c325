"""Restates the run-time ladder: the exact condition of every outcome, one definition each.

Source: group_query_attention.cc, ComputeInternal, ONNX Runtime, onnxruntime/contrib_ops/cuda/bert/,
in two revisions: `older` is mid 2026, `newest` is bcdb68db, the revision the recipes belong to.
Lengths are tokens. "Quantised" is K or V with a quantisation type, and a head sink implies smooth
softmax.

No outcome is defined by its place in a list: each states all that has to hold and all that must
not. Which outcomes some Run can reach is in `restated_reachability`, the phases are in
`restated_phases`, the cores in `restated_eligibility`.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import EligibilityFacts, LadderFacts
from routeproof.proofs.ort.gqa.restated_common import Fields
from routeproof.proofs.ort.gqa.restated_eligibility import (
    cudnn_core,
    flash_core,
    has_memory_efficient_kernel,
    memory_efficient_core,
    same_type,
    xqa_core,
    xqa_geometry,
    xqa_quantized_cache,
)
from routeproof.spec.terms import Bool, EnumSort, all_of, any_of, float32, ite

__all__ = [
    "LADDER_ERROR",
    "LADDER_ROUTE",
    "LADDER_STATUS",
    "attention_bias_with_quantized_cache",
    "attention_bias_with_smooth_softmax_or_head_sink",
    "bias_is_served",
    "case_a_newest",
    "case_a_older",
    "cudnn_newest",
    "cudnn_older",
    "flash_fast_decode_newest",
    "flash_fast_decode_older",
    "flash_newest",
    "flash_older",
    "is_quantized",
    "is_smooth",
    "ladder_newest",
    "ladder_older",
    "memory_efficient_core_older",
    "memory_efficient_newest",
    "memory_efficient_older",
    "no_route_newest",
    "no_route_older",
    "no_route_quantized_cache_newest",
    "no_route_quantized_cache_older",
    "outcomes_newest",
    "outcomes_older",
    "partial_past_present_alias_older",
    "partition_facts",
    "unfused_cache_type_mismatch_newest",
    "unfused_cache_type_mismatch_older",
    "unfused_newest",
    "unfused_older",
    "windowed_cache_requires_alias_newest",
    "xqa_core_older",
    "xqa_newest",
    "xqa_older",
]

FAILURES = {
    "attention_bias_with_quantized_cache": "not_implemented",
    "attention_bias_with_smooth_softmax_or_head_sink": "not_implemented",
    "partial_past_present_alias": "fail",
    "windowed_cache_requires_alias": "fail",
    "unfused_cache_type_mismatch": "not_implemented",
    "no_route_quantized_cache": "not_implemented",
    "no_route": "invalid_argument",
}
ROUTES = ("xqa", "cudnn", "flash", "flash_fast_decode", "memory_efficient", "unfused")

LADDER_STATUS = EnumSort("ladder_status", ("ok", "invalid_argument", "not_implemented", "fail"))
LADDER_ERROR = EnumSort("ladder_error", ("none", *FAILURES))
LADDER_ROUTE = EnumSort("ladder_route", (*ROUTES, "error"))


# What both revisions share.


def is_quantized(facts: LadderFacts) -> Bool:
    """K or V has a quantisation type."""
    return (facts.k_quant_type != "none") | (facts.v_quant_type != "none")


def is_smooth(facts: LadderFacts) -> Bool:
    """Smooth softmax, asked for or implied by a head sink."""
    return facts.smooth_softmax | facts.has_head_sink


def is_shared(facts: LadderFacts) -> Bool:
    """Both past tensors share the buffer of their present."""
    return facts.past_key_shared & facts.past_value_shared


def partition_facts(facts: LadderFacts) -> EligibilityFacts:
    """What the eligibility functions are given; the three resolved facts are resolved here."""
    f = facts
    quantized, smooth = is_quantized(f), is_smooth(f)
    automatic = f.auto_enable_cudnn_flash_attention & (f.device_major >= 9)
    return EligibilityFacts(
        element_type=f.element_type,
        cache_type=f.cache_type,
        enable_xqa=f.enable_xqa,
        is_unidirectional=f.is_unidirectional,
        has_attention_bias=f.has_attention_bias,
        device_major=f.device_major,
        device_minor=f.device_minor,
        softcap=f.softcap,
        qk_norm_ok=~(f.use_qk_norm & quantized),
        smooth_softmax_supported=~smooth | f.has_head_sink,
        is_inputs_quantized=quantized,
        head_size=f.head_size,
        num_heads=f.num_heads,
        kv_num_heads=f.kv_num_heads,
        k_quant_type=f.k_quant_type,
        v_quant_type=f.v_quant_type,
        use_smooth_softmax=smooth,
        has_head_sink=f.has_head_sink,
        local_window_size=f.local_window_size,
        past_kv_format_bnsh=f.past_kv_format_bnsh,
        cudnn_enabled=f.enable_cudnn_flash_attention | automatic,
        disable_flash_attention=f.disable_flash_attention,
        disable_memory_efficient_attention=f.disable_memory_efficient_attention,
    )


def attention_bias_with_quantized_cache(facts: LadderFacts) -> Bool:
    """The first check: bias is not implemented on a quantised cache."""
    return facts.has_attention_bias & is_quantized(facts)


def attention_bias_with_smooth_softmax_or_head_sink(facts: LadderFacts) -> Bool:
    """The second check: bias is not implemented with smooth softmax."""
    return facts.has_attention_bias & ~is_quantized(facts) & is_smooth(facts)


def bias_is_served(facts: LadderFacts) -> Bool:
    """Both bias checks pass."""
    return ~(facts.has_attention_bias & (is_quantized(facts) | is_smooth(facts)))


def xqa_runs(facts: LadderFacts) -> Bool:
    """What XQA asks of a Run: one token after others, in one buffer, and room in shared memory."""
    f = facts
    return all_of(
        ~f.is_first_prompt,
        f.sequence_length == 1,
        f.kv_sequence_length > 0,
        is_shared(f),
        f.xqa_shared_memory_ok,
    )


def cudnn_serves(facts: LadderFacts) -> Bool:
    """The cuDNN core and both probes."""
    return cudnn_core(partition_facts(facts)) & facts.cudnn_is_stable & facts.cudnn_is_supported


def flash_serves(facts: LadderFacts) -> Bool:
    """The Flash core."""
    return flash_core(partition_facts(facts))


def fast_decode_serves(facts: LadderFacts) -> Bool:
    """What fast decode asks beyond Flash in both revisions."""
    f = facts
    return all_of(
        ~f.disable_flash_decode,
        ~f.is_first_prompt,
        f.kv_sequence_length > 0,
        is_shared(f),
        ~is_quantized(f),
        ~f.use_qk_norm,
    )


def unfused_serves(facts: LadderFacts) -> Bool:
    """What the unfused route asks, the cache type aside."""
    return ~is_quantized(facts) & ~is_smooth(facts) & facts.past_kv_format_bnsh


def unfused_has_type(facts: LadderFacts) -> Bool:
    """The cache has Q's type."""
    return same_type(facts.element_type, facts.cache_type)


# The newest revision, bcdb68db.


def windowed_cache_requires_alias_newest(facts: LadderFacts) -> Bool:
    """A windowed cache whose past and present are not one buffer."""
    return bias_is_served(facts) & facts.is_windowed_kv_cache & ~is_shared(facts)


def is_admitted_newest(facts: LadderFacts) -> Bool:
    """The first checks pass; one aliased pair alone is no error, only not shared."""
    return bias_is_served(facts) & (~facts.is_windowed_kv_cache | is_shared(facts))


def xqa_serves_newest(facts: LadderFacts) -> Bool:
    """The seq-free core and what XQA asks of a Run."""
    return xqa_core(partition_facts(facts)) & xqa_runs(facts)


def case_a_newest(facts: LadderFacts) -> Bool:
    """Case A: the Flash core or the MEA core holds at partition time; its negation is case B."""
    return flash_serves(facts) | memory_efficient_core(partition_facts(facts))


def falls_through_newest(facts: LadderFacts) -> Bool:
    """Admitted, and no route above unfused serves."""
    return all_of(
        is_admitted_newest(facts),
        ~xqa_serves_newest(facts),
        ~cudnn_serves(facts),
        ~case_a_newest(facts),
    )


def xqa_newest(facts: LadderFacts) -> Bool:
    """XQA runs."""
    return is_admitted_newest(facts) & xqa_serves_newest(facts)


def cudnn_newest(facts: LadderFacts) -> Bool:
    """The cuDNN SDPA route runs."""
    return is_admitted_newest(facts) & ~xqa_serves_newest(facts) & cudnn_serves(facts)


def any_flash_newest(facts: LadderFacts) -> Bool:
    """Flash runs, fast decode or not."""
    return all_of(
        is_admitted_newest(facts),
        ~xqa_serves_newest(facts),
        ~cudnn_serves(facts),
        flash_serves(facts),
    )


def fast_decode_serves_newest(facts: LadderFacts) -> Bool:
    """Fast decode also wants a single token and no windowed cache."""
    one_token = facts.sequence_length == 1
    return fast_decode_serves(facts) & one_token & ~facts.is_windowed_kv_cache


def flash_fast_decode_newest(facts: LadderFacts) -> Bool:
    """Flash fast decode runs."""
    return any_flash_newest(facts) & fast_decode_serves_newest(facts)


def flash_newest(facts: LadderFacts) -> Bool:
    """Flash runs, not as fast decode."""
    return any_flash_newest(facts) & ~fast_decode_serves_newest(facts)


def memory_efficient_newest(facts: LadderFacts) -> Bool:
    """MEA runs."""
    return all_of(
        is_admitted_newest(facts),
        ~xqa_serves_newest(facts),
        ~cudnn_serves(facts),
        ~flash_serves(facts),
        memory_efficient_core(partition_facts(facts)),
    )


def unfused_newest(facts: LadderFacts) -> Bool:
    """The unfused route runs."""
    return falls_through_newest(facts) & unfused_serves(facts) & unfused_has_type(facts)


def unfused_cache_type_mismatch_newest(facts: LadderFacts) -> Bool:
    """The unfused route is chosen and then refuses the cache type."""
    return falls_through_newest(facts) & unfused_serves(facts) & ~unfused_has_type(facts)


def no_route_quantized_cache_newest(facts: LadderFacts) -> Bool:
    """No route, because the cache is quantised."""
    return falls_through_newest(facts) & is_quantized(facts)


def no_route_newest(facts: LadderFacts) -> Bool:
    """No route on an unquantised cache: smooth softmax, or a past that is not BNSH."""
    not_served = is_smooth(facts) | ~facts.past_kv_format_bnsh
    return falls_through_newest(facts) & ~is_quantized(facts) & not_served


# The older revision, mid 2026.


def partial_past_present_alias_older(facts: LadderFacts) -> Bool:
    """Exactly one of the past tensors shares the buffer of its present."""
    return bias_is_served(facts) & (facts.past_key_shared != facts.past_value_shared)


def is_admitted_older(facts: LadderFacts) -> Bool:
    """The first checks pass: both pairs share, or neither does; a window is not looked at."""
    return bias_is_served(facts) & (facts.past_key_shared == facts.past_value_shared)


def xqa_core_older(facts: LadderFacts) -> Bool:
    """What XQA asks at partition time: not causality, but one per-tensor scale and no sink."""
    f = facts
    quantized = is_quantized(f)
    scaled = all_of(
        f.k_quant_type == "per_tensor",
        f.v_quant_type == "per_tensor",
        f.kv_scales_same_tensor,
        ~f.has_head_sink,
        ~f.use_qk_norm,
        xqa_quantized_cache(f.cache_type, f.device_major, f.device_minor),
    )
    return all_of(
        f.enable_xqa,
        ~f.has_attention_bias,
        f.device_major >= 8,
        f.softcap == float32(0.0),
        ~is_smooth(f) | f.has_head_sink,
        ~quantized | scaled,
        xqa_geometry(f.head_size, f.num_heads, f.kv_num_heads, quantized),
    )


def xqa_serves_older(facts: LadderFacts) -> Bool:
    """The partition-time facts and what XQA asks of a Run."""
    return xqa_core_older(facts) & xqa_runs(facts)


def memory_efficient_core_older(facts: LadderFacts) -> Bool:
    """The MEA core, a quantised cache included."""
    enabled = ~facts.disable_memory_efficient_attention & ~facts.has_attention_bias
    return enabled & has_memory_efficient_kernel(partition_facts(facts))


def case_a_older(facts: LadderFacts) -> Bool:
    """Case A: the Flash core or the MEA core holds at partition time; its negation is case B."""
    return flash_serves(facts) | memory_efficient_core_older(facts)


def falls_through_older(facts: LadderFacts) -> Bool:
    """Admitted, and no route above unfused serves."""
    return all_of(
        is_admitted_older(facts),
        ~xqa_serves_older(facts),
        ~cudnn_serves(facts),
        ~case_a_older(facts),
    )


def xqa_older(facts: LadderFacts) -> Bool:
    """XQA runs."""
    return is_admitted_older(facts) & xqa_serves_older(facts)


def cudnn_older(facts: LadderFacts) -> Bool:
    """The cuDNN SDPA route runs."""
    return is_admitted_older(facts) & ~xqa_serves_older(facts) & cudnn_serves(facts)


def any_flash_older(facts: LadderFacts) -> Bool:
    """Flash runs, fast decode or not."""
    return all_of(
        is_admitted_older(facts),
        ~xqa_serves_older(facts),
        ~cudnn_serves(facts),
        flash_serves(facts),
    )


def flash_fast_decode_older(facts: LadderFacts) -> Bool:
    """Flash fast decode runs, on any number of tokens."""
    return any_flash_older(facts) & fast_decode_serves(facts)


def flash_older(facts: LadderFacts) -> Bool:
    """Flash runs, not as fast decode."""
    return any_flash_older(facts) & ~fast_decode_serves(facts)


def memory_efficient_older(facts: LadderFacts) -> Bool:
    """MEA runs."""
    return all_of(
        is_admitted_older(facts),
        ~xqa_serves_older(facts),
        ~cudnn_serves(facts),
        ~flash_serves(facts),
        memory_efficient_core_older(facts),
    )


def unfused_older(facts: LadderFacts) -> Bool:
    """The unfused route runs."""
    return falls_through_older(facts) & unfused_serves(facts) & unfused_has_type(facts)


def unfused_cache_type_mismatch_older(facts: LadderFacts) -> Bool:
    """The unfused route is chosen and then refuses the cache type."""
    return falls_through_older(facts) & unfused_serves(facts) & ~unfused_has_type(facts)


def no_route_quantized_cache_older(facts: LadderFacts) -> Bool:
    """No route, because the cache is quantised."""
    return falls_through_older(facts) & is_quantized(facts)


def no_route_older(facts: LadderFacts) -> Bool:
    """No route on an unquantised cache: smooth softmax, or a past that is not BNSH."""
    not_served = is_smooth(facts) | ~facts.past_kv_format_bnsh
    return falls_through_older(facts) & ~is_quantized(facts) & not_served


# All outcomes of a revision, and the fields of a row.


def outcomes_newest(facts: LadderFacts) -> dict[str, Bool]:
    """The condition of every route and error of the newest revision; exactly one holds."""
    return {
        "xqa": xqa_newest(facts),
        "cudnn": cudnn_newest(facts),
        "flash": flash_newest(facts),
        "flash_fast_decode": flash_fast_decode_newest(facts),
        "memory_efficient": memory_efficient_newest(facts),
        "unfused": unfused_newest(facts),
        "attention_bias_with_quantized_cache": attention_bias_with_quantized_cache(facts),
        "attention_bias_with_smooth_softmax_or_head_sink": (
            attention_bias_with_smooth_softmax_or_head_sink(facts)
        ),
        "windowed_cache_requires_alias": windowed_cache_requires_alias_newest(facts),
        "unfused_cache_type_mismatch": unfused_cache_type_mismatch_newest(facts),
        "no_route_quantized_cache": no_route_quantized_cache_newest(facts),
        "no_route": no_route_newest(facts),
    }


def outcomes_older(facts: LadderFacts) -> dict[str, Bool]:
    """The condition of every route and error of the older revision; exactly one holds."""
    return {
        "xqa": xqa_older(facts),
        "cudnn": cudnn_older(facts),
        "flash": flash_older(facts),
        "flash_fast_decode": flash_fast_decode_older(facts),
        "memory_efficient": memory_efficient_older(facts),
        "unfused": unfused_older(facts),
        "attention_bias_with_quantized_cache": attention_bias_with_quantized_cache(facts),
        "attention_bias_with_smooth_softmax_or_head_sink": (
            attention_bias_with_smooth_softmax_or_head_sink(facts)
        ),
        "partial_past_present_alias": partial_past_present_alias_older(facts),
        "unfused_cache_type_mismatch": unfused_cache_type_mismatch_older(facts),
        "no_route_quantized_cache": no_route_quantized_cache_older(facts),
        "no_route": no_route_older(facts),
    }


def as_row(outcomes: dict[str, Bool]) -> Fields:
    """The output fields of a ladder whose outcomes are given."""
    status, error = LADDER_STATUS["ok"], LADDER_ERROR["none"]
    route = LADDER_ROUTE["error"]
    for name, condition in outcomes.items():
        if name in ROUTES:
            route = ite(condition, LADDER_ROUTE[name], route)
        else:
            error = ite(condition, LADDER_ERROR[name], error)
            status = ite(condition, LADDER_STATUS[FAILURES[name]], status)
    fast_decode = outcomes["flash_fast_decode"]
    return {
        "status": status,
        "error": error,
        "use_xqa": outcomes["xqa"],
        "use_cudnn_sdpa": outcomes["cudnn"],
        "use_flash_attention": outcomes["flash"] | fast_decode,
        "use_flash_attention_fast_decode": fast_decode,
        "use_memory_efficient_attention": outcomes["memory_efficient"],
        "use_unfused": any_of(outcomes["unfused"], outcomes["unfused_cache_type_mismatch"]),
        "route": route,
    }


def ladder_newest(facts: LadderFacts) -> Fields:
    """Every output field of the newest revision."""
    return as_row(outcomes_newest(facts))


def ladder_older(facts: LadderFacts) -> Fields:
    """Every output field of the older revision."""
    return as_row(outcomes_older(facts))
