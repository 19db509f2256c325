"""Obligations as tests, in a project that did no more than install the package."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """\
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import IntDomain, symbol_int

length = symbol_int("length", IntDomain(1, 2**31 - 1))
a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
"""
TWO = (
    HEAD
    + """

@obligation("own.size.positive", "a size is positive")
def positive():
    return Claim(length >= 1)


@obligation("own.size.fits", "a size fits", expect="proved")
def fits():
    return Claim(length * length < 2**31, shows={"bytes": length * length})
"""
)
OPEN = (
    HEAD
    + """

@obligation("own.open", "nobody knows quickly")
def fermat():
    return Claim(a * a * a + b * b * b != c * c * c)
"""
)


@pytest.fixture
def run(pytester):
    """Return a function that runs pytest on files, given by path, in a process of its own."""

    def run(files, *args):
        for name, text in files.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *args)

    return run


def lines_of(outcome):
    """Return what was printed, without the rests of lines."""
    return [line.rstrip() for line in outcome.outlines]


@pytest.mark.parametrize("name", ["tests/test_sizes.py", "proofs/sizes.py", "proofs/deep/er/a.py"])
def test_each_obligation_is_a_test(run, name):
    """A refuted one fails with what `check` prints of it, and nothing else."""
    outcome = run({name: TWO}, "-v")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        [
            f"{name}::own.size.positive PASSED*",
            f"{name}::own.size.fits FAILED*",
            "*refuted   own.size.fits a size fits",
            "    expected proved",
            "      input   length  46,341",
            "      gives   bytes   2,147,488,281",
            "      breaks  goal",
        ]
    )
    assert "Traceback" not in outcome.stdout.str()


@pytest.mark.parametrize(
    ("args", "outcome"),
    [
        (["-k", "positive"], {"passed": 1, "deselected": 2}),
        (["-k", "fits or positive"], {"passed": 1, "failed": 1, "deselected": 1}),
        (["-m", "obligation"], {"passed": 1, "failed": 1, "deselected": 1}),
        (["-m", "not obligation"], {"passed": 1, "deselected": 2}),
        (["test_a.py::own.size.positive"], {"passed": 1}),
        (["-n", "2"], {"passed": 2, "failed": 1}),
        (["-x"], {"passed": 1, "failed": 1}),
    ],
)
def test_pytest_chooses_as_ever(run, args, outcome):
    """By keyword, marker and id, side by side, or up to the first failure."""
    run({"test_a.py": TWO + "\n\ndef test_plain():\n    pass\n"}, *args).assert_outcomes(**outcome)


def test_durations_name_obligations(run):
    """Deciding is the test's call."""
    outcome = run({"test_a.py": TWO}, "--durations=0", "-vv")
    outcome.stdout.fnmatch_lines(["*s call * test_a.py::own.size.positive"])


def test_unknown_fails_unless_it_is_allowed(run):
    """And then it is seen, and is no success."""
    short = ("--routeproof-timeout", "0.05", "--routeproof-no-cache")
    outcome = run({"test_a.py": OPEN}, *short)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*expected proved: *"])
    outcome = run({"test_a.py": OPEN}, *short, "--allow-unknown", "-rx")
    outcome.assert_outcomes(xfailed=1)
    outcome.stdout.fnmatch_lines(["XFAIL test_a.py::own.open - unknown: *"])
    run({"test_a.py": OPEN}, *short, "--allow-unknown", "--runxfail").assert_outcomes(failed=1)


@pytest.mark.parametrize("body", ["Claim(1 // 0)", "None", "Claim(length > 5, assuming=3)"])
def test_what_is_no_statement_always_fails(run, body):
    """`--allow-unknown` is not for mistakes."""
    text = f'{HEAD}\n@obligation("own.bad", "bad")\ndef bad():\n    return {body}\n'
    outcome = run({"test_a.py": text}, "--allow-unknown")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["! malformed own.bad", "*test_a.py:*"])


def test_assumptions_that_admit_nothing_fail(run):
    """Vacuous is no success, whatever is expected."""
    claim = 'Claim(length > 0, assuming={"never": length < 0})'
    text = f'{HEAD}\n@obligation("own.empty", "empty")\ndef empty():\n    return {claim}\n'
    outcome = run({"test_a.py": text})
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*vacuous   own.empty*"])


EACH = (
    HEAD
    + """

@obligation("own.heads.{heads}", "{heads} heads", each={"heads": (1, 2, 8)})
def heads(heads):
    return Claim(length * heads < 2**33)
"""
)
MARKED = (
    HEAD
    + """
import pytest


@obligation("own.heads", "some heads")
@pytest.mark.parametrize("heads", [1, pytest.param(8, id="eight")])
def heads(heads):
    return Claim(length * heads < 2**33)
"""
)


def test_parameters_make_a_test_each(run):
    """Those of the language, with their own ids, and those of pytest."""
    outcome = run({"test_a.py": EACH, "test_b.py": MARKED}, "-v")
    outcome.stdout.fnmatch_lines(
        [
            "test_a.py::own.heads.1 PASSED*",
            "test_a.py::own.heads.2 PASSED*",
            "test_a.py::own.heads.8 FAILED*",
            "test_b.py::own.heads?1? PASSED*",
            "test_b.py::own.heads?eight? FAILED*",
        ]
    )
    outcome.assert_outcomes(passed=3, failed=2)


def test_a_statement_takes_fixtures_and_may_skip(run):
    """It is a test function like any other."""
    text = (
        HEAD
        + """
import pytest


@pytest.fixture
def most():
    return 2**31 - 1


@obligation("own.most", "the most")
def most_of_all(most):
    return Claim(length <= most)


@obligation("own.later", "later")
def later():
    pytest.skip("not on this platform")


@obligation("own.slow", "slow")
@pytest.mark.skip(reason="slow")
def slow():
    return Claim(length > 5)
"""
    )
    run({"test_a.py": text}).assert_outcomes(passed=1, skipped=2)


def test_obligations_from_a_loop_are_all_there(run):
    """Although one name holds but the last of them."""
    text = (
        HEAD
        + """
for most in (2**31 - 1, 5):

    @obligation(f"own.most.{most}", "at most")
    def limit(most=most):
        return Claim(length <= most)
"""
    )
    run({"test_a.py": text, "proofs/b.py": text}).assert_outcomes(passed=2, failed=2)


def test_statements_without_a_name_are_tests_too(run):
    """A lambda, say."""
    text = (
        HEAD
        + """
for most in (2**31 - 1, 5):
    obligation(f"own.most.{most}", "at most")(lambda most=most: Claim(length <= most))
"""
    )
    run({"test_a.py": text}).assert_outcomes(passed=1, failed=1)


def test_two_of_one_id_are_refused(run):
    """Neither may hide the other."""
    text = TWO + TWO.replace(HEAD, "").replace("own.size.positive", "own.size.other")
    outcome = run({"test_a.py": text})
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines(["*id 'own.size.fits' is taken by *test_a.py:*"])


def test_collecting_decides_nothing(run):
    """Listing is quick, whatever the statements cost."""
    text = f'{HEAD}\n@obligation("own.loud", "loud")\ndef loud():\n    open("ran", "w").close()\n'
    outcome = run({"test_a.py": text}, "--collect-only", "-q")
    outcome.stdout.fnmatch_lines(["test_a.py::own.loud"])


MODEL = """\
from routeproof.spec.terms import Int, IntDomain, ceil_div, symbol_int

rows = symbol_int("rows", IntDomain(1, 2048))


def scratch(rows: Int) -> Int:
    splits = 132 // ceil_div(rows, 64)
    return 4 * 128 * rows * splits  # bytes, kernel.cu: Scratch()
"""
FOREIGN = {
    "csrc/kernel.cu": "size_t Scratch(int n) { return 512ul * n * (132 / ((n + 63) / 64)); }\n",
    "csrc/kernel_model.py": MODEL,
    "tests/test_scratch.py": """\
from routeproof.spec.obligation import Claim, obligation


@obligation("scratch.bound", "64 rows for each of 132 splits are enough")
def bound(models):
    kernel = models("csrc/kernel_model.py")
    return Claim(kernel.scratch(kernel.rows) <= 4 * 128 * 64 * 132)


@obligation("scratch.reserve", "the largest batch needs the most", expect="refuted")
def reserve(models):
    kernel = models("csrc/kernel_model.py")
    return Claim(kernel.scratch(kernel.rows) <= kernel.scratch(2048))


def test_a_shipped_function(models):
    run = {"batch_size": 1, "sequence_length": 5, "total_sequence_length": 9}
    run |= {"total_sequence_length_on_cpu": True, "has_past": True, "past_sequence_length": 4}
    assert models("ort.gqa.classifier")(run)["out"]["is_subsequent_prompt"]
""",
}


def test_a_model_lives_next_to_the_kernel(run):
    """Ten lines, found by path from wherever the tests are."""
    run(FOREIGN).assert_outcomes(passed=3)
    outcome = run({"csrc/kernel_model.py": MODEL.replace("132 //", "264 //")})
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["*refuted   scratch.bound*", "      input   rows  *"])


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ('models("csrc/none.py")', "*csrc/none.py: no such file*"),
        ('models("ort.gqa.clasifier")', "*did you mean 'ort.gqa.classifier'*"),
        ('models("ort.gqa.classifier")({})', "*field 'batch_size' is missing*"),
    ],
)
def test_a_model_that_is_not_there_is_told_in_a_line(run, call, problem):
    """Without the tool's own frames."""
    outcome = run({"test_a.py": f"def test_it(models):\n    {call}\n"})
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines([problem])
    assert "checkers/" not in outcome.stdout.str()


def test_verdicts_are_kept_as_check_keeps_them(run, cache):
    """One cache for both; a project without obligations has none made."""
    run({"test_plain.py": "def test_plain():\n    pass\n"}).assert_outcomes(passed=1)
    assert not list(cache.rglob("*.json"))
    run({"test_a.py": TWO}, "--routeproof-no-cache", "test_a.py")
    assert not list(cache.rglob("*.json"))
    run({}, "test_a.py")
    kept = {path: path.stat().st_ino for path in cache.rglob("*.json")}
    assert len(kept) == 2
    run({}, "test_a.py").assert_outcomes(passed=1, failed=1)
    assert {path: path.stat().st_ino for path in cache.rglob("*.json")} == kept
    command = [Path(sys.executable).with_name("routeproof"), "cache", "list"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in told.splitlines()] == ["refuted", "proved"]


STRANGE = """\
import unittest.mock


class Eager:
    def __getattr__(self, name):
        raise RuntimeError(name)


eager, mock, pairs = Eager(), unittest.mock.MagicMock(), (Eager(), unittest.mock.MagicMock())


class TestOwn:
    def test_inside(self):
        pass


def test_outside():
    pass
"""


def test_other_tests_are_left_alone(run):
    """Objects that answer to any attribute, classes, and modules that are named as proofs."""
    files = {
        "test_strange.py": STRANGE,
        "pkg/proofs/__init__.py": "",
        "pkg/proofs/helpers.py": "VALUE = 1\n",
    }
    run(files, "-p", "xdist").assert_outcomes(passed=2)


def test_a_file_of_proofs_imports_what_lies_beside_it(run):
    """As `check` has it."""
    proof = TWO.replace(
        "length = symbol_int", "from kernel_model import rows\n\nlength = symbol_int"
    )
    run({"csrc/proofs/kernel_model.py": MODEL, "csrc/proofs/a.py": proof}).assert_outcomes(
        passed=1, failed=1
    )


@pytest.mark.parametrize("folder", ["claims", "./claims", "claims/"])
def test_folders_of_proofs_have_the_names_that_are_asked_for(run, folder):
    """However they are spelled."""
    run({"claims/a.py": TWO}, "-o", f"routeproof_folders={folder}").assert_outcomes(
        passed=1, failed=1
    )


def test_a_folder_of_proofs_is_a_name_and_no_path(run):
    """It would match nothing, and say nothing."""
    outcome = run({"a/claims/a.py": TWO}, "-o", "routeproof_folders=a/claims")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*routeproof_folders: 'a/claims' is no name of a folder*"])


def test_pytest_may_be_run_inside_a_folder_of_proofs(run, pytester):
    """Its root is then one of them."""
    run({"proofs/a.py": TWO, "proofs/pytest.ini": "[pytest]\n"})
    pytester.chdir()
    outcome = pytester.runpytest_subprocess("--rootdir", "proofs", "proofs")
    outcome.assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_every_import_mode_works(run, mode):
    """Files of proofs that are called after what they are about hide nothing."""
    files = {
        "attention.py": "SIZE = 7\n",
        "proofs/attention.py": TWO,
        "tests/test_attention.py": "import attention\n\ndef test_it():\n    attention.SIZE\n",
    }
    args = ("--import-mode", mode, "-o", "pythonpath=.")
    run(files, *args).assert_outcomes(passed=2, failed=1)


def test_pytest_starts_without_what_is_heavy(pytester):
    """Projects that have the package installed pay nothing for it."""
    heavy = ("z3", "sympy", "numpy", "rich", "routeproof.spec.terms", "routeproof.checkers.decide")
    text = f"""\
import sys

def test_it():
    assert not [name for name in {heavy} if name in sys.modules]
"""
    pytester.makepyfile(text)
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


@pytest.mark.parametrize("value", ["0", "nan", "-1", "x", "1e9"])
def test_a_timeout_is_a_number_of_seconds(pytester, value):
    """As for `check`."""
    outcome = pytester.runpytest_subprocess("--routeproof-timeout", value)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"*'{value}' is not between 0.01 and 4000000 seconds*"])
