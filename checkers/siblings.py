"""Modules beside a user's file, which imports them as a script would.

Two folders may have modules of one name, and Python keeps one of a name: rather than take the wrong
one, the second is refused. All of them are compiled from their source each time: Python tells a
compiled form by the second and the size of its source, which an edit in a script leaves as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from routeproof.spec.errors import InputError

__all__ = ["FromSource", "imported_files", "siblings_importable"]

_imported: set[str] = set()  # names of modules that came from beside a user's file


class FromSource(SourceFileLoader):
    """A loader that neither reads nor writes a compiled form."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the source as it is now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Beside(MetaPathFinder):
    """Finds what lies in one folder, and in packages there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, compiled from its source, if it is one of the folder."""
        spec = PathFinder.find_spec(name, [str(self._folder)] if path is None else path)
        origin = spec and spec.origin
        if not (spec and origin and isinstance(spec.loader, SourceFileLoader)):
            return None
        if self._folder not in Path(origin).resolve().parents:
            return None
        spec.loader, spec.cached = FromSource(spec.loader.name, origin), None
        return spec


@contextmanager
def siblings_importable(path: Path) -> Iterator[None]:
    """While the file is executed, imports look into its folder first; `InputError` for a clash."""
    folder = path.resolve().parent
    hidden = {name: sys.modules.pop(name) for name in _elsewhere(folder)}
    known = set(sys.modules)
    finder = _Beside(folder)
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        with suppress(ValueError):  # the file may have removed it
            sys.path.remove(str(folder))
        found = {name for name in set(sys.modules) - known if _is_beside(name, folder)}
        _imported.update(found)
        clash = sorted(found & hidden.keys())
        sys.modules.update(hidden)
    if clash:
        raise InputError(
            f"{path}: {clash[0]!r} beside it is another module than"
            f" {_place(clash[0])}, which is imported already: check the files one by one"
        )


def imported_files() -> list[Path]:
    """The files of all modules that came from beside a user's file."""
    places = (_place(name) for name in sorted(_imported) if name in sys.modules)
    return [place for place in places if place and place.is_file()]


def _elsewhere(folder: Path) -> list[str]:
    """Loaded modules whose names the folder has too: another file's neighbours, or a test's."""
    beside = {one.stem for one in folder.glob("*.py")}
    beside |= {one.parent.name for one in folder.glob("*/__init__.py")}
    beside -= {*sys.stdlib_module_names, "__main__", "__init__", "conftest"}
    taken = _imported | {name for name in sys.modules if name.partition(".")[0] in beside}
    return [name for name in taken if name in sys.modules and not _is_beside(name, folder)]


def _is_beside(name: str, folder: Path) -> bool:
    """Whether the module, or the package it is in, lies in the folder itself."""
    top = folder / name.partition(".")[0]
    place = _place(name)
    return place is not None and (top in (place, place.with_suffix(""), *place.parents))


def _place(name: str) -> Path | None:
    """The file of a module; a folder for a package that has none."""
    module = sys.modules[name]
    given = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return Path(given).resolve() if isinstance(given, str) else None
