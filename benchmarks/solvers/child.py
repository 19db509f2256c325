"""One solver, one query, one seed, in a process of its own: `child.py SOLVER FILE SEED SECONDS`.

Prints a JSON line: what the solver said, and the seconds of processor time, of every thread, that
it took to read the text and to answer; starting Python and importing the solver are not counted.
The solver knows no limit of its own, since that would be wall clock: the kernel ends the process.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 4 << 30  # of address space


def z3_asks(text: str, seed: int) -> Callable[[], str]:
    """The question put to z3."""
    import z3  # noqa: PLC0415 - only the solver that is asked is loaded

    z3.set_param("smt.random_seed", seed)
    solver = z3.Solver()
    solver.set("random_seed", seed)

    def ask() -> str:
        solver.from_string(text)
        return str(solver.check())

    return ask


def cvc5_asks(text: str, seed: int) -> Callable[[], str]:
    """The question put to cvc5."""
    import cvc5  # noqa: PLC0415 - as above

    solver = cvc5.Solver()
    solver.setOption("seed", str(seed))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")

    def ask() -> str:
        symbols, said = parser.getSymbolManager(), ""
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, symbols))
        return said

    return ask


_SOLVERS: Final = {"z3": z3_asks, "cvc5": cvc5_asks}


def main() -> None:
    """Ask once."""
    solver, file, seed, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # SIGXCPU would dump all that memory
    text = Path(file).read_text(encoding="utf-8")
    ask = _SOLVERS[solver](text, int(seed))
    started = time.process_time()
    last = math.ceil(started + float(limit))  # the kernel counts whole seconds
    resource.setrlimit(resource.RLIMIT_CPU, (last, last + 1))
    said = ask().split()
    took = time.process_time() - started
    print(json.dumps({"said": said[0] if said else "nothing", "seconds": took}))  # noqa: T201 - output


if __name__ == "__main__":
    main()
