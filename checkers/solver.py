"""One typed door to the solvers: SMT-LIB text and limits in, an answer with a model out.

z3 and cvc5 carry no type information; nothing else in the package touches them. Resource units
are the first limit (they repeat exactly on one build), wall clock the second, memory the third.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

from routeproof.spec.errors import InputError, RouteproofError
from routeproof.spec.interpret import Value
from routeproof.spec.terms import Bool, EnumSort, Int, Term, Width, symbol_bool

from .abstraction import unused_prefix
from .readings.smtlib import script, symbol_name
from .unrolling import unroll

__all__ = [
    "Answer",
    "Facts",
    "Limits",
    "Options",
    "SignedFact",
    "UndecidedError",
    "ask",
    "memory_limit_kept",
    "second_opinion",
    "solver_version",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may spend: solver resource units, seconds, and memory (MiB) of the process."""

    resources: int = 30_000_000
    seconds: float = 20.0
    megabytes: int = 1024


@dataclass(frozen=True, slots=True)
class Options:
    """How to decide: limits per query, the seed, which engine, and whether to ask cvc5 too."""

    limits: Limits = Limits()
    seed: int = 0
    engine: Literal["auto", "smt", "sampling"] = "auto"
    second: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """`unsat`, `sat` with a value per symbol that matters, or `unknown` with the reason."""

    status: Literal["sat", "unsat", "unknown"]
    model: Mapping[str, Value]
    resources: int
    reason: str = ""


def solver_version() -> str:
    """Name and version of the solver."""
    import z3

    return f"z3 {z3.get_version_string()}"


def ask(text: str, symbols: Sequence[Term], limits: Limits, seed: int = 0) -> Answer:
    """Give the script to z3; running out of any limit is `unknown`, never an exception."""
    import z3

    z3.set_param("memory_max_size", limits.megabytes)
    solver = z3.SimpleSolver(ctx=z3.Context())
    solver.set("rlimit", limits.resources)
    solver.set("timeout", int(limits.seconds * 1000))
    solver.set("random_seed", seed)
    try:
        solver.from_string(text)
        status = str(solver.check())
        model = _model(solver.model(), symbols) if status == "sat" else {}
        reason = solver.reason_unknown() if status == "unknown" else ""
    except z3.Z3Exception as error:
        status, model, reason = "unknown", {}, str(error)
    spent = _spent(solver)
    said = _explained(reason, spent, limits) if reason else ""
    return Answer(_STATUS.get(status, "unknown"), model, spent, said)


@contextmanager
def memory_limit_kept() -> Iterator[None]:
    """Give the limit back that z3 had: it has one for all that use it in this process."""
    import z3

    before = z3.get_param("memory_max_size")
    try:
        yield
    finally:
        z3.set_param("memory_max_size", before)


def _explained(reason: str, spent: int, limits: Limits) -> str:
    """Which limit ended the query, and the option that raises it."""
    if spent >= limits.resources or "resource" in reason:
        return f"the solver used up {limits.resources:,} resource units (--rlimit)"
    if "memory" in reason:
        return f"the solver used up {limits.megabytes:,} MiB (--memory)"
    if reason in ("timeout", "canceled"):
        return f"the solver used up {limits.seconds:g} s (--timeout)"
    return f"the solver gave up: {reason}"


def second_opinion(text: str, limits: Limits) -> tuple[str, str]:
    """What cvc5 says of the same script (`sat`, `unsat` or `unknown`), and its version."""
    try:
        import cvc5
    except ImportError as error:
        raise InputError("the second solver is not installed: pip install cvc5") from error
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(int(limits.seconds * 1000)))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols, said = parser.getSymbolManager(), ""
    try:
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, symbols))
    except RuntimeError:  # cvc5's own root; what it cannot express it does not answer
        said = "unknown"
    version = solver.getVersion()  # bytes in some releases
    version = version.decode() if isinstance(version, bytes) else version
    word = said.strip()
    return word if word in ("sat", "unsat") else "unknown", f"cvc5 {version}"


_STATUS: Mapping[str, Literal["sat", "unsat", "unknown"]] = {"sat": "sat", "unsat": "unsat"}


def _spent(solver: Any) -> int:  # noqa: ANN401 - untyped library
    statistics = solver.statistics()
    keys: list[str] = list(statistics.keys())
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in keys else 0


def _model(model: Any, symbols: Sequence[Term]) -> dict[str, Value]:  # noqa: ANN401 - untyped library
    known = {symbol_name(symbol): symbol for symbol in symbols}
    values = {f"|{declaration.name()}|": model[declaration] for declaration in model.decls()}
    return {known[n].name: _value(known[n], value) for n, value in values.items() if n in known}


def _value(symbol: Term, value: Any) -> Value:  # noqa: ANN401 - untyped library
    import z3

    if isinstance(symbol, Bool):
        return bool(z3.is_true(value))
    if isinstance(symbol, Int):
        return int(value.as_long())
    if isinstance(symbol.sort, EnumSort):
        return _member(symbol.sort, value)
    if value.isNaN():
        return math.nan
    width: Width = 32 if symbol.sort == 32 else 64
    bits = z3.simplify(z3.fpToIEEEBV(value, ctx=value.ctx)).as_long()
    number: float = struct.unpack(">f" if width == 32 else ">d", bits.to_bytes(width // 8, "big"))[
        0
    ]
    return number


def _member(sort: EnumSort, value: Any) -> str:  # noqa: ANN401 - untyped library
    known = value.sort()
    return next(
        member for at, member in enumerate(sort.members) if known.constructor(at).eq(value.decl())
    )


SignedFact = tuple[str, bool]


class Facts:
    """Named conditions over one set of assertions, asked about in any combination.

    Keeps one solver warm: each question assumes some conditions true and some false. Every
    question raises `UndecidedError` when the solver gives up.
    """

    def __init__(
        self, assertions: Sequence[Bool], conditions: Mapping[str, Bool], limits: Limits
    ) -> None:
        """Assert, and name each condition."""
        import z3

        mark = unused_prefix(*assertions, *conditions.values())
        names = {name: symbol_bool(f"{mark}{name}") for name in conditions}
        named = (names[name] == term for name, term in conditions.items())
        text = script(cast("tuple[Bool, ...]", unroll((*assertions, *named))))
        self._solver = z3.Solver(ctx=z3.Context())
        self._solver.set("rlimit", limits.resources)
        self._solver.set("timeout", int(limits.seconds * 1000))
        self._solver.from_string(text)
        handles = {
            name: z3.Bool(symbol_name(symbol).strip("|"), self._solver.ctx)
            for name, symbol in names.items()
        }
        self._handles = handles
        self._literals = {(name, True): handle for name, handle in handles.items()}
        self._literals |= {(name, False): z3.Not(handle) for name, handle in handles.items()}
        self._named = {handle.get_id(): one for one, handle in self._literals.items()}

    def state(self, *literals: SignedFact) -> dict[str, bool] | None:
        """A truth value per condition that agrees with the literals, or None if there is none."""
        import z3

        if not self._satisfiable(literals):
            return None
        model = self._solver.model()
        return {
            name: bool(z3.is_true(model.eval(handle, model_completion=True)))
            for name, handle in self._handles.items()
        }

    def conflict(self, *literals: SignedFact) -> frozenset[SignedFact] | None:
        """Literals among the given that already contradict each other, or None if they agree."""
        if self._satisfiable(literals):
            return None
        return frozenset(self._named[one.get_id()] for one in self._solver.unsat_core())

    def exclude(self, literals: Sequence[SignedFact]) -> None:
        """From now on, no state meets all these literals."""
        import z3

        negated = [self._literals[name, not sign] for name, sign in literals]
        self._solver.add(z3.Or(*negated, self._solver.ctx))

    def _satisfiable(self, literals: Sequence[SignedFact]) -> bool:
        import z3

        status = self._solver.check(*(self._literals[one] for one in literals))
        if status == z3.unknown:
            raise UndecidedError(self._solver.reason_unknown())
        return bool(status == z3.sat)


class UndecidedError(RouteproofError):
    """The solver gave up on a question that a table needs; the verdict is `unknown`."""

    code = "RP302"
