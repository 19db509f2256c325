"""The `doctor` command: what works here, what does not, and what to do about it.

Every part is tried, not only looked for; a part that raises is broken, and the others are told.
"""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from routeproof import __version__
from routeproof.spec.errors import RouteproofError

from .report import SCHEMA_VERSION, Output, dump

__all__ = ["Finding", "examine", "run_doctor"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A part, whether it works, what is known of it, and what to do if it does not."""

    part: str
    state: Literal["ok", "absent", "broken"]
    detail: str
    advice: str = ""
    required: bool = False


def run_doctor(form: str) -> int:
    """Print the findings; 1 if a required part does not work."""
    findings = list(examine())
    if form == "json":
        document = {"schema_version": SCHEMA_VERSION, "parts": [asdict(one) for one in findings]}
        print(dump(document), end="")  # noqa: T201 - the report is the output
    else:
        _print(Output(soft_wrap=True, highlight=False, emoji=False), findings)
    return 1 if any(one.required and one.state != "ok" for one in findings) else 0


def _print(console: Console, findings: list[Finding]) -> None:
    marks = {"ok": "[green]✓[/]", "absent": "[dim]-[/]", "broken": "[red]✗[/]"}
    width = max(len(one.part) for one in findings)
    for one in findings:
        console.print(f"{marks[one.state]} {one.part:{width}}  {escape(one.detail)}")
        if one.advice:
            console.print(f"  {'':{width}}  [dim]{escape(one.advice)}[/dim]")
    broken = [one.part for one in findings if one.required and one.state != "ok"]
    console.print(
        f"\n[red]does not work: {', '.join(broken)}[/red]"
        if broken
        else "\n[green]all that is required works[/green]"
    )


_SOLVE_AGAIN = "pip install --force-reinstall z3-solver"


def examine() -> Iterator[Finding]:
    """Every part in turn; none stops the next."""
    for part, look, required, advice in (
        ("python", _python, True, ""),
        ("routeproof", _package, True, "pip install --force-reinstall routeproof"),
        ("z3", _z3, True, _SOLVE_AGAIN),
        ("numpy", _version_of("numpy"), True, "pip install --force-reinstall numpy"),
        ("sympy", _version_of("sympy"), True, "pip install --force-reinstall sympy"),
        ("cvc5", _cvc5, False, "for --second-solver: pip install cvc5"),
        (
            "matplotlib",
            _version_of("matplotlib"),
            False,
            "for bound --plot: pip install matplotlib",
        ),
        ("pytest", _pytest, False, "for obligations as tests: pip install pytest"),
        (
            "pytest-xdist",
            _version_of("xdist", "pytest-xdist"),
            False,
            "for pytest -n: pip install pytest-xdist",
        ),
        ("gpu", _gpu, False, "nothing that the tool does needs one"),
        ("cache", _cache, False, "set ROUTEPROOF_CACHE_DIR to a folder that can be written"),
        ("terminal", _terminal, False, ""),
        ("machine", _machine, False, ""),
    ):
        yield _examined(part, look, required, advice)


def _examined(part: str, look: Callable[[], str], required: bool, advice: str) -> Finding:
    # What a library prints is not the report; the terminal is asked about the real output.
    aside = nullcontext() if look is _terminal else redirect_stdout(sys.stderr)
    try:
        with aside:
            return Finding(part, "ok", look(), required=required)
    except ModuleNotFoundError as error:
        return Finding(part, "absent", str(error), advice, required)
    except _AbsentError as error:
        return Finding(part, "absent", str(error), advice, required)
    except Exception as error:  # noqa: BLE001 - that it raises is the finding
        said = " ".join(str(error).split())
        return Finding(part, "broken", f"{type(error).__name__}: {said}", advice, required)


class _AbsentError(Exception):
    """A part that is not there, which is no fault."""


def _python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"


def _package() -> str:
    from .registry import load_obligations

    known = len(load_obligations())
    return f"{__version__}, {Path(__file__).parents[1]}, {known} obligations"


def _version_of(module: str, name: str = "") -> Callable[[], str]:
    def look() -> str:
        importlib.import_module(module)
        return metadata.version(name or module)

    return look


def _z3() -> str:
    from .solver import Limits, ask, solver_version

    answers = [ask(f"(assert {one})", (), Limits(seconds=10.0)).status for one in ("true", "false")]
    return _answering(solver_version().removeprefix("z3 "), answers)


def _cvc5() -> str:
    from .solver import Limits, second_opinion

    importlib.import_module("cvc5")
    text = "(set-logic ALL)\n(assert {})\n(check-sat)\n"
    told = [second_opinion(text.format(one), Limits(seconds=10.0)) for one in ("true", "false")]
    return _answering(told[0][1].removeprefix("cvc5 "), [answer for answer, _ in told])


def _answering(version: str, answers: list[Any]) -> str:
    if answers != ["sat", "unsat"]:
        raise RuntimeError(
            f"{version} answers {answers[0]} and {answers[1]} where it is sat and unsat"
        )
    return f"{version}, answers as it should"


def _pytest() -> str:
    version = _version_of("pytest")()
    points = metadata.entry_points(group="pytest11", name="routeproof")
    if not points:
        raise RuntimeError(f"{version} does not know the plugin: install routeproof again")
    return f"{version}, with the plugin"


def _gpu() -> str:
    try:
        cupy: Any = importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        raise _AbsentError(f"CuPy is not installed; {_driver()}") from error
    count: int = cupy.cuda.runtime.getDeviceCount()
    names = [cupy.cuda.runtime.getDeviceProperties(at)["name"].decode() for at in range(count)]
    return f"CuPy {cupy.__version__}: {', '.join(names)}"


def _driver() -> str:
    """What the driver sees, as its own tool tells it."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return "no NVIDIA driver"
    try:
        done = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - a fixed question
    except (OSError, subprocess.TimeoutExpired):
        return "the NVIDIA driver does not answer"
    devices = [line.partition(" (UUID")[0] for line in done.stdout.splitlines() if line.strip()]
    return f"the driver sees {', '.join(devices) or 'no device'}"


def _cache() -> str:
    from .caching.place import cache_place
    from .caching.store import Store
    from .caching.verdicts import VERDICTS

    place = cache_place()
    place.mkdir(parents=True, exist_ok=True)
    if not os.access(place, os.W_OK):
        raise RouteproofError(f"{place} cannot be written")
    entries = list(Store(place).entries(VERDICTS))
    damaged = sum(entry.document is None for entry in entries)
    told = f"{place}, {len(entries):,} verdicts, {sum(one.size for one in entries):,} bytes"
    return f"{told}, {damaged} damaged: routeproof cache prune" if damaged else told


def _terminal() -> str:
    console = Console()
    kind = "terminal" if console.is_terminal else "pipe"
    colour = console.color_system if console.is_terminal and not console.no_color else "none"
    return f"{kind}, colour: {colour}, width: {console.width}, encoding: {sys.stdout.encoding}"


def _machine() -> str:
    import psutil

    free = psutil.virtual_memory().available >> 20
    return f"{platform.platform()}, {os.cpu_count()} cores, {free:,} MiB of memory free"
