"""Records: frozen dataclasses of terms, so that a model reads like the system it describes.

A field's annotation says what the system declares: `Int64`, `Bool`, `Annotated[Enum, SORT]`,
another record, or a set of enumerators. `symbols()` makes the symbolic instance, `leaves()` names
every term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

from .errors import ModelError
from .terms import (
    Bool,
    Enum,
    EnumSort,
    Float,
    Int,
    IntDomain,
    Term,
    ite,
    set_place,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
)

__all__ = [
    "EnumSet",
    "Float32",
    "Int32",
    "Int64",
    "Record",
    "SizeT",
    "flat",
    "leaves",
    "nested",
    "select",
    "symbols",
]

Int32 = Annotated[Int, IntDomain(-(2**31), 2**31 - 1)]
Int64 = Annotated[Int, IntDomain(-(2**63), 2**63 - 1)]
SizeT = Annotated[Int, IntDomain(0, 2**64 - 1)]
Float32 = Annotated[Float, 32]


@dataclass(frozen=True, slots=True)
class Record:
    """Base of every record of a model; subclasses are frozen dataclasses whose fields are terms."""


@dataclass(frozen=True, slots=True)
class EnumSet:
    """A set of enumerators as one `Bool` per member; printed as the list of members present."""

    sort: EnumSort
    present: Mapping[str, Bool]

    def has(self, member: str) -> Bool:
        """Whether the member is in the set."""
        if member not in self.present:
            raise ModelError(f"{self.sort.name} has no member {member!r}")
        return self.present[member]


R = TypeVar("R", bound=Record)


def symbols(record: type[R], prefix: str = "") -> R:
    """The record with a fresh symbol per field, named `prefix.field`."""
    hints = get_type_hints(record, include_extras=True)
    names = [field.name for field in fields(cast("Any", record))]
    join = f"{prefix}.".lstrip(".")
    made = record(**{name: _symbol(hints[name], join + name) for name in names})
    for place, symbol in enumerate(leaves(made).values()):
        set_place(symbol, place)
    return made


def _symbol(hint: Any, path: str) -> Term | Record | EnumSet:  # noqa: ANN401 - any annotation
    base, *extra = get_args(hint) or (hint,)
    match base, extra:
        case _ if isinstance(base, type) and issubclass(base, Record):
            return symbols(base, path)
        case _ if base is Bool:
            return symbol_bool(path)
        case _, [IntDomain() as domain] if base is Int:
            return symbol_int(path, domain)
        case _, [EnumSort() as sort] if base is Enum:
            return symbol_enum(path, sort)
        case _, [EnumSort() as sort] if base is EnumSet:
            return EnumSet(sort, {one: symbol_bool(f"{path}.{one}") for one in sort.members})
        case _, [32 | 64 as width] if base is Float:
            return symbol_float(path, width)
    raise ModelError(f"{path}: an input field needs a machine type or an enum, not {hint!r}")


def leaves(record: Record, prefix: str = "") -> dict[str, Term]:
    """Every term of the record by its dotted path, in declared order."""
    return dict(_leaves(record, prefix))


def _leaves(node: object, path: str) -> Iterator[tuple[str, Term]]:
    if isinstance(node, Term):
        yield path, node
    elif isinstance(node, EnumSet):
        yield from ((f"{path}.{member}", term) for member, term in node.present.items())
    elif is_dataclass(node) and not isinstance(node, type):
        for field in fields(node):
            yield from _leaves(getattr(node, field.name), f"{path}.{field.name}".lstrip("."))
    else:
        raise ModelError(f"{path}: a record holds terms and records, not {node!r}")


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a row of nested mappings by dotted path."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        path = f"{prefix}{name}"
        found |= flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return found


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The row whose `flat` values these are."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        *parents, name = path.split(".")
        place = found
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
    return found


def select(condition: Bool, then: R, otherwise: R) -> R:
    """The record that is `then` where the condition holds, else `otherwise`, field by field."""
    return cast("R", _select(condition, then, otherwise))


def _select(condition: Bool, then: object, otherwise: object) -> object:
    if type(then) is not type(otherwise):
        raise ModelError(f"select() joins {type(then).__name__} and {type(otherwise).__name__}")
    if isinstance(then, Term):
        return ite(condition, cast("Int", then), cast("Int", otherwise))
    if isinstance(then, EnumSet) and isinstance(otherwise, EnumSet):
        if then.sort != otherwise.sort:
            raise ModelError(f"select() joins sets of {then.sort.name} and {otherwise.sort.name}")
        other = otherwise.present
        return EnumSet(then.sort, {k: ite(condition, v, other[k]) for k, v in then.present.items()})
    names = [field.name for field in fields(cast("Any", then))]
    chosen = {n: _select(condition, getattr(then, n), getattr(otherwise, n)) for n in names}
    return type(then)(**chosen)
