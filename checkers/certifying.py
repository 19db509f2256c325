"""The `certify` command: what a report calls proved or refuted, checked again from its evidence.

Nothing here loads an engine. A proof with a derivation is followed step by step; a proof that is a
solver's word is asked again, in another encoding; a counterexample is executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from routeproof.spec.derivation import Digests, unpack
from routeproof.spec.errors import InputError
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.obligation import Claim, Obligation, Reach, Rows
from routeproof.spec.terms import Bool, free_symbols

from .evaluator import recorded
from .evidence.conditions import parts_of
from .evidence.enumeration import check_enumeration
from .evidence.reasking import ask_again
from .evidence.refused import OpenError, RefusedError, require
from .evidence.steps import check_derivation
from .evidence.tables import check_table
from .registry import build, load_obligations, pick
from .values import read_json, read_state

__all__ = ["Certificate", "certify", "run_certify"]

_Word = Literal["confirmed", "unconfirmed", "refused"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What became of one obligation: confirmed, left open, or refused with the reason."""

    id: str
    word: _Word
    how: str


def run_certify(path: Path, files: Sequence[Path], seconds: float) -> int:
    """Certify each entry of a JSON report: 0 all confirmed, 1 one refused, 3 one left open."""
    entries = _entries(read_json(path), str(path))
    known = load_obligations(files)
    console = Console(soft_wrap=True, highlight=False, emoji=False)
    words: Counter[str] = Counter()
    for entry in entries:
        found = certify(known[pick("obligation", entry["id"], known)], entry, seconds)
        words[found.word] += 1
        mark = {"confirmed": "[green]✓[/]", "refused": "[red]✗[/]"}.get(found.word, "[yellow]?[/]")
        console.print(f"{mark} {found.word:11} {escape(found.id)} [dim]{escape(found.how)}[/dim]")
    told = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    console.print(f"\n{len(entries)} certified: {told or 'none'}")
    return 1 if words["refused"] else 3 if words["unconfirmed"] else 0


def _entries(data: Any, where: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    entries = data.get("obligations") if isinstance(data, dict) else None
    if not isinstance(entries, list) or repr(data.get("schema_version")) != "1":
        raise InputError(f"{where}: expected a report of schema_version 1, as check writes it")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise InputError(f"{where}: an obligation of a report has an 'id'")
    return entries


def certify(obligation: Obligation, entry: Mapping[str, Any], seconds: float) -> Certificate:
    """Check one entry of a report against the obligation that it is about."""
    verdict, name = entry.get("verdict"), obligation.id
    statement = build(obligation)
    try:
        if isinstance(statement, Reach) and verdict == "proved":
            return Certificate(name, *_table(statement, entry.get("evidence"), seconds))
        if isinstance(statement, Rows) and verdict == "replayed":
            return Certificate(name, *_rows(statement))
        if not isinstance(statement, Claim):
            return Certificate(name, "unconfirmed", f"{verdict} is no evidence")
        if verdict == "proved":
            return Certificate(name, *_proof(statement, entry.get("evidence"), seconds))
        if verdict == "refuted":
            return Certificate(name, "confirmed", _refutation(statement, entry, name))
    except (RefusedError, InputError) as error:
        return Certificate(name, "refused", str(error))
    except OpenError as error:
        return Certificate(name, "unconfirmed", str(error))
    except Exception as error:  # noqa: BLE001 - what the checker cannot follow is not confirmed
        return Certificate(name, "unconfirmed", f"beyond the checker: {type(error).__name__}")
    return Certificate(name, "unconfirmed", f"{verdict} is no evidence")


def _table(statement: Reach, evidence: Any, seconds: float) -> tuple[_Word, str]:  # noqa: ANN401 - JSON
    if not isinstance(evidence, dict):
        raise RefusedError("no evidence")
    rows = check_table(statement.ladder, statement.outcome, evidence, seconds)
    return "confirmed", f"{rows} rows asked again, and that there are no others"


def _rows(rows: Rows) -> tuple[_Word, str]:
    matches = [row.matches for row in recorded(rows)]
    if not matches or not all(matches):
        raise RefusedError(f"{sum(matches)} of {len(matches)} rows match")
    return "confirmed", f"{len(matches):,} rows replayed"


def _proof(claim: Claim, evidence: Any, seconds: float) -> tuple[_Word, str]:  # noqa: ANN401 - JSON
    if not isinstance(evidence, dict):
        raise RefusedError("no evidence")
    conditions, goals = tuple(claim.conditions.values()), tuple(claim.goals.values())
    _admitted(claim, evidence)
    if not free_symbols(*conditions, *goals):
        require(all(compile_terms(goals)({})), "its only state breaks it")
        return "confirmed", "its only state executed"
    if (enumerated := evidence.get("enumeration")) is not None:
        require(isinstance(enumerated, dict), "an enumeration is an object")
        states = check_enumeration(claim, enumerated, seconds)
        grouped = ", in groups" if enumerated["groups"] else ""
        return "confirmed", f"{states:,} states tried again{grouped}"
    steps = evidence.get("derivation") or []
    if not isinstance(steps, list):
        raise RefusedError("a derivation is a list of lists of steps")
    parts, facts = parts_of(conditions, goals)
    if steps and len(steps) != len(parts):
        raise RefusedError(f"{len(steps)} derivations for {len(parts)} parts")
    names, left, followed = Digests(), [], 0
    for part, rows in zip(parts, steps, strict=False):
        if rows is None:
            left.append(part)
        else:
            step, count = unpack(rows)
            check_derivation(part, step, facts, names)
            followed += count
    asked = _asked(conditions, left if steps else parts, seconds)
    told = [f"{followed:,} steps followed"] if followed else []
    if asked is None:
        return "unconfirmed", ", ".join([*told, "the solver's word"])
    return "confirmed", ", ".join([*told, *([asked] if asked else [])])


def _asked(conditions: Sequence[Bool], goals: Sequence[Bool], seconds: float) -> str | None:
    """That no state breaks the goals, by another encoding; None if that is left open."""
    for goal in goals:
        answer = ask_again((*conditions, ~goal), seconds)
        if answer == "sat":
            raise RefusedError("a state breaks it")
        if answer != "unsat":
            return None
    return f"{len(goals)} asked again" if goals else ""


def _admitted(claim: Claim, evidence: Mapping[str, Any]) -> None:
    """The claim is not vacuous: the state in the evidence meets every condition."""
    state = _state(claim, evidence.get("admitted_state"), "admitted state")
    if not all(compile_terms(tuple(claim.conditions.values()))(state)):
        raise RefusedError("the admitted state does not meet the conditions")


def _state(claim: Claim, data: Any, where: str) -> dict[str, Value]:  # noqa: ANN401 - JSON
    conditions, goals = claim.conditions.values(), claim.goals.values()
    return read_state(free_symbols(*conditions, *goals, *claim.shown.values()), data, where)


def _refutation(claim: Claim, entry: Mapping[str, Any], name: str) -> str:
    found = entry.get("counterexample")
    if not isinstance(found, dict) or found.get("obligation") != name:
        raise RefusedError("no counterexample")
    conditions, goals = tuple(claim.conditions.values()), tuple(claim.goals.values())
    state = _state(claim, found.get("state"), "counterexample")
    if not all(compile_terms(conditions)(state)):
        raise RefusedError("the counterexample does not meet the conditions")
    if all(compile_terms(goals)(state)):
        raise RefusedError("the counterexample breaks no goal")
    return "counterexample executed"
