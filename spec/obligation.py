"""Obligations: formal statements a machine decides, each with its source and expected verdict."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from string import Formatter
from typing import overload

from .envelope import Envelope
from .errors import ModelError
from .function import Source
from .ladder import Ladder
from .records import Record, leaves
from .terms import Bool, Int, Term, free_symbols
from .text import closest

__all__ = [
    "DECLARED",
    "Claim",
    "Invocation",
    "Obligation",
    "Reach",
    "Rows",
    "Statement",
    "Verdict",
    "declaring",
    "obligation",
    "parameters_left",
]

DECLARED = "__obligations__"  # of a module: those that its body declared, in order
_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")


class Verdict(StrEnum):
    """What a machine found; only the first three can be expected."""

    PROVED = "proved"
    REFUTED = "refuted"
    REPLAYED = "replayed"
    UNKNOWN = "unknown"
    VACUOUS = "vacuous"
    DISAGREEMENT = "disagreement"


def _require(holds: bool, what: str) -> None:
    """Authors write without a type checker: say what was expected where it was given."""
    if not holds:
        raise ModelError(f"expected {what}" if what.startswith(("a ", "an ")) else what)


def _unknown(name: object, known: list[str]) -> str:
    near = get_close_matches(str(name), known, 1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return f"{name!r} is no such symbol of the claim{guess}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of a modelled function: its name, and its input as terms over a claim's symbols."""

    function: str
    inputs: Record


@dataclass(frozen=True, slots=True)
class Claim:
    """For every state that meets all assumptions (and the envelope), every goal holds.

    `assuming` names each assumption, `goal` each part of the goal if there are several; `shows`
    names what a counterexample displays between its inputs and the verdict: guards, bytes per
    region, intermediate values. `solver_only` keeps the calculus out: a rule of its own is no
    proof of that rule. `launches` is the call that a state stands for, where kernels can execute
    it: `replay` runs them on a counterexample.
    """

    goal: Bool | Mapping[str, Bool]
    assuming: Mapping[str, Bool] = field(default_factory=dict)
    envelope: Envelope | None = None
    shows: Mapping[str, Term | Record] = field(default_factory=dict)
    solver_only: bool = False
    settles: Mapping[str, int] = field(default_factory=dict)
    regimes: Mapping[str, Bool] = field(default_factory=dict)
    launches: Invocation | None = None

    def __post_init__(self) -> None:
        """Refuse what is not a condition: a Python bool or None is the same for every state."""
        _require(self.envelope is None or isinstance(self.envelope, Envelope), "an envelope")
        for what, parts, kinds in (
            ("a condition over symbols", self.assuming, Bool),
            ("a condition over symbols", self.goals, Bool),
            ("a condition over symbols", self.regimes, Bool),
            ("a term or a record", self.shows, Term | Record),
        ):
            _require(isinstance(parts, Mapping), f"a mapping of names to {what}")
            for name, part in parts.items():
                given: object = name
                is_line = isinstance(given, str) and given.isprintable()
                _require(is_line, f"{name!r}: names are printable texts")
                if not isinstance(part, kinds):  # a term is long: written out only when it is wrong
                    raise ModelError(f"{name!r} is {part!r}, not {what}")
        for name in ("goal", "assuming", "shows", "regimes"):
            self._plain_names(name)
        if not self.goals:
            raise ModelError("a claim without a goal would hold of anything")
        _require(isinstance(self.settles, Mapping), "a mapping of symbol names to integers")
        for name, value in self.settles.items():
            _require(type(value) is int, f"{name!r} settles at {value!r}, not at an integer")
        if self.settles or self.regimes:
            self._check_symbols()
        launches: object = self.launches
        _require(launches is None or isinstance(launches, Invocation), "an Invocation")

    def _plain_names(self, field_name: str) -> None:
        """Names are texts as such: a kind of its own could show another text than it is."""
        parts = getattr(self, field_name)
        if isinstance(parts, Mapping) and any(type(one) is not str for one in parts):
            plain = {str.__str__(key): value for key, value in parts.items()}
            object.__setattr__(self, field_name, plain)

    def _check_symbols(self) -> None:
        """Refuse names that settle nothing, and regimes of what the claim is not about."""
        symbols = free_symbols(*self.conditions.values(), *self.goals.values())
        known = [one.name for one in symbols]
        integers = [one.name for one in symbols if isinstance(one, Int)]
        for name in self.settles:
            given: object = name  # a symbol in place of its name compares as a term
            is_known = isinstance(given, str) and given in integers
            _require(is_known, f"{name!r} settles, but {_unknown(name, integers)}")
        for symbol in free_symbols(*self.regimes.values()):
            _require(symbol.name in known, f"a regime, but {_unknown(symbol.name, known)}")

    @property
    def goals(self) -> Mapping[str, Bool]:
        """The goal's parts by name."""
        return self.goal if isinstance(self.goal, Mapping) else {"goal": self.goal}

    @property
    def conditions(self) -> Mapping[str, Bool]:
        """Everything a state has to meet to count: the assumptions, then the envelope's bounds."""
        bounds = self.envelope.bounds if self.envelope else ()
        named = dict(self.assuming)
        for bound in bounds:
            texts = itertools.chain([str(bound)], map(f"{bound} ({{}})".format, itertools.count(2)))
            name = next(text for text in texts if named.get(text, bound.holds) is bound.holds)
            named[name] = bound.holds
        return named

    @property
    def shown(self) -> Mapping[str, Term]:
        """What a counterexample displays, records opened field by field."""
        terms: dict[str, Term] = {}
        for label, item in self.shows.items():
            terms |= leaves(item, label) if isinstance(item, Record) else {label: item}
        return terms


@dataclass(frozen=True, slots=True)
class Rows:
    """The modelled function reproduces every row that the real code computed.

    `resource` is a gzip file of JSON lines next to the module `package`; each row has `in` and
    one key per output of the function.
    """

    function: str
    package: str
    resource: str

    def __post_init__(self) -> None:
        """Refuse what is not three names."""
        for name in (self.function, self.package, self.resource):
            _require(isinstance(name, str), f"{name!r}: Rows takes three names")


@dataclass(frozen=True, slots=True)
class Reach:
    """The decision table of an outcome over static facts, equivalent to "some Run takes it".

    The engine computes the table over the ladder's admitted states; the verdict is `proved` when
    the table is equivalent, each row prime and none redundant.
    """

    ladder: Ladder
    outcome: str

    def __post_init__(self) -> None:
        """Refuse what is not a ladder."""
        _require(isinstance(self.ladder, Ladder), f"{self.ladder!r} is not a Ladder")


Statement = Claim | Rows | Reach


@dataclass(frozen=True, slots=True)
class Obligation:
    """A statement with a dotted id, where it comes from, and the verdict that is expected of it.

    A statement may have parameters that a test runner fills in; only without any left it is built.
    """

    id: str
    title: str
    source: Source
    expected: Verdict
    statement: Callable[..., Statement]
    location: str
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse ids that cannot be globbed and expectations that are failures."""
        _require(isinstance(self.id, str), f"the id {self.id!r} is not a text")
        _require(isinstance(self.title, str), f"{self.id}: the title is not a text")
        _require(self.title.isprintable(), f"{self.id}: the title is not one printable line")
        _require(isinstance(self.note, str), f"{self.id}: the note is not a text")
        _require(isinstance(self.source, Source), f"{self.id}: the source is not a Source")
        if not _ID.fullmatch(self.id):
            raise ModelError(
                f"obligation id {self.id!r} is not dotted lower-case words, such as kernel.bound"
            )
        if self.expected not in (Verdict.PROVED, Verdict.REFUTED, Verdict.REPLAYED):
            raise ModelError(f"{self.id}: {self.expected} is never an expectation")


_declared: ContextVar[list[Obligation] | None] = ContextVar("_declared", default=None)


@contextmanager
def declaring() -> Iterator[list[Obligation]]:
    """The obligations made meanwhile, in order, whatever becomes of their names."""
    made: list[Obligation] = []
    token = _declared.set(made)
    try:
        yield made
    finally:
        _declared.reset(token)


@overload
def obligation(
    id: str,
    title: str,
    *,
    source: Source | None = None,
    expect: str = "proved",
    note: str = "",
    each: None = None,
) -> Callable[[Callable[..., Statement]], Obligation]: ...


@overload
def obligation(
    id: str,
    title: str,
    *,
    source: Source | None = None,
    expect: str = "proved",
    note: str = "",
    each: Mapping[str, Iterable[object]],
) -> Callable[[Callable[..., Statement]], tuple[Obligation, ...]]: ...


def obligation(  # noqa: PLR0913 - each one is said of a statement
    id: str,  # noqa: A002 - the word users write
    title: str,
    *,
    source: Source | None = None,
    expect: str = "proved",
    note: str = "",
    each: Mapping[str, Iterable[object]] | None = None,
) -> Callable[[Callable[..., Statement]], Obligation | tuple[Obligation, ...]]:
    """Decorator: the function that builds the statement becomes the `Obligation`.

    Without a source, it speaks of the file that it is written in. `each` maps parameters of the
    function to the values that they take: it becomes one obligation per combination, with the
    values written into id and title where these name a parameter in braces.
    """
    if expect not in ("proved", "refuted", "replayed"):
        raise ModelError(f"{id}: expect={expect!r} is not proved, refuted or replayed")

    def wrap(build: Callable[..., Statement]) -> Obligation | tuple[Obligation, ...]:
        code = build.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
        said = source or Source(Path(code.co_filename).name, build.__name__, "as written")
        variants = [(id, title, build)] if each is None else _variants(id, title, build, each)
        made = tuple(
            Obligation(name, text, said, Verdict(expect), statement, where, note)
            for name, text, statement in variants
        )
        _declare(made)
        return made[0] if each is None else made

    return wrap


def _declare(made: tuple[Obligation, ...]) -> None:
    """Note them where they are waited for, and in the module whose body runs.

    A factory may stand in another module than the one that calls it; it is the latter's.
    """
    if (declared := _declared.get()) is not None:
        declared.extend(made)
    frame = inspect.currentframe()
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame:
        frame.f_globals.setdefault(DECLARED, []).extend(made)


def parameters_left(build: Callable[..., Statement]) -> list[str]:
    """The parameters that have to be filled in before the statement can be built."""
    return [
        name
        for name, one in inspect.signature(build).parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


_Variant = tuple[str, str, Callable[..., Statement]]


def _variants(
    name: str,
    title: str,
    build: Callable[..., Statement],
    each: Mapping[str, Iterable[object]],
) -> list[_Variant]:
    """Id, title and statement for every combination of the axes, the last one fastest."""
    axes = _axes(name, build, each)
    found: dict[str, _Variant] = {}
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        statement = functools.partial(build, **chosen)
        vars(statement).update(vars(build))  # marks of a test runner stay with it
        own = _written(name, name, chosen)
        _require(own not in found, f"{name}: two combinations are called {own!r}")
        found[own] = own, _written(title, name, chosen), statement
    return list(found.values())


def _axes(
    name: str, build: Callable[..., Statement], each: Mapping[str, Iterable[object]]
) -> dict[str, tuple[object, ...]]:
    """The values of each axis, once it is known that every one is taken, named and not empty."""
    _require(isinstance(each, Mapping), f"{name}: each is no mapping of parameters to values")
    _require(bool(each), f"{name}: each names no parameter")
    named = _fields(name)
    taken = inspect.signature(build).parameters
    for axis, values in each.items():
        _require(axis in taken, f"{name}: {build.__name__}() takes no {axis!r}")
        _require(axis in named, f"{name}: the id lacks {{{axis}}}, so that all would be called one")
        given: object = values
        is_list = isinstance(given, Iterable) and not isinstance(given, str)
        _require(is_list, f"{name}: {axis}={given!r} is no list of values")
    axes = {axis: tuple(values) for axis, values in each.items()}
    for axis, several in axes.items():
        _require(bool(several), f"{name}: {axis} has no values, so that nothing would be claimed")
    return axes


def _fields(text: str) -> set[str]:
    """The names in braces."""
    try:
        return {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(text) if name}
    except (TypeError, ValueError) as error:
        raise ModelError(f"{text!r}: {error}") from error


def _written(text: str, name: str, values: Mapping[str, object]) -> str:
    """The text with the values in place of their names."""
    try:
        return text.format_map(values)
    except KeyError as error:
        missing = str(error.args[0])
        raise ModelError(f"{name}: no axis {missing!r}{closest(missing, values)}") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        told = ", ".join(f"{axis}={value!r}" for axis, value in values.items())
        raise ModelError(f"{name}: {text!r} cannot be written for {told}: {error}") from error
