"""The records of vectors as a systems language declares them: structs, enumerations and numbers.

An integer has 64 bits. It is signed, unless none of its values is negative and one of them, or its
domain, goes beyond that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from routeproof.checkers.values import Json
from routeproof.spec.records import EnumSet, Record
from routeproof.spec.terms import Bool, EnumSort, Float, Int, Term

from .boundary import Vector, Vectors

__all__ = ["Enumeration", "Field", "Flag", "Integer", "Real", "Shape", "Shapes", "Struct"]

_LEAST, _MOST_SIGNED, _MOST = -(2**63), 2**63 - 1, 2**64 - 1


@dataclass(frozen=True, slots=True)
class Integer:
    """64 bits."""

    is_unsigned: bool


@dataclass(frozen=True, slots=True)
class Flag:
    """A truth value."""


@dataclass(frozen=True, slots=True)
class Real:
    """An IEEE float of 32 or 64 bits."""

    width: int


@dataclass(frozen=True, slots=True)
class Enumeration:
    """A type and its members: the identifier of each by the name that rows have."""

    name: str
    members: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its key in rows, its identifier, and what it holds."""

    key: str
    name: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Struct:
    """A type and its fields; a set of enumerators is a struct of flags, and a list in rows."""

    name: str
    fields: tuple[Field, ...]
    is_set: bool = False

    def parts(self, data: Json) -> list[tuple[Field, Json]]:
        """Each field with its part of the data."""
        if self.is_set:
            return [(field, field.key in data) for field in self.fields]
        return [(field, data[field.key]) for field in self.fields]

    def leaves(self, path: str = "") -> list[tuple[str, Shape]]:
        """What is inside that has no fields itself, by dotted path."""
        found: list[tuple[str, Shape]] = []
        for field in self.fields:
            at = f"{path}.{field.name}".lstrip(".")
            found += (
                field.shape.leaves(at) if isinstance(field.shape, Struct) else [(at, field.shape)]
            )
        return found


Shape = Integer | Flag | Real | Enumeration | Struct


class Shapes:
    """The types of a function's input and output, and the vectors that they can hold.

    `reserved` are the words that no identifier may be, `taken` the names of types beside these.
    """

    def __init__(self, found: Vectors, reserved: Collection[str], taken: Collection[str]) -> None:
        """Declare what the input needs first, and every type after those inside of it."""
        self._reserved = reserved
        self._taken = set(taken)
        self._known: dict[object, Shape] = {}
        function = found.function
        self._keys = tuple(function.outputs)
        self._values: dict[tuple[type[Record], str], list[int]] = {}
        for vector in found.vectors:
            self._gather(function.inputs, vector.row["in"])
            for key, record in function.outputs.items():
                self._gather(record, vector.row[key])
        self.input = self._struct(function.inputs)
        outputs = tuple(
            Field(key, self._identifier(key), self._struct(record))
            for key, record in function.outputs.items()
        )
        self.output = self._outputs(outputs)
        self.vectors = [one for one in found.vectors if self._fits(one)]
        self.left_out = len(found.vectors) - len(self.vectors)

    @property
    def types(self) -> list[Enumeration | Struct]:
        """Every declared type, after those that it mentions."""
        return [one for one in self._known.values() if isinstance(one, Enumeration | Struct)]

    def answer(self, vector: Vector) -> Json:
        """The vector's part that `output` describes."""
        return vector.row if len(self._keys) > 1 else vector.row[self._keys[0]]

    def _gather(self, record: Record, data: Json) -> None:
        for field in fields(cast("Any", record)):
            part = getattr(record, field.name)
            if isinstance(part, Record):
                self._gather(part, data[field.name])
            elif isinstance(part, Int):
                self._values.setdefault((type(record), field.name), []).append(data[field.name])

    def _outputs(self, outputs: tuple[Field, ...]) -> Struct:
        if len(outputs) == 1:
            return cast("Struct", outputs[0].shape)
        made = Struct(self._type_name("Outputs"), outputs)
        self._known["outputs"] = made
        return made

    def _struct(self, record: Record) -> Struct:
        kind = type(record)
        if kind not in self._known:
            inside = tuple(
                Field(one.name, self._identifier(one.name), self._shape(record, one.name))
                for one in fields(cast("Any", record))
            )
            self._known[kind] = Struct(self._type_name(kind.__name__), inside)
        return cast("Struct", self._known[kind])

    def _shape(self, record: Record, name: str) -> Shape:
        part = getattr(record, name)
        if isinstance(part, Record):
            return self._struct(part)
        if isinstance(part, EnumSet):
            return self._set(part.sort)
        match cast("Term", part):
            case Int() as term:
                values = self._values[type(record), name]
                most = max(*values, (term.domain and term.domain.hi) or 0)
                least = min(*values, (term.domain and term.domain.lo) or 0)
                return Integer(least >= 0 and most > _MOST_SIGNED)
            case Float() as term:
                return Real(term.width)
            case Bool():
                return Flag()
            case term:
                return self._enumeration(cast("EnumSort", term.sort))

    def _set(self, sort: EnumSort) -> Struct:
        key = ("set", sort)
        if key not in self._known:
            flags = tuple(Field(one, self._identifier(one), Flag()) for one in sort.members)
            self._known[key] = Struct(self._type_name(f"{sort.name}_set"), flags, is_set=True)
        return cast("Struct", self._known[key])

    def _enumeration(self, sort: EnumSort) -> Enumeration:
        if sort not in self._known:
            members = {one: self._identifier(one) for one in sort.members}
            self._known[sort] = Enumeration(self._type_name(sort.name), members)
        return cast("Enumeration", self._known[sort])

    def _identifier(self, name: str) -> str:
        """The name without characters that identifiers lack; a reserved word gets an underscore."""
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = f"_{plain}" if plain[:1].isdigit() else plain
        return f"{plain}_" if plain in self._reserved else plain

    def _type_name(self, name: str) -> str:
        """`CamelCase`, unlike all others."""
        parts = re.split(r"[^0-9A-Za-z]+", name)
        made = self._identifier("".join(part[:1].upper() + part[1:] for part in parts))
        while made in self._taken:
            made += "_"
        self._taken.add(made)
        return made

    def _fits(self, vector: Vector) -> bool:
        """Whether every integer fits the type of its field."""
        return _holds(self.input, vector.row["in"]) and _holds(self.output, self.answer(vector))


def _holds(shape: Shape, data: Json) -> bool:
    if isinstance(shape, Struct):
        return all(_holds(field.shape, part) for field, part in shape.parts(data))
    if isinstance(shape, Integer):
        least, most = (0, _MOST) if shape.is_unsigned else (_LEAST, _MOST_SIGNED)
        return least <= cast("int", data) <= most
    return True
