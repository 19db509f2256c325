"""Backends: the functions that NumPy and CuPy share, and how allocations are counted."""

import inspect
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from kernels.launches import sized

from routeproof.kernels_ref import backends
from routeproof.kernels_ref.gqa import crosscheck as checking
from routeproof.kernels_ref.gqa.draw import draw
from routeproof.kernels_ref.gqa.plan import plan
from routeproof.kernels_ref.namespace import Namespace
from routeproof.spec.errors import InputError

DECLARED = [name for name, _ in inspect.getmembers(Namespace, inspect.isfunction) if name[0] != "_"]


class Only:
    """NumPy with the declared functions alone, which notes those that are used."""

    def __init__(self):
        """Nothing is used yet."""
        self.used = set()

    def __getattr__(self, name):
        """Look the function up in NumPy, if it is declared."""
        assert name in DECLARED, name
        self.used.add(name)
        return getattr(np, name)


def test_kernels_use_the_declared_functions_and_all_of_them():
    """Over launches of every route, cache mode and quantisation."""
    xp = Only()
    host = backends.load("numpy")
    only = backends.Backend("numpy", "host", xp, host.allocate, host.to_host)
    for number in range(240):
        drawn = draw(number, 3)
        assert not checking.crosscheck(drawn.launch, plan(drawn.recipe), only, number).on_paper
    assert xp.used == set(DECLARED)


@pytest.mark.parametrize("library", ["numpy", "cupy"])
def test_each_library_has_the_declared_functions(library):
    """Whether or not there is a device."""
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    assert [name for name in DECLARED if not hasattr(module, name)] == []


def test_without_cupy_or_a_device_the_backend_says_so_in_one_line(monkeypatch):
    """Nothing is imported in vain, and nothing computed elsewhere instead."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(InputError, match=r"^--kernels cupy: CuPy cannot be imported: [^\n]*$"):
        backends.load("cupy")
    monkeypatch.setitem(sys.modules, "cupy", stand_in(devices=0))
    with pytest.raises(InputError, match=r"^--kernels cupy: no CUDA device \[RP201\]$"):
        backends.load("cupy")
    monkeypatch.setitem(sys.modules, "cupy", stand_in(devices=None))
    with pytest.raises(InputError, match=r"^--kernels cupy: no CUDA device: no driver \[RP201\]$"):
        backends.load("cupy")


class Hook:
    """A memory hook, as CuPy's: while entered, it hears of every allocation."""

    active = None

    def __enter__(self):
        """Listen."""
        Hook.active = self
        return self

    def __exit__(self, *_):
        """Stop listening."""
        Hook.active = None


def stand_in(devices=1):
    """Return a module with what is used of CuPy, on NumPy; its pool rounds up to 512 bytes."""

    def count():
        if devices is None:
            raise RuntimeError("no driver\nat all")
        return devices

    def empty(shape, dtype):
        made = np.empty(shape, dtype)
        if Hook.active:
            rounded = -(-made.nbytes // 512) * 512
            Hook.active.malloc_postprocess(size=made.nbytes, mem_size=rounded, mem_ptr=1)
        return made

    module = ModuleType("cupy")
    module.__dict__.update({name: getattr(np, name) for name in DECLARED})
    runtime = SimpleNamespace(
        getDeviceCount=count,
        getDeviceProperties=lambda _: {"name": b"Stand-in"},
        driverGetVersion=lambda: 12040,
    )
    device = SimpleNamespace(id=0)
    module.cuda = SimpleNamespace(runtime=runtime, MemoryHook=Hook, Device=lambda: device)
    module.empty, module.uint8, module.asnumpy = empty, np.uint8, np.asarray
    module.__version__ = "0"
    return module


def test_the_pool_is_asked_for_the_planned_bytes_and_its_rounding_is_told_apart(monkeypatch):
    """Through the library's own hooks, on what stands in for it here."""
    monkeypatch.setitem(sys.modules, "cupy", stand_in())
    backend = backends.load("cupy")
    assert backend.device == "Stand-in, driver API 12.4, CuPy 0"
    launch, planned = sized("flash", total=700, capacity=720)
    report = checking.crosscheck(launch, planned, backend, 0)
    assert report.total == planned.total
    assert report.taken == -(-planned.total // 512) * 512


def test_no_solver_is_imported():
    """Neither by the kernels nor by the command that runs them."""
    program = (
        "import sys\nfrom routeproof.checkers.cli import main\n"
        "sys.argv = ['routeproof', 'replay', '--random', '3', '--jobs', '1']\n"
        "try:\n    main()\nfinally:\n"
        "    assert not {'z3', 'cvc5', 'sympy', 'cupy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_on_a_device_every_route_gives_what_the_host_gives():
    """With CuPy and a CUDA device."""
    try:
        device = backends.load("cupy")
    except InputError as error:
        pytest.skip(error.args[0])
    host = backends.load("numpy")
    for number in range(120):
        drawn = draw(number, 5)
        planned = plan(drawn.recipe)
        there = checking.crosscheck(drawn.launch, planned, device, number)
        here = checking.crosscheck(drawn.launch, planned, host, number)
        assert [one.touched for one in there.regions] == [one.touched for one in here.regions]
