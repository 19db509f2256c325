"""Reports in files, runs in parts, and accepted surprises, on the command line."""

import json
from pathlib import Path

import pytest

ALL = {"holds": "proved", "fails": "proved", "empty": "proved", "marks": "proved"}
FORMS = ("text", "json", "junit", "sarif", "github", "markdown")


def test_several_reports_of_one_run(own, call):
    """Each in the format that the option or the file's ending names."""
    names = ("a.txt", "a.json", "a.xml", "a.sarif", "a.md", "github=a.log")
    options = [part for name in names for part in ("--output", name)]
    assert call("check", own(**ALL), *options)[0] == 1
    starts = ("✓ proved", "{", "<?xml", "{", "## routeproof", "::error file=own.py,line=")
    for name, start in zip(names, starts, strict=True):
        assert Path(name.rpartition("=")[2]).read_text().startswith(start)


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_a_run_merge_to_the_whole(own, call, form):
    """In every format, byte for byte, with the same exit status; from the cache times are gone."""
    file = own(**ALL)
    call("check", file)
    whole = timeless(call("check", file, "--format", form))
    for index in (1, 2, 3):
        call("check", file, "--shard", f"{index}/3", "--output", f"part{index}.json")
    parts = ("part3.json", "part1.json", "part2.json")
    assert timeless(call("merge", *parts, "--format", form)) == whole


def timeless(told):
    """Take the times out of an outcome."""
    import re

    code, out, err = told
    out = re.sub(r'"seconds": [0-9.]+', '"seconds": 0', out)
    return code, re.sub(r' time="[0-9.]+"', "", out), err


def test_a_merged_file_is_the_whole_too(own, call):
    """What `--output` writes; and a part is missed."""
    file = own(**ALL)
    for index in (1, 2):
        call("check", file, "--shard", f"{index}/2", "--output", f"part{index}.json")
    assert call("merge", "part1.json", "part2.json", "--output", "whole.json")[0] == 1
    data = json.loads(Path("whole.json").read_text())
    assert data["shard"] is None
    assert [one["id"] for one in data["obligations"]] == [f"own.{name}" for name in ALL]
    code, out, err = call("merge", "part1.json", "--output", "whole.json")
    assert (code, out) == (2, "")
    assert "part 2 of 2 is missing" in err


@pytest.mark.parametrize("change", ["own.py", "sizes.py"])
def test_parts_of_other_contents_are_no_whole(own, routeproof, change):
    """The ids are the same, but not what they claim: in the file, or in one beside it."""
    Path("sizes.py").write_text("MOST = 2\n")
    file = own(**ALL)
    Path(file).write_text("from sizes import MOST\n" + Path(file).read_text())
    routeproof("check", file, "--shard", "1/2", "--output", "part1.json")
    Path(change).write_text(Path(change).read_text() + "MORE = 3\n")
    routeproof("check", file, "--shard", "2/2", "--output", "part2.json")
    done = routeproof("merge", "part1.json", "part2.json")
    assert done.returncode == 2
    assert "part of another run than part1.json: other obligations, files" in done.stderr


def test_accepted_surprises_pass(own, call):
    """For all formats, until they are repaired; without the baseline they fail."""
    file = own(fails="proved", holds="proved")
    assert call("check", file, "--output", "report.json")[0] == 1
    code, out, _ = call("baseline", "report.json", "--reason", "known", "--expires", "2099-01-01")
    assert (code, out) == (0, "routeproof-baseline.json: 1 added, 0 kept, 0 removed\n")
    accepting = ("--baseline", "routeproof-baseline.json")
    code, out, err = call("check", file, *accepting)
    assert (code, err) == (0, "")
    assert "~ refuted   own.fails" in out
    assert "accepted until 2099-01-01: known" in out
    assert out.endswith("every verdict is as expected or accepted, 1 accepted\n")
    assert call("check", file)[0] == 1
    assert call("check", own(fails="refuted", holds="proved"), *accepting)[2] == (
        "routeproof: baseline: own.fails is as expected and need not be accepted\n"
    )


def test_a_merge_takes_a_baseline_too(own, call):
    """Parts may have been run without it."""
    file = own(fails="proved", holds="proved")
    for index in (1, 2):
        call("check", file, "--shard", f"{index}/2", "--output", f"part{index}.json")
    call("merge", "part1.json", "part2.json", "--output", "report.json")
    call("baseline", "report.json", "--reason", "known", "--expires", "2099-01-01")
    parts = ("merge", "part1.json", "part2.json")
    assert call(*parts)[0] == 1
    assert call(*parts, "--baseline", "routeproof-baseline.json")[0] == 0


def test_github_gets_annotations_and_a_step_summary(own, call, tmp_path, monkeypatch):
    """The summary is added to what other steps have said."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    code, out, _ = call("check", own(**ALL), "--format", "github")
    assert code == 1
    assert out.count("::error file=own.py,line=") == 2
    assert summary.read_text().startswith("before\n## routeproof\n")
    call("check", own(**ALL))
    assert summary.read_text().count("## routeproof") == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["check", "--shard", "3/2"], "--shard 3/2: expected I/N"),
        (["check", "--baseline", "none.json"], "none.json: No such file"),
        (["check", "--output", "xlm=a"], "unknown format 'xlm'"),
        (["check", "--format", "xml"], "'xml' is not one of"),
        (["check", "--max-seconds", "0"], "Invalid value for '--max-seconds'"),
        (["merge"], "Missing argument"),
        (["merge", "none.json"], "none.json: No such file"),
        (["merge", "own.py"], "own.py"),
        (["baseline", "own.py"], "Missing option '--reason'"),
        (["baseline", "none.json", "--reason", "r", "--expires", "2099-01-01"], "none.json"),
        (["baseline", "none.json", "--reason", "r", "--expires", "x"], "'x' is no date"),
    ],
)
def test_bad_usage_is_one_line(own, call, args, problem):
    """Status 2, and nothing has run."""
    file = own(marks="proved")
    code, out, err = call(*args, *([file] if args[0] == "check" else []))
    assert code == 2
    assert out == ""
    assert problem in err
    assert not Path("ran").exists()
