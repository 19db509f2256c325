"""Decide one claim: abstract first, exact next, search for a failing state last.

`proved` comes only from a solver's "no state" over all admitted states; `refuted` only from a
state the interpreter has executed. Whatever is left is `unknown`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast

from routeproof.spec.interpret import State, Value
from routeproof.spec.obligation import Claim, Verdict
from routeproof.spec.terms import (
    Bool,
    EnumSort,
    Int,
    IntDomain,
    Op,
    Term,
    all_of,
    boolean,
    float32,
    float64,
    free_symbols,
    integer,
    substitute,
    topological,
)
from routeproof.spec.text import render

from .abstraction import abstract, box_of
from .counterexample import Counterexample, Replayer
from .minimise import Minimiser
from .normalise import normalise
from .readings.smtlib import script, unroll
from .sampling import constants_of, find_failing
from .solver import Answer, Options, ask, second_opinion, solver_version

__all__ = ["Decision", "constant", "decide_claim"]

_Accept = Callable[[State], bool]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was found, by which engine, on what evidence."""

    verdict: Verdict
    engine: str
    reason: str = ""
    counterexample: Counterexample | None = None
    axes: Mapping[str, str] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    conditional_on: Sequence[str] = ()
    second_solver: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Whether some state meets all conditions: executed state, `none`, or `unknown` and why."""

    state: Mapping[str, Value] | Literal["none", "unknown"]
    engine: str = ""
    reason: str = ""
    resources: int = 0
    stands_for: Sequence[str] = ()
    query: str = ""


def decide_claim(claim: Claim, options: Options) -> Decision:
    """Decide the claim within the options' limits."""
    return _Claim(claim, options).decide()


class _Claim:
    """One claim under decision; everything derived from it is computed once."""

    def __init__(self, claim: Claim, options: Options) -> None:
        self._claim = claim
        self._options = options
        self._replayer = Replayer(claim)
        self._conditions = tuple(claim.conditions.values())
        self._goal = all_of(*claim.goals.values())

    @cached_property
    def _constants(self) -> tuple[int, ...]:
        return constants_of((*self._conditions, self._goal))

    def decide(self) -> Decision:
        """Vacuity, then the goal."""
        admitted = self._search(self._conditions, self._replayer.admits, start=None)
        if admitted.state == "none":
            return self._decision(Verdict.VACUOUS, admitted, reason="the assumptions admit no state")
        if admitted.state == "unknown":
            reason = f"no admitted state found: {admitted.reason}"
            return self._decision(Verdict.UNKNOWN, admitted, reason=reason)
        witness = cast("State", admitted.state)
        failing = self._search((*self._conditions, ~self._goal), self._replayer.fails, start=witness)
        match failing.state:
            case "none":
                return self._proved(failing, witness)
            case "unknown":
                return self._decision(Verdict.UNKNOWN, failing, reason=failing.reason)
            case state:
                shown = self._minimised(state)
                return self._decision(Verdict.REFUTED, failing, counterexample=shown)

    def _proved(self, outcome: _Outcome, witness: State) -> Decision:
        decision = self._decision(Verdict.PROVED, outcome, witness=witness)
        if not self._options.second:
            return decision
        said, version = second_opinion(outcome.query, self._options.limits)
        decision = replace(decision, second_solver=f"{version}: {said}")
        if said == "sat":
            reason = f"{solver_version()} finds no failing state, {version} does"
            return replace(decision, verdict=Verdict.DISAGREEMENT, reason=reason)
        return decision

    def _decision(
        self,
        verdict: Verdict,
        outcome: _Outcome,
        *,
        reason: str = "",
        counterexample: Counterexample | None = None,
        witness: State | None = None,
    ) -> Decision:
        envelope = self._claim.envelope
        box = box_of(normalise((all_of(*self._conditions),)))  # type: ignore[arg-type]
        return Decision(
            verdict,
            outcome.engine,
            reason,
            counterexample,
            axes={one.name: _axis(one, box) for one in self._replayer.symbols},
            assumptions=tuple(self._claim.assuming),
            conditional_on=tuple(map(str, envelope.declared_only)) if envelope else (),
            evidence={
                "solver": solver_version(),
                "resources": outcome.resources,
                "stands_for": list(outcome.stands_for),
                "admitted_state": witness,
            },
        )

    def _search(self, conditions: Sequence[Bool], accept: _Accept, start: State | None) -> _Outcome:
        """A state that meets the conditions: abstraction, exact solver, sampling, in this order."""
        engine = self._options.engine
        found = _Outcome("unknown", "sampling", "sampling found no such state, which proves nothing")
        if engine != "sampling":
            (goal,) = normalise((all_of(*conditions),))
            found = self._solve(cast("Bool", goal), accept, start)
            if found.state != "unknown":
                return found
        if engine != "smt" or found.engine == "sampling":
            sampled = self._sample(accept, start, {}, tries=4000)
            if sampled:
                return _Outcome(sampled, "sampling")
        return found

    def _solve(self, goal: Bool, accept: _Accept, start: State | None) -> _Outcome:
        """Ask about the abstraction, and where that does not settle it about the exact formula."""
        found = self._ask_abstract(goal)
        if found.state == "none" or self._accepted(found, accept):
            return found
        if found.stands_for:
            spurious = found.state if isinstance(found.state, Mapping) else {}
            sampled = self._sample(accept, start, spurious, tries=300)
            if sampled and self._options.engine == "auto":
                return replace(found, state=sampled, engine="sampling")
            found = self._ask_exact(goal)
            if found.state == "none" or self._accepted(found, accept):
                return found
        reason = found.reason or "the solver's state did not replay"
        return replace(found, state="unknown", reason=reason)

    def _accepted(self, found: _Outcome, accept: _Accept) -> bool:
        return isinstance(found.state, Mapping) and accept(found.state)

    def _sample(
        self, accept: _Accept, start: State | None, spurious: State, tries: int
    ) -> dict[str, Value] | None:
        for origin in filter(None, (start, spurious, {} if start is None else None)):
            state = self._replayer.completed(origin)
            found = find_failing(
                accept, self._replayer.symbols, state, self._constants, tries, self._options.seed
            )
            if found:
                return found
        return None

    def _ask_abstract(self, goal: Bool) -> _Outcome:
        abstraction = abstract((goal,), box_of((goal,)))
        stands = abstraction.stands_for.items()
        readable = tuple(f"{new.name} = {_shortened(render(node))}" for new, node in stands)
        return self._ask((*abstraction.lemmas, cast("Bool", abstraction.roots[0])), readable)

    def _ask_exact(self, goal: Bool) -> _Outcome:
        return self._ask(cast("tuple[Bool, ...]", unroll((goal,))), ())

    def _ask(self, assertions: Sequence[Bool], stands_for: Sequence[str]) -> _Outcome:
        """Whether some state meets the assertions; a model is completed but not yet replayed."""
        query = script(assertions, comments=stands_for)
        options = self._options
        answer = ask(query, free_symbols(*assertions), options.limits, options.seed)
        outcome = _Outcome("none", "smt", "", answer.resources, stands_for, query)
        if answer.status == "sat":
            names = {symbol.name for symbol in self._replayer.symbols}
            model = {name: value for name, value in answer.model.items() if name in names}
            return replace(outcome, state=self._replayer.completed(model))
        if answer.status == "unknown":
            return replace(outcome, state="unknown", reason=f"the solver gave up: {answer.reason}")
        return outcome

    def _minimised(self, state: State) -> Counterexample:
        minimiser = Minimiser(
            self._replayer.fails, self._replayer.symbols, self._constants, self._probe
        )
        return self._replayer.execute(*minimiser.run(state))

    def _probe(
        self, symbol: Int, state: Mapping[str, Value], rest: int
    ) -> int | Literal["none", "unknown"]:
        """Whether a value nearer to rest fails with every other symbol fixed."""
        value = int(state[symbol.name])
        nearer = all_of(symbol < value, symbol >= rest) if value > rest else all_of(
            symbol > value, symbol <= rest
        )
        fixed = {one: constant(one, state[one.name]) for one in self._replayer.symbols}
        del fixed[symbol]
        conditions = substitute((*self._conditions, ~self._goal), fixed)
        (goal,) = normalise((all_of(nearer, *cast("tuple[Bool, ...]", conditions)),))
        for ask_one in (self._ask_abstract, self._ask_exact):
            found = ask_one(cast("Bool", goal))
            if found.state == "none":
                return "none"
            if isinstance(found.state, Mapping):
                moved = int(found.state[symbol.name])
                if self._replayer.fails({**state, symbol.name: moved}):
                    return moved
        return "unknown"


def constant(symbol: Term, value: Value) -> Term:
    """The constant term of the symbol's sort with the value."""
    if isinstance(symbol, Bool):
        return boolean(value)
    if isinstance(symbol, Int):
        return integer(value)
    if isinstance(symbol.sort, EnumSort):
        return symbol.sort[str(value)]
    return (float32 if symbol.sort == 32 else float64)(float(value))


def _axis(symbol: Term, box: Mapping[str, object]) -> str:
    if isinstance(symbol.sort, EnumSort):
        return "{" + ", ".join(symbol.sort.members) + "}"
    if not isinstance(symbol, Int):
        return symbol.sort_name + (str(symbol.sort) if symbol.sort else "")
    return str(box.get(symbol.name, symbol.domain or IntDomain()))


def _shortened(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
