"""Finding things by name: modelled functions, ladders, and obligations, from packages and files.

Models, kernels and proofs are reached through here only, by name, so that no engine depends on
them.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from routeproof.spec.errors import InputError, ModelError, RouteproofError, UnknownNameError
from routeproof.spec.execution import Kernels
from routeproof.spec.function import Function
from routeproof.spec.ladder import Ladder
from routeproof.spec.objective import Question
from routeproof.spec.obligation import (
    Claim,
    Obligation,
    Reach,
    Rows,
    Statement,
    declaring,
    parameters_left,
)
from routeproof.spec.text import closest

from .siblings import FromSource, siblings_importable

__all__ = [
    "build",
    "function_names",
    "line_of",
    "load_file",
    "load_function",
    "load_kernels",
    "load_ladders",
    "load_obligations",
    "load_presets",
    "load_question",
    "pick",
    "preset_name",
    "select_obligations",
    "shown_path",
]

_CATALOGUE = "routeproof.models.catalogue"
_PRESETS = "routeproof.models.presets"
_KERNELS = "routeproof.kernels_ref.catalogue"
_PROOFS = "routeproof.proofs"


def pick(kind: str, name: str, names: Iterable[str]) -> str:
    """The name itself if it is known; otherwise an error with the closest match."""
    known = list(names)
    if name in known:
        return name
    raise UnknownNameError(f"unknown {kind} {name!r}{closest(name, known)}")


def function_names() -> list[str]:
    """The names that `load_function` answers to."""
    return list(importlib.import_module(_CATALOGUE).FUNCTIONS)


def load_function(name: str) -> Function:
    """The modelled function of that name."""
    known = importlib.import_module(_CATALOGUE).FUNCTIONS
    module = importlib.import_module(known[pick("function", name, known)])
    return cast("Function", module.function())


def load_ladders(name: str) -> Mapping[str, Ladder]:
    """The revisions of a ladder by revision name, newest first."""
    known = importlib.import_module(_CATALOGUE).LADDERS
    module = importlib.import_module(known[pick("ladder", name, known)])
    return cast("Mapping[str, Ladder]", module.ladders())


def load_presets(kind: str) -> Sequence[Mapping[str, Any]]:
    """Every published entry of a kind: `models` or `devices`."""
    return cast("Sequence[Mapping[str, Any]]", importlib.import_module(_PRESETS).published(kind))


def preset_name(kind: str, name: str) -> str:
    """The full name of a published entry, of which a unique prefix is enough."""
    return str(importlib.import_module(_PRESETS).find(kind, name)["name"])


def load_question(document: Mapping[str, Any], name: str = "ort.gqa") -> Question:
    """What a SPEC asks of the kernel of that name."""
    known = importlib.import_module(_CATALOGUE).QUESTIONS
    module = importlib.import_module(known[pick("kernel", name, known)])
    return cast("Question", module.question(document))


def load_kernels(recipe: str, backend: str) -> Kernels:
    """The reference kernels that run what a recipe sizes, on `numpy` or `cupy`.

    Raises:
        InputError: the backend, or its device, is not there.
    """
    known = importlib.import_module(_KERNELS).KERNELS
    module = importlib.import_module(known[pick("recipe with kernels", recipe, known)])
    return cast("Kernels", module.kernels(backend))


def load_obligations(files: Sequence[Path] = ()) -> dict[str, Obligation]:
    """Every obligation by id: of the given files, or else of the installed proofs."""
    different = {file.resolve(): file for file in reversed(files)}
    groups = (
        map(_declared_in, reversed(different.values()))
        if files
        else map(_obligations, _installed())
    )
    found: dict[str, Obligation] = {}
    for one in itertools.chain.from_iterable(groups):
        other = found.setdefault(one.id, one)
        if other is not one:
            raise ModelError(f"{one.location}: id {one.id!r} is taken by {other.location}")
    if files and not found:
        raise InputError(f"no obligation in {', '.join(map(str, files))}")
    return found


def select_obligations(
    known: Mapping[str, Obligation], patterns: Sequence[str]
) -> list[Obligation]:
    """The obligations that match any of the ids or globs (none given: all), in order."""
    for pattern in patterns:
        if Path(pattern).is_file():
            raise InputError(f"{pattern}: obligations are read from .py files")
        if not any(fnmatchcase(one, pattern) for one in known):
            pick("obligation", pattern, known)
    return [
        one
        for name, one in known.items()
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _installed() -> Iterator[ModuleType]:
    package = importlib.import_module(_PROOFS)
    for info in sorted(
        pkgutil.walk_packages(package.__path__, f"{_PROOFS}."), key=lambda i: i.name
    ):
        yield importlib.import_module(info.name)


def _obligations(module: ModuleType) -> Iterator[Obligation]:
    """Module attributes that are obligations, or tuples of them, in order of definition."""
    for value in vars(module).values():
        items = value if isinstance(value, tuple) else (value,)
        yield from (item for item in items if isinstance(item, Obligation))


def _declared_in(path: Path) -> list[Obligation]:
    """What the user's file declares."""
    with declaring() as declared:
        module = load_file(path)
    return list(dict.fromkeys([*declared, *_obligations(module)]))


def load_file(path: Path) -> ModuleType:
    """The user's file, executed; whatever it raises is reported with its line."""
    if not path.is_file():
        raise InputError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
    name = f"_routeproof_{path.stem}_{abs(hash(path.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, path, loader=FromSource(name, str(path)))
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with siblings_importable(path):
        try:
            with redirect_stdout(sys.stderr):  # standard output is the report's
                spec.loader.exec_module(module)
        except RouteproofError as error:
            raise type(error)(f"{line_of(error, path)}: {error.args[0]}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            where = line_of(error, path)
            raise InputError(f"{where}: {type(error).__name__}: {error}") from error
    return module


def line_of(error: BaseException, path: Path) -> str:
    """The last line of the file that the error passed through, as `path:line`."""
    here = str(path.absolute())
    if isinstance(error, SyntaxError) and error.filename in (here, str(path)):
        return f"{path}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename in (here, str(path))]
    return f"{path}:{lines[-1] if lines else 0}"


def build(obligation: Obligation) -> Statement:
    """The obligation's statement; whatever is wrong with it is a `ModelError` with its line."""
    path, _, line = obligation.location.rpartition(":")
    if left := parameters_left(obligation.statement):
        raise ModelError(
            f"{shown_path(f'{path}:{line}')}: {obligation.id} needs {', '.join(left)}:"
            " run pytest, which fills it in, or list the values with each="
        )
    try:
        statement: object = obligation.statement()
    except RouteproofError as error:
        where = line_of(error, Path(path))
        raise type(error)(f"{shown_path(where)}: {error.args[0]}") from error
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # sys.exit() in a statement would end the command unseen
        where = shown_path(line_of(error, Path(path)))
        raise ModelError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(statement, Claim | Rows | Reach):
        got = type(statement).__name__
        where = shown_path(f"{path}:{line}")
        raise ModelError(f"{where}: {obligation.id} returns {got}, not a Claim: return Claim(...)")
    return statement


def shown_path(location: str) -> str:
    """The location relative to the working directory, where it lies below it."""
    try:
        return str(Path(location).relative_to(Path.cwd()))
    except ValueError:
        return location
