"""Obligations, envelopes and phases: what a statement says of itself."""

import pytest

from routeproof.spec.envelope import Bound, Envelope
from routeproof.spec.errors import ModelError
from routeproof.spec.function import Source
from routeproof.spec.interpret import evaluate
from routeproof.spec.obligation import Claim, Obligation, Verdict, obligation
from routeproof.spec.phase import Phases
from routeproof.spec.terms import IntDomain, symbol_int

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


def test_phases_know_gaps_and_overlaps():
    """Total and disjoint are conditions on a state."""
    phases = Phases({"one": X <= 3, "two": X >= 3, "three": X > 9})
    assert evaluate(phases.total, {"x": 5}) is True
    assert evaluate(phases.disjoint, {"x": 3}) is False
    assert evaluate(Phases({"one": X < 3}).total, {"x": 3}) is False
