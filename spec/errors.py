"""Errors a user can cause: one root class, a stable code each, a line that says what and where."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "InputError",
    "InternalError",
    "ModelError",
    "RouteproofError",
    "UnknownNameError",
    "UnsupportedError",
    "refuse",
]


class RouteproofError(Exception):
    """Root of every error this package raises on purpose; `code` has a page in `docs/errors.md`."""

    code = "RP000"

    def __str__(self) -> str:
        """One line: the message, then the code that `routeproof explain` takes."""
        return f"{' '.join(super().__str__().split())} [{self.code}]"


class ModelError(RouteproofError, TypeError):
    """A model is malformed: sorts that do not fit, a name used twice, a bound variable captured."""

    code = "RP101"


class InputError(RouteproofError, ValueError):
    """Data from outside (JSON, a row, a file, an option) is malformed; the message says where."""

    code = "RP201"


class UnknownNameError(RouteproofError, LookupError):
    """A name that nothing answers to; the message carries the closest match."""

    code = "RP202"


class UnsupportedError(RouteproofError, NotImplementedError):
    """A reading cannot express a construct; another reading, or a smaller term, can."""

    code = "RP301"


class InternalError(RouteproofError):
    """Something failed in a way that is our fault; the message says what, with a traceback."""

    code = "RP900"


def refuse(where: str, problem: str) -> NoReturn:
    """Raise the error that names the place and what is wrong there."""
    raise InputError(f"{where}: {problem}")
