"""Decide one claim: abstract first, exact next, search for a failing state last.

`proved` comes only from a solver's "no state" over all admitted states; `refuted` only from a
state the interpreter has executed. Whatever is left is `unknown`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast

from routeproof.spec.derivation import Step, pack
from routeproof.spec.interpret import State, Value
from routeproof.spec.obligation import Claim, Verdict
from routeproof.spec.terms import (
    Bool,
    EnumSort,
    Int,
    IntDomain,
    Term,
    all_of,
    constant,
    free_symbols,
    substitute,
)
from routeproof.spec.text import shortened

from .abstraction import abstract, box_of
from .announcing import stage
from .calculus import Calculus, compares_sizes
from .counterexample import Counterexample, Replayer, rest_value
from .enumeration import Box, enumerate_states, finite_box
from .minimise import Minimiser
from .normalise import normalise, push_negations, specialise, split
from .readings.intervals import Interval
from .readings.smtlib import script
from .sampling import Sampler, constants_of
from .solver import Limits, Options, ask, second_opinion, solver_version
from .unrolling import unroll, unrolled_size
from .witnesses import failing_state

__all__ = ["Decision", "axes_of", "decide_claim"]

_QUICK_RESOURCES = 1_500_000
_LARGEST_UNROLLED = 4_000
_MOST_UNDERIVED = 4
_MOST_STATES = 1 << 26
_FEW_STATES = 1 << 22

_Accept = Callable[[State], bool]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was found, by which engine, on what evidence.

    `enforced` says of the claim's envelope whether the runtime enforces every bound (None: there is
    no envelope); `malformed` that there was nothing to decide: the statement is not one; `cached`
    that an earlier run decided it. `kind` is that of the statement, if there is one.
    """

    verdict: Verdict
    engine: str
    reason: str = ""
    counterexample: Counterexample | None = None
    axes: Mapping[str, str] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    conditional_on: Sequence[str] = ()
    second_solver: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    enforced: bool | None = None
    malformed: bool = False
    cached: bool = False
    kind: Literal["claim", "rows", "reach", ""] = ""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Whether some state meets all conditions: executed state, `none`, or `unknown` and why."""

    state: Mapping[str, Value] | Literal["none", "unknown"]
    engine: str = ""
    reason: str = ""
    resources: int = 0
    stands_for: Sequence[str] = ()
    queries: tuple[str, ...] = ()


_NOTHING = _Outcome("unknown", "sampling", "sampling found no such state, which proves nothing")


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
        self._derivation: Sequence[object] = ()
        self._calculus: Calculus | None = None

    @cached_property
    def _constants(self) -> tuple[int, ...]:
        return constants_of((*self._conditions, self._goal))

    @cached_property
    def _box(self) -> Mapping[str, Interval]:
        """The range of each integer under the conditions."""
        if self._calculus:
            return self._calculus.box
        return box_of((_prepared(_normal(self._conditions)),))

    def decide(self) -> Decision:
        """Vacuity, then the goal; a claim without inputs has one state only."""
        if not self._replayer.symbols and self._options.engine != "sampling":
            return self._evaluated()
        derived = self._derived() if self._options.engine == "auto" else None
        if isinstance(derived, Decision):
            return derived
        if self._claim.settles and isinstance(self._finite, Box):
            return self._exhausted(self._finite)
        found = self._searched()
        if found.verdict is not Verdict.UNKNOWN:
            return found
        if isinstance(self._finite, Box):
            return self._exhausted(self._finite)
        return replace(found, reason=self._finite) if self._claim.settles else found

    def _searched(self) -> Decision:
        """An admitted state, then one that breaks the goal: sought by solver and sampling."""
        admitted = self._search(_normal(self._conditions), self._replayer.admits)
        if admitted.state == "none":
            return self._decision(
                Verdict.VACUOUS, admitted, reason="the assumptions admit no state"
            )
        if admitted.state == "unknown":
            reason = f"no admitted state found: {admitted.reason}"
            return self._decision(Verdict.UNKNOWN, admitted, reason=reason)
        witness = admitted.state
        failing = self._failing(witness)
        match failing.state:
            case "none":
                return self._proved(failing, witness)
            case "unknown":
                return self._decision(Verdict.UNKNOWN, failing, reason=failing.reason)
            case state:
                shown = self._minimised(state)
                return self._decision(Verdict.REFUTED, failing, counterexample=shown)

    def _derived(self) -> Decision | None:
        """The claim as proved by the monotone calculus; what it leaves is left to the solver."""
        if self._claim.solver_only or not compares_sizes(self._conditions, (self._goal,)):
            return None
        stage("calculus")
        goals = tuple(self._claim.goals.values())
        calculus = self._calculus = Calculus(self._conditions, goals)
        if not calculus.witnesses.states or calculus.facts.contradictory:
            self._calculus = None  # without an admitted state nothing that follows is believed
            return None
        steps: list[Step | None] = []
        for part in calculus.parts:
            failed = steps.count(None)
            steps.append(calculus.derive(part) if failed < _MOST_UNDERIVED else None)
            if steps[-1] is None and not failed and (refuted := self._proposed(calculus)):
                return refuted
        left = [part for part, step in zip(calculus.parts, steps, strict=True) if step is None]
        if 2 * len(left) > len(steps):  # the solver decides it as well as a whole
            self._calculus = None
            return None
        self._derivation = [pack(step, calculus.names) if step else None for step in steps]
        if left:
            self._goal = all_of(*left)
            return None
        witness = self._replayer.completed(calculus.witnesses.states[0])
        return self._decision(Verdict.PROVED, _Outcome("none", "calculus"), witness=witness)

    def _proposed(self, calculus: Calculus) -> Decision | None:
        """The claim as refuted by a state that the facts propose."""
        goals = tuple(self._claim.goals.values())
        found = failing_state(self._conditions, goals, calculus.facts, self._options.seed)
        if not found or not self._replayer.fails(found):
            return None
        shown = self._minimised(found)
        return self._decision(Verdict.REFUTED, _Outcome(found, "sampling"), counterexample=shown)

    @cached_property
    def _finite(self) -> Box | str:
        """A finite box to be tried, or why there is none; a large one only if the claim asks."""
        if self._options.engine != "auto":
            return f"the engine {self._options.engine} enumerates nothing"
        box = finite_box(self._claim, self._is_impossible)
        most = _MOST_STATES if self._claim.settles else _FEW_STATES
        if isinstance(box, Box) and box.states > most:
            return f"{box.states:,} states are too many to be enumerated"
        return box

    def _exhausted(self, box: Box) -> Decision:
        """The verdict by trying every state of the box."""
        stage("enumeration")
        limits = self._options.limits
        found = enumerate_states(self._claim, box, limits.seconds)
        if found is None:
            reason = f"enumeration used up {limits.seconds:g} s (--timeout)"
            return self._decision(Verdict.UNKNOWN, _NOTHING, reason=reason)
        outcome = _Outcome("none", "exhaustive")
        witness, failing = (
            None if state is None else self._replayer.completed(state)
            for state in (found.witness, found.failing)
        )
        if failing is not None and self._replayer.fails(failing):
            shown = self._minimised(failing)
            decision = self._decision(Verdict.REFUTED, outcome, counterexample=shown)
        elif witness is None:
            reason = "the assumptions admit no state"
            decision = self._decision(Verdict.VACUOUS, outcome, reason=reason)
        elif failing is None and self._replayer.admits(witness):
            decision = self._decision(Verdict.PROVED, outcome, witness=witness)
        else:
            reason = "the interpreter does not confirm a state that the enumeration found"
            return self._decision(Verdict.DISAGREEMENT, outcome, reason=reason)
        return replace(decision, evidence={**decision.evidence, "enumeration": found.evidence(box)})

    def _is_impossible(self, conditions: Sequence[Bool]) -> bool:
        """Whether the solver finds no state that meets the conditions."""
        return self._ask_exact(all_of(*conditions), self._options.limits).state == "none"

    def _evaluated(self) -> Decision:
        """The verdict on the only state there is."""
        outcome = _Outcome({}, "evaluation")
        if not self._replayer.admits({}):
            return self._decision(Verdict.VACUOUS, outcome, reason="an assumption is false")
        if self._replayer.fails({}):
            found = self._replayer.execute({})
            return self._decision(Verdict.REFUTED, outcome, counterexample=found)
        return self._decision(Verdict.PROVED, outcome, witness={})

    def _failing(self, witness: State) -> _Outcome:
        """A state that breaks the goal: the goal as a whole if that is easy, else part by part."""
        *known, goal = _normal((*self._conditions, self._goal))
        parts, limits = split(goal), self._options.limits
        stage("smt")
        if not parts[1:] or self._options.engine == "sampling":
            return self._search((*known, ~goal), self._replayer.fails, witness)
        quick = replace(limits, resources=min(limits.resources, _QUICK_RESOURCES))
        whole = self._ask_abstract(_prepared((*known, ~goal)), quick)
        if whole.state == "none" or self._accepted(whole, self._replayer.fails):
            return whole
        outcome = _Outcome("none", "smt", stands_for=whole.stands_for)
        undecided: _Outcome | None = None
        for part in parts:
            found = self._search((*known, ~part), self._replayer.fails, witness)
            if isinstance(found.state, Mapping):
                return found
            undecided = undecided or (found if found.state == "unknown" else None)
            outcome = replace(
                outcome,
                resources=outcome.resources + found.resources,
                queries=outcome.queries + found.queries,
            )
        return undecided or outcome

    def _proved(self, outcome: _Outcome, witness: State) -> Decision:
        decision = self._decision(Verdict.PROVED, outcome, witness=witness)
        if not self._options.second:
            return decision
        answers = [second_opinion(query, self._options.limits) for query in outcome.queries]
        said = {answer for answer, _ in answers}
        version = answers[0][1]
        words = "agrees" if said == {"unsat"} else "disagrees" if "sat" in said else "gave up"
        decision = replace(decision, second_solver=f"{version} {words}")
        if "sat" in said:
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
        envelope, box = self._claim.envelope, self._box
        return Decision(
            verdict,
            outcome.engine,
            reason,
            counterexample,
            axes=axes_of(self._replayer.symbols, box),
            assumptions=tuple(self._claim.assuming),
            conditional_on=tuple(map(str, envelope.declared_only)) if envelope else (),
            evidence={
                "solver": solver_version(),
                "resources": outcome.resources,
                "queries": len(outcome.queries),
                "stands_for": list(outcome.stands_for),
                "admitted_state": witness,
                "derivation": self._derivation,
            },
            enforced=not envelope.declared_only if envelope else None,
        )

    def _search(
        self,
        conditions: Sequence[Bool],
        accept: _Accept,
        start: State | None = None,
    ) -> _Outcome:
        """A state that meets the normalised conditions: abstraction, sampling, exact solver."""
        engine, limits = self._options.engine, self._options.limits
        if engine == "sampling":
            return self._sampled(accept, (start or {},), batches=5) or _NOTHING
        stage("smt")
        goal = _prepared(conditions)
        found = self._ask_abstract(goal, limits)
        if found.state == "none" or self._accepted(found, accept):
            return found
        origins = [one for one in (start, found.state) if isinstance(one, Mapping)] or [{}]
        quick = self._sampled(accept, origins, batches=1) if engine == "auto" else None
        if quick:
            return quick
        if isinstance(self._finite, Box):
            return replace(found, state="unknown", reason="left to enumeration")
        if found.stands_for and found.state != "unknown" and _is_small(goal):
            stage("smt, searches unrolled")
            found = self._ask_exact(goal, limits)
            if found.state == "none" or self._accepted(found, accept):
                return found
        thorough = self._sampled(accept, origins, batches=5) if engine == "auto" else None
        reason = found.reason or "a state of the abstraction did not replay"
        return thorough or replace(found, state="unknown", reason=reason)

    def _accepted(self, found: _Outcome, accept: _Accept) -> bool:
        return isinstance(found.state, Mapping) and accept(found.state)

    @cached_property
    def _samplers(self) -> dict[_Accept, Sampler]:
        """Compiled conditions of the two searches: for an admitted state, for a failing one."""
        admitted = all_of(*self._conditions)
        symbols, constants = self._replayer.symbols, self._constants
        return {
            self._replayer.admits: Sampler(admitted, symbols, constants),
            self._replayer.fails: Sampler(admitted & ~self._goal, symbols, constants),
        }

    def _sampled(self, accept: _Accept, origins: Sequence[State], batches: int) -> _Outcome | None:
        """A state found by sampling around the given ones, if any."""
        if not self._replayer.symbols:
            return _Outcome({}, "sampling") if accept({}) else None
        stage("sampling")
        for origin in origins:
            start = self._replayer.completed(origin)
            state = self._samplers[accept].find(accept, start, batches, self._options.seed)
            if state:
                return _Outcome(state, "sampling")
        return None

    def _ask_abstract(self, goal: Bool, limits: Limits) -> _Outcome:
        abstraction = abstract((goal,), box_of((goal,)))
        stands = abstraction.stands_for.items()
        readable = tuple(f"{new.name} = {shortened(node, 120)}" for new, node in stands)
        return self._ask(
            (*abstraction.lemmas, cast("Bool", abstraction.roots[0])), readable, limits
        )

    def _ask_exact(self, goal: Bool, limits: Limits) -> _Outcome:
        return self._ask(cast("tuple[Bool, ...]", unroll((goal,))), (), limits)

    def _ask(
        self, assertions: Sequence[Bool], stands_for: Sequence[str], limits: Limits
    ) -> _Outcome:
        """Whether some state meets the assertions; a model is completed but not yet replayed."""
        query = script(assertions, comments=stands_for)
        known = set(self._replayer.symbols)  # a new symbol may have the name of one of them
        symbols = [symbol for symbol in free_symbols(*assertions) if symbol in known]
        answer = ask(query, symbols, limits, self._options.seed)
        outcome = _Outcome("none", "smt", "", answer.resources, stands_for, (query,))
        if answer.status == "sat":
            return replace(outcome, state=self._replayer.completed(answer.model))
        if answer.status == "unknown":
            return replace(outcome, state="unknown", reason=answer.reason)
        return outcome

    def _minimised(self, state: State) -> Counterexample:
        stage("minimising")
        rests = {one.name: rest_value(one, self._box) for one in self._replayer.symbols}
        minimiser = Minimiser(
            self._replayer.fails, self._replayer.symbols, self._constants, rests, self._probe
        )
        return self._replayer.execute(*minimiser.run(state), rests=rests)

    def _probe(
        self, symbol: Int, state: Mapping[str, Value], rest: int
    ) -> int | Literal["none", "unknown"]:
        """Whether a value nearer to rest, on either side, fails with every other symbol fixed."""
        distance = abs(int(state[symbol.name]) - rest)
        nearer = all_of(symbol > rest - distance, symbol < rest + distance)
        fixed = {one: constant(one, state[one.name]) for one in self._replayer.symbols}
        del fixed[symbol]
        conditions = substitute((*self._conditions, ~self._goal), fixed)
        goal = _prepared(_normal((nearer, *cast("tuple[Bool, ...]", conditions))))
        exact = (self._ask_exact,) if _is_small(goal) else ()
        for ask_one in (self._ask_abstract, *exact):
            found = ask_one(goal, self._options.limits)
            if found.state == "none":
                return "none"
            if isinstance(found.state, Mapping):
                moved = int(found.state[symbol.name])
                if self._replayer.fails({**state, symbol.name: moved}):
                    return moved
        return "unknown"


def _is_small(goal: Bool) -> bool:
    """Whether the goal's searches can be written out without flooding the solver."""
    return unrolled_size((goal,)) <= _LARGEST_UNROLLED


def _normal(conditions: Sequence[Bool]) -> list[Bool]:
    return cast("list[Bool]", list(normalise(tuple(conditions))))


def _prepared(conditions: Sequence[Bool]) -> Bool:
    """The conjunction of normalised conditions in the form that the abstraction reads best."""
    plain = push_negations(all_of(*conditions))
    special = specialise(plain)
    return plain if special is plain else push_negations(_normal((special,))[0])


def axes_of(symbols: Sequence[Term], box: Mapping[str, Interval]) -> dict[str, str]:
    """The range of each quantified symbol, for people."""
    return {symbol.name: _axis(symbol, box) for symbol in symbols}


def _axis(symbol: Term, box: Mapping[str, object]) -> str:
    if isinstance(symbol.sort, EnumSort):
        return "{" + ", ".join(symbol.sort.members) + "}"
    if not isinstance(symbol, Int):
        return symbol.sort_name + (str(symbol.sort) if symbol.sort else "")
    return str(box.get(symbol.name, symbol.domain or IntDomain()))
