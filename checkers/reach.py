"""When can a route run: a decision table over static facts, computed and proved.

A row is a conjunction of named facts (one input field compared with one constant, or a residue)
under which some Run takes the outcome. Every row is a prime implicant (no fact can be left out),
none is covered by the others, and the table as a whole is equivalent to "there are run-time facts
under which the outcome is taken": from the table to a Run by explicit instances of the run-time
facts, back by a proof with all run-time facts free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from routeproof.spec.interpret import State, Value
from routeproof.spec.ladder import Ladder
from routeproof.spec.obligation import Claim, Reach, Verdict
from routeproof.spec.terms import (
    FALSE,
    Bool,
    Enum,
    EnumSort,
    Int,
    IntDomain,
    Op,
    Term,
    all_of,
    any_of,
    boolean,
    free_symbols,
    implies,
    integer,
    substitute,
    topological,
)
from routeproof.spec.text import render
from routeproof.spec.wire import write_term

from .abstraction import box_of
from .announcing import stage
from .decide import Decision, axes_of, decide_claim
from .sampling import constants_of
from .solver import Facts, Limits, Options, SignedFact, UndecidedError, solver_version

__all__ = ["Table", "decide_reach", "decision_table", "possible", "prove_table"]

_GOAL = "taken"
_MOST_RUNS = 8
_Row = tuple[SignedFact, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of facts (each a condition, possibly negated); no row: never; an empty row: always."""

    outcome: str
    rows: tuple[tuple[Bool, ...], ...]

    @property
    def condition(self) -> Bool:
        """The table as one condition."""
        return any_of(*(all_of(*row) for row in self.rows))

    @property
    def texts(self) -> list[list[str]]:
        """The rows as readable facts."""
        return [[render(fact) for fact in row] for row in self.rows]


def possible(ladder: Ladder, outcome: str, seen: Sequence[State] = ()) -> Bool:
    """At most what some Run can do: the outcome's condition for one of its relevant instances."""
    return any_of(*(boolean(one) for one in instances(ladder, outcome, seen)))


def instances(
    ladder: Ladder, outcome: str, seen: Sequence[State] = ()
) -> dict[Term, dict[str, Value]]:
    """The outcome's condition for each relevant instance of the run-time facts, with their values.

    An integer is tried at the constants it is compared with and around them, and at its values in
    the states `seen` to take the outcome. That no instance is missing is proved afterwards.
    """
    runtime = set(ladder.runtime)
    limits = (one for one in ladder.admitted.values() if runtime & set(free_symbols(one)))
    found: dict[Term, dict[str, Value]] = {all_of(ladder.takes(outcome), *limits): {}}
    for fact in ladder.runtime:
        given = [one[fact.name] for one in seen if fact.name in one]
        found = {
            instance: values if value is fact else {**values, fact.name: _plain(value)}
            for condition, values in found.items()
            for value in _instances(fact, condition, given)
            for instance in substitute((condition,), {fact: value})
            if instance is not FALSE
        }
    return found


def _plain(constant: Term) -> Value:
    return cast("Value", constant.value)


def _instances(fact: Term, condition: Term, seen: Sequence[Value]) -> Iterator[Term]:
    if fact not in set(free_symbols(condition)):
        yield fact
    elif isinstance(fact, Bool):
        yield from (boolean(value=True), boolean(value=False))
    elif isinstance(fact.sort, EnumSort):
        yield from (fact.sort[member] for member in fact.sort.members)
    elif isinstance(fact, Int):
        compared = [node for node in topological((condition,)) if fact in set(node.args)]
        domain = fact.domain or IntDomain()
        ends = {domain.rest, *(end for end in (domain.lo, domain.hi) if end is not None)}
        values = {value for value in constants_of(compared) if value in domain} or ends
        values |= set(map(int, seen))
        yield from (integer(value) for value in sorted(values) if value in domain)
    else:
        raise UndecidedError(f"no instances of a {fact.sort_name}: {fact.name}")


def decision_table(
    ladder: Ladder, outcome: str, limits: Limits, seen: Sequence[State] = ()
) -> Table:
    """The table; raises `UndecidedError` when the solver gives up on a part of it."""
    condition = possible(ladder, outcome, seen)
    admitted = list(ladder.admitted.values())
    atoms = {f"f{index}": atom for index, atom in enumerate(_atoms(condition))}
    facts = Facts(admitted, {**atoms, _GOAL: condition}, limits)
    uncovered = Facts([*admitted, condition], atoms, limits)
    primes = []
    while (state := uncovered.state()) is not None:
        primes.append(_prime(facts, state, atoms))
        uncovered.exclude(primes[-1])
    signed = [[atoms[n] if positive else ~atoms[n] for n, positive in row] for row in primes]
    order = {fact: index for index, fact in enumerate(ladder.static)}
    rows = [_in_order(_merged([_positive(fact) for fact in row]), order) for row in signed]
    rows.sort(key=lambda row: [render(fact) for fact in row])
    return Table(outcome, tuple(_irredundant(rows, admitted, limits)))


def _in_order(row: Sequence[Bool], order: Mapping[Term, int]) -> tuple[Bool, ...]:
    """The facts in the order in which the ladder declares their fields."""
    return tuple(sorted(row, key=lambda fact: min(order[one] for one in free_symbols(fact))))


def _merged(row: Sequence[Bool]) -> list[Bool]:
    """`x < c` for `x <= c and x != c`: two facts about one field that make one."""
    kept = dict.fromkeys(row)
    for closed in row:
        order = closed.args[0] if closed.op is Op.NOT else closed
        if order is not closed and order.op is Op.LT and isinstance(order.args[0], Int):
            one, two = cast("tuple[Int, Int]", closed.args[0].args)
            apart = one != two
            if apart in kept:
                del kept[apart], kept[closed]
                kept[two < one] = None
    return list(kept)


def _positive(fact: Bool) -> Bool:
    """`x == b` for `x != a` where an enum has two members only."""
    if fact.op is Op.NOT and fact.args[0].op is Op.EQ:
        left, right = fact.args[0].args
        if isinstance(left, Enum) and len(left.members.members) == 2:
            return left == next(one for one in left.members.members if one != right.value)
    return fact


def _atoms(condition: Bool) -> list[Bool]:
    """The indivisible conditions, in order of appearance."""
    inner = {condition}
    atoms = []
    for node in reversed(topological((condition,))):
        if node not in inner or node.op is Op.CONST:
            continue
        if node.op in (Op.AND, Op.OR, Op.NOT, Op.ITE, Op.EQ) and isinstance(node.args[0], Bool):
            inner.update(arg for arg in node.args if isinstance(arg, Bool))
        else:
            atoms.append(node)
    return [atom for atom in reversed(atoms) if isinstance(atom, Bool)]


def _prime(facts: Facts, state: Mapping[str, bool], atoms: Mapping[str, Bool]) -> _Row:
    """A smallest part of the state's literals that still implies the condition.

    Of two such parts, one found by leaving out equalities first (`x != 0` says more than `x == 3`)
    and one found without, the shorter.
    """
    literals = list(state.items())
    equalities = [one for one in literals if one[1] and atoms[one[0]].op is Op.EQ]
    general = _reduced(facts, literals, equalities, use_core=False)
    one, two = (_reduced(facts, kept, kept, use_core=True) for kept in (general, literals))
    return tuple(one if len(one) <= len(two) else two)


def _reduced(
    facts: Facts, literals: list[SignedFact], candidates: Sequence[SignedFact], *, use_core: bool
) -> list[SignedFact]:
    """The literals without those candidates that the condition does not need, one at a time."""
    kept = literals
    for literal in (None, *candidates):
        fewer = [one for one in kept if one != literal]
        if literal is not None and len(fewer) == len(kept):
            continue
        core = facts.conflict(*fewer, (_GOAL, False))
        if core is None and literal is None:
            raise UndecidedError("the facts do not determine the outcome")
        if core is not None:
            kept = [one for one in fewer if one in core] if use_core else fewer
    return kept


def _irredundant(
    rows: Sequence[tuple[Bool, ...]], admitted: Sequence[Bool], limits: Limits
) -> list[tuple[Bool, ...]]:
    """The rows without those that the remaining ones cover."""
    named = {f"r{index}": row for index, row in enumerate(rows)}
    facts = Facts(admitted, {name: all_of(*row) for name, row in named.items()}, limits)
    kept = list(named)
    for name in named:
        others = [(other, False) for other in kept if other != name]
        if facts.conflict((name, True), *others) is not None:
            kept.remove(name)
    return [named[name] for name in kept]


def decide_reach(statement: Reach, options: Options) -> Decision:
    """`proved` when the computed table is equivalent to "some Run takes the outcome"."""
    ladder = statement.ladder
    try:
        table, runs, decision = prove_table(ladder, statement.outcome, options)
    except UndecidedError as error:
        evidence = {"solver": solver_version()}
        return Decision(Verdict.UNKNOWN, "table", error.args[0], evidence=evidence)
    facts = axes_of((*ladder.static, *ladder.runtime), box_of(tuple(ladder.admitted.values())))
    decision = replace(
        decision,
        engine="table",
        axes={**facts, **decision.axes},
        evidence={**decision.evidence, "table": table.texts, **_evidence(table, runs)},
    )
    if decision.verdict is Verdict.REFUTED:
        reason = "the instances tried miss a Run"
        return replace(decision, verdict=Verdict.UNKNOWN, reason=reason, counterexample=None)
    return decision


def _evidence(table: Table, runs: Sequence[Mapping[str, Value]]) -> dict[str, object]:
    """What `certify` needs: the rows as data, and values of run-time facts, one set per Run."""
    return {"rows": [list(map(write_term, row)) for row in table.rows], "runs": runs}


def prove_table(
    ladder: Ladder, outcome: str, options: Options
) -> tuple[Table, list[dict[str, Value]], Decision]:
    """The table, the Runs that it rests on, and whether it is equivalent to "some Run takes it".

    A Run that the table misses adds its run-time facts to the instances, a few times over.
    """
    seen: list[State] = []
    while True:
        stage("table")
        table = decision_table(ladder, outcome, options.limits, seen)
        decision = decide_claim(_equivalence(ladder, outcome, table, seen), options)
        if decision.counterexample is None or len(seen) == _MOST_RUNS:
            return table, list(instances(ladder, outcome, seen).values()), decision
        seen.append(decision.counterexample.state)


def _equivalence(ladder: Ladder, outcome: str, table: Table, seen: Sequence[State]) -> Claim:
    return Claim(
        {
            "each row has a Run": implies(table.condition, possible(ladder, outcome, seen)),
            "each Run has a row": implies(ladder.takes(outcome), table.condition),
        },
        assuming=ladder.admitted,
        shows={"taken": ladder.takes(outcome), "table": table.condition},
    )
