"""The arena: exactly what is planned, watched from every side."""

from dataclasses import replace

import numpy as np
import pytest

from routeproof.kernels_ref.arena import EXACT, SPREAD, Arena, Part, Plan, Planned
from routeproof.kernels_ref.backends import load
from routeproof.kernels_ref.formats import BYTES, FP32
from routeproof.spec.execution import Fault

PLAN = Plan((Planned("scores", 0, 48), Planned("sums", 256, 16)), 272)
SCORES, SUMS = Part("scores", (3, 4), FP32), Part("sums", (4,), FP32)


def arena(plan=PLAN, how=EXACT, unneeded=None):
    """Return an arena on the host."""
    return Arena(plan, unneeded or {}, load("numpy"), how)


def carved(one):
    """Carve both regions as planned."""
    return [*one.carve("scores", SCORES), *one.carve("sums", SUMS)]


@pytest.mark.parametrize("how", [EXACT, SPREAD])
def test_what_is_asked_for_as_planned_is_carved_poisoned_and_counted(how):
    """Views of the shapes; what is written, and nothing else, counts as touched."""
    one = arena(how=how)
    scores, sums = carved(one)
    assert scores.shape == (3, 4)
    assert (scores.view(np.uint8) == how.poison).all()
    sums[:2] = 1.5
    one.close()
    assert one.regions["scores"].touched.sum() == 0
    assert one.regions["sums"].touched.sum() == 8


def test_the_root_is_exactly_the_planned_size():
    """Of the arrangement that lies as planned; the other has room for its guards."""
    asked = []
    host = load("numpy")

    def counted(size):
        asked.append(size)
        return host.allocate(size)

    for how in (EXACT, SPREAD):
        Arena(PLAN, {}, replace(host, allocate=counted), how)
    assert asked[0] == PLAN.total < asked[1]


def test_an_allocator_that_asks_for_more_than_planned_is_a_fault():
    """What it rounds up to is its own, and told apart."""
    host = load("numpy")
    more = replace(host, allocate=lambda size: replace(host.allocate(size), requested=size + 1))
    with pytest.raises(Fault, match="the root: 273 bytes were requested for 272"):
        Arena(PLAN, {}, more)


def test_a_region_is_live_from_carve_to_release():
    """The peak is the most at once, not the sum."""
    one = arena()
    one.carve("scores", SCORES)
    one.release("scores")
    one.carve("sums", SUMS)
    one.close()
    said = [(event.what, event.region, event.live) for event in one.events]
    assert said == [
        ("carve", "scores", 48),
        ("release", "scores", 0),
        ("carve", "sums", 16),
        ("release", "sums", 0),
    ]
    assert one.peak == 48


def test_a_released_region_is_poisoned_again():
    """Who still reads it reads poison."""
    one = arena()
    (scores,) = one.carve("scores", SCORES)
    scores[...] = 0
    one.release("scores")
    assert (scores.view(np.uint8) == EXACT.poison).all()


def test_a_shortfall_names_region_and_bytes():
    """No allocation steps in."""
    with pytest.raises(Fault, match=r"^sums: the kernel needs 20 bytes .* has 16: 4 bytes short"):
        arena().carve("sums", Part("sums", (5,), FP32))


def test_more_than_asked_for_names_region_and_bytes():
    """Over-reservation is a fault too."""
    with pytest.raises(Fault, match=r"^sums: .* 12 bytes .* has 16: 4 bytes that nothing uses"):
        arena().carve("sums", Part("sums", (3,), FP32))


def test_a_region_that_is_not_planned_has_no_bytes():
    """So that all of it is short."""
    with pytest.raises(Fault, match=r"^lengths: .* needs 4 bytes .* has 0: 4 bytes short"):
        arena().carve("lengths", Part("lengths", (1,), FP32))


def test_a_misaligned_region_names_bytes():
    """By the alignment that the kernel's loads need."""
    plan = Plan((Planned("scores", 0, 48), Planned("sums", 260, 16)), 276)
    one = arena(plan)
    one.carve("scores", SCORES)
    with pytest.raises(Fault, match=r"^sums: 16 bytes start at byte 260, which is 4 bytes behind"):
        one.carve("sums", SUMS)


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (Plan((Planned("a", 0, 20), Planned("b", 16, 8)), 24), "b: 8 bytes overlap a by 4 bytes"),
        (Plan((Planned("a", 0, 20),), 16), "a: 20 bytes end at byte 20, 4 bytes beyond the root"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(plan, problem):
    """Before anything is allocated."""
    with pytest.raises(Fault, match=problem):
        arena(plan)


@pytest.mark.parametrize("at", [-1, 48])
def test_a_write_outside_a_region_damages_a_guard(at):
    """Before its start, and behind its end."""
    one = arena(how=SPREAD)
    carved(one)
    whole = one._memory  # noqa: SLF001 - a kernel gets no view of it
    whole[one._places["scores"] + at] = 0  # noqa: SLF001
    with pytest.raises(Fault, match=r"^scores: 1 guard bytes are overwritten"):
        one.close()


def test_a_write_into_the_gap_between_regions_is_seen_in_the_exact_arrangement_too():
    """What alignment leaves free is guard."""
    one = arena()
    carved(one)
    one._memory[50] = 0  # noqa: SLF001
    with pytest.raises(Fault, match=r"^scores: 1 guard bytes .* from 50 bytes after its start"):
        one.close()


def test_a_planned_region_that_no_kernel_asks_for_is_a_fault():
    """It is over-reserved."""
    one = arena()
    one.carve("scores", SCORES)
    with pytest.raises(Fault, match="sums: 16 bytes that no kernel asks for"):
        one.close()


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (
            Plan((Planned("scores", 0, 48), Planned("sums", 512, 16)), 528),
            "sums: .* 256 bytes later",
        ),
        (Plan(PLAN.regions, 300), "sums: 28 bytes behind its end are planned"),
    ],
)
def test_bytes_between_or_behind_regions_that_alignment_does_not_ask_for_are_a_fault(plan, problem):
    """The plan is as tight as the requests."""
    one = arena(plan)
    carved(one)
    with pytest.raises(Fault, match=problem):
        one.close()


def test_what_is_not_needed_has_to_be_in_the_closed_list():
    """With its reason; then it takes its bytes and no view of them is given."""
    unused = Part("sums", (4,), FP32, needed=False)
    with pytest.raises(Fault, match="sums: 16 bytes of sums 4 fp32 are in no list of exceptions"):
        arena().carve("sums", unused)
    assert arena(unneeded={"sums": "why"}).carve("sums", unused) == []


def test_a_region_is_excused_only_by_the_list():
    """A launch that has no use for it says so."""
    one = arena(unneeded={"sums": "not in this launch"})
    carved(one)
    one.excuse("sums")
    assert one.regions["sums"].idle == "not in this launch"
    with pytest.raises(Fault, match="scores: 48 bytes are in no list of exceptions"):
        one.excuse("scores")


def test_a_region_is_carved_once():
    """A second owner would overwrite the first."""
    one = arena()
    one.carve("sums", SUMS)
    with pytest.raises(Fault, match="sums: is carved twice"):
        one.carve("sums", SUMS)


def test_on_paper_sizes_are_compared_and_no_memory_exists():
    """However large."""
    huge = Plan((Planned("rows", 0, 2**60),), 2**60)
    one = Arena(huge)
    assert one.carve("rows", Part("rows", (2**60,), BYTES)) == []
    one.close()
    assert one.peak == 2**60


def test_a_region_is_released_once():
    """A second time its bytes would be counted twice."""
    one = arena()
    carved(one)
    one.release("sums")
    with pytest.raises(Fault, match="sums: 16 bytes are released twice"):
        one.release("sums")


@pytest.mark.parametrize("name", ["release", "excuse"])
def test_what_was_not_carved_is_named(name):
    """Neither released nor excused."""
    with pytest.raises(Fault, match="other: is no region that was carved"):
        getattr(arena(unneeded={"other": "why"}), name)("other")


@pytest.mark.parametrize(
    "regions",
    [
        (Planned("a", 0, 8), Planned("a", 256, 8)),
        (Planned("a", 0, 0),),
        (Planned("a", 0, -8),),
        (Planned("a", -256, 8),),
    ],
)
def test_a_plan_with_a_region_twice_or_nowhere_is_refused(regions):
    """Or of no size."""
    with pytest.raises(Fault, match=r"^a: .*-?\d+ bytes"):
        arena(Plan(regions, 512))


def test_regions_lie_in_the_order_of_their_requests():
    """As recipes have it: another order may have another total."""
    one = arena()
    one.carve("sums", SUMS)
    one.carve("scores", SCORES)
    with pytest.raises(Fault, match="sums: 16 bytes lie behind scores"):
        one.close()


def test_guards_differ_between_the_arrangements():
    """So that a read of them shows as well."""
    assert len({EXACT.guard, SPREAD.guard, EXACT.poison, SPREAD.poison}) == 4
