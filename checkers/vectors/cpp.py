"""Vectors as one C++17 header: plain structs, an array, and a function that checks another."""

from __future__ import annotations

import json
import math
from string import Template

from routeproof.checkers.values import Json

from .boundary import Vectors
from .prose import ascii_text, heading, plain_name
from .shapes import Enumeration, Flag, Integer, Real, Shape, Shapes, Struct

__all__ = ["write_cpp"]

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
xor xor_eq
"""
_RESERVED = frozenset(_KEYWORDS.split())
_TAKEN = ("Input", "Output", "Vector", "vectors", "same", "show", "field", "agrees")

_FILE = Template(
    """\
$heading
//
// Use: a program that includes this file and calls
//     $space::check_$name([](const $space::Input& in) -> $space::Output { ... })
// The result is the number of mismatches; the first ones are printed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

namespace $space {

$types

using Input = $input;
using Output = $output;

struct Vector {
    Input in;
    Output out;
    const char* edge;
};

inline constexpr Vector vectors[] = {
$rows
};

template <class T>
bool same(T got, T want) {
    return got == want;
}
$reals
inline void show(std::int64_t value) { std::printf("%lld", static_cast<long long>(value)); }
inline void show(std::uint64_t value) {
    std::printf("%llu", static_cast<unsigned long long>(value));
}
inline void show(double value) { std::printf("%.17g", value); }
inline void show(bool value) { std::fputs(value ? "true" : "false", stdout); }
$shows
template <class T>
bool field(const char* name, T got, T want, bool tell) {
    const bool is_same = same(got, want);
    if (!is_same && tell) {
        std::printf("  %s: got ", name);
        show(got);
        std::printf(", expected ");
        show(want);
        std::printf("\\n");
    }
    return is_same;
}

inline bool agrees(const Output& got, const Output& want, bool tell) {
    bool all = true;
$comparisons
    return all;
}

template <class F>
int check_$name(F&& function) {
    int mismatches = 0;
    for (const Vector& vector : vectors) {
        const Output got = function(vector.in);
        if (agrees(got, vector.out, false)) continue;
        if (mismatches++ < 10) {
            std::printf("vector %d: %s\\n", static_cast<int>(&vector - vectors), vector.edge);
            agrees(got, vector.out, true);
        }
    }
    return mismatches;
}

}  // namespace $space
"""
)
_REALS = """
inline bool same(float got, float want) {
    return std::memcmp(&got, &want, sizeof got) == 0 || (got != got && want != want);
}
inline bool same(double got, double want) {
    return std::memcmp(&got, &want, sizeof got) == 0 || (got != got && want != want);
}
"""


def write_cpp(found: Vectors) -> str:
    """The header."""
    shapes = Shapes(found, _RESERVED, _TAKEN)
    name = plain_name(found)
    rows = [
        f"    {{{_literal(shapes.input, one.row['in'])},\n"
        f"     {_literal(shapes.output, shapes.answer(one))},\n"
        f"     {_text(one.edges[0])}}},"
        for one in shapes.vectors
    ]
    leaves = shapes.output.leaves()
    has_reals = any(isinstance(shape, Real) for _, shape in leaves)
    enums = [one for one in shapes.types if isinstance(one, Enumeration)]
    return _FILE.substitute(
        heading=heading(found, shapes, "//"),
        space=f"{name}_vectors",
        name=name,
        types="\n\n".join(map(_declared, shapes.types)),
        input=shapes.input.name,
        output=shapes.output.name,
        rows="\n".join(rows),
        reals=_REALS if has_reals else "",
        shows="\n".join(map(_show, enums)),
        comparisons="\n".join(
            f'    all = field("{path}", got.{path}, want.{path}, tell) && all;'
            for path, _ in leaves
        ),
    )


def _declared(made: Enumeration | Struct) -> str:
    if isinstance(made, Enumeration):
        return f"enum class {made.name} {{ {', '.join(made.members.values())} }};"
    inside = "\n".join(f"    {_type(one.shape)} {one.name};" for one in made.fields)
    return f"struct {made.name} {{\n{inside}\n}};"


def _type(shape: Shape) -> str:
    match shape:
        case Integer(is_unsigned=is_unsigned):
            return "std::uint64_t" if is_unsigned else "std::int64_t"
        case Flag():
            return "bool"
        case Real(width=width):
            return "float" if width == 32 else "double"
        case _:
            return shape.name


def _show(enum: Enumeration) -> str:
    cases = "\n".join(
        f"        case {enum.name}::{name}: std::fputs({_text(member)}, stdout); break;"
        for member, name in enum.members.items()
    )
    return f"inline void show({enum.name} value) {{\n    switch (value) {{\n{cases}\n    }}\n}}"


def _text(text: str) -> str:
    return json.dumps(ascii_text(text))


def _literal(shape: Shape, data: Json) -> str:
    match shape:
        case Struct():
            return f"{{{', '.join(_literal(one.shape, part) for one, part in shape.parts(data))}}}"
        case Enumeration():
            return f"{shape.name}::{shape.members[data]}"
        case Flag():
            return "true" if data else "false"
        case Integer(is_unsigned=True):
            return f"{data}u"
        case Integer():
            return "INT64_MIN" if data == -(2**63) else str(data)
        case Real(width=width):
            return _real(float(data), "float" if width == 32 else "double")


def _real(value: float, kind: str) -> str:
    """The exact value, as a hexadecimal literal where it is finite."""
    if math.isnan(value):
        return f"std::numeric_limits<{kind}>::quiet_NaN()"
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return f"{sign}std::numeric_limits<{kind}>::infinity()"
    return f"{value.hex()}{'f' if kind == 'float' else ''}"
