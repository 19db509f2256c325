"""Decisions as JSON: they come back as they were, or the field that is wrong is named."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.checkers.counterexample import Counterexample
from routeproof.checkers.decide import Decision
from routeproof.checkers.decisions import decision_from_json, decision_to_json
from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Verdict

TEXTS = st.lists(st.text(), max_size=3).map(tuple)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.dictionaries(st.text(), st.booleans() | st.integers() | FINITE | st.text(), max_size=3)
EVIDENCE = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
COUNTEREXAMPLES = st.builds(
    Counterexample,
    VALUES,
    VALUES,
    st.dictionaries(st.text(), st.booleans(), max_size=3),
    TEXTS,
    TEXTS,
    TEXTS,
)
DECISIONS = st.builds(
    Decision,
    st.sampled_from(Verdict),
    st.text(),
    st.text(),
    st.none() | COUNTEREXAMPLES,
    st.dictionaries(st.text(), st.text(), max_size=3),
    TEXTS,
    TEXTS,
    st.none() | st.text(),
    st.dictionaries(st.text(), EVIDENCE, max_size=3),
    st.none() | st.booleans(),
    st.booleans(),
    st.booleans(),
)
PLAIN = Decision(
    Verdict.REFUTED, "smt", "", Counterexample({"x": 1}, {"y": 0.5}, {"c": True}, ("goal",))
)


@given(decision=DECISIONS)
def test_a_decision_comes_back(decision):
    """Through text, to the type of every value."""
    text = json.dumps(decision_to_json(decision), allow_nan=False)
    assert repr(decision_from_json(json.loads(text))) == repr(decision)


def test_what_json_lacks_comes_back_as_reports_have_it():
    """NaN and the infinities are texts."""
    for value in (math.nan, math.inf, -math.inf):
        shown = replace(PLAIN.counterexample, state={"x": value})
        again = decision_from_json(decision_to_json(replace(PLAIN, counterexample=shown)))
        assert again.counterexample.state == {"x": repr(value)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"verdict": "perhaps"}, "no verdict 'perhaps'"),
        ({"verdict": None}, "verdict cannot be None"),
        ({"verdict": ["proved"]}, "verdict cannot be"),
        ({"engine": 1}, "engine cannot be 1"),
        ({"axes": {"x": 1}}, "axes cannot be"),
        ({"assumptions": "all"}, "assumptions cannot be 'all'"),
        ({"assumptions": [1]}, "assumptions cannot be"),
        ({"enforced": 1}, "enforced cannot be 1"),
        ({"malformed": None}, "malformed cannot be None"),
        ({"evidence": []}, "evidence cannot be"),
        ({"counterexample": {}}, "counterexample: expected an object of state, shows"),
        ({"counterexample": 3}, "counterexample: expected an object"),
        ({"more": 1}, "decision: expected an object of verdict"),
    ],
)
def test_what_is_no_decision_is_refused(change, problem):
    """One line that names the field."""
    with pytest.raises(InputError, match=problem):
        decision_from_json({**decision_to_json(PLAIN), **change})


@pytest.mark.parametrize("data", [None, [], "proved", {}, {"verdict": "proved"}])
def test_what_is_no_object_is_refused(data):
    """As is one that lacks a field."""
    with pytest.raises(InputError, match="decision: expected an object"):
        decision_from_json(data)


@pytest.mark.parametrize("name", ["state", "shows", "conditions", "broken", "moved", "movable"])
def test_a_counterexample_is_read_as_strictly(name):
    """Field by field."""
    data = decision_to_json(PLAIN)
    data["counterexample"][name] = [None]
    with pytest.raises(InputError, match=f"counterexample: {name} cannot be"):
        decision_from_json(data)
