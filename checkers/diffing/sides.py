"""What A and B are: a ladder's revision, a SPEC, a report of `check` or an answer of `bound`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeproof.checkers.bounding.spec import SECTIONS, merged, read_spec
from routeproof.checkers.registry import load_ladders, load_question, pick
from routeproof.spec.errors import RouteproofError, refuse
from routeproof.spec.objective import Question

from .bounds import Bounds, read_answer
from .verdicts import Judged, read_report

__all__ = ["Side", "read_sides"]

_LADDER = "ort.gqa"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Verdicts as saved, or a ladder to decide them on; bounds as saved, or a question."""

    name: str
    kind: str
    verdicts: Mapping[str, Judged] | None = None
    ladder: str | None = None
    bounds: Bounds | None = None
    question: Question | None = None


def read_sides(names: tuple[str, str], options: Mapping[str, Any]) -> tuple[Side, Side]:
    """Both sides, if anything in them can be compared.

    Raises:
        InputError: a side is malformed, or the two have nothing in common.
    """
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    first, second = (_read(name, options, given) for name in names)
    if given and not (first.ladder or second.ladder):
        refuse(", ".join(given), "ask of a node; what is compared are files with results")
    if not (
        (first.verdicts is not None and second.verdicts is not None)
        or (first.ladder and second.ladder)
        or (_has_bounds(first) and _has_bounds(second))
    ):
        refuse(
            f"{first.name} and {second.name}",
            f"{first.kind} and {second.kind} have nothing that could be compared",
        )
    return first, second


def _has_bounds(side: Side) -> bool:
    return side.bounds is not None or side.question is not None


def _read(name: str, options: Mapping[str, Any], given: list[str]) -> Side:
    path = Path(name)
    if path.suffix not in (".json", ".toml"):
        if path.exists():
            refuse(name, "a SPEC, a report or an answer ends in .toml or .json")
        return _revision(name, options if given else None)
    data = read_spec(path)
    if "obligations" in data:
        return Side(name, "a report of check", verdicts=read_report(data, name))
    if "routes" in data:
        return Side(name, "an answer of bound", bounds=read_answer(data, name))
    if data and not data.keys() & set(SECTIONS):
        refuse(name, "neither a SPEC, nor a report of check, nor an answer of bound")
    if options["spec"]:
        refuse("--spec", f"goes with revisions of the ladder, and {name} is a SPEC itself")
    question = _question(name, merged(data, {**options, "ladder": None}))
    return Side(name, "a SPEC", ladder=_ladder_of(question), question=question)


def _revision(name: str, options: Mapping[str, Any] | None) -> Side:
    """A revision, with a question where the options ask one."""
    ladder = pick("revision", name, load_ladders(_LADDER))
    question = None
    if options is not None:
        spec = read_spec(options["spec"]) if options["spec"] else {}
        question = load_question(merged(spec, {**options, "ladder": ladder}))
    return Side(name, "a revision of the ladder", ladder=ladder, question=question)


def _question(name: str, document: Mapping[str, Any]) -> Question:
    """What a SPEC asks; an error says which of the two it is in."""
    try:
        return load_question(document)
    except RouteproofError as error:
        raise type(error)(f"{name}: {error.args[0]}") from error


def _ladder_of(question: Question) -> str:
    return next(
        str(one.value) for one in question.facts if (one.section, one.name) == ("run", "ladder")
    )
