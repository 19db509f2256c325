"""From a question to its answer: every case maximised, every maximum executed, every lemma decided.

Exact means: an upper bound by regimes and lemmas, and a state that the interpreter has executed and
found to need precisely as much. Where the regimes are too many or a lemma stays open, the
structural bound is what is left; a reachable route without a valid size has no bound at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from routeproof.checkers.decide import Decision, decide_claim
from routeproof.checkers.maximise import Maximum, lemmas, maximise
from routeproof.checkers.solver import Limits, Options
from routeproof.spec.errors import InternalError, UnsupportedError
from routeproof.spec.objective import Case, Domain, Execution, Lemma, Objective, Question
from routeproof.spec.obligation import Verdict
from routeproof.spec.terms import Int

from .executing import SIZE, STATUS, checked, output_of, value_at

__all__ = ["Answer", "Entry", "Region", "answer", "open_lemma"]

_WORDS = {"cudnn": "cuDNN"}
_OPTIONS = Options(Limits(seconds=20))


@dataclass(frozen=True, slots=True)
class Region:
    """One region of an executed recipe (bytes)."""

    name: str
    offset_bytes: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One phase, route and alias state; `reason` says why the bytes are not exact."""

    phase: str
    route: str
    alias: str
    status: str
    exact_bytes: int | None = None
    attained_at: Mapping[str, Any] | None = None
    regions: tuple[Region, ...] = ()
    structural_bytes: int | None = None
    unfused_bytes: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Every entry, what holds for the whole, and what the proof rests on."""

    question: Question
    entries: tuple[Entry, ...]
    status: str
    exact_bytes: int | None
    structural_bytes: int | None
    closed_bytes: int | None
    unfused_bytes: int | None
    reason: str
    lemmas: Mapping[str, str]
    regimes: int

    @property
    def verdict(self) -> str:
        """The status of the whole; why, where nothing bounds it."""
        return f"{self.status}: {self.reason}" if self.status == "unavailable" else self.status


def answer(question: Question) -> Answer:
    """The whole answer; equal questions give equal answers."""
    maxima = _Maxima(question)
    entries = tuple(maxima.entries())
    routes = {entry.route for entry in entries}
    aliases = {entry.alias for entry in entries}
    status, reason = _overall(question, entries)
    sizes = [entry.exact_bytes for entry in entries]
    return Answer(
        question=question,
        entries=entries,
        status=status,
        reason=reason,
        exact_bytes=max(map(int, sizes)) if status == "exact" else None,  # type: ignore[arg-type]
        structural_bytes=maxima.structural(frozenset(routes), aliases),
        closed_bytes=maxima.closed(frozenset(routes), aliases),
        unfused_bytes=maxima.unfused([(e.phase, e.alias) for e in entries]),
        lemmas={one.name: f"{d.verdict} by {d.engine}" for one, d in maxima.rests_on.items()},
        regimes=maxima.regimes,
    )


def _overall(question: Question, entries: Iterable[Entry]) -> tuple[str, str]:
    """The worst status of any entry: without a bound on one route there is none on the whole."""
    if question.unsized:
        routes = dict.fromkeys(outcome for _, outcome, _ in question.unsized)
        return "unavailable", f"{_WORDS.get(', '.join(routes), ', '.join(routes))} reachable"
    for status in ("unavailable", "safe bound"):
        for entry in entries:
            if entry.status == status:
                return status, f"{entry.phase} by {entry.route}: {entry.reason}"
    return ("exact", "") if entries else ("unavailable", "no Run reaches a route")


class _Maxima:
    """The maxima of a question's cases, each computed once however many alias states share it."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._known: dict[tuple[Objective, Domain], Maximum | str | None] = {}
        self._outputs: dict[tuple[Objective, Domain], dict[str, Any]] = {}
        self._references: dict[tuple[Objective, Domain], int | None] = {}
        self._estimates: dict[tuple[object, frozenset[str]], int | None] = {}
        self._general = question.lemmas
        self.rests_on: dict[Lemma, Decision] = {}
        self.regimes = 0

    def entries(self) -> Iterator[Entry]:
        """One entry for each phase, route and alias state, and for each route without a recipe."""
        grouped: dict[tuple[str, str, str], list[Case]] = {}
        for case in self._question.cases:
            grouped.setdefault((case.phase, case.route, case.alias), []).append(case)
        for phase, route, alias in self._question.unsized:
            unfused = self.unfused([(phase, alias)])
            why = "its recipe is not known"
            yield Entry(phase, route, alias, "unavailable", unfused_bytes=unfused, reason=why)
        for place, cases in grouped.items():
            yield self._entry(place, cases)

    def _entry(self, place: tuple[str, str, str], cases: Sequence[Case]) -> Entry:
        phase, route, alias = place
        entry = Entry(
            phase,
            route,
            alias,
            "exact",
            structural_bytes=self.structural(frozenset({route}), {alias}),
            unfused_bytes=self.unfused([(phase, alias)]),
        )
        found = [(case, self._maximum(case)) for case in cases]
        for case, maximum in found:
            if isinstance(maximum, Maximum) and maximum.failing:
                return replace(entry, status="unavailable", reason=_failure(case, maximum.failing))
        for case, maximum in found:
            if isinstance(maximum, str) and (failure := _failure(case, _largest(case))):
                return replace(entry, status="unavailable", reason=failure)
        why = next((one for _, one in found if isinstance(one, str)), "") or self._undecided(cases)
        if why:
            status = "unavailable" if entry.structural_bytes is None else "safe bound"
            return replace(entry, status=status, reason=why)
        sized = [(case, one) for case, one in found if isinstance(one, Maximum)]
        case, most = max(sized, key=lambda pair: pair[1].size)
        recipe, *dispatch = case.execute(most.state)
        for execution in dispatch:
            checked(execution, case.objective.name)
        output = self._executed(case, most, recipe)
        return replace(
            entry,
            exact_bytes=most.size,
            attained_at=_shown(case, most.state),
            regions=tuple(Region(*one) for one in self._question.regions(output)),
        )

    def _maximum(self, case: Case) -> Maximum | str | None:
        """The case's maximum; why there is none; None where it has no state."""
        key = (case.objective, case.domain)
        if key not in self._known:
            try:
                found = self._known[key] = maximise(case)
                self.regimes += found.regimes if found else 0
            except UnsupportedError as error:
                self._known[key] = error.args[0]
        return self._known[key]

    def _executed(self, case: Case, maximum: Maximum, recipe: Execution) -> dict[str, Any]:
        """The recipe's output on the state that attains the maximum: the same for alias states."""
        key = (case.objective, case.domain)
        if key not in self._outputs:
            output = self._outputs[key] = checked(recipe, case.objective.name)
            size = value_at(output, SIZE)
            if size != maximum.size:
                name = case.objective.name
                raise InternalError(f"{name}: {maximum.size} bytes, executed {size}")
        return self._outputs[key]

    def _undecided(self, cases: Iterable[Case]) -> str:
        """Why the cases' maxima are no upper bounds, if one of the lemmas is not proved."""
        needed = (*(one for case in cases for one in lemmas(case.objective)), *self._general)
        self.rests_on |= {lemma: _decided(lemma) for lemma in needed}
        return open_lemma(needed)

    def structural(self, routes: frozenset[str], aliases: Collection[str]) -> int | None:
        """The aggregate over the routes, and the preserved past where an alias state has one."""
        return self._reserved(self._question.structural, routes, aliases)

    def closed(self, routes: frozenset[str], aliases: Collection[str]) -> int | None:
        """The same by the closed form."""
        return self._reserved(self._question.closed, routes, aliases)

    def _reserved(
        self,
        estimate: Callable[[frozenset[str]], Execution | None],
        routes: frozenset[str],
        aliases: Collection[str],
    ) -> int | None:
        """What an estimate reserves (bytes); None where its status promises nothing."""
        key = (estimate, routes)
        if key not in self._estimates:
            self._estimates[key] = _promised(estimate(routes)) if routes else None
        total = self._estimates[key]
        extra = max(map(self._question.preserved, aliases), default=0)
        return None if total is None else total + extra

    def unfused(self, places: Iterable[tuple[str, str]]) -> int | None:
        """The most that the reference route needs on the same states; None if that is not exact."""
        references = self._question.references
        cases = [case for place in dict.fromkeys(places) for case in references.get(place, ())]
        sizes = [self._reference(case) for case in cases]
        known = [size for size in sizes if size is not None]
        return max(known, default=None) if len(known) == len(sizes) else None

    def _reference(self, case: Case) -> int | None:
        """The recipe's maximum, whichever route runs; 0 where the case has no state."""
        key = (case.objective, case.domain)
        if key not in self._references:
            most = self._maximum(case)
            if isinstance(most, str) or (most and most.failing) or self._undecided([case]):
                self._references[key] = None
            else:
                self._references[key] = most.size if most else 0
                if most:
                    self._executed(case, most, case.execute(most.state)[0])
        return self._references[key]


def _promised(execution: Execution | None) -> int | None:
    """The bytes that an estimate gives with the status it should."""
    if execution is None:
        return None
    output = output_of(execution)
    holds = all(value_at(output, path) == value for path, value in execution.answers.items())
    return int(value_at(output, SIZE)) if holds else None


def _largest(case: Case) -> dict[Int, int]:
    """The largest state of the case, which the recipe has to size if anything is to bound it."""
    state = {axis: high for axis, (_, high) in case.domain.ranges.items()}
    if case.domain.less:
        one, two = case.domain.less
        state[one] = min(state[one], state[two] - 1)
    return state


def _failure(case: Case, state: Mapping[Int, int]) -> str:
    """What the recipe reports on the state, as executed; nothing where it is ok."""
    output = output_of(case.execute(state)[0])
    if value_at(output, STATUS) == "ok":
        return ""
    lengths = ", ".join(f"{case.names[axis]} {value:,}" for axis, value in state.items())
    return f"its recipe is {value_at(output, STATUS)}, as at {lengths}"


def _shown(case: Case, state: Mapping[Int, int]) -> dict[str, Any]:
    lengths = {name: state.get(axis, 1) for axis, name in case.names.items()}
    return {**lengths, **case.runtime}


@cache
def _decided(lemma: Lemma) -> Decision:
    """The lemma's verdict; it speaks of all facts and lengths, so one is enough."""
    return decide_claim(lemma.claim, _OPTIONS)


def open_lemma(needed: Iterable[Lemma]) -> str:
    """Why the upper bound is not proved, if it is not."""
    for lemma in needed:
        decision = _decided(lemma)
        if decision.verdict is not Verdict.PROVED:
            return f"{lemma.name!r} is {decision.verdict}: {decision.reason}"
    return ""
