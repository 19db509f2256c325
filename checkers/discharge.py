"""Discharge one obligation: build its statement and hand it to the engine of its kind."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import assert_never

from routeproof.spec.obligation import Claim, Obligation, Reach, Rows, Statement, Verdict

from .decide import Decision, decide_claim
from .reach import decide_reach
from .registry import build, shown_path
from .rows import replay_rows
from .solver import Options

__all__ = ["Acceptance", "Result", "decide", "discharge", "result_of"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """That somebody accepts a verdict although it is not the expected one, why and how long.

    `expires` is the last day, as YYYY-MM-DD; `expired` whether that day is over.
    """

    reason: str
    expires: str
    expired: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What `check` knows of one obligation when it is done with it."""

    id: str
    title: str
    source: str
    revision: str
    location: str
    expected: Verdict
    decision: Decision
    seconds: float
    acceptance: Acceptance | None = None

    @property
    def as_expected(self) -> bool:
        """Whether the machine's verdict is the one the obligation states."""
        return self.decision.verdict is self.expected

    @property
    def surprises(self) -> bool:
        """Whether the verdict contradicts the expectation (unknown does not, yet never passes)."""
        return not self.as_expected and self.decision.verdict is not Verdict.UNKNOWN

    @property
    def is_accepted(self) -> bool:
        """Whether it surprises and somebody accepts that, today."""
        return self.surprises and self.acceptance is not None and not self.acceptance.expired

    @property
    def fails(self) -> bool:
        """Whether the run cannot pass because of it."""
        return not (self.as_expected or self.is_accepted)


def discharge(obligation: Obligation, options: Options) -> Decision:
    """Decide the obligation now, in this process."""
    return decide(build(obligation), options)


def decide(statement: Statement, options: Options) -> Decision:
    """Hand the statement to the engine of its kind."""
    try:
        match statement:
            case Claim():
                return replace(decide_claim(statement, options), kind="claim")
            case Rows():
                return replace(replay_rows(statement), kind="rows")
            case Reach():
                return replace(decide_reach(statement, options), kind="reach")
    except RecursionError:
        return Decision(Verdict.UNKNOWN, "none", "the terms are nested too deeply")
    assert_never(statement)


def result_of(obligation: Obligation, decision: Decision, started: float) -> Result:
    """The decision with what the obligation says of itself."""
    return Result(
        obligation.id,
        obligation.title,
        f"{obligation.source.document}, {obligation.source.place}",
        obligation.source.revision,
        shown_path(obligation.location),
        obligation.expected,
        decision,
        time.monotonic() - started,
    )
