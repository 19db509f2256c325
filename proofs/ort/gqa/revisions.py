"""Partition-time eligibility against the run-time ladder, and the older ladder against the newest.

The newest ladder is the eligibility predicates, their glue, the run-time gates and the priority of
the facts, nothing else. The older one differs in the listed points: none is missing (outside of
them both ladders agree) and none is superfluous (each alone makes them differ).
"""

from __future__ import annotations

from collections.abc import Mapping

from routeproof.models.ort.gqa.eligibility import eligibility
from routeproof.models.ort.gqa.ladder import LADDER_ERROR, ladders
from routeproof.models.ort.gqa.problem import LadderFacts
from routeproof.spec.ladder import Ladder
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import Bool, all_of, any_of

from .restated_eligibility import flash_core, has_memory_efficient_kernel
from .restated_routing import (
    fast_decode_serves_newest,
    is_admitted_newest,
    is_quantized,
    is_shared,
    partition_facts,
    unfused_has_type,
    unfused_serves,
    xqa_runs,
)
from .sources import FUNCTION_SOURCES, LADDER

__all__ = ["DIFFERENCES", "NECESSARY"]

_FACTS = symbols(LadderFacts)
_LADDERS = ladders()
_ROUTES = ("xqa", "cudnn", "flash", "flash_fast_decode", "memory_efficient", "unfused")


def _from_eligibility() -> Mapping[str, Bool]:
    """Each route of the newest ladder from the eligibility predicates and the stated gates."""
    facts = _FACTS
    core = eligibility(partition_facts(facts))
    probes = all_of(facts.cudnn_is_stable, facts.cudnn_is_supported)
    xqa = all_of(core.xqa, xqa_runs(facts))
    cudnn = all_of(~xqa, core.cudnn_sdpa_core, probes)
    flash = all_of(~xqa, ~cudnn, core.flash)
    mea = all_of(~xqa, ~cudnn, ~core.flash, core.memory_efficient)
    left = ~any_of(xqa, cudnn, flash, mea)
    fast = fast_decode_serves_newest(facts)
    routes = {
        "xqa": xqa,
        "cudnn": cudnn,
        "flash": flash & ~fast,
        "flash_fast_decode": flash & fast,
        "memory_efficient": mea,
        "unfused": all_of(left, unfused_serves(facts), unfused_has_type(facts)),
    }
    admitted = is_admitted_newest(facts)
    return {name: admitted & condition for name, condition in routes.items()}


@obligation(
    "ort.gqa.ladder.newest.from-eligibility",
    "seq-free eligibility, its glue, the run-time gates and the priority are the newest ladder",
    source=FUNCTION_SOURCES["eligibility"],
)
def from_eligibility() -> Claim:
    """Route by route."""
    ladder = _LADDERS["newest"]
    composed = _from_eligibility()
    return Claim(
        {name: ladder.takes(name) == condition for name, condition in composed.items()},
        assuming=ladder.admitted,
    )


def differences() -> Mapping[str, Bool]:
    """Where the older ladder asks more or less than the newest one."""
    facts = _FACTS
    partition = partition_facts(facts)
    quantized = is_quantized(facts)
    per_tensor = all_of(facts.k_quant_type == "per_tensor", facts.v_quant_type == "per_tensor")
    windowed, shared = facts.is_windowed_kv_cache, is_shared(facts)
    return {
        "one-aliased-pair": facts.past_key_shared != facts.past_value_shared,
        "windowed-without-alias": windowed & ~facts.past_key_shared & ~facts.past_value_shared,
        "xqa-not-causal": ~facts.is_unidirectional,
        "xqa-scales": quantized & ~(per_tensor & facts.kv_scales_same_tensor),
        "xqa-quantised-sink": quantized & facts.has_head_sink,
        "fast-decode-several-tokens": all_of(~quantized, shared, facts.sequence_length != 1),
        "fast-decode-windowed": all_of(~quantized, windowed, shared, facts.sequence_length == 1),
        "mea-quantised": all_of(
            quantized, ~flash_core(partition), has_memory_efficient_kernel(partition)
        ),
    }


def _same_outcome(older: Ladder, newest: Ladder) -> Bool:
    """Both end in the same route or error; an error of one revision only is a difference."""
    names = dict.fromkeys((*_ROUTES, *LADDER_ERROR.members[1:]))
    known = [n for n in names if n in older.outcomes and n in newest.outcomes]
    alone = [lad.takes(n) for lad in (older, newest) for n in lad.outcomes if n not in known]
    return all_of(*(older.takes(n) == newest.takes(n) for n in known), ~any_of(*alone))


def _claim(allowed: str | None) -> Claim:
    older, newest = _LADDERS["older"], _LADDERS["newest"]
    excluded = {f"not {name}": ~term for name, term in differences().items() if name != allowed}
    return Claim(
        _same_outcome(older, newest),
        assuming={**newest.admitted, **excluded},
        shows={
            **{f"older {name}": older.takes(name) for name in older.outcomes},
            **{f"newest {name}": newest.takes(name) for name in newest.outcomes},
        },
    )


@obligation(
    "ort.gqa.ladder.differences.complete",
    "outside the listed differences the older and the newest ladder end alike",
    source=LADDER["older"],
)
def complete() -> Claim:
    """No difference is missing from the list."""
    return _claim(None)


def _necessary(name: str) -> Obligation:
    @obligation(
        f"ort.gqa.ladder.differences.{name}",
        f"the ladders also end alike where {name} is the only listed difference",
        source=LADDER["older"],
        expect="refuted",
    )
    def statement() -> Claim:
        return _claim(name)

    return statement


DIFFERENCES = tuple(differences())
NECESSARY = tuple(map(_necessary, DIFFERENCES))
