"""Discharge one obligation: build its statement and hand it to the engine of its kind."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import assert_never

from routeproof.spec.obligation import Claim, Obligation, Reach, Rows, Verdict

from .decide import Decision, decide_claim
from .reach import decide_reach
from .registry import build, shown_path
from .rows import replay_rows
from .solver import Options

__all__ = ["Result", "discharge", "result_of"]


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

    @property
    def as_expected(self) -> bool:
        """Whether the machine's verdict is the one the obligation states."""
        return self.decision.verdict is self.expected

    @property
    def surprises(self) -> bool:
        """Whether the verdict contradicts the expectation (unknown does not, yet never passes)."""
        return not self.as_expected and self.decision.verdict is not Verdict.UNKNOWN


def discharge(obligation: Obligation, options: Options) -> Decision:
    """Decide the obligation now, in this process."""
    statement = build(obligation)
    try:
        match statement:
            case Claim():
                return decide_claim(statement, options)
            case Rows():
                return replay_rows(statement)
            case Reach():
                return decide_reach(statement, options)
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
