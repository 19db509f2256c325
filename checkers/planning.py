"""Plan against execution: claims about any pair of a planned and an executed requirement.

`covers`: what is planned is enough for what is executed. Where it is not, `covers_exactly_if` names
the weakest condition under which it is, equivalent on every state. `overcharge`: a region that is
charged is used; `used_exactly_if` names when. All are claims, decided as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from routeproof.spec.obligation import Claim
from routeproof.spec.records import Record
from routeproof.spec.terms import TRUE, Bool, Int, Term, all_of, implies, integer

__all__ = ["Pair", "covers", "covers_exactly_if", "overcharge", "used_exactly_if"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Bytes and alignment of both sides, and what every state of interest satisfies.

    `same_class` says that both sides name the same lifetime class.
    """

    planned: Int
    executed: Int
    assuming: Mapping[str, Bool]
    planned_alignment: Int = field(default_factory=lambda: integer(1))
    executed_alignment: Int = field(default_factory=lambda: integer(1))
    same_class: Bool = TRUE
    shows: Mapping[str, Term | Record] = field(default_factory=dict)

    @property
    def shown(self) -> Mapping[str, Term | Record]:
        """Both sizes behind what the pair shows itself."""
        return {**self.shows, "planned bytes": self.planned, "executed bytes": self.executed}

    @property
    def goals(self) -> Mapping[str, Bool]:
        """What `covers` claims, part by part."""
        return {
            "bytes": self.executed <= self.planned,
            "alignment": self.planned_alignment % self.executed_alignment == 0,
            "lifetime class": self.same_class,
        }


def covers(pair: Pair) -> Claim:
    """What is planned is large and aligned enough, and of the class that execution asks for."""
    return Claim(pair.goals, pair.assuming, shows=pair.shown)


def covers_exactly_if(pair: Pair, condition: Bool) -> Claim:
    """Under the condition the plan covers, and under no other."""
    enough = all_of(*pair.goals.values())
    return Claim(
        {"then it covers": implies(condition, enough), "only then": implies(enough, condition)},
        pair.assuming,
        shows={**pair.shown, "condition": condition},
    )


def overcharge(charged: Bool, used: Bool, pair: Pair) -> Claim:
    """Whatever is charged is used."""
    return Claim(implies(charged, used), pair.assuming, shows=pair.shown)


def used_exactly_if(charged: Bool, used: Bool, condition: Bool, pair: Pair) -> Claim:
    """Where a region is charged, it is used under the condition and under no other."""
    return Claim(
        {"then it is used": implies(condition, used), "only then": implies(used, condition)},
        {**pair.assuming, "charged": charged},
        shows={**pair.shown, "condition": condition},
    )
