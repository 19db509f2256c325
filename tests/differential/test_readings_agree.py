"""Every reading of a term gives the value that the reference interpreter gives."""

import math

import numpy as np
from differential.strategies import EXACT, SYMBOLS, nested_searches, states, terms
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.checkers.readings.symbolic import closed_form, evaluate, to_sympy
from routeproof.checkers.readings.vectorised import columns, compile_numpy, values
from routeproof.spec.interpret import compile_terms

some_states = st.lists(states(), min_size=1, max_size=8)


def seen(value):
    """Return what distinguishes two values: NaN is one value, the sign of zero counts."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1, value))
    return type(value), value


@settings(max_examples=400)
@given(terms(), some_states)
def test_numpy(term, states):
    """Columns hold, state by state, what the interpreter computes."""
    expected = [compile_terms([term])(state)[0] for state in states]
    (column,) = compile_numpy([term])(columns(SYMBOLS, states))
    assert list(map(seen, values(term, column))) == list(map(seen, expected))


@settings(max_examples=100)
@given(terms(EXACT, depth=3), some_states)
def test_sympy(term, states):
    """One formula, or the closed form with its parts, has the value the interpreter computes."""
    formula, form = to_sympy(term), closed_form(term)
    for state in states:
        expected = compile_terms([term])(state)[0]
        assert seen(evaluate(formula, state)) == seen(expected)
        assert seen(evaluate(form, state)) == seen(expected)


@settings(max_examples=100)
@given(nested_searches())
def test_nested_searches(nested):
    """Column by column they are the loops."""
    term, loops = nested
    limits = list(range(5))
    (column,) = compile_numpy([term])({"limit": np.array(limits)})
    assert list(values(term, column)) == [loops(limit) for limit in limits]
