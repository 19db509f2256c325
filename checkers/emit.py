"""The reading of a modelled function as source text: C++17, Rust and Python, with its tests.

A term is a mathematical integer and the machine's are not. So the text computes on integers that
may be *unknown*: in C++ and Rust they have 128 bits, what does not fit is unknown, and so is all
that is computed from it; Python's are exact.

Why the text is never wrong: step by step, a value that is known is the model's. Whatever needs the
value of an unknown one, to decide by it or to return it, ends the function without an answer (an
exception, in Rust `None`), and so does an output that does not fit its type. Guards are outputs
simplified under their condition, what follows them is simplified under its opposite. That a step
fits is never taken from a range. Ranges do simplify, by `prune`, as they do for every engine: from
the domains of the inputs, which the text tests first, and from the guards passed.

Why there is an answer: an unknown value does no harm until it is needed, and conditions are
evaluated in the model's order, from the left, no further than needed. One that several places share
is computed ahead and, if it may need an unknown value, is unknown itself. So the function answers
wherever the model is decided by values of 128 bits: `Checks` compares each product with its limit
of 64 bits before the next is formed of it, whatever the machine integers that come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

from routeproof.spec.function import Function

from .emitting.cpp import write_cpp
from .emitting.plan import plan
from .emitting.python import write_python
from .emitting.rust import write_rust
from .emitting.vectors import read_vectors
from .values import Json

__all__ = ["Language", "emit"]

Language = Literal["cpp", "rust", "python"]
_WRITERS = MappingProxyType({"cpp": write_cpp, "rust": write_rust, "python": write_python})


def emit(
    function: Function,
    language: Language,
    vectors: Sequence[Json],
) -> str:
    """The function in the language, and a test that has each vector as a case.

    Vectors are rows as `routeproof eval` reads and prints them: an object with the key `in` and one
    key per output record. A table of the function replaces an input by a look-up: it is not
    passed; where the index is not in the table it is the table's `outside`, which the function
    judges as any other value. Only integers, booleans and enums can be written, no float and no
    search.
    """
    planned = plan(function)
    return _WRITERS[language](planned, read_vectors(planned, vectors))
