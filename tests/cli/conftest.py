"""What tests of the command line share: files of obligations, and ways to run the command."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from routeproof.checkers.cli import main

COMMAND = Path(sys.executable).with_name("routeproof")
HEAD = """\
import functools, os, sys, threading
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import IntDomain, align_up, integer, ite, symbol_int

SOURCE = Source("kernel.cc", "Size", "r1")
heads = symbol_int("heads", IntDomain(1, 32))
length = symbol_int("length", IntDomain(1, 2**31 - 1))
a, b, c = (symbol_int(name, IntDomain(1, None)) for name in "abc")
"""
OBLIGATION = """
@obligation("own.{name}", "{name} [/x]", source=SOURCE, expect="{expect}")
def {name}():
    return {claim}
"""
NESTED = "functools.reduce(lambda made, n: ite(length == n, n, made), range({}), integer(0))"
CLAIMS = {
    "holds": "Claim(heads + length >= 2)",
    "fails": 'Claim(heads * length * length < 2**31, shows={"bytes": heads * length * length})',
    "empty": 'Claim(heads > 0, assuming={"never": heads > 99})',
    "open": "Claim(a * a * a + b * b * b != c * c * c)",
    "breaks": "Claim(1 // 0)",
    "hangs": 'print("ready", flush=True) or threading.Event().wait()',
    "marks": 'open("ran", "w").close() or Claim(heads > 0)',
    "deep": f"Claim(align_up({NESTED.format(1_500)}, 8) <= 1_504)",
    "deeper": f"Claim(align_up({NESTED.format(9_000)}, 8) <= 9_008)",
    "long": 'Claim(a <= 2**9000, shows={"square": a * a})',
    "exits": "sys.exit(0)",
    "stops": "(_ for _ in ()).throw(GeneratorExit)",
    "prints": 'print("hello") or Claim(heads > 0)',
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return a function that writes `own.py`, given each obligation's name and expectation."""
    monkeypatch.chdir(tmp_path)

    def own(*, head=HEAD, **expected):
        text = [
            OBLIGATION.format(name=name, expect=expect, claim=CLAIMS[name])
            for name, expect in expected.items()
        ]
        (tmp_path / "own.py").write_text(head + "".join(text))
        return "own.py"

    return own


def environment(**changes):
    """Return the environment of a pipe: nothing in it asks for colour or for a width."""
    asking = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    kept = {name: value for name, value in os.environ.items() if name not in asking}
    return {**kept, "PYTHONHASHSEED": "random", **changes}


@pytest.fixture
def routeproof():
    """Return a function that runs the installed command and gives the completed process."""

    def routeproof(*args, **changes):
        return subprocess.run(
            [COMMAND, *args],
            capture_output=True,
            text=True,
            check=False,
            env=environment(**changes),
        )

    return routeproof


@pytest.fixture
def start():
    """Return a function that starts the command in a process group of its own."""

    def start(*args):
        return subprocess.Popen(
            [COMMAND, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )

    return start


@pytest.fixture
def call(monkeypatch, capsys):
    """Return a function that runs the command in this process: status, output, errors."""

    def call(*args, given=b""):
        monkeypatch.setattr(sys, "argv", ["routeproof", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call
