"""What tests of the engines share: random conditions, small domains, and exhaustive enumeration.

The symbols of `differential.strategies` span the machine's types; `small` moves a term over to
symbols with a handful of values each, so that a claim can also be decided by trying every state.
"""

import itertools
import math

from differential.strategies import ALL, BOOLS, ENUMS, INTS, KIND, WITHOUT_FLOATS, terms
from hypothesis import strategies as st

from routeproof.checkers.decide import decide_claim
from routeproof.checkers.solver import Limits, Options
from routeproof.spec.function import Source
from routeproof.spec.interpret import compile_terms
from routeproof.spec.obligation import Claim
from routeproof.spec.terms import (
    Bool,
    Enum,
    Int,
    IntDomain,
    float32,
    float64,
    free_symbols,
    substitute,
    symbol_bool,
    symbol_enum,
    symbol_int,
)

SOURCE = Source("tests", "here", "r1")
A, B, C = (
    symbol_int("a", IntDomain(0, 4)),
    symbol_int("b", IntDomain(-2, 3)),
    symbol_int("c", IntDomain(-8, 8, 4)),
)
P, K = symbol_bool("p"), symbol_enum("k", KIND)
_SMALL = {
    **dict(zip(INTS, (A, B, B, A + 1, C, C), strict=True)),
    **dict(zip(BOOLS, (P, ~P), strict=True)),
    **dict(zip(ENUMS, (K, K), strict=True)),
}


def as_condition(term):
    """Return a condition about a term of any sort."""
    match term:
        case Bool():
            return term
        case Int():
            return term <= 3
        case Enum():
            return term == "int8"
        case _:
            return term <= (float32(1.0) if term.width == 32 else float64(1.0))


def conditions(grammar=ALL, depth=3):
    """Draw a condition over `differential.strategies.SYMBOLS`."""
    return terms(grammar, depth).map(as_condition)


def small(term):
    """Return the term over symbols with a few values each."""
    return substitute((term,), _SMALL)[0]


def values_of(symbol):
    """Return every value of a small symbol, those nearer to rest first."""
    if isinstance(symbol, Bool):
        return [False, True]
    if isinstance(symbol, Enum):
        return list(symbol.members.members)
    rest, domain = symbol.domain.rest, symbol.domain
    inside = [n for n in range(domain.lo, domain.hi + 1) if n in domain]
    return sorted(inside, key=lambda n: abs(n - rest))


def every_state(*terms):
    """Return every state of the small symbols below the terms."""
    symbols = free_symbols(*terms)
    names = [symbol.name for symbol in symbols]
    return [
        dict(zip(names, combination, strict=True))
        for combination in itertools.product(*map(values_of, symbols))
    ]


def by_enumeration(claim):
    """Return the claim's verdict and its failing states, by trying every state."""
    roots = (*claim.conditions.values(), *claim.goals.values())
    program, cut = compile_terms(roots), len(claim.conditions)
    admitted = [(state, program(state)) for state in every_state(*roots)]
    admitted = [(state, values[cut:]) for state, values in admitted if all(values[:cut])]
    failing = [state for state, goals in admitted if not all(goals)]
    return "vacuous" if not admitted else "refuted" if failing else "proved", failing


def decide(goal, *, resources=30_000_000, seconds=20.0, **options):
    """Decide a goal (or a whole claim) with a few options by name."""
    claim = goal if isinstance(goal, Claim) else Claim(goal)
    return decide_claim(claim, Options(Limits(resources, seconds), **options))


def verdict(goal, *, assuming=None, **options):
    """Return only the verdict, as its word."""
    claim = Claim(goal, assuming={"given": assuming} if assuming is not None else {})
    return str(decide(claim, **options).verdict)


def same(one, two):
    """Return whether two values are one: NaN equals itself, the sign of zero counts."""
    if isinstance(one, float) and isinstance(two, float):
        if math.isnan(one) or math.isnan(two):
            return math.isnan(one) and math.isnan(two)
        return (one, math.copysign(1, one)) == (two, math.copysign(1, two))
    return type(one) is type(two) and one == two


small_conditions = st.builds(small, conditions(WITHOUT_FLOATS))
