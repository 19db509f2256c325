"""From a question to its answer: every case maximised, every maximum executed, every lemma decided.

Exact means: an upper bound by regimes and lemmas, and a state that the interpreter has executed and
found to need precisely as much. Where the regimes are too many or a lemma stays open, the
structural bound is what is left; a reachable route without a valid size has no bound at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from routeproof.checkers.decide import Decision, decide_claim
from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.maximise import Maximum, lemmas, maximise
from routeproof.checkers.registry import load_function
from routeproof.checkers.solver import Limits, Options
from routeproof.spec.errors import InternalError, UnsupportedError
from routeproof.spec.objective import Case, Domain, Execution, Lemma, Objective, Question
from routeproof.spec.obligation import Verdict
from routeproof.spec.terms import Int

__all__ = ["Answer", "Entry", "Region", "answer", "open_lemma"]

_WORDS = {"cudnn": "cuDNN"}
_SIZE = "out.total_workspace_bytes"
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
    unfused_bytes: int | None
    reason: str
    lemmas: Mapping[str, str]
    regimes: int


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
        unfused_bytes=maxima.unfused([(e.phase, e.alias) for e in entries]),
        lemmas=maxima.lemmas(),
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
        self._aggregates: dict[frozenset[str], int | None] = {}
        self.regimes = 0

    def entries(self) -> Iterator[Entry]:
        """One entry for each phase, route and alias state, and for each route without a recipe."""
        grouped: dict[tuple[str, str, str], list[Case]] = {}
        for case in self._question.cases:
            grouped.setdefault((case.phase, case.route, case.alias), []).append(case)
        for phase, route, alias in self._question.unsized:
            yield Entry(phase, route, alias, "unavailable", reason="its recipe is not known")
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
            why = (
                maximum
                if isinstance(maximum, str)
                else open_lemma((*lemmas(case.objective), *self._question.lemmas))
            )
            if why:
                return replace(entry, status="safe bound", reason=why)
        sized = [(case, one) for case, one in found if isinstance(one, Maximum)]
        case, most = max(sized, key=lambda pair: pair[1].size)
        output = _executed(case, most)
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

    def structural(self, routes: frozenset[str], aliases: Collection[str]) -> int | None:
        """The aggregate over the routes, and the preserved past where an alias state has one."""
        if not routes:
            return None
        if routes not in self._aggregates:
            execution = self._question.structural(routes)
            output = _output(execution)
            answers = execution.answers.items()
            holds = all(_at(output, path) == value for path, value in answers)
            self._aggregates[routes] = int(_at(output, _SIZE)) if holds else None
        total = self._aggregates[routes]
        extra = max(self._question.preserved(alias) for alias in aliases)
        return None if total is None else total + extra

    def unfused(self, places: Iterable[tuple[str, str]]) -> int | None:
        """The most that the reference route needs on the same states; None if it fails on one."""
        cases = [case for place in dict.fromkeys(places) for case in self._references(place)]
        found = [self._maximum(case) for case in cases]
        sizes = [one.size for one in found if isinstance(one, Maximum) and not one.failing]
        complete = len(sizes) == sum(one is not None for one in found)
        return max(sizes) if sizes and complete else None

    def _references(self, place: tuple[str, str]) -> tuple[Case, ...]:
        return self._question.references.get(place, ())

    def lemmas(self) -> dict[str, str]:
        """Every lemma that the answer rests on, with the verdict and the engine that gave it."""
        used = dict.fromkeys(objective for objective, _ in self._known)
        found = (*(one for objective in used for one in lemmas(objective)), *self._question.lemmas)
        return {one.name: f"{_decided(one).verdict} by {_decided(one).engine}" for one in found}


@cache
def _evaluator(function: str) -> Evaluator:
    return Evaluator(load_function(function))


def _output(execution: Execution) -> dict[str, Any]:
    return _evaluator(execution.function)({"in": execution.row}, execution.function)


def _at(output: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON value
    found: Any = output
    for key in path.split("."):
        found = found[key]
    return found


def _executed(case: Case, maximum: Maximum) -> dict[str, Any]:
    """The recipe's output on the state; every execution has to answer as the case says."""
    outputs = []
    for execution in case.execute(maximum.state):
        output = _output(execution)
        for path, value in execution.answers.items():
            if _at(output, path) != value:
                raise InternalError(
                    f"{case.objective.name}: {execution.function} gives {path} "
                    f"{_at(output, path)!r}, not {value!r}, on {dict(execution.row)}"
                )
        outputs.append(output)
    size = _at(outputs[0], _SIZE)
    if size != maximum.size:
        raise InternalError(f"{case.objective.name}: {maximum.size} bytes, executed {size}")
    return outputs[0]


def _failure(case: Case, state: Mapping[Int, int]) -> str:
    """What the recipe reports on the state, as executed."""
    output = _output(case.execute(state)[0])
    lengths = ", ".join(f"{case.names[axis]} {value:,}" for axis, value in state.items())
    return f"its recipe is {_at(output, 'out.status')}, as at {lengths}"


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
