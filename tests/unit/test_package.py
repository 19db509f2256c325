"""The root package: its version, the cost of importing it, and the examples in its docstrings."""

import doctest
import importlib.metadata
import pkgutil
import subprocess
import sys

import routeproof

LOADED = "import sys; before = {*sys.modules}; import routeproof; print(*{*sys.modules} - before)"


def test_version_is_the_installed_one():
    """The literal in the package is the version pip knows."""
    assert routeproof.__version__ == importlib.metadata.version("routeproof")


def test_import_is_near_free():
    """Importing the root package loads no other module, ours or anyone's."""
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, check=True, text=True
    )
    assert loaded.stdout.split() == ["routeproof"]


def test_examples_in_docstrings():
    """Every example in a docstring of the package prints what it says."""
    names = [
        module.name
        for module in pkgutil.walk_packages(routeproof.__path__, "routeproof.")
        if not module.name.endswith(".__main__")
    ]
    failed = {name for name in names if doctest.testmod(importlib.import_module(name)).failed}
    assert names
    assert not failed
