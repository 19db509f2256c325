"""Checked arithmetic and layouts, against a loop that carves the same bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.spec.errors import ModelError
from routeproof.spec.interpret import compile_terms, evaluate
from routeproof.spec.recipe import SIZE_MAX, Checks, Recipe, status_sort
from routeproof.spec.terms import TRUE, EnumSort, integer, symbol_bool, symbol_enum, symbol_int

STATUS = status_sort("invalid_argument", "overflow", "unavailable")
a, b, c = (symbol_int(name) for name in "abc")
p = symbol_bool("p")
sizes = st.integers(0, 2**33) | st.sampled_from((2**32 - 1, 2**63, 2**64 - 1, 2**64))


def test_ok_comes_first():
    """Nothing checked is ok, and `ok` is the member a counterexample prefers."""
    assert STATUS.members[0] == "ok"
    assert Checks(STATUS).status is STATUS["ok"]
    assert Checks(STATUS).ok is TRUE


@given(st.integers(-3, 3), st.integers(-3, 3))
def test_the_first_failing_check_is_the_status(one, two):
    """The order in which checks are recorded decides, not their severity."""
    checks = Checks(STATUS)
    checks.require(a > 0, "unavailable")
    checks.require(b > 0, "invalid_argument", when=a != 2)
    failed = [
        name
        for name, fails in (("unavailable", one <= 0), ("invalid_argument", two <= 0 and one != 2))
        if fails
    ]
    status, ok = compile_terms([checks.status, checks.ok])({"a": one, "b": two})
    assert status == (failed[0] if failed else "ok")
    assert ok == (not failed)


@given(sizes, sizes, sizes)
def test_every_partial_product_and_sum_is_checked(one, two, three):
    """An overflow on the way counts, even if a zero factor would hide it in the result."""
    checks = Checks(STATUS)
    product, total = checks.product(a, b, c), checks.total(a, b, c)
    state = {"a": one, "b": two, "c": three}
    assert compile_terms([product, total])(state) == [one * two * three, one + two + three]
    partial = [one * two, one * two * three, one + two, one + two + three]
    fits = all(value <= SIZE_MAX for value in partial)
    assert evaluate(checks.status, state) == ("ok" if fits else "overflow")


def test_a_limit_of_its_own():
    """Another width than size_t, and another name for its overflow."""
    checks = Checks(STATUS, overflow="unavailable", limit=2**31 - 1)
    checks.product(a, 2)
    assert evaluate(checks.status, {"a": 2**30 - 1}) == "ok"
    assert evaluate(checks.status, {"a": 2**30}) == "unavailable"


@given(sizes)
def test_alignment_needs_room_above_the_value(size):
    """As in C, `value + alignment - 1` must fit, also where the aligned value would."""
    checks = Checks(STATUS)
    aligned = checks.align(a, 256)
    assert evaluate(aligned, {"a": size}) == -(-size // 256) * 256
    assert evaluate(checks.ok, {"a": size}) == (size + 255 <= SIZE_MAX)


def test_a_part_that_failed_fails_the_whole():
    """`adopt` and `include` carry over every failure, where they are performed."""
    status = symbol_enum("status", STATUS)
    adopted = Checks(STATUS)
    adopted.adopt(status, when=p)
    part, included = Checks(STATUS), Checks(STATUS)
    part.require(status != "unavailable", "unavailable")
    included.include(part)
    for member in STATUS.members:
        assert evaluate(adopted.status, {"status": member, "p": True}) == member
        assert evaluate(adopted.status, {"status": member, "p": False}) == "ok"
    assert evaluate(included.status, {"status": "unavailable"}) == "unavailable"


def test_a_failure_without_a_name_here_is_not_dropped():
    """A part that fails in a way this recipe cannot report would look ok: it is refused."""
    wider = symbol_enum("status", EnumSort("status", (*STATUS.members, "timeout")))
    with pytest.raises(ModelError, match="no member 'timeout'"):
        Checks(STATUS).adopt(wider)


@given(st.lists(st.integers(0, 3000), min_size=3, max_size=3), st.booleans(), st.integers(0, 999))
def test_regions_follow_each_other(given_sizes, wanted, start):
    """Each present region starts at the next aligned byte; an absent one has offset and size 0."""
    checks = Checks(STATUS)
    recipe = Recipe(checks, alignment=64, start=start)
    regions = [recipe.carve("a", a), recipe.carve("b", b, when=p), recipe.carve("c", c)]
    cursor, expected = start, []
    for size, when in zip(given_sizes, (True, wanted, True), strict=True):
        if not (size and when):
            expected += [0, 0]
            continue
        offset = -(-cursor // 64) * 64
        cursor = offset + size
        expected += [offset, size]
    state = {**dict(zip("abc", given_sizes, strict=True)), "p": wanted}
    shown = [term for region in regions for term in (region.offset, region.size)]
    assert compile_terms([*shown, recipe.total])(state) == [*expected, cursor]
    assert evaluate(checks.ok, state)
    assert list(recipe.regions) == ["a", "b", "c"]


def test_regions_that_do_not_fit():
    """The end of a region is checked; an absent region checks nothing."""
    checks = Checks(STATUS)
    Recipe(checks).carve("a", a, when=p)
    assert evaluate(checks.status, {"a": 2**64, "p": True}) == "overflow"
    assert evaluate(checks.status, {"a": 2**64, "p": False}) == "ok"


def test_a_region_has_one_place():
    """Two regions of one name are a mistake."""
    recipe = Recipe(Checks(STATUS))
    recipe.carve("a", a)
    with pytest.raises(ModelError, match="carved twice"):
        recipe.carve("a", b)


def test_checks_are_listed_as_performed():
    """The record of checks shows condition, requirement and failure."""
    checks = Checks(STATUS)
    checks.require(a > 0, "invalid_argument", when=p)
    checks.fits(integer(3) * a)
    first, second = checks.performed
    assert (first.when, first.needs, first.failure) == (p, a > 0, STATUS["invalid_argument"])
    assert second.failure is STATUS["overflow"]
    assert second.fails is (a * 3 > SIZE_MAX) or evaluate(second.fails, {"a": 2**64})
