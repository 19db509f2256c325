"""Obligations, envelopes and phases: what a statement says of itself."""

import pytest

from routeproof.spec.envelope import Bound, Envelope
from routeproof.spec.errors import ModelError
from routeproof.spec.function import Source
from routeproof.spec.interpret import evaluate
from routeproof.spec.ladder import Rung
from routeproof.spec.obligation import Claim, Obligation, Rows, Verdict, obligation
from routeproof.spec.phase import Phases
from routeproof.spec.recipe import Checks, status_sort
from routeproof.spec.terms import EnumSort, IntDomain, first, symbol_float, symbol_int, to_float

X, Y = symbol_int("x"), symbol_int("y")
SOURCE = Source("kernel.cc", "Size", "r1")


def _obligation(**changes):
    fields = {
        "id": "kernel.size",
        "title": "size fits",
        "source": SOURCE,
        "expected": Verdict.PROVED,
        "statement": lambda: Claim(X > 0),
        "location": "kernel.py:1",
    }
    return Obligation(**{**fields, **changes})


@pytest.mark.parametrize("name", ["", "size", "Kernel.size", "kernel size.x", "kernel..size"])
def test_ids_are_dotted_lower_case_words(name):
    """Anything else could not be globbed or typed."""
    with pytest.raises(ModelError, match="dotted lower-case"):
        _obligation(id=name)


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.DISAGREEMENT])
def test_failures_are_never_expected(verdict):
    """Not knowing, knowing nothing and contradicting oneself are no goals."""
    with pytest.raises(ModelError, match="never an expectation"):
        _obligation(expected=verdict)


def test_decorator_keeps_where_it_was_written():
    """The location is the file and line of the function that builds the statement."""

    @obligation("kernel.size", "size fits", source=SOURCE)
    def size():
        return Claim(X > 0)

    assert size.expected is Verdict.PROVED
    assert size.location.startswith(__file__)
    assert isinstance(size.statement(), Claim)


def test_claim_lists_assumptions_before_envelope():
    """Both are conditions; a goal without parts is called goal."""
    bound = Bound(X, 1, 8, enforced=True, source=SOURCE)
    claim = Claim(X > 0, {"y is positive": Y > 0}, Envelope((bound,)))
    assert list(claim.conditions) == ["y is positive", str(bound)]
    assert list(claim.goals) == ["goal"]


def test_conditions_of_one_text_stay_apart():
    """A bound never takes the place of another, nor of an assumption."""
    terms = [symbol_int("n", IntDomain(0, most)) for most in (5, 9)]
    one, two = (Bound(term, None, 3, enforced=True, source=SOURCE) for term in terms)
    assert str(one) == str(two)
    claim = Claim(terms[0] > 0, {str(one): terms[0] > 1}, Envelope((one, two, one)))
    assert list(claim.conditions) == [str(one), f"{one} (2)", f"{one} (3)"]
    assert list(claim.conditions.values()) == [terms[0] > 1, one.holds, two.holds]


def test_envelope_admits_what_all_bounds_admit():
    """Open ends do not bound; a bound may be another term."""
    bounds = (
        Bound(X, 1, Y, enforced=True, source=SOURCE),
        Bound(Y, None, 8, enforced=False, source=SOURCE),
    )
    envelope = Envelope(bounds)
    assert evaluate(envelope.admits, {"x": 3, "y": 3}) is True
    assert evaluate(envelope.admits, {"x": 4, "y": 3}) is False
    assert evaluate(envelope.admits, {"x": 4, "y": 9}) is False


def test_what_nothing_enforces_is_named():
    """A proof is conditional on exactly the declared bounds."""
    declared = Bound(X, 1, 8, enforced=False, source=SOURCE)
    enforced = Bound(Y, 1, 8, enforced=True, source=SOURCE)
    assert Envelope((declared, enforced)).declared_only == (declared,)
    assert "declared only" in str(declared)
    assert "enforced" in str(enforced)


AUTHORS_MISTAKES = {
    "a bound that is enforced, more or less": lambda: Bound(X, 0, 5, "no", SOURCE),
    "a bound of a condition": lambda: Bound(X > 0, 0, 5, enforced=True, source=SOURCE),
    "a forgotten comma": lambda: Envelope(Bound(X, 0, 5, enforced=True, source=SOURCE)),
    "a guard that is always true": lambda: Rung("a", guard=True),
    "a check that is always met": lambda: Checks(status_sort("o")).require(needs=1, failure="o"),
    "rows of nowhere": lambda: Rows(3, None, []),
    "half a float": lambda: to_float(X, 16),
    "a float of a text": lambda: symbol_float("x", "32"),
    "a search without end": lambda: first("c", X, lambda c: c > 1, otherwise=0, at_most=None),
    "no members": lambda: EnumSort("s", ()),
    "a member twice": lambda: EnumSort("s", ("a", "a")),
    "too many members": lambda: EnumSort("s", tuple(map(str, range(200)))),
    "half a bound": lambda: IntDomain(0, 1.5),
    "a title of two lines": lambda: _obligation(title="one\ntwo"),
    "a label of two lines": lambda: Claim(X > 0, shows={"one\ntwo": X}),
}


@pytest.mark.parametrize("make", AUTHORS_MISTAKES.values(), ids=AUTHORS_MISTAKES)
def test_mistakes_are_told_where_they_are_made(make):
    """In one line, not by a traceback from inside an engine."""
    with pytest.raises(ModelError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_phases_know_gaps_and_overlaps():
    """Total and disjoint are conditions on a state."""
    phases = Phases({"one": X <= 3, "two": X >= 3, "three": X > 9})
    assert evaluate(phases.total, {"x": 5}) is True
    assert evaluate(phases.disjoint, {"x": 3}) is False
    assert evaluate(Phases({"one": X < 3}).total, {"x": 3}) is False
