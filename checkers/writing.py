"""Files written whole or not at all; a device or a pipe is written as it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from routeproof.spec.errors import InputError

__all__ = ["probe", "write_whole"]


def write_whole(path: Path, text: str) -> None:
    """Write the file, or leave what was there; `InputError` if that is not possible."""
    try:
        if not _is_plain(path):
            path.write_text(text, encoding="utf-8")
            return
        target = path.resolve()  # a link stays a link
        with _beside(target) as draft:
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def probe(path: Path) -> None:
    """Raise `OSError` if the file could not be written now."""
    if path.is_dir():
        raise IsADirectoryError
    if _is_plain(path):
        with _beside(path.resolve()):
            pass


def _is_plain(path: Path) -> bool:
    return path.is_file() or not path.exists()


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    draft.chmod(0o644)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
