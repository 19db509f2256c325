"""Every route in its recipe's regions: bytes, bits and results."""

import gzip
import json
from dataclasses import replace
from importlib import resources
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.launches import HOST, crosscheck, sized

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.arena import EXACT, Arena, Plan, Planned
from routeproof.kernels_ref.gqa import crosscheck as checking
from routeproof.kernels_ref.gqa import flash, tensors
from routeproof.kernels_ref.gqa.draw import draw
from routeproof.kernels_ref.gqa.launch import ROUTES, from_recipe_row
from routeproof.kernels_ref.gqa.plan import UNNEEDED, answers, plan
from routeproof.spec.execution import Fault

ANY = st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))


@given(which=ANY)
@settings(max_examples=150, deadline=None)
def test_any_admitted_launch_runs_in_its_recipe(which):
    """All that is asked for is planned, all that is planned asked for, all that is used written."""
    drawn = draw(*which)
    report = crosscheck(drawn.launch, plan(drawn.recipe), which[0])
    assert not report.on_paper
    assert not report.is_constant
    assert {one.name for one in report.regions if not one.touched} <= UNNEEDED.keys()
    assert sum(one.planned for one in report.regions) <= report.total
    assert report.peak <= report.total


def mutations(planned, chance):
    """Return the plan with one region an element short, or moved by less or more than it may be."""
    regions = list(planned.regions)
    at = chance.draw(st.integers(0, len(regions) - 1))
    one = regions[at]
    change = chance.draw(st.sampled_from(["short", "long", "shifted", "a line later", "gone"]))
    step = chance.draw(st.sampled_from([1, 2, 4]))
    regions[at] = {
        "short": Planned(one.name, one.offset, one.size - step),
        "long": Planned(one.name, one.offset, one.size + step),
        "shifted": Planned(one.name, one.offset + step, one.size),
        "a line later": Planned(one.name, one.offset + 256, one.size),
        "gone": one,
    }[change]
    if change == "gone":
        del regions[at]
    more = chance.draw(st.sampled_from([0, 256])) if change in ("shifted", "a line later") else 0
    moved = [
        Planned(part.name, part.offset + (more if part.offset > one.offset else 0), part.size)
        for part in regions
    ]
    return Plan(tuple(moved), planned.total + more)


@given(which=ANY, chance=st.data())
@settings(max_examples=300, deadline=None)
def test_any_change_of_a_recipe_is_caught(which, chance):
    """By a fault that names a region and bytes."""
    drawn = draw(*which)
    changed = mutations(plan(drawn.recipe), chance)
    with pytest.raises(Fault, match=r"^[a-z_ ]+: .*\d.*bytes"):
        crosscheck(drawn.launch, changed)


@given(which=ANY)
@settings(max_examples=40, deadline=None)
def test_on_paper_the_same_bytes_are_asked_for(which):
    """Without a backend the arena compares as much, and touches nothing."""
    drawn = draw(*which)
    planned = plan(drawn.recipe)
    paper, real = Arena(planned, UNNEEDED), Arena(planned, UNNEEDED, HOST, EXACT)
    for arena in (paper, real):
        checking.carve(arena, drawn.launch)
    assert [event.size for event in paper.events] == [event.size for event in real.events]
    assert all(region.memory is None for region in paper.regions.values())


def recorded():
    """Yield every recorded row of the complete recipe whose status is ok."""
    file = resources.files("routeproof.proofs.ort.gqa").joinpath("rows/complete.jsonl.gz")
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        row = json.loads(line)
        if row["out"]["status"] == "ok":
            yield row["in"]


def test_the_kernels_ask_for_what_the_real_code_allocates(monkeypatch):
    """Every recorded row: no fault, however large; those that are small enough are executed."""
    monkeypatch.setattr(checking, "MOST_WORK", 1 << 26)
    reports = [
        crosscheck(from_recipe_row(row), plan(answers("ort.gqa.complete", row)))
        for row in recorded()
    ]
    assert len(reports) == 181
    assert {one.route for one in reports} == set(ROUTES)
    assert sum(not one.on_paper for one in reports) >= 40


def test_a_huge_launch_is_carved_on_paper_and_says_so():
    """The published root of a 7B model at 128 K tokens."""
    launch, planned = sized(
        "unfused", tokens=131_072, total=131_072, num_heads=28, kv_num_heads=4, head_size=128
    )
    report = crosscheck(launch, planned)
    assert "bytes of scratch and tensors are more than" in report.on_paper
    assert report.total == planned.total > 2**41
    assert all(one.touched == 0 for one in report.regions)


@given(work=st.integers(1, 400), blocks=st.integers(1, 300), multiprocessors=st.integers(1, 256))
def test_the_kernels_choose_the_splits_of_the_model(work, blocks, multiprocessors):
    """Written a second time, in NumPy's float32."""
    chosen = flash.choose_splits(work, blocks, multiprocessors)
    assert chosen == modelled_splits(work, blocks, multiprocessors)


def modelled_splits(work, blocks, multiprocessors):
    """Return the model's split count for one head per batch row."""
    row = {
        "batch_size": work,
        "sequence_length": 1,
        "total_sequence_length": 256 * blocks,
        "num_heads": 1,
        "kv_num_heads": 1,
        "head_size": 64,
        "multi_processor_count": multiprocessors,
        "fast_decode": False,
        "local_window_size": -1,
        "device_major": 8,
    }
    return max(1, answers("ort.gqa.flash_runtime", row)["out.num_splits"])


@pytest.mark.parametrize(
    ("work", "blocks", "multiprocessors", "splits"), [(3, 97, 68, 20), (1, 97, 24, 20)]
)
def test_published_split_counts(work, blocks, multiprocessors, splits):
    """Where an all-double port differs."""
    assert flash.choose_splits(work, blocks, multiprocessors) == splits


def outputs(route, **said):
    """Return the output of a launch on a route, on contents that do not depend on the route."""
    launch, planned = sized(route, **said)
    contents = tensors.draw(launch, 7)
    done = checking.execute(launch, contents, Arena(planned, UNNEEDED, HOST))
    return formats.decode(np, done.output, launch.element).astype(np.float64)


DECODE = {"num_heads": 8, "kv_num_heads": 2, "total": 700, "capacity": 720}
PROMPT = {"tokens": 130, "total": 130, "capacity": 150, "batch": 2}


@pytest.mark.parametrize("element", ["fp16", "bf16"])
@pytest.mark.parametrize(
    ("routes", "said"),
    [
        (ROUTES, DECODE),
        (ROUTES, {**DECODE, "rotary": True, "packed": True}),
        (ROUTES, {**DECODE, "window": 100}),
        (
            ("xqa", "flash", "flash_fast_decode", "memory_efficient"),
            {**DECODE, "head_sink": "prepacked_fp32"},
        ),
        (("xqa", "flash", "memory_efficient", "unfused"), {**DECODE, "qk_norm": True}),
        (("xqa", "flash"), {**DECODE, "cache": "int8", "quantization": "per_channel"}),
        (("xqa", "flash"), {**DECODE, "cache": "fp8", "quantization": "per_tensor"}),
        (
            ("xqa", "flash", "memory_efficient", "unfused"),
            {**DECODE, "windowed_cache": True, "window": 300, "capacity": 300},
        ),
        (("flash", "memory_efficient", "unfused"), PROMPT),
        (("flash", "memory_efficient", "unfused"), {**PROMPT, "softcap": 3.0, "rotary": True}),
        (("flash", "memory_efficient", "unfused"), {**PROMPT, "alias": (True, False)}),
        (("flash", "memory_efficient", "unfused"), {**PROMPT, "causal": False}),
        (("flash", "memory_efficient"), {**PROMPT, "smooth_softmax": True}),
        (("flash", "memory_efficient", "unfused"), {"tokens": 20, "total": 90, "head_size": 192}),
    ],
)
def test_routes_agree(routes, said, element):
    """Each two of them, within the rounding of the type."""
    found = {route: outputs(route, type=element, **said) for route in routes}
    limit = 8 * formats.unit(element) * max(np.abs(one).max() for one in found.values())
    for one, two in combinations(found, 2):
        assert np.abs(found[one] - found[two]).max() <= limit, (one, two)


def test_a_saved_past_is_what_half_aliasing_needs():
    """The same result as if nothing were shared."""
    shared = outputs("flash", **{**DECODE, "alias": (False, True), "capacity": 699})
    apart = outputs("flash", **{**DECODE, "alias": (False, False)})
    assert np.array_equal(shared, apart)


def test_what_is_over_reserved_is_reported_with_its_reason():
    """XQA rotates into the preprocess region: its own regions for that stay untouched."""
    report = crosscheck(*sized("xqa", rotary=True))
    idle = {one.name: one for one in report.regions if not one.touched}
    assert set(idle) == {"semaphore", "rotary_q", "rotary_k"}
    assert idle["rotary_q"].planned == 1024
    assert "never used" in idle["rotary_q"].note


def test_a_launch_that_cannot_be_is_carved_on_paper():
    """A recipe answers for it all the same."""
    launch, planned = sized("memory_efficient", total=30)
    report = crosscheck(replace(launch, total=31), planned)
    assert report.on_paper == "31 tokens do not fit a cache of 30"


def test_the_peak_is_less_than_the_sum_where_regions_are_given_back():
    """A preserved past is needed before the backend's regions are."""
    report = crosscheck(*sized("flash", alias=(True, False), total=30, capacity=29))
    whole = sum(one.planned for one in report.regions)
    past = next(one.planned for one in report.regions if one.name == "separate_past")
    assert past > 0
    assert report.peak < whole
