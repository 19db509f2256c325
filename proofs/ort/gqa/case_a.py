"""Case A: a Flash or MEA core that holds at partition time keeps every Run off the unfused route.

Each conjunct of each core is then dropped, one at a time and with the other core gone. Where the
claim survives, the conjunct is redundant: the operator's shape checks imply it.
"""

from __future__ import annotations

from collections.abc import Mapping

from routeproof.models.ort.gqa.ladder import Guards, ladders, newest_guards, older_guards
from routeproof.models.ort.gqa.problem import LadderFacts
from routeproof.spec.ladder import Ladder
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import Bool, all_of, any_of

from .restated_routing import case_a_newest, case_a_older
from .sources import DESIGN, LADDER

__all__ = ["CASE_A", "CORES", "TWINS"]

REVISIONS = ("newest", "older")
_FACTS = symbols(LadderFacts)
_QUANTIZED = any_of(_FACTS.k_quant_type != "none", _FACTS.v_quant_type != "none")


def flash_conjuncts() -> Mapping[str, Bool]:
    """The Flash core, conjunct by conjunct, as the design document lists it."""
    return {
        "no-bias": ~_FACTS.has_attention_bias,
        "enabled": ~_FACTS.disable_flash_attention,
        "device": _FACTS.device_major >= 8,
        "head-size-multiple": _FACTS.head_size % 8 == 0,
        "head-size-limit": _FACTS.head_size <= 256,
        "whole-groups": _FACTS.num_heads % _FACTS.kv_num_heads == 0,
    }


def mea_conjuncts(revision: str) -> Mapping[str, Bool]:
    """The MEA core, conjunct by conjunct; only the newest ladder refuses a quantised cache."""
    major, minor = _FACTS.device_major, _FACTS.device_minor
    fp16 = any_of(major > 5, all_of(major == 5, minor >= 3))
    device = any_of(
        all_of(_FACTS.element_type == "fp16", fp16),
        all_of(_FACTS.element_type == "bf16", major >= 8),
    )
    core = {
        "no-bias": ~_FACTS.has_attention_bias,
        "enabled": ~_FACTS.disable_memory_efficient_attention,
        "device": device,
        "head-size-multiple": _FACTS.head_size % 8 == 0,
        "head-size-limit": _FACTS.head_size <= 1024,
    }
    return {**core, "unquantised": ~_QUANTIZED} if revision == "newest" else core


def _ladder(revision: str) -> Ladder:
    return ladders()[revision]


def _guards(revision: str) -> Guards:
    return newest_guards(_FACTS) if revision == "newest" else older_guards(_FACTS)


def _unreachable(revision: str, assumption: str, core: Bool) -> Claim:
    """Unfused never runs where the core holds; what is shown is each rung of the ladder."""
    ladder = _ladder(revision)
    return Claim(
        ~ladder.takes("unfused"),
        assuming={**ladder.admitted, assumption: core},
        shows={rung.outcome: rung.guard for rung in ladder.rungs if rung.runs},
    )


def _case_a(revision: str) -> Obligation:
    @obligation(
        f"ort.gqa.reach.unfused.case-a.{revision}",
        f"Case A: unfused never runs where the Flash or the MEA core holds ({revision} ladder)",
        source=DESIGN,
    )
    def statement() -> Claim:
        case_a = case_a_newest if revision == "newest" else case_a_older
        return _unreachable(revision, "Case A", case_a(_FACTS))

    return statement


def _cores(revision: str) -> Obligation:
    @obligation(
        f"ort.gqa.reach.cores.{revision}",
        f"the cores of the {revision} ladder are exactly the conjuncts listed for Case A",
        source=LADDER[revision],
    )
    def statement() -> Claim:
        guards, ladder = _guards(revision), _ladder(revision)
        return Claim(
            {
                "flash": guards.flash_core.holds == all_of(*flash_conjuncts().values()),
                "mea": guards.mea_core.holds == all_of(*mea_conjuncts(revision).values()),
            },
            assuming=ladder.admitted,
        )

    return statement


# Dropping this leaves Case A true: the unfused route itself refuses a quantised cache.
_REDUNDANT = {("mea", "unquantised")}


def _twin(revision: str, core: str, dropped: str) -> Obligation:
    redundant = (core, dropped) in _REDUNDANT

    @obligation(
        f"ort.gqa.reach.unfused.{core}-without-{dropped}.{revision}",
        f"the {core} core without its conjunct {dropped!r} still excludes unfused"
        + (" (the conjunct is redundant)" if redundant else ""),
        source=LADDER[revision],
        expect="proved" if redundant else "refuted",
    )
    def statement() -> Claim:
        conjuncts = flash_conjuncts() if core == "flash" else mea_conjuncts(revision)
        rest = all_of(*(term for name, term in conjuncts.items() if name != dropped))
        return _unreachable(revision, f"{core} core without {dropped!r}", rest)

    return statement


CASE_A = tuple(map(_case_a, REVISIONS))
CORES = tuple(map(_cores, REVISIONS))
TWINS = tuple(
    _twin(revision, core, dropped)
    for revision in REVISIONS
    for core, conjuncts in (("flash", flash_conjuncts()), ("mea", mea_conjuncts(revision)))
    for dropped in conjuncts
)
