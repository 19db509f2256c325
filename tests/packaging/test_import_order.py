"""The order of the layers: who may import whom, read from the syntax tree of every module.

Imports inside functions and under `TYPE_CHECKING` count. The checkers reach models and proofs by
name only, through `importlib`, so that no engine can depend on the system it judges.
"""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

ALLOWED = {
    "routeproof": set(),
    "routeproof.spec": {"spec"},
    "routeproof.models": {"spec", "models"},
    "routeproof.kernels_ref": {"spec", "models", "kernels_ref"},
    "routeproof.checkers": {"spec", "checkers", "__version__"},
    "routeproof.proofs": {"spec", "models", "kernels_ref", "checkers", "proofs", "__version__"},
}


def imported(source: str, package: str) -> Iterator[str]:
    """Yield the absolute dotted name of everything that a module of `package` imports."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = importlib.util.resolve_name("." * level + (module or ""), package)
                yield from (f"{base}.{alias.name}" for alias in names)
            case _:
                pass


def forbidden(source: str, package: str, allowed: set[str]) -> list[str]:
    """Return the imports of ours that are not of an allowed layer.

    A bare `import routeproof` is never allowed: any layer could be reached through it.
    """
    ours = [name for name in imported(source, package) if name.split(".")[0] == "routeproof"]
    return [name for name in ours if name.partition(".")[2].split(".")[0] not in allowed]


def modules(root: Path, package: str, folder: str) -> Iterator[tuple[Path, str]]:
    """Yield every module of a layer with the package that its relative imports start from."""
    for path in (root / folder).rglob("*.py"):
        yield path, ".".join([package, *path.parent.relative_to(root / folder).parts])


def test_every_layer_has_its_place(folders: dict[str, str]):
    """The table above speaks of every mapped package."""
    assert set(ALLOWED) == set(folders)


@pytest.mark.parametrize("layer", ALLOWED)
def test_layer_imports_only_what_it_may(layer: str, root: Path, folders: dict[str, str]):
    """No module of the layer imports one from a layer that it must not know."""
    found = list(modules(root, layer, folders[layer]))
    wrong = {
        str(path.relative_to(root)): names
        for path, package in found
        if (names := forbidden(path.read_text(), package, ALLOWED[layer]))
    }
    assert found
    assert wrong == {}


@pytest.mark.parametrize(
    "source",
    [
        "import routeproof",
        "import routeproof.models.ort as ort",
        "from routeproof import models",
        "from routeproof import *",
        "from routeproof.models import ort",
        "from ... import proofs",
        "from ...models.ort import gqa",
        "def lazily():\n    from routeproof.proofs import ort",
        "if TYPE_CHECKING:\n    import routeproof.models",
    ],
)
def test_each_way_round_is_found(source: str):
    """A checker that imports a model or a proof is found, whichever way it does."""
    package = "routeproof.checkers.readings"
    assert forbidden(source, package, ALLOWED["routeproof.checkers"])


@pytest.mark.parametrize(
    "source",
    [
        "from routeproof import __version__",
        "from routeproof.spec.terms import Term",
        "from . import numpy",
        "from ..cache import key",
        "import importlib\nimportlib.import_module('routeproof.proofs.ort')",
        "import routeproofs",
    ],
)
def test_what_a_checker_may_import(source: str):
    """A checker may import the language, its own layer, and a model by name."""
    package = "routeproof.checkers.readings"
    assert forbidden(source, package, ALLOWED["routeproof.checkers"]) == []
