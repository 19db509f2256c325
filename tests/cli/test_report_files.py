"""Files of reports: none that a command reads is one that it writes; UTF-8 in any locale."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def parts(own, call):
    """Write two parts of a run, a whole report and a baseline; return the file of obligations."""
    file = own(fails="proved", holds="proved")
    for index in (1, 2):
        call("check", file, "--shard", f"{index}/2", "--output", f"part{index}.json")
    call("check", file, "--output", "report.json")
    call("baseline", "report.json", "--reason", "known", "--expires", "2099-01-01")
    return file


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["merge", "part1.json", "part2.json"], "part1.json"),
        (["merge", "part1.json", "part2.json"], "text=./part2.json"),
        (["merge", "part1.json", "linked.json"], "part2.json"),
        (["merge", "part1.json", "part2.json"], "routeproof-baseline.json"),
        (["check", "own.py"], "junit=routeproof-baseline.json"),
    ],
)
def test_what_is_read_is_not_written(call, tmp_path, command, output):
    """A part or a baseline would be lost, and the next run would fail or pass for it."""
    (tmp_path / "linked.json").symlink_to("part2.json")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    baseline = ("--baseline", "routeproof-baseline.json")
    code, out, err = call(*command, *baseline, "--output", output)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "is read by the same command" in err
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.json")} == before


def test_a_report_is_no_baseline(parts, call):
    """Nor is a baseline a report; neither is changed by the attempt."""
    before = Path("report.json").read_bytes()
    reason = ("--reason", "known", "--expires", "2099-01-01")
    for args in (
        ("baseline", "report.json", *reason, "--file", "report.json"),
        ("check", parts, "--baseline", "report.json"),
        ("baseline", "routeproof-baseline.json", *reason),
        ("merge", "routeproof-baseline.json"),
    ):
        code, out, err = call(*args)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert Path("report.json").read_bytes() == before


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    "changed", [["--seed", "1"], ["--timeout", "59"], ["--baseline", "routeproof-baseline.json"]]
)
def test_parts_of_other_options_are_no_run(call, changed):
    """No run would have written their whole."""
    call("check", "own.py", "--shard", "2/2", "--output", "other.json", *changed)
    code, out, err = call("merge", "part1.json", "other.json")
    assert (code, out) == (2, "")
    assert "other.json: part of another run than part1.json" in err
    call("check", "own.py", "--shard", "1/2", "--output", "one.json", *changed)
    assert call("merge", "one.json", "other.json") == call("check", "own.py", *changed)


def test_an_empty_number_of_a_part_is_refused(own, call):
    """A variable that is not set would otherwise run everything in each job."""
    code, out, err = call("check", own(marks="proved"), "--shard", "")
    assert (code, out) == (2, "")
    assert "expected I/N" in err
    assert not Path("ran").exists()


def test_more_parts_than_obligations(own, call):
    """Those without any pass, and all together are the whole."""
    file = own(fails="proved")
    ended = [
        call("check", file, "--shard", f"{index}/3", "--output", f"part{index}.json")[0]
        for index in (1, 2, 3)
    ]
    assert ended == [1, 0, 0]
    assert call("merge", "part3.json", "part2.json", "part1.json") == call("check", file)


@pytest.mark.parametrize("locale", ["ascii", "cp1252"])
def test_reports_for_programs_are_utf_8_in_any_locale(own, routeproof, locale):
    """The XML says that it is."""
    file = own(fails="proved")
    for form in ("junit", "github"):
        done = routeproof(
            "check", file, "--format", form, "--output", f"{form}=report", PYTHONIOENCODING=locale
        )
        assert "\N{BALLOT X} refuted" in done.stdout
        assert done.stdout == Path("report").read_text(encoding="utf-8")


def test_a_summary_that_cannot_be_written_costs_no_report(own, call, tmp_path, monkeypatch):
    """It is told, after the reports."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere/summary.md"))
    args = ("--format", "github", "--output", "report.json")
    code, _, err = call("check", own(fails="proved"), *args)
    assert code == 2
    assert "summary.md: No such file or directory" in err
    assert Path("report.json").exists()


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes")
@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "github", "markdown"])
def test_a_file_whose_name_is_no_text_is_reported(own, call, form):
    """As well as it can be shown."""
    name = os.fsdecode(b"\xff.py")
    Path(own(fails="proved")).rename(name)
    assert call("check", name, "--output", f"{form}=report")[0] == 1
    assert "own.fails" in Path("report").read_text(encoding="utf-8")
    assert call("check", name, "--format", form)[0] == 1


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("reason", ["two\nlines", "\x1b[31mred"])
def test_a_reason_is_one_printable_line(call, reason):
    """It is shown in reports of every format."""
    args = ("--reason", reason, "--expires", "2099-01-01", "--file", "other.json")
    code, out, err = call("baseline", "report.json", *args)
    assert (code, out) == (2, "")
    assert "one printable line" in err
    assert not Path("other.json").exists()
