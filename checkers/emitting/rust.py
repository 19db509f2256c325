"""Rust, edition 2021, with its own checked 128-bit integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import Template
from typing import ClassVar

from routeproof.spec.terms import FALSE, EnumSort, Int, Op, Term

from .plan import Field, LookUp, Plan
from .text import broken, camel, grouped, laid_out, plain, used
from .vectors import Vector
from .writer import ATOM, CHOICE, LIMITS, SUM, UNARY, Text, Writer

__all__ = ["write_rust"]

_KEYWORDS = """
Self abstract as async await become box break const continue crate do dyn else enum extern false
final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self
static struct super trait true try type typeof union unsafe unsized use virtual where while yield
"""
_OURS = """
Add Default From Input Int Into Mul None Option Output Some Sub TryFrom align_up attempt ceil_div
check first floor_div greatest i128 i64 input least looked_up modulo narrow std tests u64 usize
vector vectors want
"""

_FILE = Template("""\
$about
//!
//! `None` is the answer where a value that decides needs more than 128 bits, where an output does
//! not fit its type, and where an input is outside its domain.
//! Test: rustc --edition 2021 --test FILE
$kit
$constants$tables$enums$records/// $summary.
pub fn $function(input: &Input) -> Option<Output> {
$body
}
$tests""")

_KIT = {
    "Int": """
use std::ops::{Add, Mul, Sub};

/// An exact integer, or unknown: what does not fit 128 bits, and all that is computed from it.
#[derive(Clone, Copy)]
struct Int(Option<i128>);

impl Int {
    fn both(self, other: Int, apply: fn(i128, i128) -> Option<i128>) -> Int {
        Int(self.0.zip(other.0).and_then(|(a, b)| apply(a, b)))
    }
}

impl From<i128> for Int {
    fn from(value: i128) -> Int {
        Int(Some(value))
    }
}

macro_rules! operator {
    ($name:ident, $method:ident, $checked:path) => {
        impl $name for Int {
            type Output = Int;
            fn $method(self, other: Int) -> Int {
                self.both(other, $checked)
            }
        }
        impl $name<i128> for Int {
            type Output = Int;
            fn $method(self, other: i128) -> Int {
                self.both(other.into(), $checked)
            }
        }
        impl $name<Int> for i128 {
            type Output = Int;
            fn $method(self, other: Int) -> Int {
                Int::from(self).both(other, $checked)
            }
        }
    };
}

operator!(Add, add, i128::checked_add);
operator!(Sub, sub, i128::checked_sub);
operator!(Mul, mul, i128::checked_mul);
""",
    "attempt": """
/// What the function returns: `None` where it needs an unknown value.
fn attempt<T>(function: impl Fn() -> Option<T>) -> Option<T> {
    function()
}
""",
    "looked_up": """
/// The entry of a table that starts at 1.
fn looked_up(table: &[i64], by: i128, outside: i64) -> i128 {
    let entry = usize::try_from(by - 1).ok().and_then(|at| table.get(at));
    i128::from(*entry.unwrap_or(&outside))
}
""",
    "narrow": """
/// The value as a machine integer, if it is known and fits.
fn narrow<T: TryFrom<i128>>(value: impl Into<Int>) -> Option<T> {
    T::try_from(value.into().0?).ok()
}
""",
    "floor_div": """
/// Quotient rounded towards minus infinity; 0 for a zero divisor.
fn floor_div(a: impl Into<Int>, b: impl Into<Int>) -> Int {
    a.into().both(b.into(), |a, b| match b {
        0 => Some(0),
        _ => {
            let quotient = a.checked_div(b)?;
            let is_between = a % b != 0 && (a < 0) != (b < 0);
            Some(if is_between { quotient - 1 } else { quotient })
        }
    })
}
""",
    "ceil_div": """
/// Quotient rounded towards plus infinity; 0 for a zero divisor.
fn ceil_div(a: impl Into<Int>, b: impl Into<Int>) -> Int {
    0 - floor_div(0 - a.into(), b)
}
""",
    "modulo": """
/// What `floor_div` leaves; a for a zero divisor.
fn modulo(a: impl Into<Int>, b: impl Into<Int>) -> Int {
    let (a, b) = (a.into(), b.into());
    a - b * floor_div(a, b)
}
""",
    "align_up": """
/// The next multiple of b; 0 for b = 0.
fn align_up(a: impl Into<Int>, b: impl Into<Int>) -> Int {
    let (a, b) = (a.into(), b.into());
    ceil_div(a, b) * b
}
""",
    "least": """
fn least(a: impl Into<Int>, b: impl Into<Int>) -> Int {
    a.into().both(b.into(), |a, b| Some(a.min(b)))
}
""",
    "greatest": """
fn greatest(a: impl Into<Int>, b: impl Into<Int>) -> Int {
    a.into().both(b.into(), |a, b| Some(a.max(b)))
}
""",
}

_TESTS = Template("""
#[cfg(test)]
mod tests {
    use super::*;

    fn check(first: usize, vectors: &[(Input, Output)]) {
        for (vector, (input, want)) in (first..).zip(vectors) {
            assert_eq!($function(input).as_ref(), Some(want), "vector {vector}");
        }
    }
$tests
}
""")

_TEST = Template("""
    #[test]
    fn vectors_from_$first() {
        check($first, &[
$vectors
        ]);
    }""")
_MOST = 100  # vectors of one test: they lie on its stack


_DERIVED = "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]"


def write_rust(plan: Plan, vectors: Sequence[Vector]) -> str:
    """A module with the function and its tests."""
    rust = _Rust(plan)
    body = "\n".join(rust.body())
    limits = used({name.upper(): value for name, value in LIMITS.items()}, body)
    constants = [f"const {name}: i128 = {rust.literal(v)};\n" for name, v in limits.items()]
    tests = [
        _TEST.substitute(first=at + 1, vectors="\n".join(rust.rows(vectors[at : at + _MOST])))
        for at in range(0, len(vectors), _MOST)
    ]
    return _FILE.substitute(
        about="\n".join(rust.about("//!")),
        kit="".join(used(_KIT, body).values()),
        constants="".join([*constants, "\n"] if constants else []),
        tables="".join(map(rust.table, plan.look_ups)),
        enums="".join(map(rust.enum, plan.sorts)),
        records=rust.records(),
        summary=plain(plan.function.summary),
        function=rust.function,
        body=body,
        tests=_TESTS.substitute(function=rust.function, tests="\n".join(tests)) if tests else "",
    )


class _Rust(Writer):
    reserved = frozenset((_KEYWORDS + _OURS).split())
    reserved_members = frozenset({"Self"})
    joint = ""
    connectives: ClassVar = {Op.AND: "&&", Op.OR: "||"}
    types = ("i64", "u64", "bool")

    def cased(self, name: str) -> str:
        return name.lower()

    def member_name(self, name: str) -> str:
        return camel(name)

    def truth(self, *, value: bool) -> str:
        return str(value).lower()

    def literal(self, value: int) -> str:
        return grouped(value, "_")

    def limit(self, name: str) -> str:
        return name.upper()

    def member(self, sort: EnumSort, member: str) -> str:
        return f"{self.sorts[sort]}::{self.members[sort][member]}"

    def choice(self, test: Term, one: Term, two: Term) -> Text:
        is_plain = not isinstance(one, Int) or (self._is_exact(one) and self._is_exact(two))
        then, other = (self.text(side) if is_plain else self._int(side) for side in (one, two))
        tail = other if other.startswith("if ") else f"{{ {other} }}"
        return f"if {self.text(test)} {{ {then} }} else {tail}", CHOICE

    def refusal(self, condition: Term) -> Text:
        return f"!{self.text(condition, UNARY)}", UNARY

    def mention(self, term: Term) -> str:
        is_optional = term in self.unsure and not isinstance(term, Int)
        return f"{self.name(term)}{'?' if is_optional else ''}"

    def operand(self, term: Term) -> str:
        is_plain = not isinstance(term, Int) or self._is_exact(term)
        return self.text(term, SUM) if is_plain else f"{self.text(term, ATOM)}.0?"

    def arithmetic(self, node: Term, sign: str, strength: int) -> Text:
        one, two = node.args
        are_exact = self._is_exact(one) and self._is_exact(two)
        left = self._int(one) if are_exact else self.text(one, strength)
        return f"{left} {sign} {self.text(two, strength + 1)}", strength

    def call(self, name: str, node: Term) -> Text:
        typed = [f"{self.text(a)}{'_i128' if self.is_literal(a) else ''}" for a in node.args]
        return f"{name}({', '.join(typed)})", ATOM

    def _is_exact(self, term: Term) -> bool:
        """Whether the term is written as an i128, not as an `Int` that may be unknown."""
        if term.op is Op.ITE and term not in self.unsure:
            return all(map(self._is_exact, term.args[1:]))
        return term.op in (Op.SYMBOL, Op.CONST)

    def _int(self, term: Term) -> str:
        """The term as an `Int`."""
        return f"Int::from({self.text(term)})" if self._is_exact(term) else self.text(term)

    def result(self, output: Field, value: Term, /) -> str:
        text = self.text(value)
        is_plain = not isinstance(value, Int) or self.is_literal(value, output.machine)
        return text if is_plain else f"narrow({text})?"

    # Declarations

    def table(self, look_up: LookUp) -> str:
        """The values of an input that is looked up."""
        name, values = self.name(look_up.symbol).upper(), look_up.table.values
        line = (
            f"const {name}_TABLE: [i64; {len(values)}] = [{', '.join(map(self.literal, values))}];"
        )
        return "\n".join([*broken(line, " " * 4), "", ""])

    def enum(self, sort: EnumSort) -> str:
        """The members in declared order; the first is the default."""
        members = [f"    {member}," for member in self.members[sort].values()]
        head = [_DERIVED, f"pub enum {self.sorts[sort]} {{", "    #[default]"]
        return "\n".join([*head, *members, "}", "", ""])

    def records(self) -> str:
        """The inputs, and the outputs."""
        lines = [_DERIVED, "pub struct Input {"]
        lines += [
            f"    pub {self.name(one.term)}: {self.type_of(one)}," for one in self.plan.inputs
        ]
        lines += ["}", "", _DERIVED, "pub struct Output {"]
        for name, one in zip(self.outputs, self.plan.outputs, strict=True):
            lines.append(f"    pub {name}: {self.type_of(one)},")
        return "\n".join([*lines, "}", "", ""])

    # The function

    def received(self) -> Iterator[str]:
        for field in self.plan.inputs:
            name, is_int = self.name(field.term), isinstance(field.term, Int)
            yield f"    let {name} = {f'i128::from(input.{name})' if is_int else f'input.{name}'};"
            if self.refused(field) is not FALSE:
                yield from broken(f"    if {self.text(self.refused(field))} {{")
                yield "        return None;"
                yield "    }"

    def looked_up(self, look_up: LookUp) -> Iterator[str]:
        name, outside = self.name(look_up.symbol), self.literal(look_up.table.outside)
        value = f"looked_up(&{name.upper()}_TABLE, {self.name(look_up.by)}, {outside})"
        yield f"    let {name} = {value};"

    def defined(self, node: Term, value: str) -> Iterator[str]:
        yield from broken(f"    let {self.name(node)} = {value};")

    def attempted(self, node: Term, value: str) -> Iterator[str]:
        if not isinstance(node, Int):
            value = f"attempt(|| Some({value}))"
        elif all(map(self._is_exact, node.args[1:])) and node.op is Op.ITE:
            value = f"Int(attempt(|| Some({value})))"
        else:
            value = f"Int(attempt(|| ({value}).0))"
        yield from broken(f"    let {self.name(node)} = {value};")

    def guarded(self, test: str, values: Sequence[Term]) -> Iterator[str]:
        yield from broken(f"    if {test} {{")
        yield from laid_out("        ", "return Some(Output { ", self._parts(values), " });")
        yield "    }"

    def answered(self, values: Sequence[Term]) -> Iterator[str]:
        yield from laid_out("    ", "Some(Output { ", self._parts(values), " })")

    def _parts(self, values: Sequence[Term]) -> list[str]:
        return _parts("Output", self.results(values), len(self.outputs))

    def rows(self, vectors: Sequence[Vector]) -> Iterator[str]:
        """The vectors as pairs of records."""
        for one in vectors:
            given = _parts("Input", self.given(one), len(self.plan.inputs))
            want = _parts("Output", self.expected(one), len(self.outputs))
            pair = f"Input {{ {', '.join(given)} }}, Output {{ {', '.join(want)} }}"
            yield from broken(f"            ({pair}),", " " * 4)


def _parts(kind: str, fields: Sequence[tuple[str, str]], of: int) -> list[str]:
    """The fields of a record, those that are not given being defaults."""
    rest = [f"..{kind}::default()"] if len(fields) < of else []
    return [*[f"{name}: {value}" for name, value in fields], *rest]
