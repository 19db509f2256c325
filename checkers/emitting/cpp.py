"""C++17 with GCC's 128-bit integers, which say when a sum or a product does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import Template
from typing import ClassVar

from routeproof.spec.terms import FALSE, EnumSort, Int, Op, Term

from .plan import INT64, Field, LookUp, Plan
from .text import broken, grouped, plain, used
from .vectors import Vector
from .writer import CHOICE, LIMITS, NOT, UNARY, Text, Writer, default

__all__ = ["write_cpp"]

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class
compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_OURS = """
Input Int Maybe Output Wide align_up attempt ceil_div differs error failed fails floor_div got
greatest in int32_max int32_min int64_max int64_min least looked_up main modulo narrow out std
too_large uint32_max uint64_max vector vectors want
"""

_FILE = Template("""\
$about
//
// A value that decides the answer and needs more than 128 bits is a std::overflow_error, and so is
// an output that does not fit its type; an input outside its domain is a std::domain_error.
// Test: g++ -std=c++17 -x c++ -D${guard}_TEST FILE && ./a.out
#ifndef ${guard}_H
#define ${guard}_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace $namespace {

$kit

$limits$tables$enums$records/// $summary.
inline Output $function(const Input& in) {
$body
}

}  // namespace $namespace
$test
#endif  // ${guard}_H
""")

_KIT = """\
__extension__ typedef __int128 Wide;
constexpr const char* too_large = "a value that decides exceeds 128 bits";

/// An exact integer, or unknown: what does not fit 128 bits, and all that is computed from it.
struct Int {
  Wide number;
  bool is_known;

  constexpr Int() : number(0), is_known(false) {}
  constexpr Int(Wide value, bool fits = true) : number(value), is_known(fits) {}
  Wide value() const { return is_known ? number : throw std::overflow_error(too_large); }
};

inline Int operator+(Int a, Int b) {
  Wide sum = 0;
  const bool overflows = __builtin_add_overflow(a.number, b.number, &sum);
  return {sum, a.is_known && b.is_known && !overflows};
}
inline Int operator-(Int a, Int b) {
  Wide difference = 0;
  const bool overflows = __builtin_sub_overflow(a.number, b.number, &difference);
  return {difference, a.is_known && b.is_known && !overflows};
}
inline Int operator*(Int a, Int b) {
  Wide product = 0;
  const bool overflows = __builtin_mul_overflow(a.number, b.number, &product);
  return {product, a.is_known && b.is_known && !overflows};
}
inline bool operator==(Int a, Int b) { return a.value() == b.value(); }
inline bool operator!=(Int a, Int b) { return a.value() != b.value(); }
inline bool operator<(Int a, Int b) { return a.value() < b.value(); }
inline bool operator<=(Int a, Int b) { return a.value() <= b.value(); }
inline bool operator>(Int a, Int b) { return a.value() > b.value(); }
inline bool operator>=(Int a, Int b) { return a.value() >= b.value(); }

/// The value as a machine integer.
template <class To>
To narrow(Int a) {
  const Wide value = a.value();
  if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max()) {
    throw std::overflow_error("an output does not fit its type");
  }
  return static_cast<To>(value);
}"""

_HELPERS = {
    "attempt": """\
/// A truth value or an enumerator, or unknown.
template <class T>
struct Maybe {
  T entry;
  bool is_known;

  Maybe() : entry(), is_known(false) {}
  Maybe(T value) : entry(value), is_known(true) {}
  T value() const { return is_known ? entry : throw std::overflow_error(too_large); }
};

/// What the function returns, unknown where it needs an unknown value.
template <class F>
auto attempt(F function) {
  using T = decltype(function());
  using Result = std::conditional_t<std::is_same_v<T, Int>, Int, Maybe<T>>;
  try {
    return Result(function());
  } catch (const std::overflow_error&) {
    return Result();
  }
}""",
    "looked_up": """\
/// The entry of a table that starts at 1.
template <std::size_t n>
std::int64_t looked_up(const std::array<std::int64_t, n>& table, Int by, std::int64_t outside) {
  const bool is_inside = by >= 1 && by <= n;
  return is_inside ? table[static_cast<std::size_t>(by.value() - 1)] : outside;
}""",
    "floor_div": """\
/// Quotient rounded towards minus infinity; 0 for a zero divisor.
inline Int floor_div(Int a, Int b) {
  if (!a.is_known || !b.is_known) return Int();
  if (b.number == 0) return 0;
  if (b.number == -1) return 0 - a;
  const bool is_between = a.number % b.number != 0 && (a.number < 0) != (b.number < 0);
  return a.number / b.number - (is_between ? 1 : 0);
}""",
    "ceil_div": """\
/// Quotient rounded towards plus infinity; 0 for a zero divisor.
inline Int ceil_div(Int a, Int b) { return 0 - floor_div(0 - a, b); }""",
    "modulo": """\
/// What floor_div leaves; a for a zero divisor.
inline Int modulo(Int a, Int b) { return a - b * floor_div(a, b); }""",
    "align_up": """\
/// The next multiple of b; 0 for b = 0.
inline Int align_up(Int a, Int b) { return ceil_div(a, b) * b; }""",
    "least": """\
inline Int least(Int a, Int b) {
  return {a.number < b.number ? a.number : b.number, a.is_known && b.is_known};
}""",
    "greatest": """\
inline Int greatest(Int a, Int b) {
  return {a.number > b.number ? a.number : b.number, a.is_known && b.is_known};
}""",
}

_TEST = Template("""
#ifdef ${guard}_TEST
#include <exception>
#include <iostream>

namespace $namespace {

template <class T>
bool differs(std::size_t vector, const char* output, T got, T want) {
  if (got == want) return false;
  using Shown = typename std::conditional_t<
      std::is_enum_v<T>, std::common_type<int>, std::common_type<T>>::type;
  std::cerr << "vector " << vector << ": " << output << " is " << static_cast<Shown>(got)
            << ", expected " << static_cast<Shown>(want) << '\\n';
  return true;
}

/// Whether a vector is not reproduced; which and where goes to the standard error.
inline bool fails() {
  static const struct {
    Input in;
    Output out;
  } vectors[] = {
$vectors
  };
  std::size_t vector = 0;
  bool failed = false;
  for (const auto& [in, want] : vectors) {
    ++vector;
    try {
      const Output got = $function(in);
$checks
    } catch (const std::exception& error) {
      std::cerr << "vector " << vector << ": " << error.what() << '\\n';
      failed = true;
    }
  }
  return failed;
}

}  // namespace $namespace

int main() { return $namespace::fails() ? 1 : 0; }
#endif  // ${guard}_TEST
""")


def write_cpp(plan: Plan, vectors: Sequence[Vector]) -> str:
    """A header with the function, and a program that tests it where a macro asks for that."""
    cpp = _Cpp(plan)
    guard = cpp.free(plan.function.name).upper()
    namespace = "::".join(map(cpp.free, plan.function.name.split(".")))
    names = {"guard": guard, "namespace": namespace, "function": cpp.function}
    body = "\n".join(cpp.body())
    limits = [f"constexpr Int {n} = {_plain(v)};\n" for n, v in used(LIMITS, body).items()]
    return _FILE.substitute(
        names,
        about="\n".join(cpp.about("//")),
        kit="\n\n".join([_KIT, *used(_HELPERS, body).values()]),
        limits="".join([*limits, "\n"] if limits else []),
        tables="".join(map(_table, map(cpp.name_of_table, plan.look_ups), plan.look_ups)),
        enums="".join(map(cpp.enum, plan.sorts)),
        records=cpp.records(),
        summary=plain(plan.function.summary),
        body=body,
        test=_TEST.substitute(names, **cpp.test(vectors)) if vectors else "",
    )


def _plain(value: int) -> str:
    """A literal of a 64-bit type."""
    if value == INT64.lo:
        return "std::numeric_limits<std::int64_t>::min()"
    return grouped(value, "'") + ("" if value in INT64 else "U")


def _table(name: str, look_up: LookUp) -> str:
    values = look_up.table.values
    entries = ", ".join(map(_plain, values))
    line = f"constexpr std::array<std::int64_t, {len(values)}> {name} = {{{{ {entries}}}}};"
    return "\n".join([*broken(line, " " * 4), "", ""])


class _Cpp(Writer):
    reserved = frozenset((_KEYWORDS + _OURS).split())
    reserved_members = frozenset(_KEYWORDS.split())
    connectives: ClassVar = {Op.AND: "&&", Op.OR: "||"}
    types = ("std::int64_t", "std::uint64_t", "bool")

    def member_name(self, name: str) -> str:
        return name

    def truth(self, *, value: bool) -> str:
        return str(value).lower()

    def limit(self, name: str) -> str:
        return name

    def literal(self, value: int) -> str:
        if -(2**63) <= value < 2**64:
            return _plain(value)
        high, low = value >> 64, value & (2**64 - 1)
        return f"Int(static_cast<Wide>({high}) * (static_cast<Wide>(1) << 64) + {low}U)"

    def member(self, sort: EnumSort, member: str) -> str:
        return f"{self.sorts[sort]}::{self.members[sort][member]}"

    def choice(self, test: Term, one: Term, two: Term) -> Text:
        then = self.text(one, NOT)
        if isinstance(one, Int) and one.op is Op.CONST:
            then = f"Int({then})"  # two literals would meet others in machine arithmetic
        return f"{self.text(test, NOT)} ? {then} : {self.branch(two)}", CHOICE

    def refusal(self, condition: Term) -> Text:
        return f"!{self.text(condition, UNARY)}", UNARY

    def mention(self, term: Term) -> str:
        may_lack = term in self.unsure and not isinstance(term, Int)
        return f"{self.name(term)}{'.value()' if may_lack else ''}"

    def result(self, output: Field, value: Term, /) -> str:
        text = self.text(value)
        is_plain = not isinstance(value, Int) or self.is_literal(value, output.machine)
        return text if is_plain else f"narrow<{self.type_of(output)}>({text})"

    # Declarations

    def name_of_table(self, look_up: LookUp) -> str:
        """The name of the constant."""
        return f"{self.name(look_up.symbol)}_table"

    def enum(self, sort: EnumSort) -> str:
        """The members in declared order."""
        line = f"enum class {self.sorts[sort]} {{ {', '.join(self.members[sort].values())} }};"
        return "\n".join([*broken(line, " " * 4), "", ""])

    def records(self) -> str:
        """The inputs, and the outputs with their defaults."""
        lines = ["struct Input {"]
        lines += [f"  {self.type_of(one)} {self.name(one.term)};" for one in self.plan.inputs]
        lines += ["};", "", "struct Output {"]
        for name, one in zip(self.outputs, self.plan.outputs, strict=True):
            lines.append(
                f"  {self.type_of(one)} {name} = {self.value(one.term, default(one.term))};"
            )
        return "\n".join([*lines, "};", "", ""])

    # The function

    def received(self) -> Iterator[str]:
        for field in self.plan.inputs:
            name, symbol = self.name(field.term), field.term
            kind = "Int" if isinstance(symbol, Int) else self.type_of(field)
            yield f"  const {kind} {name} = in.{name};"
            if self.refused(field) is not FALSE:
                refusal = f'throw std::domain_error("{name} is outside {symbol.domain}")'
                yield f"  if ({self.text(self.refused(field))}) {refusal};"

    def looked_up(self, look_up: LookUp) -> Iterator[str]:
        table, outside = self.name_of_table(look_up), _plain(look_up.table.outside)
        value = f"looked_up({table}, {self.name(look_up.by)}, {outside})"
        yield f"  const Int {self.name(look_up.symbol)} = {value};"

    def defined(self, node: Term, value: str) -> Iterator[str]:
        kind = "Int" if isinstance(node, Int) else self.type_of(Field("", node, None))
        yield from broken(f"  const {kind} {self.name(node)} = {value};")

    def attempted(self, node: Term, value: str) -> Iterator[str]:
        kind = "Int" if isinstance(node, Int) else self.type_of(Field("", node, None))
        attempt = f"attempt([&]() -> {kind} {{ return {value}; }})"
        yield from broken(f"  const auto {self.name(node)} = {attempt};")

    def guarded(self, test: str, values: Sequence[Term]) -> Iterator[str]:
        yield from broken(f"  if ({test}) {{", " " * 4)
        yield "    Output out;"
        yield from (f"  {line}" for line in self.answered(values, is_first=False))
        yield "  }"

    def answered(self, values: Sequence[Term], *, is_first: bool = True) -> Iterator[str]:
        if is_first:
            yield "  Output out;"
        for name, value in self.results(values):
            yield from broken(f"  out.{name} = {value};")
        yield "  return out;"

    def test(self, vectors: Sequence[Vector]) -> dict[str, str]:
        """The vectors as initialisers, and one comparison per output."""
        lines = []
        for one in vectors:
            inputs = ", ".join(value for _, value in self.given(one))
            outputs = ", ".join(
                self.value(field.term, self.wanted(one, field)) for field in self.plan.outputs
            )
            row = f"{{{{{inputs}}}, {{{outputs}}}}},"
            lines += broken(f"      {row}", "  ")
        checks: list[str] = []
        for name in self.outputs:
            call = f'differs(vector, "{name}", got.{name}, want.{name})'
            checks += broken(f"      failed |= {call};", " " * 4)
        return {"vectors": "\n".join(lines), "checks": "\n".join(checks)}
