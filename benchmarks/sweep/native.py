"""The C side: `flash.c`, compiled by the system's compiler and called once over whole columns."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from .states import FIELDS, Answers, States

__all__ = ["CompilerMissingError", "Native"]

_SOURCE: Final = Path(__file__).with_name("flash.c")
# float32 and double mean what the source says: no fused multiply-add.
_OPTIONS: Final = ("-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared")


class CompilerMissingError(Exception):
    """There is no C compiler."""


class Native:
    """The compiled sweep."""

    def __init__(self, folder: Path) -> None:
        """Compile into a folder, which is the caller's to remove."""
        names = (os.environ.get("CC", "cc"), "gcc", "clang")
        compiler = next(filter(None, map(shutil.which, names)), None)
        if compiler is None:
            raise CompilerMissingError("no C compiler found: install one or name it in CC")
        library = folder / "flash.so"
        command = [compiler, *_OPTIONS, str(_SOURCE), "-o", str(library), "-lm"]
        subprocess.run(command, check=True)  # noqa: S603 - the system's compiler on our own source
        self._sweep = ctypes.CDLL(str(library)).sweep_flash
        self._sweep.restype = ctypes.c_int64
        self._sweep.argtypes = (
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        )

    def sweep(self, states: States, multiprocessors: int, answers: Answers) -> int:
        """Answer every state; returns how many reached the search for splits."""
        columns = [getattr(states, name) for name in FIELDS]
        if not all(column.flags.c_contiguous for column in columns):
            raise ValueError("the columns are not contiguous")
        pointers = (ctypes.c_void_p * len(FIELDS))(*(column.ctypes.data for column in columns))
        searched: int = self._sweep(
            pointers,
            len(states),
            multiprocessors,
            answers.status.ctypes.data,
            answers.total_workspace_bytes.ctypes.data,
            answers.selected_split_count.ctypes.data,
        )
        return searched
