"""Plan against execution: claims about any pair, decided as any other, and by brute force."""

import itertools

import pytest

from routeproof.checkers.decide import decide_claim as decide
from routeproof.checkers.planning import (
    Pair,
    covers,
    covers_exactly_if,
    overcharge,
    used_exactly_if,
)
from routeproof.checkers.solver import Options
from routeproof.models.genai.std_execution import Dispatch, executed, planned
from routeproof.models.genai.std_requirement import REVISIONS
from routeproof.spec.interpret import compile_terms
from routeproof.spec.records import leaves, symbols
from routeproof.spec.terms import IntDomain, integer, ite, symbol_bool, symbol_int

rows = symbol_int("rows", IntDomain(1, 100))
packed = symbol_bool("packed")
STAGED = Pair(256 * rows, ite(packed, 256 * rows, 512 * rows), {"some": rows <= 50})


def decide_claim(claim):
    """Return the decision on a claim."""
    return decide(claim, Options())


def verdict(claim):
    """Return what is decided of a claim."""
    return decide_claim(claim).verdict


def test_a_plan_that_is_too_small_is_refuted_with_both_sizes():
    """The smallest state that shows it."""
    found = decide_claim(covers(STAGED))
    assert found.verdict == "refuted"
    assert found.counterexample.shows == {"planned bytes": 256, "executed bytes": 512}
    assert found.counterexample.broken == ("bytes",)


def test_alignment_and_class_are_part_of_it():
    """Large enough is not enough."""
    for change, part in (
        ({"executed_alignment": integer(512), "planned_alignment": integer(256)}, "alignment"),
        ({"same_class": packed}, "lifetime class"),
    ):
        pair = Pair(integer(1), integer(1), {"some": rows >= 1}, **change)
        found = decide_claim(covers(pair))
        assert found.counterexample.broken == (part,)


def test_the_weakest_condition_is_equivalent():
    """One that is stronger, or weaker, is refuted by its other half."""
    assert verdict(covers_exactly_if(STAGED, packed)) == "proved"
    stronger = decide_claim(covers_exactly_if(STAGED, packed & (rows <= 10)))
    weaker = decide_claim(covers_exactly_if(STAGED, packed | (rows > 10)))
    assert stronger.counterexample.broken == ("only then",)
    assert weaker.counterexample.broken == ("then it covers",)


def test_a_charge_without_a_use_is_refuted_and_its_condition_proved():
    """The condition is about states in which it is charged."""
    charged, used = rows > 3, (rows > 3) & packed
    assert verdict(overcharge(charged, used, STAGED)) == "refuted"
    assert verdict(used_exactly_if(charged, used, packed, STAGED)) == "proved"
    assert verdict(used_exactly_if(charged, used, packed & (rows > 4), STAGED)) == "refuted"


@pytest.mark.parametrize("key", REVISIONS)
def test_attention_is_covered_exactly_as_claimed_on_every_small_dispatch(key):
    """Brute force over what metadata and tensors can be: the condition that is proved."""
    run = symbols(Dispatch)
    plan, dispatch = planned(run, REVISIONS[key]), executed(run, REVISIONS[key])
    program = compile_terms(
        (
            dispatch.total_bytes <= plan.total_bytes,
            (dispatch.stage_key & ~plan.stage_key) | (dispatch.stage_value & ~plan.stage_value),
        )
    )
    names = list(leaves(run))
    base = dict.fromkeys(names, 1) | {"element_bytes": 2}
    seen = set()
    flags = ("is_causal", "has_mask", "aliases_key", "aliases_value")
    for past, width, present_key, present_value, outputs in itertools.product(
        range(3), range(4), range(1, 4), range(1, 4), range(1, 4)
    ):
        for values in itertools.product((False, True), repeat=4):
            state = base | dict(zip(flags, values, strict=True))
            state |= {"has_past": past > 0, "past_extent": past, "mask_width": width}
            state |= {"output_count": outputs}
            state["present_key_extent"] = present_key if outputs > 1 else 0
            state["present_value_extent"] = present_value if outputs > 2 else 0
            state["aliases_key"] &= past > 0 and outputs > 1
            state["aliases_value"] &= past > 0 and outputs > 2
            covered, unforeseen = program(state)
            assert covered != unforeseen
            seen.add(covered)
    assert seen == {True, False}
