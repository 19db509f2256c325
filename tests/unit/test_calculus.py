"""The calculus and the checker of its derivations: what is derived holds, and can be followed."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness.claims import every_state

from routeproof.checkers.calculus import Calculus
from routeproof.checkers.evidence.conditions import parts_of
from routeproof.checkers.evidence.refused import RefusedError
from routeproof.checkers.evidence.steps import check_derivation
from routeproof.spec.derivation import Digests, Rule, Step, pack, unpack
from routeproof.spec.errors import InputError
from routeproof.spec.interpret import compile_terms
from routeproof.spec.terms import (
    TRUE,
    IntDomain,
    align_up,
    all_of,
    any_of,
    ceil_div,
    first,
    implies,
    integer,
    ite,
    maximum,
    minimum,
    symbol_bool,
    symbol_int,
)

a, b = (symbol_int(name, IntDomain(0, 4)) for name in "ab")
most_a, most_b = (symbol_int(f"most_{name}", IntDomain(0, 4)) for name in "ab")
p = symbol_bool("p")
WITHIN = (a <= most_a, b <= most_b)
STATES = every_state(a, b, most_a, most_b, p)
MEETING = [state for state in STATES if all(compile_terms(WITHIN)(state))]


def derived(goal, conditions=WITHIN):
    """Return the derivation of each part of a goal, with the parts, or None."""
    calculus = Calculus(conditions, (goal,))
    steps = [calculus.derive(part) for part in calculus.parts]
    return None if None in steps else (steps, calculus.parts, calculus.names)


def follow(goal, texts, conditions=WITHIN):
    """Check packed derivations as `certify` does."""
    parts, facts = parts_of(conditions, (goal,))
    if len(parts) != len(texts):
        raise RefusedError
    names = Digests()
    for part, text in zip(parts, texts, strict=True):
        check_derivation(part, unpack(text)[0], facts, names)


def assert_derived(goal, conditions=WITHIN):
    """Assert that the goal is derived, and that its derivation can be followed."""
    found = derived(goal, conditions)
    assert found
    follow(goal, [pack(step, found[2]) for step in found[0]], conditions)


@st.composite
def sizes(draw, x, y, depth=3):
    """Draw a size over two symbols, or over their bounds if these are given."""
    if not depth:
        return draw(st.sampled_from((x, y, integer(1), integer(3))))
    one, two = draw(sizes(x, y, depth - 1)), draw(sizes(x, y, depth - 1))
    constant = draw(st.sampled_from((1, 2, 3, 4)))
    return draw(
        st.sampled_from(
            (
                one + two,
                one * two,
                one * constant,
                align_up(one, constant),
                ceil_div(one, constant),
                one // constant,
                minimum(one, two),
                maximum(one, two),
                ite(one > constant, one + two, one),
                ite(p, one, two),
                ite(x > 0, align_up(one, 2) + x, one),
                first("c", one, lambda c: c * c > two, otherwise=1, at_most=3),
                ceil_div(one, maximum(1, two)),
                one - two,
            )
        )
    )


@settings(max_examples=150)
@given(st.data(), sizes(a, b), st.booleans())
def test_whatever_is_derived_holds(data, left, mirrored):
    """On every state; most goals are false, and then nothing is derived."""
    if mirrored:  # the same size at the bounds: often true
        right = data.draw(st.sampled_from((at_bounds(left), at_bounds(left) + 1)))
    else:
        right = data.draw(sizes(most_a, most_b))
    goal = left <= right
    found = derived(goal)
    holds = compile_terms([goal])
    if found:
        assert all(holds(state)[0] for state in MEETING)
        follow(goal, [pack(step, found[2]) for step in found[0]])


def at_bounds(term):
    """Return the term with each symbol at its bound."""
    from routeproof.spec.terms import substitute

    return substitute((term,), {a: most_a, b: most_b})[0]


@settings(max_examples=60)
@given(sizes(a, b), sizes(most_a, most_b), st.data())
def test_no_derivation_of_a_false_goal_is_followed(left, right, data):
    """Steps that belong to another goal, or none, convince nobody."""
    goal = left <= right
    if all(compile_terms([goal])(state)[0] for state in MEETING):
        return
    true = at_bounds(left) + right
    found = derived(left <= true)
    if not found:
        return
    texts = [pack(step, found[2]) for step in found[0]]
    tampered = data.draw(mangled(texts))
    with pytest.raises((RefusedError, InputError)):
        follow(goal, tampered)


def mangled(texts):
    """Draw the texts as they are, or with one rule, choice or premise changed."""

    def change(draw_from):
        index, rule, number = draw_from
        rows = json.loads(texts[0]) if texts else []
        if rows:
            row = rows[index % len(rows)]
            row[0] = rule
            row[1] = [number if isinstance(one, int) else one for one in row[1]]
        return [json.dumps(rows), *texts[1:]]

    rules = st.sampled_from([str(rule) for rule in Rule])
    return st.just(texts) | st.tuples(st.integers(0, 99), rules, st.integers(0, 3)).map(change)


n, m, unit = (symbol_int(name, IntDomain(1, 2**31 - 1)) for name in ("n", "m", "unit"))
ORDERED = (n <= m,)
GOALS = {
    "sum": n + 3 <= m + 4,
    "product": n * n * unit <= m * m * unit,
    "quotient": n // unit <= m // unit,
    "less divided by more": ceil_div(n, m) <= ceil_div(m, n),
    "padding": align_up(n * 3, 256) + n <= align_up(m * 3, 256) + m,
    "padding adds less than its unit": align_up(n, unit) <= m + unit - 1,
    "minimum": minimum(128, n) <= minimum(128, m),
    "maximum": maximum(n, unit) <= maximum(m, unit),
    "choice by a size": ite(n > 64, n * 2, n) <= ite(m > 64, m * 2, m),
    "choice by a flag": ite(p, n, n * unit) <= ite(p, m, m * unit),
    "threshold downwards": ite(m <= 64, 256, 64) <= ite(n <= 64, 256, 64),
    "region carved if not empty": ite(n > 5, align_up(n, 8) + n, n) <= align_up(m, 8) + m,
    "search": first("c", n, lambda c: c * unit > m, otherwise=1, at_most=9) <= minimum(9, m),
    "quotient times its divisor": n * maximum(1, unit // n) <= maximum(m, unit),
    "either of two": any_of(n > m, n * 2 <= m * 2),
    "all of several": all_of(n <= m + 1, n * unit <= m * unit),
    "multiple of the unit": implies(n % 8 == 0, n <= m // 8 * 8),
}


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_what_the_rules_are_for(goal):
    """Each is derived from `n <= m` alone, over all of int32."""
    assert_derived(goal, ORDERED)


FALSE_GOALS = {
    "more of less": m * 2 <= n * 2,
    "a product with a negative factor": (n - 5) * unit <= (m - 5) * n,
    "a quotient by more": n // n <= m // m - 1,
    "padding below": align_up(n, 8) <= m,
    "a search without its bound": first("c", m, lambda c: c > n, otherwise=1, at_most=9) <= n,
}


@pytest.mark.parametrize("goal", FALSE_GOALS.values(), ids=FALSE_GOALS)
def test_what_is_false_is_not_derived(goal):
    """Whatever looks alike."""
    assert not derived(goal, ORDERED)


def test_a_derivation_is_refused_where_it_does_not_belong():
    """Every rule on its own is no reason for a false goal."""
    goal = m <= n
    (part,), facts = parts_of(ORDERED, (goal,))
    for rule in Rule:
        for choices in ((), (0,), (1,), (0, 1), (0, 0)):
            step = Step(rule, choices, (Step(Rule.SAME), Step(Rule.RANGE)))
            with pytest.raises(RefusedError):
                check_derivation(part, Step(Rule.ORDER, (), (step,)), facts, Digests())


def test_contradictory_conditions_prove_nothing():
    """They have no witness, so that the calculus is not believed."""
    calculus = Calculus((n <= m, m < n), (m * 2 <= n,))
    assert not calculus.witnesses.states


def test_every_witness_meets_every_condition():
    """Also those that facts about single symbols do not show."""
    conditions = (n * m <= 1000, n + m >= 20, n % 4 == 0, any_of(m == 7, m == 9))
    states = Calculus(conditions, (TRUE,)).witnesses.states
    assert states
    assert all(all(compile_terms(conditions)(state)) for state in states)


EVIDENCE = (
    "columns",
    "conditions",
    "enumeration",
    "groups",
    "products",
    "ranges",
    "reasking",
    "refused",
    "steps",
    "sums",
    "tables",
)


k = symbol_int("k", IntDomain(0, 64))


def wide(one):
    """Return a choice whose condition, made strict, is a constant more than the claim has."""
    return ite(one <= 4, 4, one)


@pytest.mark.parametrize(
    "goal",
    [
        wide(m) * k <= wide(n) * k,
        (m % k) * m <= (m % k) * n,
        m * (4096 // k + 2) <= n * (4096 // k + 2),
    ],
    ids=str,
)
def test_what_is_derived_is_confirmed(goal):
    """Also by way of constants that strictness moves, and of divisors that may be zero."""
    assert_derived(goal, (m <= n,))


def test_no_engine_is_loaded_to_check_evidence():
    """The checker rests on the language and the registry alone."""
    text = (
        "import sys, routeproof.checkers.certifying\n"
        "print(*sorted(name for name in sys.modules if name.startswith('routeproof.')))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("routeproof.") for name in done.stdout.split()}
    own = {name for name in loaded if name.startswith("checkers.")}
    assert own == {
        *(
            f"checkers.{name}"
            for name in ("certifying", "evaluator", "evidence", "registry", "siblings", "values")
        ),
        *(f"checkers.evidence.{name}" for name in EVIDENCE),
    }
    assert not {name for name in loaded if name.startswith(("models", "proofs"))}


@pytest.mark.parametrize("goal", [m <= n, m < n, any_of(m < n, p), ~all_of(p, n <= m)], ids=str)
def test_a_step_without_premises_proves_no_comparison(goal):
    """An empty conjunction holds of anything, but is no rule for what is none."""
    (part,), facts = parts_of(ORDERED, (goal,))
    for rule in Rule:
        for choices in ((), (0,), (1,)):
            with pytest.raises(RefusedError):
                check_derivation(part, Step(rule, choices), facts, Digests())
