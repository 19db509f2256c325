"""`replay` with kernels: of counterexamples, of drawn launches, of saved ones."""

import json

import pytest
from kernels.launches import sized

from routeproof.checkers import launching
from routeproof.checkers.registry import load_kernels
from routeproof.kernels_ref.gqa import flash
from routeproof.spec.execution import Fault


@pytest.fixture
def saved(call, tmp_path, monkeypatch):
    """Return a function that decides obligations and gives the path of their report."""
    monkeypatch.chdir(tmp_path)

    def saved(*ids):
        path = tmp_path / "report.json"
        assert call("check", *ids, "--output", path)[0] == 0
        return path

    return saved


def test_a_counterexample_about_bytes_is_shown_by_an_allocation(saved, call):
    """Bytes planned, allocated and touched, region by region."""
    code, out, err = call("replay", saved("ort.gqa.bound.not.with-preserved-past"))
    assert (code, err) == (0, "")
    assert "needed bytes   268" in out
    words = [line.split() for line in out.splitlines()]
    assert ["separate_past", "16", "16", "16"] in words
    assert ["total", "268", "28", "28"] in words
    assert "executed twice, under different poison, with the same bits" in out


def test_a_huge_counterexample_is_carved_on_paper_and_says_so(saved, call, monkeypatch):
    """With the reason, and no byte touched."""
    from routeproof.kernels_ref.gqa import crosscheck

    monkeypatch.setattr(crosscheck, "MOST_BYTES", 100)
    code, out, _ = call("replay", saved("ort.gqa.bound.not.with-preserved-past"))
    assert code == 0
    assert "carved on paper, no memory touched: " in out
    assert "bytes of scratch and tensors are more than 100" in out
    assert ["separate_past", "16", "16", "-"] in [line.split() for line in out.splitlines()]


def test_a_counterexample_whose_recipe_is_not_ok_is_not_run(saved, call):
    """It is about a status, not about bytes."""
    code, out, _ = call("replay", saved("ort.gqa.bound.not.xqa-any-grid"))
    assert code == 0
    assert "kernels: not run: ort.gqa.complete: the recipe's status is unavailable" in out


def test_without_kernels_states_are_executed_alone(saved, call):
    """As the interpreter does."""
    path = saved("ort.gqa.bound.not.with-preserved-past")
    code, out, _ = call("replay", path, "--kernels", "none")
    assert code == 0
    assert "still breaks it" in out
    assert "region" not in out


def test_a_fault_in_a_counterexample_is_status_1(saved, call, monkeypatch):
    """The state breaks its obligation, and its kernel asks for other bytes."""
    path = saved("ort.gqa.bound.tight.flash.decode")
    chosen = flash.choose_splits
    monkeypatch.setattr(flash, "choose_splits", lambda *of: chosen(*of) + 1)
    code, out, _ = call("replay", path)
    assert code == 1
    assert "fault: softmax_lse_accumulator: the kernel needs" in out


def test_drawn_launches_are_counted(call):
    """By route, cache mode, quantisation and type; the bytes of each region of each route."""
    code, out, err = call("replay", "--random", "60", "--seed", "4")
    assert (code, err) == (0, "")
    assert out.startswith("60 launches of seed 4 on host, NumPy ")
    for said in ("20 flash, 10 flash_fast_decode", "cache mode", "quantisation", "several splits",
                 "padding", "60 varied", "60 twice", "maximum error, bf16"):  # fmt: skip
        assert said in out
    assert out.endswith("no fault\n")


def test_drawn_launches_are_the_same_for_a_seed_and_any_number_of_workers(call):
    """And others for another seed."""
    found = [
        call("replay", "--random", "45", "--seed", seed, "--jobs", jobs, "--format", "json")[1]
        for seed, jobs in (("1", "1"), ("1", "2"), ("2", "1"))
    ]
    assert found[0] == found[1] != found[2]
    data = json.loads(found[0])
    assert data["schema_version"] == 1
    assert data["launches"] == 45
    assert data["faults"] == []
    assert data["allocator"]["taken"] == data["allocator"]["planned"]
    assert sum(data["counts"]["route"].values()) == 45


@pytest.fixture
def faulty(call, monkeypatch):
    """Return what `--random` prints where Flash takes one split too many, and what is saved."""
    chosen = flash.choose_splits
    with monkeypatch.context() as patched:
        patched.setattr(flash, "choose_splits", lambda *of: chosen(*of) + 1)
        code, out, _ = call("replay", "--random", "20", "--jobs", "1")
    assert code == 1
    return out, next(line.strip() for line in out.splitlines() if '"launch"' in line)


def test_a_fault_is_named_and_can_be_replayed(faulty, call, tmp_path, monkeypatch):
    """The launch is printed as `replay` reads it."""
    out, line = faulty
    assert "fault in launch 1: softmax_lse_accumulator: the kernel needs" in out
    assert out.endswith(" faults\n")
    path = tmp_path / "launch.json"
    path.write_text(line)
    code, out, _ = call("replay", path)
    assert code == 0
    assert "kernels on host" in out
    chosen = flash.choose_splits
    monkeypatch.setattr(flash, "choose_splits", lambda *of: chosen(*of) + 1)
    code, out, _ = call("replay", path)
    assert code == 1
    assert "fault: softmax_lse_accumulator: the kernel needs" in out


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"route": "cudnn"}, "launch.route: 'cudnn' is not one of xqa, flash"),
        ({"route": 3}, "launch: needs 'route' (str), got 3"),
        ({"contents": None}, "launch: needs 'contents' (int), got None"),
        ({"contents": -1}, "launch.contents: -1 is not"),
        ({"spec": {}}, "node: field 'num_heads' is missing"),
        ({"state": {}}, "state.batch_size: a Run has"),
        ({"route": "unfused"}, "launch: the ladder takes flash, not unfused"),
    ],
)
def test_a_malformed_launch_is_refused(faulty, call, tmp_path, change, problem):
    """Status 2, with what is wrong in it."""
    data = json.loads(faulty[1])
    data["launch"] |= change
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(data))
    code, out, err = call("replay", path)
    assert (code, out) == (2, "")
    assert problem in err


@pytest.mark.parametrize("content", [{"launch": {}}, {"schema_version": 1, "launch": 3}])
def test_a_file_that_is_no_launch_is_refused(call, tmp_path, content):
    """Without a version, or without an object."""
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(content))
    assert call("replay", path)[0] == 2


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ([], "replay takes a FILE.json, or --random N"),
        (["one.json", "--seed", "1"], "--seed belongs to --random"),
        (["one.json", "--jobs", "1"], "--jobs belongs to --random"),
        (["one.json", "--format", "json"], "--format json belongs to --random"),
        (["one.json", "--random", "3"], "--random draws its launches: it takes no file"),
        (["--random", "3", "--kernels", "none"], "--random runs kernels: --kernels is numpy or"),
        (["--random", "0"], "0 is not in the range"),
    ],
)
def test_options_that_contradict_each_other_are_refused(call, args, problem):
    """Status 2, in one line."""
    code, out, err = call("replay", *args)
    assert (code, out) == (2, "")
    assert problem in err


def test_without_a_gpu_the_command_says_so_in_one_line(call):
    """Status 2."""
    try:
        load_kernels(launching.RECIPE, "cupy")
    except Exception as error:  # noqa: BLE001 - whatever this machine lacks
        said = str(error)
    else:
        pytest.skip("there is a GPU")
    code, out, err = call("replay", "--kernels", "cupy", "--random", "3")
    assert (code, out, err) == (2, "", f"routeproof: {said}\n")


def test_a_fault_says_region_bytes_and_run():
    """It travels between processes as it is."""
    import pickle

    fault = Fault("qk", "4 bytes short", {"route": "unfused"})
    again = pickle.loads(pickle.dumps(fault))  # noqa: S301 - its own
    assert (str(again), again.run) == ("qk: 4 bytes short", {"route": "unfused"})
    assert sized("unfused")[0].route == "unfused"
