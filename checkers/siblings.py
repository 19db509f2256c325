"""Modules beside a user's file, which imports them as a script would.

Two folders may have modules of one name, and Python keeps one of a name: rather than take the wrong
one, the second is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from routeproof.spec.errors import InputError

__all__ = ["imported_files", "siblings_importable"]

_imported: set[str] = set()  # names of modules that came from beside a user's file


@contextmanager
def siblings_importable(path: Path) -> Iterator[None]:
    """While the file is executed, imports look into its folder first; `InputError` for a clash."""
    folder = path.resolve().parent
    hidden = {name: sys.modules.pop(name) for name in _elsewhere(folder)}
    known = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
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
    """Names that modules beside files of other folders have taken."""
    return [name for name in _imported if name in sys.modules and not _is_beside(name, folder)]


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
