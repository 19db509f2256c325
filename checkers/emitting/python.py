"""Python, whose integers are exact."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import ClassVar, cast

from routeproof.spec.terms import EnumSort, Int, IntDomain, Op, Term

from .plan import Field, LookUp, Plan
from .text import WIDTH, broken, grouped, laid_out, plain, used
from .vectors import Vector
from .writer import CHOICE, LIMITS, NOT, PRODUCT, Text, Writer, default

__all__ = ["write_python"]

_OURS = """
Enum Output ValueError Vectors align_up allowed annotations bool ceil_div dataclass floor_div int
len looked_up max min modulo range require self str table unittest
"""

_FILE = Template('''\
"""$about

An input that is not in its domain is a ValueError.
Test: python -m unittest MODULE
"""

from __future__ import annotations

import unittest
from dataclasses import dataclass
$imports$constants$tables$enums

@dataclass(frozen=True)
class Output:
$outputs


$signature
    """$summary."""
$body
$kit$tests''')

_KIT = {
    "require": '''

def require(allowed: range, **values: int) -> None:
    """Refuse a value that is not allowed."""
    for name, value in values.items():
        if value not in allowed:
            raise ValueError(f"{name} is {value}, not in {allowed}")
''',
    "looked_up": '''

def looked_up(table: tuple[int, ...], by: int, outside: int) -> int:
    """The entry of a table that starts at 1."""
    return table[by - 1] if 1 <= by <= len(table) else outside
''',
    "floor_div": '''

def floor_div(a: int, b: int) -> int:
    """Quotient rounded towards minus infinity; 0 for a zero divisor."""
    return a // b if b else 0
''',
    "ceil_div": '''

def ceil_div(a: int, b: int) -> int:
    """Quotient rounded towards plus infinity; 0 for a zero divisor."""
    return -(-a // b) if b else 0
''',
    "modulo": '''

def modulo(a: int, b: int) -> int:
    """What floor_div leaves; a for a zero divisor."""
    return a % b if b else a
''',
    "align_up": '''

def align_up(a: int, b: int) -> int:
    """The next multiple of b; 0 for b = 0."""
    return ceil_div(a, b) * b
''',
}

_TESTS = Template("""

class Vectors(unittest.TestCase):
    def test_vectors(self) -> None:
$vectors


if __name__ == "__main__":
    unittest.main()
""")


def write_python(plan: Plan, vectors: Sequence[Vector]) -> str:
    """A module with the function and its tests."""
    python = _Python(plan)
    body = "\n".join(python.body())
    limits = used({name.upper(): value for name, value in LIMITS.items()}, body)
    constants = [f"{name} = {_power(value)}\n" for name, value in limits.items()]
    return _FILE.substitute(
        about="\n".join(python.about()),
        imports="from enum import Enum\n" if plan.sorts else "",
        constants="".join(["\n", *constants] if constants else []),
        tables="".join(map(python.table, plan.look_ups)),
        enums="".join(map(python.enum, plan.sorts)),
        outputs="\n".join(python.outputs_declared()),
        function=python.function,
        signature="\n".join(python.signature()),
        summary=plain(plan.function.summary),
        body=body,
        kit="".join(used(_KIT, body).values()),
        tests=_TESTS.substitute(vectors="\n".join(python.assertions(vectors))) if vectors else "",
    )


def _power(value: int) -> str:
    """A limit of a machine type as people write it."""
    if value < 0:
        return f"-({_power(-value)})"
    for offset, text in ((0, ""), (1, " - 1")):
        if value >= 2**31 - 1 and (value + offset).bit_count() == 1:
            return f"2**{(value + offset).bit_length() - 1}{text}"
    return grouped(value, "_")


class _Python(Writer):
    reserved = frozenset({*keyword.kwlist, *_OURS.split()})
    reserved_members = frozenset()
    connectives: ClassVar[Mapping[Op, str]] = {Op.AND: "and", Op.OR: "or"}
    types = ("int", "int", "bool")
    is_exact = True

    def member_name(self, name: str) -> str:
        return name.upper()

    def truth(self, *, value: bool) -> str:
        return str(value)

    def literal(self, value: int) -> str:
        return grouped(value, "_")

    def limit(self, name: str) -> str:
        return name.upper()

    def member(self, sort: EnumSort, member: str) -> str:
        return f"{self.sorts[sort]}.{self.members[sort][member]}"

    def choice(self, test: Term, one: Term, two: Term) -> Text:
        then = self.text(one, NOT)
        return f"{then} if {self.text(test, NOT)} else {self.branch(two)}", CHOICE

    def refusal(self, condition: Term) -> Text:
        return f"not {self.text(condition, NOT)}", NOT

    def call(self, name: str, node: Term) -> Text:
        divisor = node.args[1]
        if node.op in _SIGNS and divisor.op is Op.CONST and divisor.value:
            return self.arithmetic(node, _SIGNS[node.op], PRODUCT)
        return super().call(_BUILT_IN.get(node.op, name), node)

    def result(self, _output: Field, value: Term, /) -> str:
        return self.text(value)

    # Declarations

    def table(self, look_up: LookUp) -> str:
        """The values of an input that is looked up."""
        entries = ", ".join(map(self.literal, look_up.table.values))
        line = f"{self.name(look_up.symbol).upper()}_TABLE = ({entries},)"
        return "\n".join(["", *broken(line, " " * 4), ""])

    def enum(self, sort: EnumSort) -> str:
        """The members in declared order, their values being the model's names."""
        members = [
            f"    {name} = {json.dumps(member)}" for member, name in self.members[sort].items()
        ]
        return "\n".join(["", "", f"class {self.sorts[sort]}(Enum):", *members, ""])

    def outputs_declared(self) -> Iterator[str]:
        """The outputs with their defaults."""
        for name, one in zip(self.outputs, self.plan.outputs, strict=True):
            yield f"    {name}: {self.type_of(one)} = {self.value(one.term, default(one.term))}"

    def signature(self) -> list[str]:
        """The head of the function, whose inputs are passed by name."""
        inputs = [f"{self.name(one.term)}: {self.type_of(one)}" for one in self.plan.inputs]
        return laid_out("", f"def {self.function}(", ["*", *inputs], ") -> Output:")

    # The function

    def received(self) -> Iterator[str]:
        domains: dict[IntDomain, list[str]] = {}
        for field in self.plan.inputs:
            if isinstance(field.term, Int):
                domain = cast("IntDomain", field.term.domain)
                domains.setdefault(domain, []).append(self.name(field.term))
        for domain, names in domains.items():
            values = [f"{name}={name}" for name in names]
            yield from laid_out("    ", "require(", [_range(domain), *values], ")")

    def looked_up(self, look_up: LookUp) -> Iterator[str]:
        name, outside = self.name(look_up.symbol), self.literal(look_up.table.outside)
        yield f"    {name} = looked_up({name.upper()}_TABLE, {self.name(look_up.by)}, {outside})"

    def defined(self, node: Term, value: str) -> Iterator[str]:
        yield from _enclosed(f"    {self.name(node)} = ", value, "")

    def attempted(self, node: Term, value: str) -> Iterator[str]:
        return self.defined(node, value)

    def guarded(self, test: str, values: Sequence[Term]) -> Iterator[str]:
        yield from _enclosed("    if ", test, ":")
        yield from laid_out("        ", "return Output(", _named(self.results(values)), ")")

    def answered(self, values: Sequence[Term]) -> Iterator[str]:
        yield from laid_out("    ", "return Output(", _named(self.results(values)), ")")

    def assertions(self, vectors: Sequence[Vector]) -> Iterator[str]:
        """One assertion per vector."""
        for at, one in enumerate(vectors, 1):
            call = f"{self.function}({', '.join(_named(self.given(one)))})"
            want = f"Output({', '.join(_named(self.expected(one)))})"
            parts = [call, want, f'"vector {at}"']
            yield from laid_out("        ", "self.assertEqual(", parts, ")")


_SIGNS = {Op.FLOOR_DIV: "//", Op.MOD: "%"}
_BUILT_IN = {Op.MIN: "min", Op.MAX: "max"}


def _named(values: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name}={value}" for name, value in values]


def _range(domain: IntDomain) -> str:
    """The domain as a range."""
    lo, hi, step = cast("int", domain.lo), cast("int", domain.hi), domain.multiple_of
    start = -(-lo // step) * step
    return f"range({_power(start)}, {_power(hi + 1)}{f', {step}' if step > 1 else ''})"


def _enclosed(before: str, text: str, behind: str) -> list[str]:
    """The statement, in parentheses where it has to be broken."""
    line = f"{before}{text}{behind}"
    return [line] if len(line) <= WIDTH else broken(f"{before}({text}){behind}")
