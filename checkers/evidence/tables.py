"""Decision tables asked about again: each row has a Run, each Run a row, and none can be spared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from routeproof.spec.errors import InputError, ModelError
from routeproof.spec.ladder import Ladder
from routeproof.spec.terms import (
    TRUE,
    Bool,
    Enum,
    Int,
    IntDomain,
    Op,
    Term,
    all_of,
    any_of,
    boolean,
    free_symbols,
    integer,
    substitute,
)
from routeproof.spec.text import render
from routeproof.spec.wire import read_condition

from .reasking import ask_again, ask_plainly
from .refused import RefusedError, require, shown

__all__ = ["check_table"]


def check_table(ladder: Ladder, outcome: str, evidence: Mapping[str, Any], seconds: float) -> int:
    """How many rows are confirmed: all are needed, and so is every fact of each."""
    takes = ladder.takes(outcome)
    try:
        rows = [_row(one, ladder.static) for one in _listed(evidence, "rows")]
        runs = [_run(one, takes, ladder) for one in _listed(evidence, "runs")]
    except (InputError, ModelError, KeyError) as error:
        raise RefusedError(f"a row or a Run is malformed: {error}") from error
    admitted = tuple(ladder.admitted.values())
    for conditions in ((takes, ~any_of(*rows)), *((row, ~any_of(*runs)) for row in rows)):
        answer = ask_again((*admitted, *conditions), seconds)
        require(answer != "sat", "a state tells the table from the ladder")
        shown(answer == "unsat", "the solver leaves open whether the table is the ladder's")
    for place, row in enumerate(rows):
        others = any_of(*rows[:place], *rows[place + 1 :])
        _met((*admitted, row, ~others), f"row {place + 1} says nothing that others do not", seconds)
        for fact in _facts_of(row):
            rest = all_of(*(one for one in _facts_of(row) if one is not fact))
            what = f"row {place + 1} holds as well without {render(fact)}"
            _met((*admitted, rest, ~any_of(*runs)), what, seconds)
    return len(rows)


def _facts_of(row: Bool) -> tuple[Bool, ...]:
    """The facts that a row is made of; none, if it always holds."""
    if row is TRUE:
        return ()
    return cast("tuple[Bool, ...]", row.args) if row.op is Op.AND else (row,)


def _met(conditions: Sequence[Bool], otherwise: str, seconds: float) -> None:
    """Some state meets the conditions."""
    answer = ask_plainly(conditions, seconds)
    require(answer != "unsat", otherwise)
    shown(answer == "sat", "the solver leaves open whether a row can be spared")


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
    stated = cast("dict[str, object]", values)
    for name in stated:
        require(name in names, f"{name!r} is no run-time fact")
    given = {names[name]: _constant(names[name], value) for name, value in stated.items()}
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
