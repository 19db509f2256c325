"""`check`: exit statuses, reports that are whole or absent, and bytes that repeat."""

import json
import os
import re
import signal
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        ({"holds": "proved", "fails": "refuted"}, 0),
        ({"holds": "proved", "fails": "proved"}, 1),
        ({"holds": "refuted"}, 1),
        ({"empty": "proved"}, 1),
        ({"holds": "proved", "open": "proved"}, 3),
        ({"open": "refuted", "fails": "proved"}, 1),
        ({"holds": "proved", "breaks": "proved"}, 2),
    ],
)
def test_the_exit_status_says_how_the_run_went(own, call, expected, status):
    """0 as expected, 1 a surprise, 2 a malformed statement, 3 an unknown and nothing worse."""
    code, out, err = call("check", own(**expected), "--rlimit", "200000", "-j", "1")
    assert code == status
    assert err == ""
    assert re.search(rf"^{len(expected)} obligations?: ", out, re.MULTILINE)
    if status == 2:
        assert "ZeroDivisionError" in out
        assert "1 proved" in out


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["own.nothing"], "unknown obligation 'own.nothing'"),
        (["no_such_file.py"], "no_such_file.py: no such file"),
        (["--engine", "magic"], "Invalid value for '--engine'"),
        (["--rlimit", "0"], "Invalid value for '--rlimit'"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
        (["--jobs", "0"], "Invalid value for '-j'"),
        (["--nonsense"], "No such option"),
        (["--output", "nowhere/report.json"], "cannot write nowhere/report.json"),
        (["--output", "jsno=report"], "unknown format 'jsno'; did you mean 'json'?"),
        (["--output", "json=."], "cannot write ."),
        (["--output", "one", "--output", "json=./one"], "one is given twice"),
        (["--output", "own.py"], "a report is no .py file"),
        *(
            (["--timeout", word], "Invalid value for '--timeout'")
            for word in ("nan", "inf", "1e300")
        ),
        *((["--memory", word], "Invalid value for '--memory'") for word in ("0", "99999999999")),
        (["--rlimit", "9999999999"], "Invalid value for '--rlimit'"),
        (["--seed", "9999999999"], "Invalid value for '--seed'"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(own, call, tmp_path, args, problem):
    """Status 2, one clear line, and no obligation was started."""
    path = own(marks="proved")
    code, out, err = call("check", path, *args)
    assert (code, out) == (2, "")
    assert problem in err
    assert "Traceback" not in err
    assert not (tmp_path / "ran").exists()


def test_a_file_with_an_error_is_bad_input(own, call):
    """With its line."""
    code, out, err = call("check", own(head="this is ) not Python\n"))
    assert (code, out) == (2, "")
    assert err.startswith("routeproof: own.py:1: SyntaxError")


def test_a_file_that_exits_does_not_pass(own, call):
    """Its own exit status is not that of the check."""
    code, _, err = call("check", own(head="import sys\nsys.exit(0)\n"))
    assert code == 2
    assert "own.py:2: SystemExit" in err


@pytest.mark.parametrize("name", ["exits", "stops"])
def test_a_statement_that_exits_does_not_pass(own, call, tmp_path, name):
    """Whichever command builds it."""
    path = own(**{name: "proved"})
    saved = {"schema_version": 1, "obligation": f"own.{name}", "state": {}}
    (tmp_path / "saved.json").write_text(json.dumps(saved))
    for args in (["check", path], ["explain", f"own.{name}", path], ["replay", "saved.json", path]):
        code, out, err = call(*args)
        assert code == 2
        assert re.search(r"own\.py:\d+: (SystemExit|GeneratorExit)", out + err)


def test_deep_terms_are_decided_or_unknown(own, call):
    """Nested a thousand times they are terms like others; at some depth nobody can say."""
    code, out, _ = call("check", own(deep="proved", deeper="proved"))
    assert "proved    own.deep " in out
    assert code == 0 or "nested too deeply" in out


def test_a_file_named_twice_is_one_file(own, call):
    """Its obligations are not their own duplicates."""
    code, out, _ = call("check", own(holds="proved"), "./own.py")
    assert code == 0
    assert "1 obligation:" in out


def test_a_locale_without_the_marks_is_no_error(own, routeproof):
    """They are replaced, and the verdicts are still read."""
    done = routeproof("check", own(holds="proved"), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "? proved    own.holds" in done.stdout


def test_integers_of_any_length_are_written(own, call):
    """In the text and in JSON, beyond what Python writes by default."""
    path = own(long="refuted")
    code, out, _ = call("check", path, "--format", "json")
    (one,) = json.loads(out, parse_int=str)["obligations"]
    assert code == 0
    assert len(one["counterexample"]["shows"]["square"]) > 5_000
    code, out, _ = call("explain", "own.long", path)
    assert code == 0
    assert len(out) > 5_000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_report_that_does_not_fit_is_named(own, call):
    """With the file, not only what the system says."""
    code, _, err = call("check", own(holds="proved"), "--output", "text=/dev/full")
    assert code == 2
    assert err.startswith("routeproof: /dev/full: ")


def test_a_linked_report_stays_a_link(own, call, tmp_path):
    """What it points to is replaced."""
    (tmp_path / "there.json").write_text("old")
    (tmp_path / "report.json").symlink_to("there.json")
    call("check", own(holds="proved"), "--output", "report.json")
    assert (tmp_path / "report.json").is_symlink()
    assert json.loads((tmp_path / "there.json").read_text())["summary"]["total"] == 1


def test_reports_are_written_beside_the_text(own, call, tmp_path):
    """One per option, in the format of the ending or of the prefix; nothing else is left."""
    options = ("--output", "one.json", "--output", "text=two.log", "--output", "json=three")
    code, out, _ = call("check", own(holds="proved", fails="refuted"), *options)
    assert code == 0
    written = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert written == {"own.py", "one.json", "two.log", "three"}
    assert (tmp_path / "one.json").read_text() == (tmp_path / "three").read_text()
    assert json.loads((tmp_path / "one.json").read_text())["summary"]["total"] == 2
    assert (tmp_path / "two.log").read_text() == out


def test_a_report_replaces_the_old_one_only_when_it_is_whole(own, call, tmp_path):
    """A file that cannot be read leaves the last good report."""
    report, broken = tmp_path / "report.json", tmp_path / "broken.py"
    report.write_text("old")
    linked = tmp_path / "linked.json"
    linked.hardlink_to(report)
    broken.write_text("def broken(:\n")
    assert call("check", broken, "--output", report)[0] == 2
    assert report.read_text() == "old"
    assert call("check", own(fails="proved"), "--output", report)[0] == 1
    assert json.loads(report.read_text())["summary"]["exit_status"] == 1
    assert linked.read_text() == "old"  # another file took its place


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="has no such device")  # noqa: PTH110
def test_a_device_is_written_not_replaced(own, call):
    """A report may go nowhere."""
    assert call("check", own(holds="proved"), "--output", "json=/dev/null")[0] == 0
    assert not os.path.isfile("/dev/null")  # noqa: PTH113


def test_json_is_all_of_standard_output(own, routeproof):
    """Whatever the obligations print themselves; verdicts and counterexamples are in it."""
    path = own(prints="proved", fails="refuted", empty="proved")
    done = routeproof("check", path, "--format=json")
    assert done.returncode == 1
    document = json.loads(done.stdout, parse_constant=pytest.fail)
    prints, fails, empty = document["obligations"]
    assert [one["verdict"] for one in (prints, fails, empty)] == ["proved", "refuted", "vacuous"]
    assert fails["counterexample"]["state"] == {"heads": 1, "length": 46341}
    assert fails["counterexample"]["shows"] == {"bytes": 46341**2}
    assert fails["as_expected"]
    assert not empty["as_expected"]
    assert fails["location"].endswith("own.py:15")
    assert (fails["source"], fails["revision"]) == ("kernel.cc, Size", "r1")
    assert done.stderr == "hello\n"


def test_equal_runs_give_equal_bytes_without_escape_codes(own, routeproof):
    """Into a pipe, with any number of workers and any seed of Python's hashes."""
    path = own(holds="proved", fails="refuted", empty="proved", open="proved")
    runs = [routeproof("check", path, "--rlimit", "200000", "-j", jobs) for jobs in ("1", "4")]
    assert runs[0].stdout == runs[1].stdout
    assert "\x1b" not in runs[0].stdout
    assert runs[0].stderr == ""
    assert "open [/x]" in runs[0].stdout


def test_colour_is_asked_for_and_can_be_refused(own, routeproof):
    """NO_COLOR wins over FORCE_COLOR."""
    path, colours = own(holds="proved"), re.compile(r"\x1b\[[0-9;]*3[0-7]")
    assert colours.search(routeproof("check", path, FORCE_COLOR="1").stdout)
    refused = routeproof("check", path, FORCE_COLOR="1", NO_COLOR="1")
    assert not colours.search(refused.stdout)


def test_globs_choose_among_the_obligations_of_a_file(own, call):
    """In the order of the file."""
    path = own(holds="proved", fails="refuted", breaks="proved")
    code, out, _ = call("check", path, "own.f*", "own.holds")
    assert code == 0
    assert re.findall(r"own\.\w+", out) == ["own.holds", "own.fails"]


def test_sampling_leaves_a_proof_unknown(own, call):
    """It finds what fails and proves nothing."""
    path = own(holds="proved", fails="refuted")
    assert call("check", path, "own.fails", "--engine", "sampling")[0] == 0
    code, out, _ = call("check", path, "own.holds", "--engine", "sampling")
    assert code == 3
    assert "proves nothing" in out


def test_the_second_solver_is_named(own, call):
    """Beside each proof."""
    code, out, _ = call("check", own(holds="proved"), "--second-solver", "--format", "json")
    assert code == 0
    (one,) = json.loads(out)["obligations"]
    assert re.fullmatch(r"cvc5 \S+ agrees", one["assurance"]["second_solver"])


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_command_ends_its_workers(own, start, number):
    """Only the command is signalled; the pipes close, so no process is left."""
    process = start("check", own(hangs="proved"), "-j", "1")
    assert process.stderr.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    "args", [["list"], ["check"], ["explain", "RP201"], ["list", "--help"], ["--help"]]
)
def test_a_closed_output_has_its_own_status(own, start, args):
    """As for other programs in a pipe that nobody reads to its end."""
    path = own(holds="proved")
    with start(*args, *([path] if args[0] in ("list", "check") else [])) as process:
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == ""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("form", ["text", "json"])
def test_an_interrupt_ends_everything(own, start, tmp_path, form):
    """Status 130, one line of errors, no half report; the pipes close, so no process is left."""
    (tmp_path / "report.json").write_text("old")
    path = own(holds="proved", hangs="proved")
    process = start("check", path, "--format", form, "--output", "report.json", "-j", "2")
    assert process.stderr.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert err.strip() == "routeproof: interrupted"
    assert (tmp_path / "report.json").read_text() == "old"
    assert "as expected" not in out
    if form == "json":
        assert out == ""
