"""The sources: which files a verdict depends on, and that a change of one is noticed."""

import os
import py_compile
import shutil
import time

import pytest

from routeproof.checkers.caching import sources
from routeproof.checkers.caching.sources import read_sources


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Give a copy of the package's folders, which are read instead."""
    real = {one.split("/")[0]: path for one, path in dict(sources.files()).items()}
    for name, path in real.items():
        root = next(parent for parent in path.parents if parent.name == name)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root, tmp_path / name, ignore=ignore)

    class Spec:
        """As much of a module's spec as is looked at."""

        def __init__(self, name):
            self.submodule_search_locations = [str(tmp_path / name.rpartition(".")[2])]

    monkeypatch.setattr(sources.importlib.util, "find_spec", Spec)
    return tmp_path


def test_every_layer_is_read(package):
    """With its data, without what is compiled."""
    before = read_sources()
    (package / "spec" / "__pycache__").mkdir()
    (package / "spec" / "__pycache__" / "terms.cpython-311.pyc").touch()
    assert read_sources() == before
    for name in ("spec", "checkers", "models", "proofs", "kernels_ref"):
        assert any(one.startswith(f"{name}/") for one in dict(sources.files()))
    assert "proofs/ort/gqa/rows/xqa.jsonl.gz" in dict(sources.files())


@pytest.mark.parametrize(
    ("file", "is_tool"),
    [
        ("spec/terms.py", True),
        ("checkers/readings/intervals.py", True),
        ("proofs/calculus.py", True),
        ("proofs/ort/gqa/layouts.py", False),
        ("models/ort/gqa/xqa.py", False),
        ("models/published/devices.json", False),
        ("proofs/ort/gqa/rows/xqa.jsonl.gz", False),
    ],
)
def test_a_change_is_noticed_by_content(package, file, is_tool):
    """The tool's own files change every key; a model's, the statements only."""
    before = read_sources()
    assert before.unchanged()
    path = package / file
    content, stat = path.read_bytes(), path.stat()
    path.write_bytes(content + b"\n")
    after = read_sources()
    assert not before.unchanged()
    assert after.package != before.package
    assert (after.tool != before.tool) is is_tool
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert read_sources() == before


def test_a_file_more_or_less_is_noticed(package):
    """Also one that has no content."""
    before = read_sources()
    (package / "checkers" / "new.py").touch()
    assert not before.unchanged()
    assert read_sources().tool != before.tool
    (package / "checkers" / "new.py").unlink()
    assert before.unchanged()
    (package / "checkers" / "pool.py").unlink()
    assert not before.unchanged()


def test_bytecode_that_hides_an_edit_is_noticed(package):
    """Python takes a compiled form of the same second and size for current."""
    source = package / "spec" / "text.py"
    compiled = (
        package
        / "spec"
        / "__pycache__"
        / sources.Path(sources.importlib.util.cache_from_source(str(source))).name
    )
    compiled.parent.mkdir()
    second, size = int(source.stat().st_mtime), source.stat().st_size
    os.utime(source, ns=(second * 10**9 + 500,) * 2)

    def compile_for(seconds, at):
        compiled.write_bytes(sources.HEADER.pack(b"code", 0, seconds, size) + b"...")
        os.utime(compiled, ns=(second * 10**9 + at,) * 2)
        return read_sources()

    assert compile_for(second, 600).stale == ""
    assert compile_for(second - 1, 400).stale == ""  # Python compiles it again
    stale = compile_for(second, 400)
    assert stale.stale == str(source)
    assert not stale.unchanged()


def test_bytecode_that_nobody_checks_is_noticed_where_its_source_is_another(package):
    """As `compileall --invalidation-mode unchecked-hash` makes it."""
    source = package / "spec" / "text.py"
    compiled = sources.Path(sources.importlib.util.cache_from_source(str(source)))
    compiled.parent.mkdir()
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(compiled), invalidation_mode=mode)
    assert read_sources().stale == ""
    source.write_text(source.read_text() + "\n")
    assert read_sources().stale == str(source)


def test_a_file_written_after_this_run_began_is_noticed(package, monkeypatch):
    """What runs was read before."""
    source = package / "spec" / "text.py"
    monkeypatch.setattr(sources, "STARTED", time.time() + 1)
    assert read_sources().edited == ""
    os.utime(source, (time.time() + 2,) * 2)
    assert read_sources().edited == str(source)
