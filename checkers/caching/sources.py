"""The files that a verdict depends on, as digests, and whether one of them has changed since.

The tool is every file of `spec` and `checkers`, and the lemmas of the calculus. What the shipped
obligations say depends on every file of the package.
"""

from __future__ import annotations

import importlib.util
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from routeproof.checkers.process import STARTED

from .fingerprint import digest

__all__ = ["HEADER", "Sources", "files", "read_sources"]

_PACKAGES = ("spec", "checkers", "models", "kernels_ref", "proofs")
_LEMMAS = "proofs/calculus.py"
_UNCHECKED = 1
HEADER = struct.Struct("<4sIII")  # of compiled Python: magic, flags, source's time, source's size


@dataclass(frozen=True, slots=True)
class Sources:
    """Digests of the tool and of the whole package, and the stamp of the files they were taken of.

    `stale` names a file whose compiled form Python takes for current although it is older, and
    `edited` one that was written after this process began: what runs is not what the digests are
    of.
    """

    tool: str
    package: str
    stamp: str
    stale: str = ""
    edited: str = ""

    def unchanged(self) -> bool:
        """Whether no file has been touched since."""
        try:
            return not self.stale and _stamp(dict(files())) == self.stamp
        except OSError:  # one was removed
            return False


def read_sources() -> Sources:
    """The digests now; the stamp is taken first, so that an edit meanwhile is noticed."""
    found = dict(files())
    stamp = _stamp(found)
    digests = {name: blake2b(path.read_bytes()).hexdigest() for name, path in found.items()}
    tool = {
        name: one
        for name, one in digests.items()
        if name.startswith(("spec/", "checkers/")) or name == _LEMMAS
    }
    is_old = (str(path) for path in found.values() if _is_stale(path) or _is_unchecked(path))
    is_new = (str(path) for path in found.values() if path.stat().st_mtime > STARTED)
    return Sources(digest(tool), digest(digests), stamp, next(is_old, ""), next(is_new, ""))


def files() -> Iterator[tuple[str, Path]]:
    """Every file of the package but compiled ones, by its name there."""
    for package in _PACKAGES:
        spec = importlib.util.find_spec(f"routeproof.{package}")
        for root in (spec and spec.submodule_search_locations) or ():
            for folder, folders, names in os.walk(root):
                folders[:] = sorted(one for one in folders if one != "__pycache__")
                at = Path(package, os.path.relpath(folder, root))
                yield from ((str((at / n).as_posix()), Path(folder, n)) for n in sorted(names))


def _stamp(found: dict[str, Path]) -> str:
    stats = {name: path.stat() for name, path in found.items()}
    return digest({name: [one.st_mtime_ns, one.st_size] for name, one in stats.items()})


def _is_stale(path: Path) -> bool:
    """Whether the source was written after its compiled form, in the same second, at equal size."""
    if path.suffix != ".py":
        return False
    compiled, source = Path(importlib.util.cache_from_source(str(path))), path.stat()
    try:
        if compiled.stat().st_mtime_ns >= source.st_mtime_ns:
            return False
        _, flags, seconds, size = HEADER.unpack(compiled.read_bytes()[: HEADER.size])
    except (OSError, struct.error):
        return False
    return flags == 0 and (seconds, size) == (
        int(source.st_mtime) & 0xFFFFFFFF,
        source.st_size & 0xFFFFFFFF,
    )


def _is_unchecked(path: Path) -> bool:
    """Whether Python takes the compiled form without looking at the source, and they differ."""
    if path.suffix != ".py":
        return False
    try:
        head = Path(importlib.util.cache_from_source(str(path))).read_bytes()[: HEADER.size]
        _, flags, *_ = HEADER.unpack(head)
    except (OSError, struct.error):
        return False
    return flags == _UNCHECKED and importlib.util.source_hash(path.read_bytes()) != head[8:16]
