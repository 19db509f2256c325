"""The cache on the command line: equal reports, visible failures, and runs that are cut short."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from routeproof.checkers.caching.store import Store

ALL = {"holds": "proved", "fails": "refuted", "prints": "proved"}


def report(out):
    """Return a report without what tells a cached run from another, and what was cached."""
    data = json.loads(out)
    cached = {one["id"]: one["assurance"].pop("cached") for one in data["obligations"]}
    for one in data["obligations"]:
        del one["seconds"]
    return data, cached


def test_a_second_run_says_the_same(own, call):
    """Only `assurance.cached` tells them apart."""
    file = own(**ALL)
    first, second = (call("check", file, "--format", "json")[1] for _ in range(2))
    assert report(first)[0] == report(second)[0]
    assert set(report(first)[1].values()) == {False}
    assert set(report(second)[1].values()) == {True}
    texts = {call("check", file, *options)[1] for options in ((), ("--no-cache",))}
    assert len(texts) == 1


def test_no_cache_keeps_and_reads_nothing(own, call, cache):
    """Not even the folder is looked at."""
    file = own(**ALL)
    call("check", file, "--no-cache")
    assert list(cache.iterdir()) == []
    call("check", file)
    out = call("check", file, "--no-cache", "--format", "json")[1]
    assert set(report(out)[1].values()) == {False}


@pytest.mark.parametrize("option", [["--cache-verify"], ["--cache-dir", "here"]])
def test_no_cache_contradicts_the_others(own, call, option):
    """Status 2 before anything runs."""
    code, _, err = call("check", own(marks="proved"), "--no-cache", *option)
    assert code == 2
    assert "--no-cache leaves nothing" in err
    assert not Path("ran").exists()


def test_an_edit_is_decided_anew(own, call):
    """The statement counts, not the name of the file or of the obligation."""
    file = own(**ALL)
    call("check", file)
    Path(file).write_text(Path(file).read_text().replace("heads + length >= 2", "heads > length"))
    code, out, _ = call("check", file, "--format", "json")
    found, cached = report(out)
    assert code == 1
    assert [one["verdict"] for one in found["obligations"]] == ["refuted", "refuted", "proved"]
    assert cached == {"own.holds": False, "own.fails": True, "own.prints": True}


def test_verifying_tells_of_a_forged_entry(own, call, cache):
    """As an obligation that is not as expected."""
    file = own(fails="proved")
    assert call("check", file)[0] == 1
    store = Store(cache)
    (entry,) = store.entries("verdicts")
    forged = {**entry.document["body"], "verdict": "proved", "counterexample": None}
    store.put("verdicts", entry.document["key"], forged)
    code, out, _ = call("check", file, "--cache-verify")
    assert code == 1
    assert "disagreement" in out
    assert "the cache said proved, deciding again says refuted" in out
    assert call("check", file)[1].count("refuted") >= 1


def test_a_damaged_entry_is_told_on_standard_error(own, call, cache):
    """Once, naming the file; the report is that of a fresh run."""
    file = own(holds="proved")
    _, before, _ = call("check", file)
    (entry,) = Store(cache).entries("verdicts")
    entry.path.write_bytes(entry.path.read_bytes()[:-20])
    code, out, err = call("check", file)
    assert (code, out) == (0, before)
    assert err == f"routeproof: cache: {entry.path} is damaged; ignored\n"
    assert call("check", file)[2] == ""


def test_a_place_that_is_no_folder_is_told_once(own, call, tmp_path):
    """The verdicts are those of a run without a cache."""
    (tmp_path / "taken").touch()
    code, _, err = call("check", own(**ALL), "--cache-dir", tmp_path / "taken" / "deeper")
    assert code == 0
    assert err.count("\n") == 1
    assert "cache: not used" in err


def test_it_can_be_looked_at_and_emptied(own, call, cache):
    """Where it is, what it holds, and its removal."""
    call("check", own(**ALL))
    _, out, _ = call("cache", "info")
    assert out.startswith(f"place    {cache}\nentries  3, 0 of them damaged\n")
    _, out, _ = call("cache", "list", "own.f*")
    assert out.startswith("refuted     0.0 days  own.fails  ")
    _, out, _ = call("cache", "list", "--format", "json")
    rows = json.loads(out)["entries"]
    assert [row["id"] for row in rows] == ["own.fails", "own.holds", "own.prints"]
    Path(rows[0]["file"]).write_text("?")
    assert json.loads(call("cache", "info", "--format", "json")[1])["damaged"] == 1
    assert call("cache", "prune")[1].startswith("1 entries removed")
    assert call("cache", "prune", "--all")[1].startswith("2 entries removed")
    assert json.loads(call("cache", "info", "--format", "json")[1])["entries"] == 0


def test_time_for_the_run_is_a_limit(own, call):
    """What is left is unknown, with the option that set the limit; the rest is decided."""
    file = own(holds="proved", hangs="proved", fails="refuted")
    started = time.monotonic()
    code, out, _ = call("check", file, "-j", "1", "--max-seconds", "4")
    assert code == 3
    assert time.monotonic() - started < 12
    assert "proved    own.holds" in out
    assert out.count("not decided in the time for the run (--max-seconds)") == 2


@pytest.fixture
def package(tmp_path):
    """Give a copy of the package, and a function that checks some of it."""
    import routeproof.spec

    links = Path(routeproof.__file__).parent
    home = tmp_path / "copied" / "routeproof"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(links, home, symlinks=False, ignore=ignore)
    for name in ("spec", "checkers", "models", "kernels_ref", "proofs"):
        if not (home / name).exists():
            (where,) = __import__(f"routeproof.{name}", fromlist=["x"]).__path__
            shutil.copytree(where, home / name, ignore=ignore)

    def check(*args):
        command = "from routeproof.checkers.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", command, "check", "--format", "json", *args],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(home.parent)},
        )
        assert done.stderr == ""
        return report(done.stdout)

    return home, check


def test_after_an_edit_only_what_depends_on_it_is_decided(package):
    """A comment changes no statement; a constant those of its model."""
    home, check = package
    chosen = ("ort.gqa.layout.*", "ort.gqa.reach.unfused.*", "ort.gqa.overflow.*")
    first, _ = check(*chosen)
    model = home / "models" / "ort" / "gqa" / "xqa.py"
    text = model.read_text()
    model.write_text("# nothing new\n" + text)
    found, cached = check(*chosen)
    assert found == first
    assert set(cached.values()) == {True}
    model.write_text(text.replace("_CACHE_TILE = 256", "_CACHE_TILE = 512"))
    found, cached = check(*chosen)
    anew = {name for name, was in cached.items() if not was}
    assert anew
    assert all("xqa" in name for name in anew)
    assert any("xqa" not in name for name in cached)
    model.write_text(text)
    assert check(*chosen)[0] == first


def test_nothing_that_kills_a_run_changes_a_verdict(own, start, call, cache):
    """At twenty moments: what is kept is whole, and later runs say what a fresh one says."""
    several = {"holds": "proved", "fails": "refuted", "deep": "proved", "long": "refuted"}
    file = own(**several)
    fresh, _ = report(call("check", file, "--no-cache", "--format", "json")[1])
    moments = random.Random(5)  # noqa: S311 - moments, not secrets
    kept = set()
    for number in range(20):
        run = start("check", file)
        deadline = time.monotonic() + 60  # whatever the machine's speed, entries are being written
        due = number % len(several)
        while len(list(Store(cache).entries("verdicts"))) < due and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.3))
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        entries = list(Store(cache).entries("verdicts"))
        assert all(entry.document for entry in entries)
        kept.add(len(entries))
        if len(entries) == len(several):
            Store(cache).prune(0)
    assert len(kept) > 1
    found, _ = report(call("check", file, "--format", "json")[1])
    assert found == fresh


def test_runs_side_by_side_share_it(own, start, cache):
    """Each says what it would alone, and every entry is whole."""
    file = own(**ALL)
    runs = [start("check", file) for _ in range(3)]
    told = {run.communicate() for run in runs}
    assert len(told) == 1
    assert [entry.document is not None for entry in Store(cache).entries("verdicts")] == [True] * 3


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_prints_and_keeps_what_was_decided(own, start, call, cache):
    """Also behind an obligation that hangs; the next run goes on from there."""
    file = own(hangs="proved", holds="proved", fails="refuted")
    run = start("check", file, "-j", "2")
    deadline = time.monotonic() + 60
    while len(list(Store(cache).entries("verdicts"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)  # what is kept is sent on to the parent next
    os.killpg(run.pid, signal.SIGINT)
    out, _ = run.communicate()
    assert run.returncode == 130
    assert "✓ proved    own.holds" in out
    assert "✓ refuted   own.fails" in out
    assert out.endswith("2 of 3 obligations decided\n")
    _, out, _ = call("check", file, "own.holds", "own.fails", "--format", "json")
    assert set(report(out)[1].values()) == {True}
