"""Seeded faults: a wrong recipe or a wrong kernel is caught, by an error with region and bytes."""

from dataclasses import replace

import numpy as np
import pytest
from kernels.launches import crosscheck, sized

from routeproof.kernels_ref.arena import Arena, Plan, Planned
from routeproof.kernels_ref.gqa import flash, preparation, tiles, unfused, xqa
from routeproof.kernels_ref.gqa.crosscheck import check_counts
from routeproof.spec.execution import Fault

SPLIT = {"total": 700, "capacity": 720}
WINDOWED = {"windowed_cache": True, "window": 16, "capacity": 16}
HALF_ALIASED = {"alias": (True, False), "total": 30, "capacity": 29}


WRONG = r"^(output: [0-9,]+ of 1,024|softmax_lse: [0-9]+ of 32) bytes of row 0 are wrong"


def changed(planned, name, *, size=0, offset=0):
    """Return the plan with a region's size and place changed, and nothing else."""
    assert any(one.name == name for one in planned.regions)
    regions = tuple(
        Planned(one.name, one.offset + offset, one.size + size) if one.name == name else one
        for one in planned.regions
    )
    return Plan(regions, planned.total)


SHORT = [
    ("one past row", "flash", HALF_ALIASED, "separate_past", -128),
    ("one staged element", "flash", {"tokens": 5, **WINDOWED}, "staged_key", -2),
    ("one staged row", "unfused", {"tokens": 5, **WINDOWED}, "staged_value", -128),
    ("one byte to compact", "xqa", WINDOWED, "compaction", -1),
    ("one vector of lengths", "flash", {"batch": 3}, "sequence_lengths", -12),
    ("one element of Q", "memory_efficient", {"rotary": True}, "qkv_preprocess", -2),
    ("the room behind Q", "flash", {"cache": "int8", "quantization": "per_tensor"},
     "qkv_preprocess", -256),
    ("one row's log-sum-exp", "flash", {}, "softmax_lse", -4),
    ("a capacity one too small", "memory_efficient", {}, "expanded_key", -2 * 8 * 64),
    ("outputs of half the width", "memory_efficient", {"head_size": 136}, "output_accumulator",
     -2 * 8 * 136),
    ("one key per row of scores", "unfused", {"tokens": 4, "total": 64}, "qk", -4 * 8 * 4),
    ("one stretch of maxima", "xqa", {"total": 300}, "row_max", -128),
    ("the sinks of half precision", "xqa", {"head_sink": "dynamic_conversion", "num_heads": 64,
     "kv_num_heads": 2}, "dynamic_head_sink", -128),
]  # fmt: skip


@pytest.mark.parametrize(("what", "route", "said", "region", "bytes_"), SHORT)
def test_a_short_region_is_named_with_its_bytes(what, route, said, region, bytes_):
    """Never by a silent second allocation."""
    launch, planned = sized(route, **said)
    with pytest.raises(Fault, match=rf"^{region}: .* {-bytes_:,} bytes short$"):
        crosscheck(launch, changed(planned, region, size=bytes_))
    assert what


MISPLACED = [
    ("one element off", "memory_efficient", {}, "expanded_value", 2),
    ("half a line off", "unfused", {}, "softmax", 128),
    ("off its vector", "xqa", {"total": 300}, "output_accumulator", 128),
]


@pytest.mark.parametrize(("what", "route", "said", "region", "by"), MISPLACED)
def test_a_misaligned_region_is_named_with_its_bytes(what, route, said, region, by):
    """By what the kernel loads at once."""
    launch, planned = sized(route, **said)
    last = changed(planned, region, offset=by)
    with pytest.raises(Fault, match=rf"^{region}: [0-9,]+ bytes .*{by} bytes"):
        crosscheck(launch, Plan(last.regions, planned.total + by))
    assert what


@pytest.mark.parametrize("splits", [-1, 1])
def test_a_recipe_for_another_split_count(splits):
    """The accumulators hold as many parts as there are splits."""
    launch, planned = sized("flash_fast_decode", **SPLIT)
    count = flash.splits(launch)
    assert count > 1
    wrong = changed(planned, "softmax_lse_accumulator", size=splits * 4 * 8)
    said = "32 bytes short" if splits < 0 else "32 bytes that nothing uses"
    with pytest.raises(Fault, match=rf"^softmax_lse_accumulator: .*lse {count}x1x8x1 fp32.*{said}"):
        crosscheck(launch, wrong)


def test_a_kernel_that_splits_once_more(monkeypatch):
    """It asks for more than the recipe has."""
    launch, planned = sized("flash", **SPLIT)
    chosen = flash.choose_splits
    monkeypatch.setattr(flash, "choose_splits", lambda *of: chosen(*of) + 1)
    with pytest.raises(Fault, match=r"^softmax_lse_accumulator: .* 32 bytes short"):
        crosscheck(launch, planned)


def test_a_recipe_without_the_preserved_past():
    """The kernel that saves it finds no bytes."""
    launch, planned = sized("flash", **HALF_ALIASED)
    without = tuple(one for one in planned.regions if one.name != "separate_past")
    with pytest.raises(Fault, match=r"^separate_past: .* needs 7,424 bytes .* has 0"):
        crosscheck(launch, Plan(without, planned.total))


def test_a_kernel_that_does_not_preserve_the_past(monkeypatch):
    """The past is overwritten by the present that shares its buffer."""
    launch, planned = sized("flash", **HALF_ALIASED)
    monkeypatch.setattr(preparation, "preserve", lambda past, _: past)
    with pytest.raises(Fault, match=r"^present_key: [0-9,]+ of 7,424 bytes .* are not the past's"):
        crosscheck(launch, planned)


@pytest.mark.parametrize("route", ["flash", "memory_efficient", "xqa"])
def test_swapped_heads(monkeypatch, route):
    """Queries of one head attend for another."""
    launch, planned = sized(route)
    real = tiles.grouped
    monkeypatch.setattr(tiles, "grouped", lambda *of: np.roll(real(*of), 1, axis=1))
    with pytest.raises(Fault, match=WRONG):
        crosscheck(launch, planned)


def test_swapped_keys_and_values(monkeypatch):
    """Of shared heads, expanded into each other's region."""
    launch, planned = sized("memory_efficient")
    of = tiles.stored_source
    monkeypatch.setattr(tiles, "stored_source", lambda bound, k, v, n: of(bound, v, k, n))
    with pytest.raises(Fault, match=r"^output: [0-9,]+ of 1,024 bytes of row 0 are wrong"):
        crosscheck(launch, planned)


@pytest.mark.parametrize("route", ["flash", "unfused"])
def test_a_window_off_by_one(monkeypatch, route):
    """One key more than the query sees."""
    launch, planned = sized(route, window=4)
    real = tiles.mask

    def wider(bound, prepared, queries, keys):
        seen = real(bound, prepared, queries, keys)
        return seen | np.roll(seen, -1, axis=-1)

    monkeypatch.setattr(tiles, "mask", wider)
    with pytest.raises(Fault, match=WRONG):
        crosscheck(launch, planned)


def test_a_cache_off_by_one(monkeypatch):
    """What stays of a staged cache is copied back from one row too early."""
    launch, planned = sized("flash", tokens=5, **WINDOWED)
    real = preparation.finish

    def late(bound, arena, prepared):
        for vector in prepared.scratch.lengths[4:]:
            vector[...] = vector - 1
        real(bound, arena, prepared)

    monkeypatch.setattr(preparation, "finish", late)
    with pytest.raises(Fault, match=r"^present_key: [0-9,]+ of [0-9,]+ bytes of row 0"):
        crosscheck(launch, planned)


def test_a_read_of_scratch_that_was_not_written(monkeypatch):
    """Other poison, other output: the past is never staged."""
    launch, planned = sized("flash", tokens=5, **WINDOWED)
    monkeypatch.setattr(preparation, "_arranged", lambda *of: of[2].staged)
    with pytest.raises(Fault, match=r"[0-9,]+ of [0-9,]+ bytes depend on what scratch held"):
        crosscheck(launch, planned)


def test_a_use_after_release(monkeypatch):
    """Scores are given back before they are read."""
    launch, planned = sized("unfused")
    real = Arena.release
    early = {"q_bnsh": "qk", "qk": "q_bnsh"}
    monkeypatch.setattr(Arena, "release", lambda one, name: real(one, early.get(name, name)))
    with pytest.raises(Fault, match=r"^output: [0-9,]+ of 1,024 bytes"):
        crosscheck(launch, planned)


def test_a_write_behind_a_region(monkeypatch):
    """One element too many, where the next region does not begin at once."""
    launch, planned = sized("flash", **SPLIT)
    real = flash.attend

    def beyond(bound, prepared, arena, scratch):
        real(bound, prepared, arena, scratch)
        end = arena._places["softmax_lse"] + 32  # noqa: SLF001
        arena._memory[end : end + 4] = 0  # noqa: SLF001

    monkeypatch.setattr(flash, "attend", beyond)
    with pytest.raises(Fault, match=r"^softmax_lse: 4 guard bytes are overwritten, from 32 bytes"):
        crosscheck(launch, planned)


def test_a_region_that_nothing_writes(monkeypatch):
    """It is reserved for nothing."""
    launch, planned = sized("unfused")
    real = unfused.attend

    def elsewhere(bound, prepared, arena, scratch):
        real(bound, prepared, arena, [*scratch[:3], scratch[3].copy()])

    monkeypatch.setattr(unfused, "attend", elsewhere)
    with pytest.raises(Fault, match=r"^softmax: none of the 1,280 bytes of 'softmax' is written"):
        crosscheck(launch, planned)


def test_a_vector_that_nothing_writes(monkeypatch):
    """One of several in a region."""
    launch, planned = sized("flash")
    real = preparation._lengths  # noqa: SLF001

    def without(bound, scratch):
        one, two, three = scratch.lengths
        found = real(bound, replace(scratch, lengths=[one, two, three.copy()]))
        three.view(np.uint8)[...] = three.view(np.uint8)
        return found

    monkeypatch.setattr(preparation, "_lengths", without)
    with pytest.raises(Fault, match="sequence_lengths: none of the 4 bytes of 'padded' is written"):
        crosscheck(launch, planned)


def test_log_sum_exp_that_is_wrong(monkeypatch):
    """Nothing reads it afterwards, and it is what the caller gets."""
    launch, planned = sized("flash")
    real = tiles.Running.log_sum_exp
    monkeypatch.setattr(tiles.Running, "log_sum_exp", lambda one, xp: real(one, xp) + 1)
    with pytest.raises(Fault, match="softmax_lse: 32 of 32 bytes of row 0 are wrong"):
        crosscheck(launch, planned)


@pytest.mark.parametrize("said", [{"batch": 3, "tokens": 9, "total": 9}, HALF_ALIASED])
def test_rows_behind_the_tokens_that_are_written(monkeypatch, said):
    """Padding is never appended, and a present that is longer than its past ends in zeros."""
    launch, planned = sized("flash", **{**said, "capacity": 29})
    real = preparation.prepare

    def after(bound, arena, scratch):
        found = real(bound, arena, scratch)
        bound.present_key[:, :, -1] = 7
        return found

    monkeypatch.setattr(preparation, "prepare", after)
    with pytest.raises(Fault, match=r"^present_key: [0-9,]+ of [0-9,]+ bytes"):
        crosscheck(launch, planned)


def test_packed_inputs_are_what_is_read(monkeypatch):
    """The operator has no others then."""
    launch, planned = sized("flash", packed=True)
    real = preparation.new_tokens
    monkeypatch.setattr(
        preparation, "new_tokens", lambda bound, past: real(replace(bound, packed=None), past)
    )
    with pytest.raises(Fault, match=r"^(output|present_key): [0-9,]+ of"):
        crosscheck(launch, planned)


def test_regions_in_another_order():
    """Each as tight as before, with another total."""
    launch, planned = sized("memory_efficient", rotary=True, num_heads=2)
    first, second = planned.regions
    assert [first.name, second.name] == ["sequence_lengths", "qkv_preprocess"]
    moved = Planned(first.name, -(-second.size // 256) * 256, first.size)
    swapped = (Planned(second.name, 0, second.size), moved)
    with pytest.raises(Fault, match=r"^sequence_lengths: 12 bytes lie behind qkv_preprocess"):
        crosscheck(launch, Plan(swapped, moved.offset + moved.size))


@pytest.mark.parametrize(
    ("route", "name", "value"),
    [
        ("flash", "flash.selected_split_count", 2),
        ("xqa", "xqa.subsequences_per_sequence", 3),
        ("xqa", "xqa.m_tile_size", 16),
        ("unfused", "preparation.effective_kv_cache_capacity", 41),
        ("unfused", "preparation.cache_row_bytes", 64),
    ],
)
def test_counts_of_the_recipe_that_are_not_the_kernels(route, name, value):
    """They have no bytes of their own, and decide those of others."""
    launch, _ = sized(route)
    derived = {
        "flash.selected_split_count": 1,
        "xqa.subsequences_per_sequence": 1,
        "xqa.m_tile_size": 8,
        "preparation.effective_kv_cache_capacity": 40,
        "preparation.cache_row_bytes": 128,
    }
    recipe = {f"out.{key}": one for key, one in derived.items()}
    check_counts(launch, recipe)
    with pytest.raises(Fault, match=f"{name}: the recipe has {value}, the kernel {derived[name]}"):
        check_counts(launch, {**recipe, f"out.{name}": value})


def test_a_root_one_byte_short():
    """The last region ends beyond it."""
    launch, planned = sized("xqa")
    with pytest.raises(Fault, match=r"^output_accumulator: [0-9,]+ bytes end at .* 1 bytes beyond"):
        crosscheck(launch, Plan(planned.regions, planned.total - 1))


def test_two_regions_at_one_place():
    """Each would overwrite the other."""
    launch, planned = sized("unfused")
    offset = next(one.size for one in planned.regions if one.name == "q_bnsh")
    with pytest.raises(Fault, match=r"^y_bnsh: [0-9,]+ bytes overlap q_bnsh by 1,024 bytes"):
        crosscheck(launch, changed(planned, "y_bnsh", offset=-offset))


def test_a_stretch_that_is_left_out(monkeypatch):
    """A part of the cache that no block reads."""
    launch, planned = sized("xqa", total=600)
    assert xqa.stretches(launch) == 3
    real = xqa._stretch  # noqa: SLF001
    monkeypatch.setattr(xqa, "_stretch", lambda one, part, n: real(one, min(part, 1), n))
    with pytest.raises(Fault, match=r"^output: [0-9,]+ of 1,024 bytes of row 0 are wrong"):
        crosscheck(launch, planned)
