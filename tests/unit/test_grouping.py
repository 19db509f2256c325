"""Values that a claim does not tell apart: one is tried for all of them, and nothing is lost."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from soundness.claims import A, B, C, conditions, every_state, small, small_conditions

from routeproof.checkers import enumeration
from routeproof.checkers.enumeration import Box, enumerate_states, finite_box
from routeproof.checkers.evidence.enumeration import check_enumeration
from routeproof.checkers.evidence.groups import told_apart
from routeproof.checkers.evidence.refused import OpenError, RefusedError
from routeproof.checkers.grouping import Axis, grouped
from routeproof.models.ort.gqa.split import selected_split_count
from routeproof.spec.interpret import compile_terms
from routeproof.spec.obligation import Claim
from routeproof.spec.terms import (
    IntDomain,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    free_symbols,
    implies,
    integer,
    ite,
    minimum,
    symbol_int,
    to_float,
)

n = symbol_int("n", IntDomain(-40, 60))
m = symbol_int("m", IntDomain(0, 6))
RANGES = {n: range(-40, 61), m: range(7)}
SMALL = {A: range(5), B: range(-2, 4), C: range(-8, 9, 4)}


def is_finite(condition):
    """Whether no input is a float."""
    return all(one.sort_name != "float" for one in free_symbols(condition))


FINITE = conditions(depth=4).map(small).filter(is_finite)


def signatures(condition, symbol):
    """Return for each value of a small symbol on which states of the others the condition holds."""
    others = [one for one in free_symbols(condition) if one is not symbol]
    program = compile_terms((condition,))
    rest = every_state(*others) if others else [{}]
    return {
        value: tuple(program({**state, symbol.name: value})[0] for state in rest)
        for value in SMALL[symbol]
    }


def same(one, two):
    """Whether two readings have the same groups."""
    values, sizes = two
    return one.values.tolist() == values.tolist() and one.counts.tolist() == sizes.tolist()


def is_grouped(axis, span):
    """Whether some value stands for another."""
    return len(axis) < len(span)


@settings(max_examples=300)
@given(FINITE)
def test_each_group_stands_for_values_on_which_the_condition_is_the_same(condition):
    """For every state of the other symbols, and for as many values as there are of that kind."""
    for symbol in (one for one in free_symbols(condition) if one in SMALL):
        kinds = signatures(condition, symbol)
        axis = grouped((condition,), symbol, {**SMALL, symbol: SMALL[symbol]})
        counted = Counter()
        for value, count in zip(axis.values.tolist(), axis.counts.tolist(), strict=True):
            counted[kinds[value]] += count
        assert counted == Counter(kinds.values())


@settings(max_examples=300)
@given(FINITE)
def test_the_checker_has_the_same_groups(condition):
    """By a reading of its own, or it says that it does not know."""
    for symbol in (one for one in free_symbols(condition) if one in SMALL):
        axis = grouped((condition,), symbol, SMALL)
        if is_grouped(axis, SMALL[symbol]):
            assert same(axis, told_apart((condition,), symbol, SMALL))


GROUPS = [
    (n // 25 <= m, 5),
    (implies(n > 9, m < 3), 2),
    (minimum(n, m) * m <= 9, 47),
    (minimum(m, n % 5) <= 3, 5),
    (any_of(n > 3, n > 50) & (m < 3), 2),
    (first("c", 4, lambda c: ceil_div(n, c) <= m, otherwise=0, at_most=9) <= 2, 101),
    (first("c", 4, lambda c: (n > 10 * c) & (c >= m), otherwise=0, at_most=9) <= 2, 5),
    (first("c", m, lambda c: (n > 10 * c) & (c >= m), otherwise=0, at_most=3) <= 2, 4),
    (to_float(m, 32) / (to_float(n // 50, 32) * float32(0.0)) > float32(0.0), 2),
    (to_float(m, 32) / ceiling(to_float(n, 32) / float32(80.0)) > float32(0.0), 3),
    ((n + 2**80) * m >= 0, 101),
]


@pytest.mark.parametrize(("condition", "count"), GROUPS, ids=str)
def test_what_is_told_apart(condition, count):
    """By parts of the symbol alone, once per candidate; -0.0 and 0.0 are different values."""
    axis = grouped((condition,), n, RANGES)
    assert (len(axis), axis.counts.sum()) == (count, 101)
    if count < len(RANGES[n]):
        assert same(axis, told_apart((condition,), n, RANGES))


def test_two_integers_beyond_64_bits_are_told_apart():
    """By the checker too, where the engine does not even try."""
    condition = (n // 2 + 2**80 > 2**80) & (m > 3) | (n // 2 + 2**80 + m >= 2**90)
    assert len(grouped((condition,), n, RANGES)) == 101
    values, sizes = told_apart((condition,), n, RANGES)
    assert (len(values), sizes.sum()) == (51, 101)


def test_flash_tells_4_239_of_16_130_counts_of_kv_blocks_apart():
    """Those that differ in which of 128 splits are eligible, on any device of a range."""
    blocks = symbol_int("blocks", IntDomain(1, 16_130))
    work, device = symbol_int("work", IntDomain(1, 205)), symbol_int("device", IntDomain(241, 256))
    ranges = {blocks: range(1, 16_131), work: range(1, 206), device: range(241, 257)}
    condition = selected_split_count(work, blocks, device) * work <= 7 * device
    axis = grouped((condition,), blocks, ranges)
    eligible = np.array([-(-axis.values // c) != -(-axis.values // (c - 1)) for c in range(2, 129)])
    assert len({tuple(one) for one in eligible.T.tolist()}) == len(axis) == 4_239
    assert axis.counts.sum() == 16_130
    assert same(axis, told_apart((condition,), blocks, ranges))


@settings(max_examples=100)
@given(small_conditions, small_conditions)
def test_counts_are_those_of_all_states(assumed, goal):
    """Of admitted states and of a regime, whether values are grouped or not."""
    claim = Claim(goal, {"given": assumed}, regimes={"kind": goal & assumed})
    program = compile_terms((assumed, goal))
    told = [program(state) for state in every_state(assumed, goal)]
    box = finite_box(claim, lambda _: False)
    found = enumerate_states(claim, box, 60)
    if found.failing is None:
        assert found.evidence(box)["admitted"] == sum(given for given, _ in told)
        assert found.evidence(box)["regimes"] == {"kind": sum(map(all, told))}


CLAIM = Claim(implies(n > 9, minimum(n, 12) * m <= 72), {"given": ite(n > 3, m, 1) < 7})


def evidence():
    """Return the evidence of a claim with groups of values."""
    box = Box(RANGES, {})
    found = enumerate_states(CLAIM, box, 60)
    assert found.failing is None
    return found.evidence(box)


def test_evidence_with_groups_is_confirmed():
    """All states are counted, few are evaluated."""
    told = evidence()
    assert (told["groups"], told["states"], told["admitted"]) == ({"n": 53}, 707, 707)
    assert check_enumeration(CLAIM, told, 5) == 707


@pytest.mark.parametrize(
    "groups",
    [{}, {"n": 52}, {"n": 54}, {"m": 7}, {"n": 53, "m": 6}, {"n": "53"}, {"x": 1}, None, [53]],
)
def test_other_groups_are_refused(groups):
    """Whatever is said of them."""
    with pytest.raises((RefusedError, OpenError)):
        check_enumeration(CLAIM, {**evidence(), "groups": groups}, 5)


def test_a_wrong_grouping_is_refused(monkeypatch):
    """A value that stands for another kind: a claim that is false passes the engine alone."""
    false = Claim(integer(2) * m * ite(n == 41, 1, 0) <= 3)
    box = Box(RANGES, {})
    assert enumerate_states(false, box, 60).failing == {"n": 41, "m": 2}

    def merged(roots, symbol, ranges):
        right = grouped(roots, symbol, ranges)
        return right if symbol is m else Axis(right.values[:1], np.array([right.counts.sum()]))

    monkeypatch.setattr(enumeration, "grouped", merged)
    found = enumerate_states(false, box, 60)
    assert found.failing is None
    with pytest.raises(RefusedError, match="a state of the box breaks it"):
        check_enumeration(false, found.evidence(box), 5)
