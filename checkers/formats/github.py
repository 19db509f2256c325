"""GitHub: an annotation per obligation that is not as expected, and a step summary in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from routeproof.checkers.discharge import Result
from routeproof.checkers.report import summary, tally, told, visible

from .levels import level, place, title

__all__ = ["to_github", "to_markdown"]

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_MOST = 50  # a step summary has a megabyte


def to_github(results: Sequence[Result]) -> str:
    """Workflow commands, one per line, and the totals."""
    commands = [_command(result) for result in results if level(result) != "none"]
    return "".join(f"{one}\n" for one in (*commands, _totals(results)))


def _command(result: Result) -> str:
    path, line = place(result)
    given = {"file": path, "line": str(line), "title": title(result)}
    properties = ",".join(f"{name}={_property(visible(one))}" for name, one in given.items())
    return f"::{_COMMANDS[level(result)]} {properties}::{_data(visible(told(result)))}"


def _data(text: str) -> str:
    """Text as the runner unescapes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _totals(results: Sequence[Result]) -> str:
    counts = summary(results)
    verdicts = [f"{number} {name}" for name, number in tally(counts).items()]
    names = {"surprises": "not as expected", "accepted": "accepted"}
    others = [f"{counts[one]} {name}" for one, name in names.items() if counts[one]]
    return f"{counts['total']} obligations: {', '.join((*verdicts, *others)) or 'none'}"


def to_markdown(results: Sequence[Result]) -> str:
    """Totals, and what is not as expected: a table, then each with its counterexample."""
    found = [result for result in results if level(result) != "none"]
    text = f"## routeproof\n\n{_totals(results)}\n"
    if not found:
        return text + "\nEvery verdict is as expected.\n"
    rows = [
        (
            "malformed" if one.decision.malformed else f"{one.decision.verdict}",
            f"{one.expected}",
            _code(one.id),
            _code(one.location),
            _cell(f"until {one.acceptance.expires}: {one.acceptance.reason}")
            if one.acceptance and one.is_accepted
            else "",
        )
        for one in found[:_MOST]
    ]
    head = ("verdict", "expected", "obligation", "where", "accepted")
    table = [head, ("---",) * len(head), *rows]
    text += "\n" + "".join(f"| {' | '.join(row)} |\n" for row in table)
    for one in found[:_MOST]:
        text += (
            f"\n<details><summary>{_html(one.id)}</summary>\n\n{_fenced(told(one))}\n\n</details>\n"
        )
    if len(found) > _MOST:
        text += f"\n{len(found) - _MOST} more are not shown.\n"
    return text


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{visible(text)}\n{fence}"


def _code(text: str) -> str:
    return f"<code>{_cell(text)}</code>"


def _cell(text: str) -> str:
    return _html(" ".join(visible(text).split()))


def _html(text: str) -> str:
    """The text with nothing in it that Markdown or HTML would read."""
    return "".join(f"&#{ord(one)};" if one in "&<>\\`*_[]|" else one for one in text)
