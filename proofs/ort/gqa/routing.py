"""Which outcome a Run takes and which outcomes some Run can take, for both ladder revisions.

The conditions were stated a second time from the facts (`restated_routing`,
`restated_reachability`); each decision table is computed by the machine and proved by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from routeproof.checkers.reach import possible
from routeproof.models.ort.gqa.ladder import ladders, outcome
from routeproof.models.ort.gqa.problem import LadderFacts
from routeproof.spec.obligation import Claim, Obligation, Reach, obligation
from routeproof.spec.records import leaves, symbols
from routeproof.spec.terms import all_of, any_of, implies

from .recipes import equal
from .restated_reachability import reachable_newest, reachable_older
from .restated_routing import (
    ladder_newest,
    ladder_older,
    outcomes_newest,
    outcomes_older,
)
from .sources import LADDER

__all__ = ["EXACT", "EXACTLY_ONE", "OUTCOMES", "ROWS", "TABLES"]

REVISIONS = ("newest", "older")
_FACTS = symbols(LadderFacts)
_LADDERS = ladders()
_OUTCOMES = {"newest": outcomes_newest, "older": outcomes_older}
_REACHABLE = {"newest": reachable_newest, "older": reachable_older}
_RESTATED = {"newest": ladder_newest, "older": ladder_older}


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _outcome(revision: str, name: str) -> Obligation:
    @obligation(
        f"ort.gqa.ladder.{revision}.{_dashed(name)}",
        f"the {revision} ladder ends in {name} exactly where the facts say so",
        source=LADDER[revision],
    )
    def statement() -> Claim:
        ladder = _LADDERS[revision]
        restated = _OUTCOMES[revision](_FACTS)[name]
        return Claim(
            ladder.takes(name) == restated,
            assuming=ladder.admitted,
            shows={"model": ladder.takes(name), "restated": restated},
        )

    return statement


def _rows(revision: str) -> Obligation:
    @obligation(
        f"ort.gqa.ladder.{revision}.reported",
        f"status, error, route and flags of the {revision} ladder are those the facts state",
        source=LADDER[revision],
    )
    def statement() -> Claim:
        ladder, restated = _LADDERS[revision], _RESTATED[revision](_FACTS)
        model = leaves(outcome(ladder))
        return Claim(
            {name: equal(term, restated[name]) for name, term in model.items()},
            assuming=ladder.admitted,
        )

    return statement


def _exactly_one(revision: str) -> Obligation:
    @obligation(
        f"ort.gqa.ladder.{revision}.exactly-one",
        f"the {revision} ladder reports exactly one route, or an error and no route, always",
        source=LADDER[revision],
    )
    def statement() -> Claim:
        out = outcome(_LADDERS[revision])
        flags = {
            "xqa": out.use_xqa,
            "cudnn": out.use_cudnn_sdpa,
            "flash": all_of(out.use_flash_attention, ~out.use_flash_attention_fast_decode),
            "flash_fast_decode": out.use_flash_attention_fast_decode,
            "memory_efficient": out.use_memory_efficient_attention,
            "unfused": all_of(out.use_unfused, out.status == "ok"),
        }
        error = out.status != "ok"
        several = any_of(
            *(all_of(one, two) for a, one in flags.items() for b, two in flags.items() if a < b)
        )
        return Claim(
            {
                "some outcome": any_of(error, *flags.values()),
                "no two routes": ~several,
                "no route in an error": implies(error, ~any_of(*flags.values())),
                "the route is the flag": all_of(
                    *((out.route == name) == flag for name, flag in flags.items())
                ),
                "an error has a name": error == (out.error != "none"),
                "fast decode is Flash": implies(
                    out.use_flash_attention_fast_decode, out.use_flash_attention
                ),
            },
            shows={"reported": out},
        )

    return statement


def _exact(revision: str, name: str) -> Obligation:
    @obligation(
        f"ort.gqa.reach.{_dashed(name)}.exact.{revision}",
        f"some Run of the {revision} ladder takes {name} exactly under the stated static facts",
        source=LADDER[revision],
    )
    def statement() -> Claim:
        ladder = _LADDERS[revision]
        condition = _REACHABLE[revision](_FACTS)[name]
        return Claim(
            {
                "no Run outside": implies(ladder.takes(name), condition),
                "a Run wherever it holds": implies(condition, possible(ladder, name)),
            },
            assuming=ladder.admitted,
            shows={"taken": ladder.takes(name), "stated condition": condition},
        )

    return statement


def _table(revision: str, name: str) -> Obligation:
    @obligation(
        f"ort.gqa.reach.{_dashed(name)}.table.{revision}",
        f"the decision table of {name} on the {revision} ladder is exact, prime and irredundant",
        source=LADDER[revision],
    )
    def statement() -> Reach:
        return Reach(_LADDERS[revision], name)

    return statement


def _each(make: Callable[[str, str], Obligation]) -> tuple[Obligation, ...]:
    return tuple(make(r, name) for r in REVISIONS for name in _LADDERS[r].outcomes)


OUTCOMES = _each(_outcome)
ROWS = tuple(map(_rows, REVISIONS))
EXACTLY_ONE = tuple(map(_exactly_one, REVISIONS))
EXACT = _each(_exact)
TABLES = _each(_table)
