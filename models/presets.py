"""Published facts by name: attention geometries of models, multiprocessors of devices.

The two files beside `published/` were gathered from public pages; each entry names its source. This
is a plain reader, in front of the terms: nothing here is proved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

from routeproof.spec.errors import UnknownNameError
from routeproof.spec.text import closest

__all__ = ["Entry", "Kind", "find", "published"]

Kind = Literal["models", "devices"]
Entry = Mapping[str, Any]
_BRAND = "geforce "  # may be left out


@cache
def published(kind: Kind) -> tuple[Entry, ...]:
    """Every entry of a kind, in the file's order."""
    file = resources.files("routeproof.models.published").joinpath(f"{kind}.json")
    return tuple(json.loads(file.read_text(encoding="utf-8"))[kind])


def find(kind: Kind, name: str) -> Entry:
    """The entry of that name, in any case; a prefix that only one name has is enough."""
    wanted = name.strip().lower()
    by_name = {entry["name"].lower(): entry for entry in published(kind)}
    called = {spelling: key for key in by_name for spelling in (key, key.removeprefix(_BRAND))}
    if wanted in called:
        return by_name[called[wanted]]
    found = sorted({key for word, key in called.items() if wanted and word.startswith(wanted)})
    if len(found) == 1:
        return by_name[found[0]]
    what = f"{kind.removesuffix('s')} preset {name!r}"
    if found:
        raise UnknownNameError(
            f"{what} is the start of {', '.join(by_name[key]['name'] for key in found)}"
        )
    names = [entry["name"] for entry in by_name.values()]
    inside = [one for one in names if wanted and wanted in one.lower()]
    raise UnknownNameError(f"unknown {what}{closest(name, inside or names)}")
