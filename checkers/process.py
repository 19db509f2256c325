"""What a process needs before it touches terms; light, as the command line starts with it."""

from __future__ import annotations

import sys
import time

__all__ = ["STARTED", "prepare"]

STARTED = time.time()
"""When this module was imported, which is before any other of ours that decides anything."""


def prepare() -> None:
    """Let this process handle terms nested deeper, and integers longer, than programs have."""
    sys.setrecursionlimit(10_000)
    sys.set_int_max_str_digits(0)
