"""Lines and names that every language needs: what is too long is broken, what is taken renamed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

__all__ = [
    "WIDTH",
    "Names",
    "broken",
    "camel",
    "commented",
    "grouped",
    "laid_out",
    "plain",
    "snake",
    "used",
]

T = TypeVar("T")
WIDTH = 100
_BREAK = re.compile(r" (?=(?:&&|\|\||\?|:|\+|else|and|or|if)\s)|(?<=,) ")


class Names:
    """Identifiers of one scope, each given once."""

    def __init__(self, reserved: Iterable[str], joint: str = "_") -> None:
        """What no name may be: keywords, and what the scope has already."""
        self._joint = joint
        self._reserved = frozenset(reserved)
        self._taken = set(self._reserved)

    def take(self, wanted: str) -> str:
        """The name itself as an identifier, or one like it that is free."""
        name = snake(wanted) or "x"
        name = f"x{name}" if name[0].isdigit() else name
        name = f"{name}_" if name in self._reserved else name
        free, count = name, 2
        while free in self._taken:
            free, count = f"{name}{self._joint}{count}", count + 1
        self._taken.add(free)
        return free


def snake(name: str) -> str:
    """Letters, digits and single underscores: an identifier everywhere but for its first letter."""
    return re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")


def camel(name: str) -> str:
    """`per_tensor` as `PerTensor`."""
    return "".join(part[:1].upper() + part[1:] for part in snake(name).split("_"))


def grouped(value: int, separator: str) -> str:
    """The digits, in groups of three where there are five or more."""
    return f"{value:,}".replace(",", separator) if abs(value) >= 10_000 else str(value)


def used(kit: Mapping[str, T], text: str) -> dict[str, T]:
    """The entries that the text mentions by name, and those that these mention, in order."""
    found: dict[str, T] = {}
    for name, entry in reversed(list(kit.items())):
        if re.search(rf"\b{name}\b", text):
            found[name] = entry
            text += str(entry)
    return dict(reversed(list(found.items())))


def plain(text: str) -> str:
    """The text on one line, without what would end a comment or a string."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def commented(paragraphs: Iterable[str], mark: str = "") -> list[str]:
    """The paragraphs, filled, as the lines of a comment."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [""] if lines else []
        lines += textwrap.wrap(plain(paragraph), WIDTH - 1 - len(mark))
    return [f"{mark} {line}".rstrip() if mark else line for line in lines]


def broken(line: str, more: str = " " * 8) -> list[str]:
    """The line, broken before operators and behind commas of the fewest brackets where too long."""
    pieces = _pieces(line.strip()) if len(line) > WIDTH else []
    if len(pieces) < 2:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    lines = [indent + pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(indent + more + piece)
    return [part for one in lines for part in broken(one, " " * 4)]


def laid_out(indent: str, head: str, items: Sequence[str], tail: str) -> list[str]:
    """Items between brackets on one line, or else on a line each."""
    line = f"{indent}{head}{', '.join(items)}{tail}"
    if len(line) <= WIDTH:
        return [line]
    inner = f"{indent}    "
    ended = [item if item.startswith("..") else f"{item}," for item in items]  # Rust's other fields
    parts = [part for item in ended for part in broken(f"{inner}{item}", " " * 4)]
    return [f"{indent}{head.rstrip()}", *parts, f"{indent}{tail.lstrip()}"]


def _pieces(text: str) -> list[str]:
    """The text cut at the breaks that the fewest brackets enclose."""
    depths = _depths(text)
    breaks = [found.start() for found in _BREAK.finditer(text)]
    least = min((depths[at] for at in breaks), default=0)
    cuts = [at for at in breaks if depths[at] == least]
    starts, ends = [0, *(at + 1 for at in cuts)], [*cuts, len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _depths(text: str) -> list[int]:
    """How many brackets are open at each character."""
    depth, found = 0, []
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        found.append(depth)
    return found
