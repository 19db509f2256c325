"""Vectors as one Rust module: plain structs, a static slice, and a function that checks another."""

from __future__ import annotations

import json
import struct
from string import Template

from routeproof.checkers.values import Json

from .boundary import Vectors
from .prose import ascii_text, heading
from .shapes import Enumeration, Flag, Integer, Real, Shape, Shapes, Struct

__all__ = ["write_rust"]

_KEYWORDS = """
Self abstract as async await become box break const continue crate do dyn else enum extern false
final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self
_ static struct super trait true try type typeof unsafe unsized use virtual where while yield
"""
_RESERVED = frozenset(_KEYWORDS.split())
_TAKEN = ("Input", "Output", "Vector", "String", "Vec", "Fn", "Self")

_FILE = Template(
    """\
$heading
//
// Use: `check(|input| ...)` gives the number of mismatches and prints the first ones.

$types

pub type Input = $input;
pub type Output = $output;

#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub input: Input,
    pub output: Output,
    pub edge: &'static str,
}

#[rustfmt::skip]
pub static VECTORS: &[Vector] = &[
$rows
];
$reals
fn differences(got: &Output, want: &Output) -> Vec<String> {
    let mut found = Vec::new();
$comparisons
    found
}

#[allow(dead_code)]
pub fn check(function: impl Fn(&Input) -> Output) -> usize {
    let mut mismatches = 0;
    for (number, vector) in VECTORS.iter().enumerate() {
        let found = differences(&function(&vector.input), &vector.output);
        if found.is_empty() {
            continue;
        }
        if mismatches < 10 {
            println!("vector {number}: {}", vector.edge);
            found.iter().for_each(|one| println!("  {one}"));
        }
        mismatches += 1;
    }
    mismatches
}
"""
)
_REALS = """
#[allow(dead_code)]
fn same_f32(one: f32, two: f32) -> bool {
    one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan())
}

#[allow(dead_code)]
fn same_f64(one: f64, two: f64) -> bool {
    one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan())
}
"""


def write_rust(found: Vectors) -> str:
    """The module."""
    shapes = Shapes(found, _RESERVED, _TAKEN)
    rows = [
        f"    Vector {{\n"
        f"        input: {_literal(shapes.input, one.row['in'])},\n"
        f"        output: {_literal(shapes.output, shapes.answer(one))},\n"
        f"        edge: {_text(one.edges[0])},\n"
        f"    }},"
        for one in shapes.vectors
    ]
    leaves = shapes.output.leaves()
    return _FILE.substitute(
        heading=heading(found, shapes, "//"),
        types="\n\n".join(map(_declared, shapes.types)),
        input=shapes.input.name,
        output=shapes.output.name,
        rows="\n".join(rows),
        reals=_REALS if any(isinstance(shape, Real) for _, shape in leaves) else "",
        comparisons="\n".join(_comparison(path, shape) for path, shape in leaves),
    )


def _declared(made: Enumeration | Struct) -> str:
    if isinstance(made, Enumeration):
        inside = "".join(f"    {name},\n" for name in made.members.values())
        allowed, kind, more = "dead_code, non_camel_case_types", "enum", ", PartialEq, Eq"
    else:
        inside = "".join(f"    pub {one.name}: {_type(one.shape)},\n" for one in made.fields)
        allowed, kind, more = "dead_code, non_snake_case", "struct", ""
    return (
        f"#[allow({allowed})]\n#[derive(Clone, Copy, Debug{more})]\n"
        f"pub {kind} {made.name} {{\n{inside}}}"
    )


def _type(shape: Shape) -> str:
    match shape:
        case Integer(is_unsigned=is_unsigned):
            return "u64" if is_unsigned else "i64"
        case Flag():
            return "bool"
        case Real(width=width):
            return f"f{width}"
        case _:
            return shape.name


def _comparison(path: str, shape: Shape) -> str:
    got, want = f"got.{path}", f"want.{path}"
    told = f'"{path}: got {{:?}}, expected {{:?}}", {got}, {want}'
    test = f"{got} != {want}"
    if isinstance(shape, Real):
        test = f"!same_f{shape.width}({got}, {want})"
    return f"    if {test} {{\n        found.push(format!({told}));\n    }}"


def _text(text: str) -> str:
    return json.dumps(ascii_text(text))


def _literal(shape: Shape, data: Json) -> str:
    match shape:
        case Struct():
            parts = ", ".join(
                f"{one.name}: {_literal(one.shape, part)}" for one, part in shape.parts(data)
            )
            return f"{shape.name} {{ {parts} }}"
        case Enumeration():
            return f"{shape.name}::{shape.members[data]}"
        case Flag():
            return "true" if data else "false"
        case Integer():
            return str(data)
        case Real(width=width):
            bits = struct.pack(">f" if width == 32 else ">d", float(data)).hex()
            return f"f{width}::from_bits(0x{bits})"
