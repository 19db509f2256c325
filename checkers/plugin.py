"""The pytest plugin: every obligation is a test, and fails with what `check` would print.

pytest imports this module wherever routeproof is installed, so it imports nothing of ours that is
heavy: the language is there once a file has imported it, the engines when an obligation runs.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import pytest

from .process import prepare

if TYPE_CHECKING:
    from routeproof.spec.obligation import Obligation

    from .caching.verdicts import Cache
    from .decide import Decision
    from .discharge import Result
    from .solver import Options

__all__ = ["Models", "Proofs", "decide", "models"]

P = ParamSpec("P")
T = TypeVar("T")
_LANGUAGE = "routeproof.spec.obligation"
_COLLECTED = pytest.StashKey[dict[str, "Obligation"]]()
_OPENED = pytest.StashKey["Cache | None"]()
_ENDS = (pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `check` that make sense for tests, and where proofs lie."""
    group = parser.getgroup("routeproof", "obligations as tests")
    group.addoption(
        "--allow-unknown",
        action="store_true",
        help="report an obligation that stays unknown as xfailed, not as failed",
    )
    group.addoption(
        "--routeproof-timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="seconds per solver query (default: 60)",
    )
    group.addoption(
        "--routeproof-no-cache",
        action="store_true",
        help="decide every obligation anew and keep no verdict",
    )
    parser.addini(
        "routeproof_folders",
        type="args",
        default=["proofs"],
        help="names of folders whose Python files, nested ones too, are read for obligations",
    )


def _seconds(text: str) -> float:
    """A time limit that the solvers can count down, as `check --timeout` takes it."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 4_000_000:  # so that NaN is out, too
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0.01 and 4000000 seconds")
    return seconds


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known that every obligation carries; refuse folders that cannot be."""
    _proof_folders(config)
    config.addinivalue_line("markers", "obligation: a statement that routeproof decides")


class Proofs(pytest.Module):
    """A file of proofs; imported by where it lies, so that files of one name stay apart.

    Such a file is named after what it is about: in another import mode `proofs/attention.py` would
    hide the project's own `attention`.
    """

    def _getobj(self) -> ModuleType:
        from .siblings import siblings_importable

        option, mode = self.config.option, self.config.option.importmode
        option.importmode = "importlib"
        try:
            with siblings_importable(self.path):
                module: ModuleType = super()._getobj()  # type: ignore[no-untyped-call]
        finally:
            option.importmode = mode
        if not (module.__file__ and self.path.samefile(module.__file__)):
            raise self.CollectError(
                f"{module.__name__} is already imported from {module.__file__}:"
                " of two packages of one name only one can be imported"
            )
        return module


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Files of proofs are collected, whatever they are called."""
    found = yield
    known = any(isinstance(one, Proofs) for one in found)
    if not known and _is_proof(file_path, parent.config):
        found.append(Proofs.from_parent(parent, path=file_path))
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Proofs | None:
    """A file of proofs given on the command line is collected as it is otherwise."""
    if _is_proof(module_path, parent.config):
        return Proofs.from_parent(parent, path=module_path)
    return None


def _is_proof(path: Path, config: pytest.Config) -> bool:
    """Whether it lies below a folder of proofs, and is no test file, which pytest collects."""
    if path.suffix != ".py" or not path.is_relative_to(config.rootpath):
        return False
    folders = {config.rootpath.name, *path.relative_to(config.rootpath).parts[:-1]}
    if folders.isdisjoint(_proof_folders(config)):
        return False
    return not any(path.match(pattern) for pattern in config.getini("python_files"))


def _proof_folders(config: pytest.Config) -> list[str]:
    """The names of folders of proofs; a path would match nothing and say nothing."""
    names = [str(Path(one)) for one in config.getini("routeproof_folders")]
    for name in names:
        if len(Path(name).parts) != 1:
            raise pytest.UsageError(f"routeproof_folders: {name!r} is no name of a folder")
    return names


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> list[pytest.Item | pytest.Collector] | None:
    """Each obligation that a module declares or holds is a test function, once, named by its id.

    All that its body declares come together, in that order, where the first one is declared.
    """
    if not isinstance(collector, pytest.Module):
        return None
    collected = collector.stash.setdefault(_COLLECTED, {})
    if type(obj) is FunctionType and "obligation" in vars(obj):  # made below
        return [] if name in collected else None
    found = _obligations(collector, name, obj)
    if found:
        return [item for one in found for item in _items(collector, one, collected)]
    of_proofs = isinstance(collector, Proofs)
    return [] if of_proofs and not collector.session.isinitpath(collector.path) else None


def _obligations(module: pytest.Module, name: str, obj: object) -> list[Obligation]:
    """What is to be collected of a name and its value."""
    language = sys.modules.get(_LANGUAGE)
    if language is None:
        return []
    if name == language.DECLARED:
        return list(cast("list[Obligation]", obj))
    if type(obj) is pytest.MarkDecorator:
        for one in (one for arg in obj.args for one in _held(arg, language.Obligation)):
            raise module.CollectError(
                f"{one.location}: put @pytest.mark.{obj.name} below @obligation, on the function"
            )
    held = _held(obj, language.Obligation)
    imports = not isinstance(module, Proofs) and _wants_imported(module.config)
    return held if imports else [one for one in held if not _is_imported(one, language.DECLARED)]


def _held(obj: object, kind: type) -> list[Obligation]:
    """The value itself if it is an obligation, or those in a tuple.

    By its type: to ask anything of a stranger's object may execute its code.
    """
    several = cast("tuple[object, ...]", obj) if issubclass(type(obj), tuple) else (obj,)
    return cast("list[Obligation]", [one for one in several if issubclass(type(one), kind)])


def _wants_imported(config: pytest.Config) -> bool:
    """Whether what a test file imports counts, as it does unless pytest is told otherwise."""
    try:
        return bool(config.getini("collect_imported_tests"))
    except (KeyError, ValueError):  # pytest < 8.4
        return True


def _is_imported(one: Obligation, declared: str) -> bool:
    """Whether some module's body declared it; the collected module's own come first."""
    bodies = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
    return any(one is other for body in bodies for other in body.get(declared, ()))


def _items(
    module: pytest.Module, one: Obligation, collected: dict[str, Obligation]
) -> list[pytest.Item | pytest.Collector]:
    """The tests of one obligation: several if its statement is parametrised."""
    other = collected.get(one.id)
    if other is one:
        return []
    if other:
        raise module.CollectError(f"{one.location}: id {one.id!r} is taken by {other.location}")
    function = _test_function(one, module.config)
    setattr(module.obj, one.id, function)  # where pytest looks it up
    made = module.ihook.pytest_pycollect_makeitem(collector=module, name=one.id, obj=function)
    collected[one.id] = one
    items = made if isinstance(made, list) else [made] if made else []
    for item in items:
        if isinstance(item, pytest.Item):  # pytest would show the dots of an id as `::`
            item.location = (*item.location[:2], f"{item.name}: {one.title}")
    return items


def _test_function(one: Obligation, config: pytest.Config) -> Callable[..., None]:
    """A function with the parameters, marks and source line of the statement, which decides it."""

    @functools.wraps(one.statement)
    def decided(**arguments: object) -> None:
        _check(replace(one, statement=functools.partial(one.statement, **arguments)), config)

    vars(decided).update(__test__=True, obligation=one)
    decided.__name__ = "decided"  # a mark on a function called <lambda> would mark nothing
    marked: Callable[..., None] = pytest.mark.obligation(decided)
    return marked


def _check(one: Obligation, config: pytest.Config) -> None:
    """Decide, and end the test as the verdict asks."""
    from .discharge import result_of
    from .report import told
    from .solver import Limits, Options

    options = Options(Limits(seconds=config.getoption("--routeproof-timeout")))
    with _prepared():
        started = time.monotonic()
        result = result_of(one, decide(one, options, _cache(config, options)), started)
        text = "" if result.as_expected else told(result)
    if result.as_expected:
        return
    if _is_open(result) and config.getoption("--allow-unknown"):
        # Not `pytest.xfail()`, which does nothing under --runxfail: unknown would pass.
        raise pytest.xfail.Exception(f"unknown: {result.decision.reason}")
    pytest.fail(text, pytrace=False)


def _cache(config: pytest.Config, options: Options) -> Cache | None:
    """The cache that `check` uses, opened once."""
    from .caching.place import cache_place
    from .caching.verdicts import open_cache

    if _OPENED not in config.stash:
        is_wanted = not config.getoption("--routeproof-no-cache")
        config.stash[_OPENED] = open_cache(cache_place(), options) if is_wanted else None
    return config.stash[_OPENED]


def decide(one: Obligation, options: Options, cache: Cache | None) -> Decision:
    """The verdict, or why there is none, as a worker of `check` would answer."""
    from routeproof.spec.errors import RouteproofError
    from routeproof.spec.obligation import Verdict

    from .caching.verdicts import cached_decision
    from .decide import Decision
    from .discharge import discharge

    try:
        return cached_decision(one, options, cache) if cache else discharge(one, options)
    except RouteproofError as error:
        if isinstance(error.__cause__, _ENDS):  # a statement may call pytest.skip()
            raise error.__cause__ from None
        return Decision(Verdict.UNKNOWN, "none", str(error), malformed=True)
    except MemoryError:
        return Decision(Verdict.UNKNOWN, "none", "out of memory")


def _is_open(result: Result) -> bool:
    """Whether nothing is known, rather than wrong."""
    return result.decision.verdict == "unknown" and not result.decision.malformed


@contextmanager
def _prepared() -> Iterator[None]:
    """What deciding needs of the process, taken back for the tests beside it."""
    from .solver import memory_limit_kept

    recursion, digits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    prepare()
    sys.setrecursionlimit(max(recursion, sys.getrecursionlimit()))
    try:
        with memory_limit_kept():
            yield
    finally:
        sys.setrecursionlimit(recursion)
        sys.set_int_max_str_digits(digits)


class Models:
    """Modelled functions by name, and files of the user's own by path; each is loaded once."""

    def __init__(self, root: Path) -> None:
        """Paths are relative to `root`."""
        self._root = root
        self._loaded: dict[str | Path, Any] = {}

    def __call__(self, name: str) -> Any:  # noqa: ANN401 - a function or a module, by its name
        """`ort.gqa.flash`: a function from inputs to outputs; `csrc/model.py`: the module.

        Inputs and outputs are those of `routeproof eval`, without the `in` around the inputs.
        """
        __tracebackhide__ = True
        is_file = name.endswith(".py")
        key = (self._root / name).resolve() if is_file else name
        if key not in self._loaded:
            self._loaded[key] = _module(self._root / name) if is_file else _function(name)
        return self._loaded[key]


def _brief(call: Callable[P, T]) -> Callable[P, T]:
    """The same, but an error of ours is shown where the call is written: its message says all."""

    @functools.wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        from routeproof.spec.errors import RouteproofError

        try:
            return call(*args, **kwargs)
        except RouteproofError as error:
            raise error.with_traceback(None) from None

    return called


@_brief
def _module(path: Path) -> ModuleType:
    """The file, executed; an error names its line."""
    from .registry import load_file, shown_path

    return load_file(Path(shown_path(str(path))))


@_brief
def _function(name: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The modelled function, from an object of inputs to one of outputs."""
    from .evaluator import Evaluator
    from .registry import load_function

    evaluate = Evaluator(load_function(name))
    return _brief(lambda inputs: evaluate({"in": dict(inputs)}, name))


@pytest.fixture(scope="session")
def models(pytestconfig: pytest.Config) -> Models:
    """`models("ort.gqa.flash")` is a modelled function, `models("csrc/model.py")` a module."""
    return Models(pytestconfig.rootpath)
