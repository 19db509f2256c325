"""What `--plot` draws along the query length: the exact maximum of every route, length by length.

Each point is a maximum like the answer's own, of the same cases with the query length held at one
value. Between two points nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from routeproof.checkers.maximise import Maximum, lemmas, maximise
from routeproof.spec.errors import InputError, UnsupportedError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.objective import Case, Domain, Question
from routeproof.spec.terms import Int

from .answer import Answer, Entry, open_lemma

__all__ = ["Curve", "Series", "series", "spans_decades"]

_LENGTH = "sequence_length"
_MOST = 160
_MOST_JUMPS = 40
_MOST_REGIMES = 1 << 22  # of a curve, some ten seconds


@dataclass(frozen=True, slots=True)
class Curve:
    """Exact maxima (bytes) by query length (tokens), and what the answer says of the whole range.

    `attained` are the answer's maxima as length and bytes, one per phase and alias state; `exact`
    is the largest, None if one of them is unknown.
    """

    route: str
    maxima: Mapping[int, int]
    exact: int | None
    structural: int | None = None
    attained: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """The curves of the routes and of the unfused reference, and the lengths that are admitted."""

    curves: tuple[Curve, ...]
    reference: Curve
    lengths: tuple[int, int]


def series(answer: Answer) -> Series:
    """The curves of an answer.

    Raises:
        InputError: no Run reaches a route, so that there is nothing to draw.
    """
    question = answer.question
    references = [case for some in question.references.values() for case in some]
    if not references:
        raise InputError("--plot: no Run of this envelope reaches a route, nothing can be drawn")
    cases = [*question.cases, *references]
    exact = dict.fromkeys(_attained(one)[0] for one in answer.entries if one.attained_at)
    lengths = _lengths(cases, exact)
    routes = dict.fromkeys(case.route for case in question.cases)
    return Series(
        tuple(_curve(answer, route, lengths) for route in routes),
        Curve("unfused", _maxima(question, references, lengths), answer.unfused_bytes),
        (min(lengths), max(lengths)),
    )


def spans_decades(lengths: tuple[int, int]) -> bool:
    """Whether a range is for a logarithmic scale: more than two decades."""
    return lengths[1] > 100 * lengths[0]


def _curve(answer: Answer, route: str, lengths: Iterable[int]) -> Curve:
    entries = [one for one in answer.entries if one.route == route]
    cases = [case for case in answer.question.cases if case.route == route]
    return Curve(
        route,
        _maxima(answer.question, cases, lengths),
        _largest(one.exact_bytes for one in entries),
        _largest(one.structural_bytes for one in entries),
        tuple(_attained(one) for one in entries if one.attained_at),
    )


def _largest(sizes: Iterable[int | None]) -> int | None:
    """The most of sizes that are all known."""
    found = list(sizes)
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(found) else None


def _attained(entry: Entry) -> tuple[int, int]:
    return int((entry.attained_at or {})[_LENGTH]), entry.exact_bytes or 0


def _maxima(question: Question, cases: Iterable[Case], lengths: Iterable[int]) -> dict[int, int]:
    """The exact maximum over the cases at each length; a length without one is left out.

    So are the least important ones where each costs as much as an answer.
    """
    different = {(case.objective, case.domain): case for case in cases}  # alias states share them
    needed = (one for case in different.values() for one in lemmas(case.objective))
    if open_lemma((*needed, *question.lemmas)):
        return {}
    found: dict[int, int] = {}
    regimes = 0
    for length in lengths:
        maxima = _at(different.values(), length)
        regimes += sum(one.regimes for one in maxima)
        if maxima and not any(one.failing for one in maxima):
            found[length] = max(one.size for one in maxima)
        if regimes > _MOST_REGIMES:
            break
    return found


def _at(cases: Iterable[Case], length: int) -> list[Maximum]:
    """The maxima of the cases at a length; none if one of them is not known."""
    try:
        found = [maximise(held) for case in cases if (held := _held(case, length))]
    except UnsupportedError:
        return []
    return [one for one in found if one is not None]


def _held(case: Case, length: int) -> Case | None:
    """The case at one query length; None if it has none there."""
    axis, domain = _axis(case), case.domain
    if axis is None:
        return case if length == 1 else None
    together = domain.equal if domain.equal and axis in domain.equal else (axis,)
    if not all(low <= length <= high for low, high in (domain.ranges[one] for one in together)):
        return None
    ranges = {**domain.ranges, **dict.fromkeys(together, (length, length))}
    return replace(case, domain=Domain(ranges, domain.equal, domain.less))


def _axis(case: Case) -> Int | None:
    """The axis of the query length; a case without one is about a single token."""
    return next((one for one in case.objective.axes if case.names[one] == _LENGTH), None)


def _span(case: Case) -> tuple[int, int]:
    axis = _axis(case)
    return (1, 1) if axis is None else case.domain.ranges[axis]


def _lengths(cases: Collection[Case], attained: Collection[int]) -> tuple[int, ...]:
    """All lengths if they are few, else a sample, the most important ones first.

    These are those of the answer's maxima and the ends; then come jumps and evenly spaced lengths.
    """
    spans = [_span(case) for case in cases]
    low, high = min(one for one, _ in spans), max(one for _, one in spans)
    if high - low < _MOST:
        rest = {*range(low, high + 1)}
    else:
        rest = {one for case in cases for one in _jumps(case)}
        even = np.geomspace if spans_decades((low, high)) else np.linspace
        rest |= {round(one) for one in even(low, high, _MOST // 2).tolist()}
    first = dict.fromkeys((*attained, low, high))
    later = sorted(rest - {*first})
    return (*first, *(one for start in range(8) for one in later[start::8]))


def _jumps(case: Case) -> Iterator[int]:
    """Ends of the stretches on which the held part stands still, and the lengths after them."""
    axis, held = _axis(case), case.objective.held
    low, high = _span(case)
    for step in held.steps if held else ():
        if step.axis is axis:
            every, at = cast("list[int]", compile_terms((step.every, step.at))(case.facts))
            first = low + -(low + at) % every
            stride = every * max(1, -(-(high - first) // (every * _MOST_JUMPS)))
            for end in range(first, high, stride):
                yield from (end, end + 1)
