"""Claims that almost hold and must not be proved, each beside the neighbour that does hold."""

import pytest
from soundness.claims import decide, verdict

from routeproof.spec.recipe import Checks, Recipe, status_sort
from routeproof.spec.terms import (
    EnumSort,
    IntDomain,
    align_up,
    all_of,
    any_of,
    ceil_div,
    ceiling,
    first,
    float32,
    float64,
    implies,
    ite,
    maximum,
    minimum,
    saturate,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    to_float,
    widen,
    wrap_signed,
    wrap_unsigned,
)

INT64 = IntDomain(-(2**63), 2**63 - 1)
n, m = symbol_int("n", IntDomain(0, 2**40)), symbol_int("m", IntDomain(0, 2**40))
i, j = symbol_int("i", INT64), symbol_int("j", INT64)
few, some = symbol_int("few", IntDomain(0, 40)), symbol_int("some", IntDomain(1, 12))
word, other_word = (symbol_int(name, IntDomain(0, 2**32 - 1)) for name in ("word", "other_word"))
p, q = symbol_bool("p"), symbol_bool("q")
f, g = symbol_float("f", 32), symbol_float("g", 32)
d = symbol_float("d", 64)
KIND = EnumSort("kind", ("none", "int8", "fp8"))
kind = symbol_enum("kind", KIND)


def square_root(cap):
    """Return the smallest c in 1..cap whose square exceeds `few`, or 0."""
    return first("c", cap, lambda c: c * c > few, otherwise=0, at_most=cap)


# name: (what almost holds, what holds)
ROUNDING = {
    "align_up": (align_up(n, 256) <= n + 254, align_up(n, 256) <= n + 255),
    "align_up is not strict": (align_up(n, 256) > n, align_up(n, 256) >= n),
    "align_up twice": (align_up(align_up(n, 128), 192) == align_up(n, 192),
                       align_up(align_up(n, 128), 256) == align_up(n, 256)),
    "align_up of a sum": (align_up(n + m, 256) == align_up(n, 256) + align_up(m, 256),
                          align_up(n + m, 256) <= align_up(n, 256) + align_up(m, 256)),
    "floor is not ceiling": (n // 7 == ceil_div(n, 7), n // 7 == ceil_div(n - 6, 7)),
    "floor of a sum": ((n + m) // 7 == n // 7 + m // 7, (n + m) // 7 >= n // 7 + m // 7),
    "rounding forgets": (n // 8 * 8 == n, n // 8 * 8 + n % 8 == n),
    "floor below zero": (i // 2 == -(-i // 2), i // 2 == -ceil_div(-i, 2)),
    "remainder below zero": (i % -4 >= 0, i % -4 <= 0),
    "zero divisor": (ceil_div(few, some - 1) * (some - 1) >= few,
                     implies(some > 1, ceil_div(few, some - 1) * (some - 1) >= few)),
    "remainder of zero": (few % (some - 1) < some - 1,
                          any_of(some == 1, few % (some - 1) < some - 1)),
    "halving twice": (ceil_div(ceil_div(n, 2), 2) == ceil_div(n + 1, 4),
                      ceil_div(ceil_div(n, 2), 2) == ceil_div(n, 4)),
}  # fmt: skip
CHOICES = {
    "minimum": (minimum(i, j) >= i, minimum(i, j) <= i),
    "maximum": (maximum(i, j) <= i, maximum(i, j) >= i),
    "minimum of sums": (minimum(n, m) + minimum(m, n) == minimum(n + m, m + n),
                        minimum(n, m) + maximum(n, m) == n + m),
    "a guard dropped": (ite(p, n, n + m) >= n + m, implies(~p, ite(p, n, n + m) >= n + m)),
    "a guard turned": (implies(p, ite(~p, n, n + 1) == n), implies(p, ite(p, n, n + 1) == n)),
    "all but one member": (any_of(kind == "none", kind == "int8"),
                           any_of(kind == "none", kind == "int8", kind == "fp8")),
    "exclusive": ((p | q) == (p != q), (p | q) == ((p != q) | (p & q))),
}  # fmt: skip
SPLITS = {
    "splits are not all used": (ceil_div(few, ceil_div(few, some)) == some,
                                ceil_div(few, ceil_div(few, some)) <= some),
    "splits cover": ((some - 1) * ceil_div(few, some) >= few, some * ceil_div(few, some) >= few),
    "one split fewer": (implies(some > 1, ceil_div(few, some) < ceil_div(few, some - 1)),
                        implies(some > 1, ceil_div(few, some) <= ceil_div(few, some - 1))),
    "a search ends at its cap": (square_root(6) > 0, square_root(7) > 0),
    "a search finds the first": (implies(few >= 9, square_root(7) >= 5),
                                 implies(few >= 9, square_root(7) >= 4)),
}  # fmt: skip
OVERFLOWS = {
    "int32 square": (implies(n <= 46341, n * n <= 2**31 - 1), implies(n <= 46340, n * n < 2**31)),
    "size_t product": (word * other_word * 2 <= 2**64 - 1, word * other_word <= 2**64 - 1),
    "a wrapped sum": (wrap_unsigned(word + other_word, 32) >= word,
                      wrap_unsigned(word + other_word, 33) >= word),
    "a wrapped sign": (implies(word <= 2**31, wrap_signed(word, 32) >= 0),
                       implies(word < 2**31, wrap_signed(word, 32) >= 0)),
    "negation of the lowest": (wrap_signed(-i, 64) == -i,
                               implies(i > -(2**63), wrap_signed(-i, 64) == -i)),
    "saturation is no wrap": (saturate(word + 1, 2**32 - 1) == wrap_unsigned(word + 1, 32),
                              saturate(word + 1, 2**32 - 1) >= wrap_unsigned(word + 1, 32)),
}  # fmt: skip
FLOATS = {
    "NaN": (any_of(f <= float32(1.0), f > float32(1.0)),
            any_of(f <= float32(1.0), f > float32(1.0), f != f)),  # noqa: PLR0124 - NaN
    "equal to itself": (f == f, implies(f <= g, f == f)),  # noqa: PLR0124 - NaN
    "two zeros": (implies(f == g, float32(1.0) / f == float32(1.0) / g),
                  implies(all_of(f == g, f > float32(0.0)), f * f == g * g)),
    "a literal without its suffix": (widen(float32(0.85)) == float64(0.85),
                                     widen(float32(0.75)) == float64(0.75)),
    "a threshold in the other width": (implies(d > float64(0.8), d > widen(float32(0.8))),
                                       implies(d > widen(float32(0.8)), d > float64(0.8))),
    "rounding up": (ceiling(f) > f, implies(f == f, ceiling(f) >= f)),  # noqa: PLR0124 - NaN
}  # fmt: skip
EVERYTHING = {**ROUNDING, **CHOICES, **SPLITS, **OVERFLOWS, **FLOATS}


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_almost_holds_is_refuted(name):
    """By a state, never merely unknown."""
    assert verdict(EVERYTHING[name][0]) == "refuted"


@pytest.mark.parametrize("name", EVERYTHING)
def test_its_neighbour_is_proved(name):
    """So the near miss is near."""
    assert verdict(EVERYTHING[name][1]) == "proved"


@pytest.mark.parametrize("name", EVERYTHING)
def test_no_engine_proves_what_almost_holds(name):
    """Nor sampling, nor a solver that is stopped early."""
    for options in ({"engine": "smt"}, {"engine": "sampling"}, {"resources": 500}, {"seed": 7}):
        assert verdict(EVERYTHING[name][0], **options) in ("refuted", "unknown")


def test_integers_stop_being_floats_at_a_power_of_two():
    """2^24 + 1 is the first integer that float32 cannot hold."""
    near = symbol_int("near", IntDomain(2**24 - 100, 2**24 + 100))
    decision = decide(widen(to_float(near, 32)) == to_float(near, 64))
    assert decision.counterexample.state == {"near": 2**24 + 1}


def layout(capacity):
    """Return whether two regions, the second optional, end within a capacity."""
    checks = Checks(status_sort("overflow"))
    recipe = Recipe(checks, alignment=256)
    recipe.carve("scores", few * 512 + some)
    recipe.carve("accumulator", few * 128, when=p)
    return implies(checks.ok, recipe.total <= capacity)


def test_a_capacity_one_byte_short_is_refuted():
    """The largest layout is 40*512 + 12 bytes, padded, and 40*128 more."""
    most = -(-(40 * 512 + 12) // 256) * 256 + 40 * 128
    assert verdict(layout(most)) == "proved"
    assert verdict(layout(most - 1)) == "refuted"


def test_a_corner_is_not_the_envelope():
    """A bound taken where two symbols are largest misses a term that falls in one of them."""
    padding = align_up(some, 8) - some
    total = few * 100 + padding * 1000
    at_the_corner = 40 * 100 + (16 - 12) * 1000
    assert verdict(total <= at_the_corner) == "refuted"
    assert verdict(total <= 40 * 100 + 7 * 1000) == "proved"


def test_a_failing_recipe_does_not_bound_itself():
    """Where the status is not ok, a total promises nothing."""
    tight = Checks(status_sort("overflow"), limit=400)
    total = tight.product(few, some)
    assert verdict(total <= 400) == "refuted"
    assert verdict(implies(tight.ok, total <= 400)) == "proved"
    assert verdict(implies(tight.ok, total <= 399)) == "refuted"


CONTRADICTIONS = {
    "bounds": all_of(n < 3, n > 5),
    "a domain": n < 0,
    "parity": 2 * i == 2 * j + 1,
    "a remainder": all_of(few % 3 == 1, few % 6 == 3),
    "members": all_of(kind != "none", kind != "int8", kind != "fp8"),
    "flags": all_of(p, any_of(~p, q), ~q),
    "a square": few * few == 2,
    "floats": all_of(f < g, g < f),
    "a float below itself": f < f,  # noqa: PLR0124 - false also of NaN
    "a search": square_root(7) == 8,
    "a product": all_of(some * few > 480),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_assumptions_without_a_state_are_vacuous(name):
    """And prove nothing, whatever the goal."""
    assert verdict(n >= 0, assuming=CONTRADICTIONS[name]) == "vacuous"
    assert verdict(n < 0, assuming=CONTRADICTIONS[name]) == "vacuous"


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_no_engine_proves_anything_from_a_contradiction(name):
    """Sampling finds no state, which is unknown; so is a solver without resources."""
    for options in ({"engine": "sampling"}, {"engine": "smt"}, {"resources": 1}):
        word = verdict(n >= 0, assuming=CONTRADICTIONS[name], **options)
        assert word in ("vacuous", "unknown")


def test_assumptions_whose_state_cannot_be_found_prove_nothing():
    """A solver that gives up on the assumptions gives no proof under them."""
    a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
    cubes = a * a * a + b * b * b == c * c * c
    assert verdict(a >= 1, assuming=cubes, resources=100_000) == "unknown"
