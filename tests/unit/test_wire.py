"""Conditions as JSON: what is written is read again as the same term."""

import json

import pytest
from differential.strategies import SYMBOLS as ALL
from hypothesis import given
from hypothesis import strategies as st
from soundness.claims import P, conditions

from routeproof.spec.errors import InputError, ModelError
from routeproof.spec.terms import EnumSort, symbol_enum, symbol_int
from routeproof.spec.wire import read_condition, write_term

n, k = symbol_int("n"), symbol_enum("k", EnumSort("kind", ("none", "int8")))
SYMBOLS = {"n": n, "k": k, "p": P}


@given(conditions())
def test_a_condition_is_read_as_it_was_written(condition):
    """Through JSON text; what has no such form says so."""
    symbols = {one.name: one for one in ALL}
    try:
        data = json.loads(json.dumps(write_term(condition)))
    except ModelError:
        return
    assert read_condition(data, symbols) is condition


@pytest.mark.parametrize(
    "condition", [n < 3, k == "int8", ~P, (n % 8 == 0) & P, n // 4 != n], ids=str
)
def test_facts_of_tables_are_written(condition):
    """Comparisons, members, flags and residues."""
    assert read_condition(write_term(condition), SYMBOLS) is condition


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(("n", "k", "x", "le", "kind")),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=2)
        ),
    )
)
def test_anything_else_is_refused(data):
    """With one line, whatever it is."""
    try:
        found = read_condition(data, SYMBOLS)
    except InputError as error:
        found = None
        said = str(error)
    assert found is not None or "\n" not in said


def test_a_number_is_no_condition():
    """Nor is the name of an integer."""
    for data in (
        3,
        "n",
        ["add", "n", 1],
        ["lt", "n"],
        ["eq", "k", {"kind": "fp8"}],
        ["eq", "k", {"sort": "none"}],
    ):
        with pytest.raises(InputError):
            read_condition(data, SYMBOLS)
