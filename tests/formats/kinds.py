"""Results of every kind, and none of them ran."""

from dataclasses import replace

from routeproof.checkers.counterexample import Counterexample
from routeproof.checkers.decide import Decision
from routeproof.checkers.discharge import Acceptance, Result
from routeproof.spec.obligation import Verdict

NASTY = 'a, b: 100% of "x" <&> ]]> `c` | $(d) ü\N{SNOWMAN}'
FOUND = Counterexample(
    {"record.size": 2**70, "record.flag": False, "kind": "[bold]int8", "scale": 0.5},
    {"bytes": 2**64, "guard": True},
    {"even": True},
    ("fits",),
    ("record.size",),
    (),
)


def result(name, verdict, expected=Verdict.PROVED, **changes):
    """Return a result with that verdict, whose decision has the changes."""
    decision = Decision(verdict, "smt", kind="claim", axes={"x": "0..9"}, enforced=False)
    return Result(
        f"own.{name}",
        f"{name}: {NASTY}",
        "a.cc, f",
        "r1",
        "proofs/own file.py:3",
        expected,
        replace(decision, **changes),
        1.25,
    )


def every_kind():
    """Return one result of every kind."""
    surprise = result("surprise", Verdict.REFUTED, counterexample=FOUND)
    known = Acceptance(f"issue 12: {NASTY}", "2027-03-31", expired=False)
    lines = "line one\nline two\x1b[31m\r\x00\ud800 ::error::no command\n```\n"
    enumerated = {"states": 10, "admitted": 4, "settles": {"x": 3}, "box": {"x": [0, 9]}}
    return [
        result("proved", Verdict.PROVED, evidence={"enumeration": enumerated}),
        result("refuted", Verdict.REFUTED, Verdict.REFUTED, counterexample=FOUND, cached=True),
        result("replayed", Verdict.REPLAYED, Verdict.REPLAYED, kind="rows", reason="3 of 3"),
        result("table", Verdict.PROVED, kind="reach", second_solver="cvc5 1.2 agrees"),
        surprise,
        replace(surprise, id="own.accepted", acceptance=known),
        replace(surprise, id="own.expired", acceptance=replace(known, expired=True)),
        result("vacuous", Verdict.VACUOUS, reason="the assumptions admit no state"),
        result("open", Verdict.UNKNOWN, reason=lines),
        result("broken", Verdict.UNKNOWN, reason=f"own.py:3: {lines}", malformed=True, kind=""),
    ]


WORSE = ("surprise", "accepted", "expired", "vacuous", "open", "broken")  # not as expected
