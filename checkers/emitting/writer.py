"""Terms as expressions: what the languages share, and a hook for each thing they write apart.

Conditions are evaluated from the left and no further than needed, as `and`, `or` and the
conditional expression of every language do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, cast

from routeproof.checkers.readings.intervals import Interval
from routeproof.spec.errors import InputError, UnsupportedError
from routeproof.spec.interpret import Value
from routeproof.spec.records import Record
from routeproof.spec.terms import FALSE, Bool, Enum, EnumSort, Int, Op, Term

from .plan import INT64, Answer, Define, Field, Guard, LookUp, Plan, Step, outside
from .text import Names, camel, commented
from .vectors import Vector

__all__ = [
    "ATOM",
    "CHOICE",
    "LIMITS",
    "NOT",
    "OR",
    "PRODUCT",
    "SUM",
    "UNARY",
    "Text",
    "Writer",
    "default",
]

Text = tuple[str, int]
"""An expression and how strongly it binds."""

CHOICE, OR, AND, NOT, COMPARED, SUM, PRODUCT, UNARY, ATOM = range(9)

LIMITS: Mapping[str, int] = {
    "int32_min": -(2**31),
    "int32_max": 2**31 - 1,
    "uint32_max": 2**32 - 1,
    "int64_min": -(2**63),
    "int64_max": 2**63 - 1,
    "uint64_max": 2**64 - 1,
}
"""Constants that are written by name."""

_NAMED = {value: name for name, value in LIMITS.items()}
_LARGEST = 2**126
_INFIX = {Op.ADD: ("+", SUM), Op.SUB: ("-", SUM), Op.MUL: ("*", PRODUCT)}
_CALLS = {
    Op.FLOOR_DIV: "floor_div",
    Op.CEIL_DIV: "ceil_div",
    Op.MOD: "modulo",
    Op.ALIGN_UP: "align_up",
    Op.MIN: "least",
    Op.MAX: "greatest",
}
_SIGNS = {Op.EQ: "==", Op.LT: "<", Op.LE: "<="}
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_REFUTED = {"==": "!=", "<": ">=", "<=": ">"}
_OTHER = {Op.AND: Op.OR, Op.OR: Op.AND}
_STRENGTH = {Op.AND: AND, Op.OR: OR}


class Writer(ABC):
    """The names and expressions of one plan in one language."""

    reserved: ClassVar[frozenset[str]]
    reserved_members: ClassVar[frozenset[str]]
    is_exact: ClassVar[bool] = False  # integers have no largest one
    joint: ClassVar[str] = "_"  # between a type or an enumerator and a number
    connectives: ClassVar[Mapping[Op, str]]
    types: ClassVar[tuple[str, str, str]]  # signed and unsigned integers of 64 bits, truth values

    def __init__(self, plan: Plan) -> None:
        """Give everything its name."""
        self.plan = plan
        self.function = self.free(self.cased(plan.function.name.rpartition(".")[2]))
        types, outputs = Names(self.reserved, self.joint), Names(self.reserved)
        self.sorts = {sort: types.take(camel(sort.name)) for sort in plan.sorts}
        self.members = {sort: self._members(sort) for sort in plan.sorts}
        self.outputs = [outputs.take(self.cased(field.name)) for field in plan.outputs]
        defined = [step for step in plan.steps if isinstance(step, Define)]
        self.unsure = {step.node for step in defined if step.may_fail}
        self._names: dict[Term, str] = {}
        self._name_terms(Names({*self.reserved, self.function, *self.sorts.values()}))

    def free(self, name: str) -> str:
        """The name as an identifier that is no keyword."""
        return Names(self.reserved).take(name)

    def _members(self, sort: EnumSort) -> dict[str, str]:
        names = Names(self.reserved_members, self.joint)
        return {member: names.take(self.member_name(member)) for member in sort.members}

    def _name_terms(self, scope: Names) -> None:
        """Inputs as declared; a local that is an output like the output; others t1, t2, ..."""
        for field in self.plan.inputs:
            self._names[field.term] = scope.take(self.cased(field.name))
        for one in self.plan.look_ups:
            self._names[one.symbol] = scope.take(self.cased(one.symbol.name))
        answer = cast("Answer", self.plan.steps[-1]).values
        outputs = dict(zip(answer[::-1], self.outputs[::-1], strict=True))
        count = 0
        for step in self.plan.steps:
            if isinstance(step, Define):
                count += step.node not in outputs
                self._names[step.node] = scope.take(outputs.get(step.node, f"t{count}"))

    # What a language writes in its own way

    def cased(self, name: str) -> str:
        """The name of a value as the language wants it."""
        return name

    @abstractmethod
    def member_name(self, name: str) -> str:
        """The name of an enumerator as the language wants it."""

    @abstractmethod
    def truth(self, *, value: bool) -> str:
        """A truth value."""

    @abstractmethod
    def literal(self, value: int) -> str:
        """An integer."""

    @abstractmethod
    def limit(self, name: str) -> str:
        """The name of a constant that has one."""

    @abstractmethod
    def member(self, sort: EnumSort, member: str) -> str:
        """An enumerator."""

    @abstractmethod
    def choice(self, test: Term, one: Term, two: Term) -> Text:
        """`one` where the test holds, else `two`."""

    @abstractmethod
    def refusal(self, condition: Term) -> Text:
        """The opposite of a condition that is no comparison."""

    @abstractmethod
    def result(self, output: Field, value: Term, /) -> str:
        """A value as an output."""

    @abstractmethod
    def received(self) -> Iterator[str]:
        """Statements that take the inputs, and refuse a value outside its domain."""

    @abstractmethod
    def looked_up(self, look_up: LookUp) -> Iterator[str]:
        """Statements that look up an input."""

    @abstractmethod
    def defined(self, node: Term, value: str) -> Iterator[str]:
        """Statements that define a local."""

    @abstractmethod
    def attempted(self, node: Term, value: str) -> Iterator[str]:
        """Statements that define a local whose value may stay unknown."""

    @abstractmethod
    def guarded(self, test: str, values: Sequence[Term]) -> Iterator[str]:
        """Statements that return the values where the test holds."""

    @abstractmethod
    def answered(self, values: Sequence[Term]) -> Iterator[str]:
        """Statements that return the values."""

    def branch(self, term: Term) -> str:
        """A branch of a choice: another choice goes bare, a condition does not."""
        is_bare = term.op is Op.ITE or term in self._names
        return self.text(term, CHOICE if is_bare else NOT)

    def mention(self, term: Term) -> str:
        """An input or a local where its value is used."""
        return self._names[term]

    def is_literal(self, term: Term, machine: Interval | None = None) -> bool:
        """Whether the term is written in digits, and of the machine type."""
        value = term.value if isinstance(term, Int) and term.op is Op.CONST else None
        return isinstance(value, int) and value not in _NAMED and value in (machine or Interval())

    def operand(self, term: Term) -> str:
        """One side of a comparison."""
        return self.text(term, SUM)

    def arithmetic(self, node: Term, sign: str, strength: int) -> Text:
        """A sum, a difference or a product."""
        one, two = node.args
        return f"{self.text(one, strength)} {sign} {self.text(two, strength + 1)}", strength

    def call(self, name: str, node: Term) -> Text:
        """A division, a minimum or a maximum."""
        return f"{name}({', '.join(self.text(arg) for arg in node.args)})", ATOM

    # Expressions

    def name(self, term: Term) -> str:
        """The name of an input or a local."""
        return self._names[term]

    def text(self, term: Term, outer: int = CHOICE) -> str:
        """The term where something that binds as strongly as `outer` stands beside it."""
        if term in self._names:
            return self.mention(term)
        text, strength = self._written(term)
        return f"({text})" if strength < outer else text

    def _written(self, term: Term) -> Text:
        match term.op:
            case Op.CONST:
                return self._constant(term)
            case Op.NOT:
                return self._opposite(term.args[0])
            case Op.AND | Op.OR:
                return self._connected(term.op, term.args)
            case Op.EQ | Op.LT | Op.LE:
                return self._comparison(term, _SIGNS[term.op])
            case Op.ITE:
                return self.choice(*term.args)
            case op if op in _INFIX:
                return self.arithmetic(term, *_INFIX[op])
            case op:
                return self.call(_CALLS[op], term)

    def _constant(self, term: Term) -> Text:
        if not isinstance(term, Int):
            return self.value(term, cast("Value", term.value)), ATOM
        value = cast("int", term.value)
        if abs(value) > _LARGEST:
            raise UnsupportedError(f"{self.plan.function.name}: {value} is too large to be emitted")
        if value in _NAMED:
            return self.limit(_NAMED[value]), ATOM
        return self.literal(value), ATOM if value >= 0 else UNARY

    def _connected(self, op: Op, parts: Sequence[Term]) -> Text:
        texts = [self._part(op, part) for part in parts]
        return f" {self.connectives[op]} ".join(texts), _STRENGTH[op]

    def _part(self, op: Op, part: Term) -> str:
        """A part of a conjunction or disjunction; only one of the same kind goes bare."""
        if part in self._names:
            return self.mention(part)
        text, strength = self._written(part)
        return text if strength in (_STRENGTH[op], *range(NOT, ATOM + 1)) else f"({text})"

    def _comparison(self, term: Term, sign: str) -> Text:
        """The comparison, a constant on its right."""
        one, two = term.args
        if one.op is Op.CONST:
            one, two, sign = two, one, _TURNED[sign]
        return f"{self.operand(one)} {sign} {self.operand(two)}", COMPARED

    def _opposite(self, term: Term) -> Text:
        """The condition refuted, `not` moved inwards as far as it goes."""
        match term.op:
            case _ if term in self._names:
                return self.refusal(term)
            case Op.AND | Op.OR:
                return self._connected(_OTHER[term.op], [~cast("Bool", one) for one in term.args])
            case Op.EQ | Op.LT | Op.LE:
                return self._comparison(term, _REFUTED[_SIGNS[term.op]])
            case _:
                return self.refusal(term)

    def value(self, term: Term, value: Value) -> str:
        """A value of the term's sort."""
        match term:
            case Int():
                return self.literal(cast("int", value))
            case Enum():
                return self.member(term.members, str(value))
            case _:
                return self.truth(value=bool(value))

    # Parts of the text

    def body(self) -> Iterator[str]:
        """The statements of the function."""
        yield from self.received()
        for look_up in self.plan.look_ups:
            yield from self.looked_up(look_up)
        for step in self.plan.steps:
            yield from self._statements(step)

    def _statements(self, step: Step) -> Iterator[str]:
        match step:
            case Define(node, may_fail):
                text = self._written(node)[0]
                yield from self.attempted(node, text) if may_fail else self.defined(node, text)
            case Guard(test, values):
                yield from self.guarded(self.text(test), values)
            case Answer(values):
                yield from self.answered(values)

    def results(self, values: Sequence[Term]) -> list[tuple[str, str]]:
        """Name and value of each output that does not have its default."""
        rows = zip(self.plan.outputs, self.outputs, values, strict=True)
        return [
            (name, self.result(output, value))
            for output, name, value in rows
            if value.op is not Op.CONST or value.value != default(output.term)
        ]

    def expected(self, vector: Vector) -> list[tuple[str, str]]:
        """Name and value of each output of a vector that does not have its default."""
        fields = zip(self.outputs, self.plan.outputs, strict=True)
        rows = [(name, one.term, self.wanted(vector, one)) for name, one in fields]
        return [
            (name, self.value(one, value)) for name, one, value in rows if value != default(one)
        ]

    def wanted(self, vector: Vector, output: Field) -> Value:
        """The value that the output must have; one that its type does not hold is refused."""
        value = vector.outputs[output.name]
        machine = None if self.is_exact else output.machine
        if machine is not None and cast("int", value) not in machine:
            raise InputError(f"output {output.name!r}: {value} is outside {machine}")
        return value

    def given(self, vector: Vector) -> list[tuple[str, str]]:
        """Name and value of each input of a vector."""
        terms = [field.term for field in self.plan.inputs]
        return [(self.name(one), self.value(one, vector.inputs[one])) for one in terms]

    def type_of(self, field: Field) -> str:
        """The type of an input or an output."""
        signed, unsigned, truth = self.types
        match field.term:
            case Int():
                return signed if field.machine == INT64 else unsigned
            case Enum():
                return self.sorts[field.term.members]
            case _:
                return truth

    def refused(self, field: Field) -> Bool:
        """The condition under which an input is refused."""
        return outside(field.term, field.machine) if isinstance(field.term, Int) else FALSE

    def about(self, mark: str = "") -> list[str]:
        """What the function computes, where that comes from, and what its records say of units."""
        function = self.plan.function
        records = [function.inputs, *function.outputs.values()]
        said = (" ".join(dict.fromkeys(_documentation(record))) for record in records)
        head = f"{function.summary}: {function.name}, written from its model."
        return commented([head, f"Source: {function.source}.", *filter(None, said)], mark)


def default(term: Term) -> Value:
    """The value that an output has where nothing else is said."""
    if isinstance(term, Enum):
        return term.members.members[0]
    return 0 if isinstance(term, Int) else False


def _documentation(record: Record) -> Iterator[str]:
    """The first paragraph of the record's docstring, of its bases', and of its parts'."""
    for kind in type(record).__mro__[: type(record).__mro__.index(Record)]:
        text = kind.__doc__ or ""
        if not text.startswith(f"{kind.__name__}("):  # what a dataclass without one is given
            yield " ".join(text.partition("\n\n")[0].split())
    for field in fields(cast("Any", record)):
        part = getattr(record, field.name)
        if isinstance(part, Record):
            yield from _documentation(part)
