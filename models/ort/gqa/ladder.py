"""The run-time ladder: which route a Run takes, in two public revisions.

Source: `GroupQueryAttention::ComputeInternal` in
`onnxruntime/contrib_ops/cuda/bert/group_query_attention.cc`, mid 2026 (`older`) and bcdb68db
(`newest`, the revision that the recipes belong to). Every outcome is a rung, errors included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from routeproof.spec.function import Function, Source
from routeproof.spec.ladder import Ladder, Rung
from routeproof.spec.records import Record, leaves, symbols
from routeproof.spec.terms import TRUE, Bool, Enum, EnumSort, all_of, any_of, implies, ite

from . import eligibility
from .guard import Guard
from .problem import EligibilityFacts, LadderFacts
from .validation import is_positive_int32, is_quantized, same_name

__all__ = [
    "LADDER_ERROR",
    "LADDER_STATUS",
    "ROUTE",
    "RUNTIME_FACTS",
    "Guards",
    "LadderOutput",
    "admitted",
    "eligibility_facts",
    "function",
    "ladder",
    "ladders",
    "newest_guards",
    "older_guards",
    "outcome",
]

# Each error with the status that carries it.
_STATUS_OF = {
    "attention_bias_with_quantized_cache": "not_implemented",
    "attention_bias_with_smooth_softmax_or_head_sink": "not_implemented",
    "partial_past_present_alias": "fail",
    "windowed_cache_requires_alias": "fail",
    "unfused_cache_type_mismatch": "not_implemented",
    "no_route_quantized_cache": "not_implemented",
    "no_route": "invalid_argument",
}
_ROUTES = ("xqa", "cudnn", "flash", "flash_fast_decode", "memory_efficient", "unfused")

LADDER_STATUS = EnumSort("ladder_status", ("ok", "invalid_argument", "not_implemented", "fail"))
LADDER_ERROR = EnumSort("ladder_error", ("none", *_STATUS_OF))
ROUTE = EnumSort("route", (*_ROUTES, "error"))

# What may change from Run to Run; the other facts are fixed when the graph is partitioned.
RUNTIME_FACTS = (
    "is_first_prompt",
    "sequence_length",
    "kv_sequence_length",
    "past_key_shared",
    "past_value_shared",
    "past_kv_format_bnsh",
    "xqa_shared_memory_ok",
    "cudnn_is_stable",
    "cudnn_is_supported",
)


@dataclass(frozen=True, slots=True)
class LadderOutput(Record):
    """Output of `ort.gqa.ladder`, once per revision; fast decode sets both Flash flags."""

    status: Annotated[Enum, LADDER_STATUS]
    error: Annotated[Enum, LADDER_ERROR]
    use_xqa: Bool
    use_cudnn_sdpa: Bool
    use_flash_attention: Bool
    use_flash_attention_fast_decode: Bool
    use_memory_efficient_attention: Bool
    use_unfused: Bool
    route: Annotated[Enum, ROUTE]


@dataclass(frozen=True, slots=True)
class Guards:
    """One revision: what it rejects first, its cores (partition-time facts) and whole guards.

    Flash and MEA have no guard beyond their core. The past format in cuDNN's core is a run-time
    fact all the same.
    """

    rejections: tuple[tuple[str, Bool], ...]
    xqa_core: Guard
    xqa: Guard
    cudnn_core: Guard
    cudnn: Guard
    flash_core: Guard
    fast_decode: Guard
    mea_core: Guard
    unfused: Guard


def eligibility_facts(facts: LadderFacts) -> EligibilityFacts:
    """The ladder's facts as the eligibility predicates take them."""
    quantized = is_quantized(facts.k_quant_type, facts.v_quant_type)
    smooth = any_of(facts.smooth_softmax, facts.has_head_sink)
    auto_cudnn = all_of(facts.auto_enable_cudnn_flash_attention, facts.device_major >= 9)
    return EligibilityFacts(
        element_type=facts.element_type,
        cache_type=facts.cache_type,
        enable_xqa=facts.enable_xqa,
        is_unidirectional=facts.is_unidirectional,
        has_attention_bias=facts.has_attention_bias,
        device_major=facts.device_major,
        device_minor=facts.device_minor,
        softcap=facts.softcap,
        qk_norm_ok=implies(facts.use_qk_norm, ~quantized),
        smooth_softmax_supported=implies(smooth, facts.has_head_sink),
        is_inputs_quantized=quantized,
        head_size=facts.head_size,
        num_heads=facts.num_heads,
        kv_num_heads=facts.kv_num_heads,
        k_quant_type=facts.k_quant_type,
        v_quant_type=facts.v_quant_type,
        use_smooth_softmax=smooth,
        has_head_sink=facts.has_head_sink,
        local_window_size=facts.local_window_size,
        past_kv_format_bnsh=facts.past_kv_format_bnsh,
        cudnn_enabled=any_of(facts.enable_cudnn_flash_attention, auto_cudnn),
        disable_flash_attention=facts.disable_flash_attention,
        disable_memory_efficient_attention=facts.disable_memory_efficient_attention,
    )


def _shares_buffer(facts: LadderFacts) -> Bool:
    """Past and present are one buffer, for K and for V."""
    return all_of(facts.past_key_shared, facts.past_value_shared)


def _bias_rejections(core: EligibilityFacts) -> tuple[tuple[str, Bool], ...]:
    """The errors of an attention bias, which come before all others."""
    bias = core.has_attention_bias
    return (
        ("attention_bias_with_quantized_cache", bias & core.is_inputs_quantized),
        ("attention_bias_with_smooth_softmax_or_head_sink", bias & core.use_smooth_softmax),
    )


def _uses_past(facts: LadderFacts) -> tuple[tuple[str, Bool], ...]:
    """What XQA and fast decode both ask of a Run."""
    return (
        ("not_first_prompt", ~facts.is_first_prompt),
        ("has_new_kv", facts.kv_sequence_length > 0),
        ("shared_buffer", _shares_buffer(facts)),
        ("one_token", facts.sequence_length == 1),
    )


def _fast_decode(facts: LadderFacts, core: EligibilityFacts) -> tuple[tuple[str, Bool], ...]:
    """What fast decode asks beyond Flash's core."""
    return (
        *_uses_past(facts),
        ("decode_enabled", ~facts.disable_flash_decode),
        ("unquantized", ~core.is_inputs_quantized),
        ("no_qk_norm", ~facts.use_qk_norm),
        ("not_windowed", ~facts.is_windowed_kv_cache),
    )


def _unfused(core: EligibilityFacts) -> Guard:
    """The guard of the last route."""
    return Guard(
        (
            ("unquantized", ~core.is_inputs_quantized),
            ("no_smooth_softmax", ~core.use_smooth_softmax),
            ("no_head_sink", ~core.has_head_sink),
            ("bnsh_past", core.past_kv_format_bnsh),
        )
    )


def newest_guards(facts: LadderFacts) -> Guards:
    """The guards at bcdb68db."""
    core = eligibility_facts(facts)
    xqa, cudnn = eligibility.xqa_core(core), eligibility.cudnn_core(core)
    flash = eligibility.flash_core(core)
    apart = all_of(facts.is_windowed_kv_cache, ~_shares_buffer(facts))
    return Guards(
        rejections=(*_bias_rejections(core), ("windowed_cache_requires_alias", apart)),
        xqa_core=xqa,
        xqa=xqa.plus(*_uses_past(facts), ("shared_memory", facts.xqa_shared_memory_ok)),
        cudnn_core=cudnn,
        cudnn=cudnn.plus(
            ("is_stable", facts.cudnn_is_stable), ("is_supported", facts.cudnn_is_supported)
        ),
        flash_core=flash,
        fast_decode=flash.plus(*_fast_decode(facts, core)),
        mea_core=eligibility.mea_core(core),
        unfused=_unfused(core),
    )


def _older_xqa(facts: LadderFacts, core: EligibilityFacts) -> tuple[tuple[str, Bool], ...]:
    """What the older XQA asks of a quantised cache beyond the newest."""
    quantized = core.is_inputs_quantized
    per_tensor = all_of(facts.k_quant_type == "per_tensor", facts.v_quant_type == "per_tensor")
    return (
        ("per_tensor_scales", implies(quantized, per_tensor)),
        ("same_scale_tensor", implies(quantized, facts.kv_scales_same_tensor)),
        # No row decides this one, nor that the newest accepts such a sink: the facts state both.
        ("no_sink_when_quantized", implies(quantized, ~facts.has_head_sink)),
    )


def older_guards(facts: LadderFacts) -> Guards:
    """The guards of mid 2026, as what they ask more and less than the newest ones."""
    newest, core = newest_guards(facts), eligibility_facts(facts)
    more = _older_xqa(facts, core)
    one_pair = facts.past_key_shared != facts.past_value_shared
    return replace(
        newest,
        rejections=(*_bias_rejections(core), ("partial_past_present_alias", one_pair)),
        xqa_core=newest.xqa_core.without("unidirectional").plus(*more),
        xqa=newest.xqa.without("unidirectional").plus(*more),
        fast_decode=newest.fast_decode.without("one_token", "not_windowed"),
        mea_core=newest.mea_core.without("unquantized"),
    )


def admitted(facts: LadderFacts) -> Mapping[str, Bool]:
    """What a valid node and Run always satisfy; the operator's shape checks reject the rest."""
    shape = (facts.num_heads, facts.kv_num_heads, facts.head_size, facts.sequence_length)
    scales = (facts.k_quant_type, facts.v_quant_type)
    return {
        "heads, head size and query length are positive int32": all_of(
            *(is_positive_int32(size) for size in shape)
        ),
        "no negative length or device version": all_of(
            facts.kv_sequence_length >= 0, facts.device_major >= 0, facts.device_minor >= 0
        ),
        "quantisation types are valid": all_of(*(scale != "invalid" for scale in scales)),
    }


def ladder(name: str, facts: LadderFacts, guards: Guards) -> Ladder:
    """The rungs of one revision over facts that are symbols."""
    quantized = is_quantized(facts.k_quant_type, facts.v_quant_type)
    unfused = guards.unfused.holds
    same_type = same_name(facts.element_type, facts.cache_type)
    rungs = (
        *(Rung(error, holds, runs=False) for error, holds in guards.rejections),
        Rung("xqa", guards.xqa.holds),
        Rung("cudnn", guards.cudnn.holds),
        Rung("flash_fast_decode", guards.fast_decode.holds),
        Rung("flash", guards.flash_core.holds),
        Rung("memory_efficient", guards.mea_core.holds),
        Rung("unfused_cache_type_mismatch", all_of(unfused, ~same_type), runs=False),
        Rung("unfused", unfused),
        Rung("no_route_quantized_cache", quantized, runs=False),
        Rung("no_route", TRUE, runs=False),
    )
    named = leaves(facts)
    return Ladder(
        name,
        rungs,
        static=tuple(fact for path, fact in named.items() if path not in RUNTIME_FACTS),
        runtime=tuple(named[path] for path in RUNTIME_FACTS),
        admitted=admitted(facts),
    )


def ladders() -> Mapping[str, Ladder]:
    """Both revisions over the symbols of `LadderFacts`."""
    facts = symbols(LadderFacts)
    return {
        "newest": ladder("ort.gqa newest", facts, newest_guards(facts)),
        "older": ladder("ort.gqa older", facts, older_guards(facts)),
    }


def _taken(rungs: Ladder, value: Callable[[str], Enum]) -> Enum:
    """The value of the outcome that the ladder ends in."""
    result = value(rungs.rungs[-1].outcome)
    for rung in reversed(rungs.rungs):
        result = ite(rung.guard, value(rung.outcome), result)
    return result


def outcome(rungs: Ladder) -> LadderOutput:
    """What ComputeInternal reports: all flags are false in an error, with one exception."""
    fast = rungs.takes("flash_fast_decode")
    mismatch = rungs.takes("unfused_cache_type_mismatch")
    return LadderOutput(
        status=_taken(rungs, lambda name: LADDER_STATUS[_STATUS_OF.get(name, "ok")]),
        error=_taken(rungs, lambda name: LADDER_ERROR[name if name in _STATUS_OF else "none"]),
        use_xqa=rungs.takes("xqa"),
        use_cudnn_sdpa=rungs.takes("cudnn"),
        use_flash_attention=any_of(fast, rungs.takes("flash")),
        use_flash_attention_fast_decode=fast,
        use_memory_efficient_attention=rungs.takes("memory_efficient"),
        use_unfused=any_of(mismatch, rungs.takes("unfused")),
        route=_taken(rungs, lambda name: ROUTE["error" if name in _STATUS_OF else name]),
    )


def function() -> Function:
    """`ort.gqa.ladder`: `out` is the older revision, `out_newest` the newest."""
    revisions = ladders()
    return Function(
        "ort.gqa.ladder",
        "The route a Run takes",
        Source(
            "onnxruntime/contrib_ops/cuda/bert/group_query_attention.cc",
            "GroupQueryAttention::ComputeInternal",
            "mid 2026 / bcdb68db",
        ),
        symbols(LadderFacts),
        {"out": outcome(revisions["older"]), "out_newest": outcome(revisions["newest"])},
    )
