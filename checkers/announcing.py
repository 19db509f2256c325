"""What is said while an obligation is decided, and changes no verdict.

The stage reached, the statement's digest once it is built, and warnings. Whoever decides listens: a
worker passes all on to its parent. Without a listener a warning goes to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

__all__ = ["Announcement", "built", "listening", "stage", "warn"]


@dataclass(frozen=True, slots=True)
class Announcement:
    """One thing that was said."""

    kind: Literal["stage", "built", "warning"]
    text: str


_listener: ContextVar[Callable[[Announcement], None] | None] = ContextVar("_listener", default=None)


def stage(text: str) -> None:
    """Say what is being tried."""
    _say(Announcement("stage", text))


def built(digest: str) -> None:
    """Say what the statement is."""
    _say(Announcement("built", digest))


def _say(said: Announcement) -> None:
    if listener := _listener.get():
        listener(said)


def warn(text: str) -> None:
    """Say what somebody should know although no verdict depends on it."""
    if listener := _listener.get():
        listener(Announcement("warning", text))
    else:
        print(f"routeproof: {text}", file=sys.stderr)  # noqa: T201 - nobody else would tell


@contextmanager
def listening(listener: Callable[[Announcement], None]) -> Iterator[None]:
    """Have all that is said meanwhile, in this context, handed to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
