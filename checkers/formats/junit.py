"""JUnit XML: a test case per obligation, for CI systems that show tests.

A surprise is a failure, what is unknown or malformed an error, what is accepted skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from routeproof.checkers.discharge import Result
from routeproof.checkers.report import told, visible

from .levels import level, title

__all__ = ["to_junit"]


def to_junit(results: Sequence[Result]) -> str:
    """The run as one suite; `time` is in seconds."""
    suite = TestSuite("routeproof")
    suite.add_testcases([_case(result) for result in results])
    suite.update_statistics()  # type: ignore[no-untyped-call]
    suite.time = round(sum(result.seconds for result in results), 3)
    report = JUnitXml("routeproof")
    report.add_testsuite(suite)
    text: bytes = report.tostring()  # type: ignore[no-untyped-call]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text.decode()}\n'


def _case(result: Result) -> TestCase:
    group, _, name = result.id.rpartition(".")
    case = TestCase(name, group, round(result.seconds, 3))
    kind = {"error": Failure, "warning": Error, "note": Skipped}.get(level(result))
    if result.decision.malformed:
        kind = Error
    if kind:
        verdict = "malformed" if result.decision.malformed else str(result.decision.verdict)
        outcome = kind(visible(title(result)), verdict)
        outcome.text = visible(told(result))
        case.result = [outcome]
    return case
