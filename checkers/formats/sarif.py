"""SARIF 2.1.0: a result per obligation that is not as expected, at the line of its statement.

A rule is a kind of statement. A surprise is an error, what is unknown a warning, what is accepted a
suppressed result. A fingerprint is of id and verdict, so that moved lines change none.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from routeproof import __version__
from routeproof.checkers.discharge import Result
from routeproof.checkers.report import dump, exit_status, told, visible

from .levels import level, place, title

__all__ = ["to_sarif"]

_RULES = {
    "claim": "For every admitted state, every goal holds.",
    "rows": "The modelled function reproduces every row that the real code computed.",
    "reach": "The decision table of an outcome is equivalent to a Run that takes it.",
    "statement": "A statement is well formed and can be decided within the limits.",
}


def to_sarif(results: Sequence[Result]) -> str:
    """The run as one SARIF log."""
    rules = [
        {"id": name, "shortDescription": {"text": text}, "fullDescription": {"text": text}}
        for name, text in _RULES.items()
    ]
    run = {
        "tool": {"driver": {"name": "routeproof", "version": __version__, "rules": rules}},
        "invocations": [{"executionSuccessful": True, "exitCode": exit_status(results)}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(result) for result in results if level(result) != "none"],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return dump({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _result(result: Result) -> dict[str, Any]:
    rule = result.decision.kind or "statement"
    found: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": level(result),
        "message": {"text": visible(f"{title(result)}\n{told(result)}")},
        "locations": [_location(result)],
        "partialFingerprints": {"obligation/v1": _fingerprint(result)},
    }
    if result.acceptance and result.is_accepted:
        why = f"{result.acceptance.reason} (until {result.acceptance.expires})"
        found["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return found


def _location(result: Result) -> dict[str, Any]:
    path, line = place(result)
    where = PurePath(visible(path))  # not every name of a file is text
    artifact = (
        {"uri": where.as_uri()}
        if where.is_absolute()
        else {"uri": quote(where.as_posix()), "uriBaseId": "%SRCROOT%"}
    )
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}},
        "logicalLocations": [{"fullyQualifiedName": result.id, "kind": "function"}],
    }


def _fingerprint(result: Result) -> str:
    text = f"{result.id} {result.decision.verdict} {result.decision.malformed}"
    return blake2b(text.encode(), digest_size=16).hexdigest()
