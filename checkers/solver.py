"""One typed door to the solvers: SMT-LIB text and limits in, an answer with a model out.

z3 and cvc5 carry no type information; nothing else in the package touches them. Resource units
are the first limit (they repeat exactly on one build), wall clock the second, memory the third.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from routeproof.spec.errors import InputError, RouteproofError
from routeproof.spec.interpret import Value
from routeproof.spec.terms import Bool, EnumSort, Int, Term, Width, symbol_bool

from .readings.smtlib import script, symbol_name

__all__ = [
    "Answer",
    "Facts",
    "Limits",
    "Options",
    "Undecided",
    "ask",
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
    import z3  # noqa: PLC0415 - heavy

    return f"z3 {z3.get_version_string()}"


def ask(text: str, symbols: Sequence[Term], limits: Limits, seed: int = 0) -> Answer:
    """Give the script to z3; running out of any limit is `unknown`, never an exception."""
    import z3  # noqa: PLC0415 - heavy

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
    return Answer(_STATUS.get(status, "unknown"), model, _spent(solver), reason)


def second_opinion(text: str, limits: Limits) -> tuple[str, str]:
    """What cvc5 says of the same script (`sat`, `unsat` or `unknown`), and its version."""
    try:
        import cvc5  # noqa: PLC0415 - optional
    except ImportError as error:
        raise InputError("the second solver is not installed: pip install cvc5") from error
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(int(limits.seconds * 1000)))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols, said = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, symbols))
    words = said.split()
    return words[-1] if words else "unknown", f"cvc5 {solver.getVersion()}"


_STATUS: Mapping[str, Literal["sat", "unsat", "unknown"]] = {"sat": "sat", "unsat": "unsat"}


def _spent(solver: Any) -> int:  # noqa: ANN401 - untyped library
    statistics = solver.statistics()
    found = [n for key, n in ((k, statistics.get_key_value(k)) for k in statistics.keys()) if key == "rlimit count"]  # noqa: SIM118,E501
    return int(found[0]) if found else 0


def _model(model: Any, symbols: Sequence[Term]) -> dict[str, Value]:  # noqa: ANN401 - untyped library
    known = {symbol_name(symbol): symbol for symbol in symbols}
    values = {f"|{declaration.name()}|": model[declaration] for declaration in model.decls()}
    return {known[n].name: _value(known[n], value) for n, value in values.items() if n in known}


def _value(symbol: Term, value: Any) -> Value:  # noqa: ANN401 - untyped library
    import z3  # noqa: PLC0415 - heavy

    if isinstance(symbol, Bool):
        return bool(z3.is_true(value))
    if isinstance(symbol, Int):
        return int(value.as_long())
    if isinstance(symbol.sort, EnumSort):
        return str(value).strip("|").removeprefix(f"{symbol.sort.name}.")
    width: Width = 32 if symbol.sort == 32 else 64  # noqa: PLR2004 - the width
    bits = z3.simplify(z3.fpToIEEEBV(value, ctx=value.ctx)).as_long()
    number: float = struct.unpack(">f" if width == 32 else ">d", bits.to_bytes(width // 8, "big"))[0]  # noqa: PLR2004
    return number


class Facts:
    """Named conditions over one set of assertions, asked about in any combination.

    Keeps one solver warm: each question assumes some conditions true and some false.
    """

    def __init__(
        self, assertions: Sequence[Bool], conditions: Mapping[str, Bool], limits: Limits
    ) -> None:
        """Assert, and name each condition; the names must be plain words."""
        import z3  # noqa: PLC0415 - heavy

        names = {symbol_bool(name): term for name, term in conditions.items()}
        text = script([*assertions, *(name == term for name, term in names.items())])
        self._solver = z3.Solver(ctx=z3.Context())
        self._solver.set("rlimit", limits.resources)
        self._solver.set("timeout", int(limits.seconds * 1000))
        self._solver.from_string(text)
        self._handles = {name: z3.Bool(name, self._solver.ctx) for name in conditions}

    def ask(self, *literals: tuple[str, bool]) -> dict[str, bool] | tuple[tuple[str, bool], ...]:
        """A truth value per condition, or the literals that already contradict each other.

        Raises `Undecided` when the solver gives up.
        """
        import z3  # noqa: PLC0415 - heavy

        signed = {self._literal(one): one for one in literals}
        status = self._solver.check(*signed)
        if status == z3.sat:
            model = self._solver.model()
            return {
                name: bool(z3.is_true(model.eval(handle, model_completion=True)))
                for name, handle in self._handles.items()
            }
        if status == z3.unknown:
            raise Undecided(self._solver.reason_unknown())
        core = {str(literal) for literal in self._solver.unsat_core()}
        return tuple(one for literal, one in signed.items() if str(literal) in core)

    def exclude(self, literals: Sequence[tuple[str, bool]]) -> None:
        """From now on, no answer meets all these literals."""
        import z3  # noqa: PLC0415 - heavy

        self._solver.add(z3.Not(z3.And(*map(self._literal, literals), self._solver.ctx)))

    def _literal(self, literal: tuple[str, bool]) -> Any:  # noqa: ANN401 - untyped library
        import z3  # noqa: PLC0415 - heavy

        name, positive = literal
        return self._handles[name] if positive else z3.Not(self._handles[name])


class Undecided(RouteproofError):
    """The solver gave up on a question that a table needs; the verdict is `unknown`."""

    code = "RP302"
