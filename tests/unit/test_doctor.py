"""`doctor`: every part is tried, what fails is named with its remedy, and the rest goes on."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from routeproof.checkers import doctor, solver
from routeproof.checkers.solver import Answer

PARTS = [
    *("python", "routeproof", "z3", "numpy", "sympy", "cvc5", "matplotlib", "pytest"),
    *("pytest-xdist", "gpu", "cache", "terminal", "machine"),
]


def found():
    """Return the findings by part."""
    return {one.part: one for one in doctor.examine()}


def absent(monkeypatch, name):
    """Make the module one that is not installed."""
    monkeypatch.setitem(sys.modules, name, None)


def test_all_that_is_required_works_here(capsys):
    """In the order of the list, with versions; status 0."""
    assert doctor.run_doctor("text") == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if line[:1] in "✓-✗" and line] == PARTS
    assert "answers as it should" in out
    assert out.endswith("all that is required works\n")


def test_json_has_the_same(capsys):
    """With stable keys."""
    assert doctor.run_doctor("json") == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data) == {"schema_version", "parts"}
    assert [one["part"] for one in data["parts"]] == PARTS
    assert all(
        set(one) == {"part", "state", "detail", "advice", "required"} for one in data["parts"]
    )


@pytest.mark.parametrize(
    ("module", "part", "advice"),
    [
        ("cvc5", "cvc5", "pip install cvc5"),
        ("matplotlib", "matplotlib", "pip install matplotlib"),
        ("xdist", "pytest-xdist", "pip install pytest-xdist"),
    ],
)
def test_an_optional_part_may_be_absent(monkeypatch, capsys, module, part, advice):
    """It is told what it would be good for, and nothing fails."""
    absent(monkeypatch, module)
    assert found()[part].state == "absent"
    assert advice in found()[part].advice
    assert doctor.run_doctor("text") == 0
    assert f"- {part}" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["numpy", "sympy"])
def test_a_required_part_may_not(monkeypatch, capsys, module):
    """Status 1, and how to get it."""
    monkeypatch.setattr(doctor.importlib, "import_module", _without(module))
    assert doctor.run_doctor("text") == 1
    out = capsys.readouterr().out
    assert f"pip install --force-reinstall {module}" in out
    assert f"does not work: {module}" in out


def _without(missing):
    real = doctor.importlib.import_module

    def load(name):
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name)

    return load


@pytest.mark.parametrize("told", [("sat", "sat"), ("unknown", "unsat"), ("unsat", "sat")])
def test_a_solver_that_answers_wrongly_is_broken(monkeypatch, told):
    """It is asked what every solver knows."""
    answers = iter(told)
    monkeypatch.setattr(solver, "ask", lambda *_: Answer(next(answers), {}, 0))
    z3 = found()["z3"]
    assert (z3.state, z3.required) == ("broken", True)
    assert f"answers {told[0]} and {told[1]}" in z3.detail


def test_a_library_that_does_not_load_is_broken(monkeypatch):
    """Whatever it raises; the parts after it are still told."""

    def ask(*_):
        raise OSError("libz3.so:\n cannot open")

    monkeypatch.setattr(solver, "ask", ask)
    told = found()
    assert told["z3"].detail == "OSError: libz3.so: cannot open"
    assert list(told) == PARTS


def test_a_place_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    """With what to set."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROUTEPROOF_CACHE_DIR", str(tmp_path / "file" / "cache"))
    cache = found()["cache"]
    assert (cache.state, cache.required) == ("broken", False)
    assert "ROUTEPROOF_CACHE_DIR" in cache.advice


def test_damaged_entries_are_told(cache):
    """With the command that removes them."""
    folder = cache / "v1" / "verdicts" / "ab"
    folder.mkdir(parents=True)
    (folder / f"{'ab' * 16}.json").write_text("?")
    assert "1 verdicts, 1 bytes, 1 damaged: routeproof cache prune" in found()["cache"].detail


def _cupy(count):
    def properties(_):
        return {"name": b"NVIDIA H200"}

    module = ModuleType("cupy")
    runtime = SimpleNamespace(getDeviceCount=count, getDeviceProperties=properties)
    module.__dict__.update(__version__="13.0", cuda=SimpleNamespace(runtime=runtime))
    return module


def test_a_gpu_is_named(monkeypatch):
    """Where CuPy sees one; where it fails, that is told."""
    monkeypatch.setitem(sys.modules, "cupy", _cupy(lambda: 2))
    assert found()["gpu"].detail == "CuPy 13.0: NVIDIA H200, NVIDIA H200"
    monkeypatch.setitem(sys.modules, "cupy", _cupy(lambda: 1 // 0))
    assert found()["gpu"].detail.startswith("ZeroDivisionError")
    absent(monkeypatch, "cupy")
    assert found()["gpu"].detail.startswith("CuPy is not installed; ")


def test_what_a_library_prints_is_not_the_report(monkeypatch, capsys):
    """The JSON stays JSON."""
    monkeypatch.setitem(sys.modules, "cupy", _cupy(lambda: sys.stdout.write("welcome") and 1))
    doctor.run_doctor("json")
    out, err = capsys.readouterr()
    assert json.loads(out)["parts"][PARTS.index("gpu")]["detail"] == "CuPy 13.0: NVIDIA H200"
    assert "welcome" in err


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'", "the driver sees GPU 0: NVIDIA H200"),
        ("exit 9", "the driver sees no device"),
    ],
)
def test_the_driver_is_asked_without_cupy(monkeypatch, tmp_path, script, told):
    """By its own tool."""
    absent(monkeypatch, "cupy")
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert found()["gpu"].detail == f"CuPy is not installed; {told}"
