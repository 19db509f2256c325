"""One typed door to the solvers: SMT-LIB text and limits in, an answer with a model out.

z3 and cvc5 carry no type information; nothing else in the package touches them. Resource units
are the first limit (they repeat exactly on one build), wall clock the second, memory the third.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from routeproof.spec.interpret import Value
from routeproof.spec.terms import Bool, EnumSort, Int, Term, Width

from .readings.smtlib import symbol_name

__all__ = ["Answer", "Limits", "ask", "solver_version"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may spend: solver resource units, seconds, and memory (MiB) of the process."""

    resources: int = 30_000_000
    seconds: float = 20.0
    megabytes: int = 1024


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
    context = z3.Context()
    solver = z3.Solver(ctx=context)
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
