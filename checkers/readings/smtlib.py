"""The SMT-LIB 2 reading: a set of assertions as text that any solver reads.

The text is the query: z3 is given exactly what `--format` archives and what a second solver gets.
Enums become datatypes, floats the FloatingPoint theory, searches are unrolled (`unroll`) before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from routeproof.spec.errors import ModelError
from routeproof.spec.terms import (
    Bool,
    EnumSort,
    Float,
    FloatValue,
    Int,
    Op,
    Term,
    all_of,
    free_symbols,
    integer,
    ite,
    rebuild,
    substitute,
    topological,
)

__all__ = ["script", "symbol_name", "unroll"]

_FLOATS = {32: "8 24", 64: "11 53"}
_EXPONENT = {4: 8, 8: 11}
_PRELUDE = """\
(define-fun floor_div ((a Int) (b Int)) Int
  (ite (= b 0) 0 (ite (> b 0) (div a b) (div (- a) (- b)))))
(define-fun ceil_div ((a Int) (b Int)) Int (- (floor_div (- a) b)))
(define-fun floor_mod ((a Int) (b Int)) Int (- a (* b (floor_div a b))))
"""


def unroll(roots: Sequence[Term]) -> tuple[Term, ...]:
    """The roots with every bounded search written out as a chain of if-then-else."""
    done: dict[Term, Term] = {}
    for node in topological(tuple(roots)):
        new = rebuild(node, tuple(done[arg] for arg in node.args))
        done[node] = _written_out(new) if node.op in (Op.FIRST, Op.GREATEST) else new
    return tuple(done[root] for root in roots)


def _written_out(node: Term) -> Term:
    limit, variable, *bodies, result = node.args
    candidates: Iterable[int] = range(1, cast("int", node.value) + 1)
    if node.op is Op.FIRST:
        candidates = reversed(list(candidates))
    for candidate in candidates:
        body = substitute(tuple(bodies), {variable: integer(candidate)})
        tried = all_of(integer(candidate) <= cast("Int", limit), cast("Bool", body[0]))
        if node.op is Op.FIRST:
            result = ite(tried, candidate, cast("Int", result))
        else:
            value, best = cast("Float", body[1]), cast("Float", result)
            result = ite(all_of(tried, value > best), value, best)
    return result


def symbol_name(symbol: Term) -> str:
    """The quoted SMT-LIB name of a symbol."""
    return f"|{symbol.name}|"


def script(assertions: Sequence[Bool], comments: Sequence[str] = ()) -> str:
    """A complete SMT-LIB 2 script: declarations, domains, shared parts once, assertions, check."""
    nodes = topological(tuple(assertions))
    symbols = free_symbols(*assertions)
    sorts = {node.sort for node in nodes if isinstance(node.sort, EnumSort)}
    lines = [f"; {line}" for comment in comments for line in comment.splitlines()]
    lines.append("(set-logic ALL)")
    lines += [_datatype(sort) for sort in sorted(sorts, key=lambda sort: sort.name)]
    lines.append(_PRELUDE.rstrip())
    for symbol in symbols:
        lines.append(f"(declare-fun {symbol_name(symbol)} () {_sort(symbol)})")
        lines += [f"(assert {bound})" for bound in _domain(symbol)]
    shared, text = _shared(nodes)
    lines += shared
    lines += [f"(assert {text[assertion]})" for assertion in assertions]
    return "\n".join([*lines, "(check-sat)", ""])


def _shared(nodes: Sequence[Term]) -> tuple[list[str], Mapping[Term, str]]:
    """Definitions for the nodes used more than once, and the text of every node."""
    uses = Counter(arg for node in nodes for arg in node.args)
    text: dict[Term, str] = {}
    definitions = []
    for node in nodes:
        body = _encode(node, [text[arg] for arg in node.args])
        if uses[node] > 1 and node.args:
            name = f"n{len(definitions)}"
            definitions.append(f"(define-fun {name} () {_sort(node)} {body})")
            body = name
        text[node] = body
    return definitions, text


def _datatype(sort: EnumSort) -> str:
    members = " ".join(f"({_member(sort, member)})" for member in sort.members)
    return f"(declare-datatypes ((|{sort.name}| 0)) (({members})))"


def _member(sort: EnumSort, member: str) -> str:
    return f"|{sort.name}.{member}|"


def _sort(node: Term) -> str:
    if isinstance(node.sort, EnumSort):
        return f"|{node.sort.name}|"
    return f"(_ FloatingPoint {_FLOATS[node.sort]})" if node.sort else node.sort_name.capitalize()


def _domain(symbol: Term) -> list[str]:
    domain, name = symbol.domain, symbol_name(symbol)
    if domain is None:
        return []
    bounds = [] if domain.lo is None else [f"(<= {_number(domain.lo)} {name})"]
    bounds += [] if domain.hi is None else [f"(<= {name} {_number(domain.hi)})"]
    return bounds + ([f"(= (mod {name} {domain.multiple_of}) 0)"] if domain.multiple_of > 1 else [])


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _constant(node: Term) -> str:
    match node.value:
        case FloatValue(bits):
            digits = "".join(f"{byte:08b}" for byte in bits)
            cut = 1 + _EXPONENT[len(bits)]
            return f"(fp #b{digits[0]} #b{digits[1:cut]} #b{digits[cut:]})"
        case bool() as value:
            return "true" if value else "false"
        case int() as value:
            return _number(value)
        case member:
            return _member(cast("EnumSort", node.sort), str(member))


def _is_positive(divisor: str) -> bool:
    return divisor.isdecimal() and int(divisor) > 0


def _divide(node: Term, one: str, two: str) -> str:
    """Division; by a positive constant SMT-LIB's own `div` and `mod` round as ours do."""
    plain = _is_positive(two)
    match node.op:
        case Op.FLOOR_DIV:
            return f"(div {one} {two})" if plain else f"(floor_div {one} {two})"
        case Op.MOD:
            return f"(mod {one} {two})" if plain else f"(floor_mod {one} {two})"
        case Op.CEIL_DIV:
            return f"(div (+ {one} {int(two) - 1}) {two})" if plain else f"(ceil_div {one} {two})"
        case _:
            up = f"(div (+ {one} {int(two) - 1}) {two})" if plain else f"(ceil_div {one} {two})"
            return f"(* {up} {two})"


_PLAIN: dict[Op, str] = {
    Op.ADD: "+",
    Op.SUB: "-",
    Op.MUL: "*",
    Op.ITE: "ite",
    Op.NOT: "not",
    Op.AND: "and",
    Op.OR: "or",
    Op.FLOAT_MUL: "fp.mul RNE",
    Op.FLOAT_DIV: "fp.div RNE",
    Op.CEILING: "fp.roundToIntegral RTP",
}
_RELATION: dict[Op, tuple[str, str]] = {
    Op.EQ: ("=", "fp.eq"),
    Op.LT: ("<", "fp.lt"),
    Op.LE: ("<=", "fp.leq"),
}


def _encode(node: Term, args: list[str]) -> str:
    match node.op:
        case Op.SYMBOL:
            return symbol_name(node)
        case Op.CONST:
            return _constant(node)
        case Op.FLOOR_DIV | Op.MOD | Op.CEIL_DIV | Op.ALIGN_UP:
            return _divide(node, *args)
        case Op.MIN | Op.MAX:
            return f"(ite (<= {args[0]} {args[1]}) {' '.join(args if node.op is Op.MIN else args[::-1])})"
        case Op.EQ | Op.LT | Op.LE:
            return f"({_RELATION[node.op][isinstance(node.args[0], Float)]} {' '.join(args)})"
        case Op.TO_FLOAT:
            return f"((_ to_fp {_FLOATS[cast('int', node.sort)]}) RNE (to_real {args[0]}))"
        case Op.WIDEN:
            return f"((_ to_fp 11 53) RNE {args[0]})"
        case op if op in _PLAIN:
            return f"({_PLAIN[op]} {' '.join(args)})"
        case _:
            raise ModelError(f"{node.op} has no SMT-LIB text: unroll() searches first")
