"""Default-domain Attention: does the plan cover what is executed, and is what it charges used?

The comparison is over everything that metadata and tensors can be: extents up to 2^31 - 1, any
number of outputs, presents of any length, aliased or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from routeproof.checkers.planning import (
    Pair,
    covers,
    covers_exactly_if,
    overcharge,
    used_exactly_if,
)
from routeproof.models.genai.std_execution import (
    Dispatch,
    Side,
    executed,
    is_fixed,
    is_frozen,
    planned,
)
from routeproof.models.genai.std_requirement import REVISIONS
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import Bool, all_of, implies

__all__ = ["BOUNDS", "CONDITIONS", "COVERS", "STAGING", "USES"]

_NAMES = {"out": "813", "out_4d4c22732": "830", "out_head": "1491"}
_COMMITS = {"813": "13f664a0a", "830": "4d4c22732", "1491": "4c1b59428"}
_RUN = symbols(Dispatch, "run")
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Compared:
    """Both sides at a revision."""

    key: str

    @property
    def name(self) -> str:
        """The pull request."""
        return _NAMES[self.key]

    @property
    def source(self) -> Source:
        """Where both sides are from."""
        return Source("onnx-genai, CUDA plugin, Attention", "plan and run", _COMMITS[self.name])

    @property
    def plan(self) -> Side:
        """What metadata lead to."""
        return planned(_RUN, REVISIONS[self.key])

    @property
    def run(self) -> Side:
        """What the dispatch needs."""
        return executed(_RUN, REVISIONS[self.key])

    @property
    def pair(self) -> Pair:
        """The comparison."""
        plan, run = self.plan, self.run
        return Pair(
            plan.total_bytes,
            run.total_bytes,
            _admitted() | {"the plan is ok": plan.checks.ok},
            shows={
                "plan stages K": plan.stage_key,
                "plan stages V": plan.stage_value,
                "run stages K": run.stage_key,
                "run stages V": run.stage_value,
            },
        )

    @property
    def stages_as_planned(self) -> Bool:
        """Nothing is staged that the plan does not foresee."""
        return all_of(
            implies(self.run.stage_key, self.plan.stage_key),
            implies(self.run.stage_value, self.plan.stage_value),
        )


def _admitted() -> dict[str, Bool]:
    """A problem that both sides accept: extents of a tensor, 2- or 4-byte elements."""
    run = _RUN
    extents = (run.batch, run.q_heads, run.kv_heads, run.q_seq, run.current)
    sizes = (run.head_size, run.value_head_size)
    lengths = (run.past_extent, run.present_key_extent, run.present_value_extent, run.mask_width)
    return {
        "extents are 1 to 2^31 - 1": all_of(
            *(all_of(one >= 1, one <= _MOST) for one in (*extents, *sizes))
        ),
        "lengths are at most 2^31 - 1": all_of(*(one <= _MOST for one in lengths)),
        "elements of 2 or 4 bytes": run.element_bytes.is_in(2, 4),
        "one to three outputs": all_of(run.output_count >= 1, run.output_count <= 3),
        "no past is 0 long": implies(~run.has_past, run.past_extent == 0),
        "a present holds tokens exactly if it is an output": all_of(
            (run.output_count < 2) == (run.present_key_extent == 0),
            (run.output_count < 3) == (run.present_value_extent == 0),
        ),
        "only a past can be aliased": all_of(
            implies(run.aliases_key, run.has_past & (run.output_count >= 2)),
            implies(run.aliases_value, run.has_past & (run.output_count >= 3)),
        ),
    }


def _covers(at: Compared) -> Obligation:
    @obligation(
        f"genai.std-attention.covers.{at.name}",
        "what is planned from metadata is enough for what is executed",
        source=at.source,
        expect="refuted",
        note="A cache that looks fixed by its mask, and grows in place all the same.",
    )
    def statement() -> Claim:
        return covers(at.pair)

    return statement


def _condition(at: Compared) -> Obligation:
    @obligation(
        f"genai.std-attention.covers.{at.name}.condition",
        "the plan covers exactly where nothing is staged that it does not foresee",
        source=at.source,
        note="The weakest condition: equivalent on every state.",
    )
    def statement() -> Claim:
        return covers_exactly_if(at.pair, at.stages_as_planned)

    return statement


def _staging(at: Compared) -> Obligation:
    @obligation(
        f"genai.std-attention.overcharge.{at.name}",
        "a staged key that is charged is used",
        source=at.source,
        expect="refuted",
        note="Metadata do not say whether the present aliases the past.",
    )
    def statement() -> Claim:
        return overcharge(at.plan.stage_key, at.run.stage_key, at.pair)

    return statement


def _use(at: Compared) -> Obligation:
    @obligation(
        f"genai.std-attention.overcharge.{at.name}.condition",
        "a staged key that is charged is used exactly where it aliases a past without room",
        source=at.source,
    )
    def statement() -> Claim:
        run = _RUN
        total = run.past_extent + run.current
        without_room = all_of(~is_frozen(run), run.present_key_extent <= total)
        condition = all_of(run.aliases_key, without_room)
        return used_exactly_if(at.plan.stage_key, at.run.stage_key, condition, at.pair)

    return statement


def _bound(at: Compared) -> Obligation:
    @obligation(
        f"genai.std-attention.covers.{at.name}.fixed",
        "a cache that the plan takes for fixed, and that stands still in a node with all outputs, "
        "is covered",
        source=at.source,
    )
    def statement() -> Claim:
        pair = at.pair
        still = all_of(is_fixed(_RUN, REVISIONS[at.key]), is_frozen(_RUN))
        return Claim(pair.goals, {**pair.assuming, "it stands still": still}, shows=pair.shown)

    return statement


_ALL = tuple(map(Compared, _NAMES))
COVERS = tuple(map(_covers, _ALL))
CONDITIONS = tuple(map(_condition, _ALL))
STAGING = tuple(map(_staging, _ALL))
USES = tuple(map(_use, _ALL))
BOUNDS = tuple(map(_bound, _ALL))
