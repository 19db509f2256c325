"""Documents in files, one per key, each written whole or not at all, and checked when read.

The name of a file is the digest of its key; inside lie the checksum, the key in full and the body,
as two lines of JSON that a person can read. What does not add up is not there, with a warning.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from routeproof.checkers.announcing import warn

from .fingerprint import digest

__all__ = ["Entry", "Store", "checksum", "pack", "unpack"]

_LAYOUT = "v1"
_DRAFT = ".draft-"
_ENTRY = re.compile(r"[0-9a-f]{32}\.json")
_ABANDONED_SECONDS = 3600.0  # no writer takes that long over a draft


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the store; `document` is None if it is damaged. `used` is in seconds of Unix."""

    path: Path
    size: int
    used: float
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of documents by kind and key; `root` need not exist."""

    root: Path

    def _path(self, kind: str, name: str) -> Path:
        return self.root / _LAYOUT / kind / name[:2] / f"{name}.json"

    def get(self, kind: str, key: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """The body that was put under the key, or None."""
        name = digest(key)
        path = self._path(kind, name)
        try:
            packed = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            warn(f"cache: {path}: {error.strerror}; ignored")
            return None
        document = unpack(packed)
        if document is None:
            warn(f"cache: {path} is damaged; ignored")
            return None
        if digest(document["key"]) != name:
            warn(f"cache: {path} is the entry of something else; ignored")
            return None
        with suppress(OSError):
            os.utime(path)
        return document["body"]

    def put(self, kind: str, key: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Keep the body; raises `OSError` if it cannot be written, and then nothing has changed."""
        path = self._path(kind, digest(key))
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=_DRAFT, dir=path.parent)
        draft = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(pack({"key": key, "body": body}))
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def drop(self, kind: str, key: Mapping[str, Any]) -> None:
        """Forget what was put under the key."""
        with suppress(OSError):
            self._path(kind, digest(key)).unlink(missing_ok=True)

    def entries(self, kind: str) -> Iterator[Entry]:
        """Every file of a kind that is named as entries are, damaged ones too, in order of name."""
        for path in sorted((self.root / _LAYOUT / kind).glob("*/*")):
            with suppress(OSError):  # another process may have removed it
                if _ENTRY.fullmatch(path.name):
                    stat = path.stat()
                    yield Entry(path, stat.st_size, stat.st_mtime, _named(path))

    def prune(self, older_than: float) -> list[Entry]:
        """Remove what is damaged or was not used for so many seconds; returns what was removed."""
        now, removed = time.time(), []
        for folder in sorted((self.root / _LAYOUT).glob("*")):
            for entry in self.entries(folder.name):
                if entry.document is None or now - entry.used >= older_than:
                    entry.path.unlink(missing_ok=True)
                    removed.append(entry)
        for draft in (self.root / _LAYOUT).glob(f"*/*/{_DRAFT}*"):
            with suppress(OSError):
                if now - draft.stat().st_mtime > _ABANDONED_SECONDS:
                    draft.unlink()
        return removed


def _named(path: Path) -> Mapping[str, Any] | None:
    """The document if the file is called after the key of it."""
    document = unpack(path.read_bytes())
    return document if document and digest(document["key"]) == path.stem else None


def pack(document: Mapping[str, Any]) -> bytes:
    """Two lines: the checksum of the second, and the document."""
    body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    return json.dumps({"checksum": checksum(body)}).encode() + b"\n" + body + b"\n"


def unpack(packed: bytes) -> Mapping[str, Any] | None:
    """What `pack` packed, or None."""
    head, _, rest = packed.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        if json.loads(head) != {"checksum": checksum(body)}:
            return None
        document = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(document, dict) and set(document) == {"key", "body"}
    return document if whole and all(isinstance(one, dict) for one in document.values()) else None


def _refuse_constant(text: str) -> float:
    """NaN and the infinities are no JSON, and nothing that `pack` writes."""
    raise ValueError(text)


def checksum(body: bytes) -> str:
    """The checksum of a document's line."""
    return blake2b(body).hexdigest()
