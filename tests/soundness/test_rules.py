"""The rules of the calculus, by brute force: every lemma holds of all small integers."""

import itertools

import pytest

from routeproof.proofs import calculus
from routeproof.spec.derivation import Rule
from routeproof.spec.interpret import compile_terms
from routeproof.spec.terms import Bool, free_symbols

EVIDENT = {Rule.ABSURD, Rule.FACT, Rule.RANGE, Rule.SAME}


def small(symbol):
    """Return a few values around zero that the symbol may have."""
    if isinstance(symbol, Bool):
        return (False, True)
    return [value for value in range(-2, 6) if value in symbol.domain]


def breaking(claim):
    """Yield the small states that meet the conditions and break a goal."""
    roots = (*claim.conditions.values(), *claim.goals.values())
    program, cut, symbols = compile_terms(roots), len(claim.conditions), free_symbols(*roots)
    names = [symbol.name for symbol in symbols]
    for values in itertools.product(*map(small, symbols)):
        found = program(dict(zip(names, values, strict=True)))
        if all(found[:cut]) and not all(found[cut:]):
            yield values


@pytest.mark.parametrize("lemma", calculus.LEMMAS, ids=lambda one: one.id)
def test_no_small_integers_break_a_rule(lemma):
    """Signs, zero and ties included."""
    assert next(breaking(lemma.statement()), None) is None


@pytest.mark.parametrize("twin", calculus.TWINS, ids=lambda one: one.id)
def test_small_integers_break_a_rule_without_what_it_needs(twin):
    """The condition left out is needed."""
    assert next(breaking(twin.statement()), None) is not None


def test_every_rule_has_a_lemma():
    """But those that say what is a fact or evident."""
    lemmas = {lemma.id.removeprefix("calculus.rule.").split(".")[0] for lemma in calculus.LEMMAS}
    assert lemmas == {str(rule) for rule in Rule if rule not in EVIDENT}
