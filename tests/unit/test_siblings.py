"""Modules beside a user's file: imported as a script would, and never one in place of another."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from routeproof.checkers.registry import build, load_file, load_obligations
from routeproof.spec.errors import InputError
from routeproof.spec.terms import symbol_int

OWN = """\
{imports}
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import symbol_int


@obligation("own.{name}", "it")
def it():
    return Claim(symbol_int("x") <= {most})
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes files by name; what they import is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before = dict(sys.modules)

    def write(**files):
        for name, text in files.items():
            path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    yield write
    for name in set(sys.modules) - set(before):
        if not name.startswith("routeproof"):
            del sys.modules[name]


def goals(*files):
    """Return the goal of each obligation of the files."""
    known = load_obligations([Path(one) for one in files])
    return {name: build(one).goal for name, one in known.items()}


def own(name, most="SIZE", imports="from own_model import SIZE"):
    """Return a file with an obligation."""
    return OWN.format(name=name, most=most, imports=imports)


def test_a_file_imports_what_lies_beside_it(write):
    """Modules and packages; afterwards the folder is not searched any more."""
    write(a__one=own("one"), a__own_model="from own_parts.sizes import SIZE\n")
    write(a__own_parts____init__="", a__own_parts__sizes="SIZE = 7\n")
    path = list(sys.path)
    assert goals("a/one.py") == {"own.one": symbol_int("x") <= 7}
    assert sys.path == path


def test_two_files_of_a_folder_share_a_module(write):
    """It is executed once."""
    write(a__one=own("one"), a__two=own("two"))
    write(a__own_model='SIZE = 7\nassert "own_model_ran" not in __import__("sys").modules\n')
    x = symbol_int("x")
    assert goals("a/one.py", "a/two.py") == {"own.one": x <= 7, "own.two": x <= 7}


@pytest.mark.parametrize("imports", ["from own_model import SIZE", "import own_model"])
def test_a_module_never_stands_for_another_of_its_name(write, imports):
    """Two folders may have one each; checked together, that is told."""
    most = "SIZE" if imports.startswith("from") else "own_model.SIZE"
    write(a__one=own("one", most, imports), a__own_model="SIZE = 7\n")
    write(b__two=own("two", most, imports), b__own_model="SIZE = 8\n")
    with pytest.raises(
        InputError, match=r"\w/\w+\.py: 'own_model' beside it is another module than"
    ):
        goals("a/one.py", "b/two.py")


def test_a_name_that_is_not_imported_is_no_clash(write):
    """The second folder's file imports nothing of its own."""
    write(a__one=own("one"), a__own_model="SIZE = 7\n")
    write(b__two=own("two", "9", "import json"), b__own_model="SIZE = 8\n")
    x = symbol_int("x")
    assert goals("a/one.py", "b/two.py") == {"own.one": x <= 7, "own.two": x <= 9}


def test_libraries_below_the_folder_are_no_siblings(write, tmp_path, monkeypatch):
    """An environment often lies in the project: what is installed there stays imported."""
    write(lib__own_library="SIZE = 5\n", one=own("one", "SIZE", "from own_library import SIZE"))
    write(b__two=own("two", "6", "import own_library"))
    monkeypatch.syspath_prepend(tmp_path / "lib")
    load_file(Path("one.py"))
    library = sys.modules["own_library"]
    load_file(Path("b/two.py"))
    assert sys.modules["own_library"] is library


def test_what_is_not_there_is_told_with_its_line(write):
    """As any error of the file."""
    write(a__one=own("one"))
    with pytest.raises(InputError, match=r"one\.py:1: ModuleNotFoundError: .*own_model"):
        goals("a/one.py")


def test_an_edit_in_the_same_second_at_the_same_size_is_seen(write, tmp_path):
    """Python's compiled forms would not show it, of the file or of what it imports."""
    for number in range(4):
        limit = 10 + number
        write(
            model=f"limit = {limit}",
            own=OWN.format(imports="import model", name="a", most="model.limit"),
        )
        (one,) = load_obligations([tmp_path / "own.py"]).values()
        assert repr(build(one).goal) == f"x <= {limit}"
        sys.modules.pop("model")
        write(own=OWN.format(imports="", name="a", most=limit + 1))
        (one,) = load_obligations([tmp_path / "own.py"]).values()
        assert repr(build(one).goal) == f"x <= {limit + 1}"


def test_a_file_that_keeps_its_time_is_seen(write, tmp_path):
    """A package beside it, too."""
    own = OWN.format(imports="from kernels import model", name="a", most="model.limit")
    for limit in (5, 7):
        write(kernels____init__="", kernels__model=f"limit = {limit}", own=own)
        os.utime(tmp_path / "kernels/model.py", (1, 1))
        (one,) = load_obligations([tmp_path / "own.py"]).values()
        assert repr(build(one).goal) == f"x <= {limit}"
        for name in ("kernels", "kernels.model"):
            sys.modules.pop(name)
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_module_that_someone_else_imported_is_not_taken_for_the_one_beside(write, tmp_path):
    """A test's own helper of the name, say."""
    write(
        elsewhere__model="limit = 3",
        model="limit = 4",
        own=OWN.format(imports="import model", name="a", most="model.limit"),
    )
    sys.path.insert(0, str(tmp_path / "elsewhere"))
    try:
        importlib.import_module("model")
        with pytest.raises(InputError, match="'model' beside it is another module than"):
            load_obligations([tmp_path / "own.py"])
    finally:
        sys.path.remove(str(tmp_path / "elsewhere"))
