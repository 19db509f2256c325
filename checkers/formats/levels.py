"""How much a result weighs, and where it is: what the formats for other programs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from routeproof.checkers.discharge import Result

__all__ = ["level", "place", "title"]


def level(result: Result) -> Literal["none", "note", "warning", "error"]:
    """`none` as expected, `note` accepted, `warning` unknown, `error` a surprise or malformed."""
    if result.decision.malformed:
        return "error"
    if result.as_expected:
        return "none"
    if result.is_accepted:
        return "note"
    return "error" if result.surprises else "warning"


def title(result: Result) -> str:
    """One line: the verdict, what was expected, and of what."""
    if result.decision.malformed:
        return f"{result.id} is malformed"
    return f"{result.id} is {result.decision.verdict}, expected {result.expected}"


def place(result: Result) -> tuple[str, int]:
    """File and line of the statement; line 1 where none is known.

    What reads it looks from the root of the repository, wherever the command runs.
    """
    path, _, line = result.location.rpartition(":")
    root = os.environ.get("GITHUB_WORKSPACE")
    return _below(root, path) if root else path, max(1, int(line)) if line.isdecimal() else 1


def _below(root: str, path: str) -> str:
    """The path relative to the root, if it lies below that."""
    try:
        return str(Path.cwd().joinpath(path).relative_to(root))
    except ValueError:
        return path
