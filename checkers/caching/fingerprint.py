"""A digest of a statement: equal for two that no engine could tell apart, from run to run.

It covers the structure of every term, all names, their order, and the order of the symbols; for
recorded rows the model's terms and the bytes of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from importlib import resources

from routeproof.checkers.registry import load_function
from routeproof.spec.derivation import Digests
from routeproof.spec.obligation import Rows, Statement
from routeproof.spec.records import Record
from routeproof.spec.terms import Term, free_symbols

__all__ = ["digest", "statement_digest"]

_BYTES = 16


def digest(data: object) -> str:
    """The digest of JSON data, whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def statement_digest(statement: Statement) -> str | None:
    """The statement's digest; None if it holds what has no digest, and so cannot be recognised."""
    read: list[object] = [statement]
    walk = _Walk()
    try:
        if isinstance(statement, Rows):
            function = load_function(statement.function)
            packed = resources.files(statement.package).joinpath(statement.resource).read_bytes()
            read += [function.name, function.inputs, function.outputs, packed.hex()]
        plain = walk.plain(read)
    except (TypeError, ImportError, OSError, ValueError):  # who decides it says what is wrong
        return None
    return digest([plain, [symbol.name for symbol in free_symbols(*walk.terms)]])


class _Walk:
    """Parts of the language as JSON data: types by name, terms by digest."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self._names = Digests(_BYTES)

    def plain(self, part: object) -> object:
        """The data; `TypeError` for what is no part of the language."""
        if isinstance(part, Term):
            self.terms.append(part)
            return ["term", self._names(part)]
        if isinstance(part, Enum):  # of a user's own: what it is may change below its name
            raise TypeError(type(part))
        if part is None or type(part) in (bool, int, str):
            return part
        if isinstance(part, Mapping):
            return ["mapping", [[self.plain(key), self.plain(one)] for key, one in part.items()]]
        if type(part) in (list, tuple):
            return [type(part).__name__, [self.plain(one) for one in part]]  # type: ignore[attr-defined]
        if is_dataclass(part) and _is_ours(type(part)):
            values = [[one.name, self.plain(getattr(part, one.name))] for one in fields(part)]
            return [type(part).__qualname__, values]
        raise TypeError(type(part))


def _is_ours(kind: type) -> bool:
    """Whether it means what its fields say: a subclass of a user's own may answer otherwise."""
    return kind.__module__.startswith("routeproof.spec.") or issubclass(kind, Record)
