"""Decision tables asked about again: each row has a Run, and each Run has a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from routeproof.spec.errors import InputError, ModelError
from routeproof.spec.ladder import Ladder
from routeproof.spec.terms import (
    Bool,
    Enum,
    Int,
    IntDomain,
    Term,
    all_of,
    any_of,
    boolean,
    free_symbols,
    integer,
    substitute,
)
from routeproof.spec.wire import read_condition

from .reasking import ask_again
from .refused import RefusedError, require

__all__ = ["check_table"]


def check_table(
    ladder: Ladder, outcome: str, evidence: Mapping[str, Any], seconds: float
) -> int | None:
    """How many rows are confirmed, None if the solver gives up; a state that differs refuses."""
    takes = ladder.takes(outcome)
    try:
        rows = [_row(one, ladder.static) for one in _listed(evidence, "rows")]
        runs = [_run(one, takes, ladder) for one in _listed(evidence, "runs")]
    except (InputError, ModelError, KeyError) as error:
        raise RefusedError(f"a row or a Run is malformed: {error}") from error
    admitted = tuple(ladder.admitted.values())
    questions = [
        (*admitted, takes, ~any_of(*rows)),
        *((*admitted, row, ~any_of(*runs)) for row in rows),
    ]
    for conditions in questions:
        answer = ask_again(conditions, seconds)
        require(answer != "sat", "a state tells the table from the ladder")
        if answer != "unsat":
            return None
    return len(rows)


def _listed(evidence: Mapping[str, Any], name: str) -> list[Any]:
    found = evidence.get(name)
    if not isinstance(found, list):
        raise RefusedError(f"the evidence has no {name}")
    return found


def _row(facts: object, static: Sequence[Term]) -> Bool:
    """A row: a conjunction of conditions over static facts alone."""
    require(isinstance(facts, list), "a row is a list of conditions")
    names = {fact.name: fact for fact in static}
    return all_of(*(read_condition(one, names) for one in cast("list[object]", facts)))


def _run(values: object, takes: Bool, ladder: Ladder) -> Bool:
    """When the outcome is taken by a Run with these values of the run-time facts."""
    require(isinstance(values, dict), "a Run gives values to run-time facts")
    names = {fact.name: fact for fact in ladder.runtime}
    given = {
        names[name]: _constant(names[name], value)
        for name, value in cast("dict[str, object]", values).items()
    }
    limits = (one for one in ladder.admitted.values() if not _static(one, ladder))
    (taken,) = substitute((all_of(takes, *limits),), given)
    require(_static(taken, ladder), "a Run leaves run-time facts open that matter")
    return cast("Bool", taken)


def _static(condition: Term, ladder: Ladder) -> bool:
    return set(ladder.runtime).isdisjoint(free_symbols(condition))


def _constant(fact: Term, value: object) -> Term:
    """A value of a run-time fact, which must be one that it can have."""
    if isinstance(fact, Bool) and isinstance(value, bool):
        return boolean(value)
    if isinstance(fact, Enum) and isinstance(value, str):
        return fact.members[value]
    if isinstance(fact, Int) and type(value) is int and value in (fact.domain or IntDomain()):
        return integer(value)
    raise RefusedError(f"{fact.name} is never {value!r}")
