"""The SMT-LIB 2 reading: a set of assertions as text that any solver reads.

The text is the query: z3 is given exactly what `--smtlib` prints and what a second solver gets.
Enums become datatypes, floats the FloatingPoint theory, searches are written out before. A `?`
before every symbol keeps it apart from the theories' own names, which solvers let nobody redefine.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from routeproof.spec.errors import ModelError
from routeproof.spec.terms import (
    Bool,
    EnumSort,
    Float,
    FloatValue,
    Op,
    Term,
    free_symbols,
    topological,
)

__all__ = ["script", "symbol_name"]

_Labels = Mapping[EnumSort, str]
_FLOATS = {32: "8 24", 64: "11 53"}
_EXPONENT = {4: 8, 8: 11}
_FUNCTIONS = {
    "floor_div": "(ite (= b 0) 0 (ite (> b 0) (div a b) (div (- a) (- b))))",
    "ceil_div": "(- (floor_div (- a) b))",
    "floor_mod": "(- a (* b (floor_div a b)))",
    "align_up": "(* (ceil_div a b) b)",
    "minimum": "(ite (<= a b) a b)",
    "maximum": "(ite (<= a b) b a)",
}


def symbol_name(symbol: Term) -> str:
    """The quoted SMT-LIB name of a symbol."""
    return _quoted(f"?{symbol.name}")


def _quoted(name: str) -> str:
    if "|" in name or "\\" in name:
        raise ModelError(f"{name[1:]!r} has no SMT-LIB text: a name may not contain | or \\")
    return f"|{name}|"


def script(assertions: Sequence[Bool], comments: Sequence[str] = ()) -> str:
    """A complete SMT-LIB 2 script: declarations, domains, shared parts once, assertions, check."""
    nodes = topological(tuple(assertions))
    symbols = free_symbols(*assertions)
    sorts = _labels(nodes)
    lines = [f"; {line}" for comment in comments for line in comment.splitlines()]
    lines.append("(set-logic ALL)")
    lines += [_datatype(sort, sorts) for sort in sorts]
    for symbol in symbols:
        lines.append(f"(declare-fun {symbol_name(symbol)} () {_sort(symbol, sorts)})")
        lines += [f"(assert {bound})" for bound in _domain(symbol)]
    shared, text = _shared(nodes, sorts)
    stated = [*shared, *(f"(assert {text[assertion]})" for assertion in assertions)]
    lines += [*_functions(stated), *stated]
    return "\n".join([*lines, "(check-sat)", ""])


def _functions(lines: Sequence[str]) -> list[str]:
    """Definitions of the functions that the lines use, each before those that use it."""
    text, definitions = "\n".join(lines), list[str]()
    for name, body in reversed(_FUNCTIONS.items()):
        if f"({name} " in text:
            definitions.insert(0, f"(define-fun {name} ((a Int) (b Int)) Int {body})")
            text += body
    return definitions


def _labels(nodes: Sequence[Term]) -> _Labels:
    """A name per enum; two enums of one name are told apart by a number."""
    sorts = dict.fromkeys(node.sort for node in nodes if isinstance(node.sort, EnumSort))
    labels: dict[EnumSort, str] = {}
    for sort in sorted(sorts, key=lambda sort: (sort.name, sort.members)):
        names = itertools.chain([sort.name], map(f"{sort.name}:{{}}".format, itertools.count(1)))
        labels[sort] = next(name for name in names if name not in labels.values())
    return labels


def _shared(nodes: Sequence[Term], sorts: _Labels) -> tuple[list[str], Mapping[Term, str]]:
    """Definitions for the nodes used more than once, and the text of every node."""
    uses = Counter(arg for node in nodes for arg in node.args)
    text: dict[Term, str] = {}
    definitions: list[str] = []
    for node in nodes:
        body = _encode(node, [text[arg] for arg in node.args], sorts)
        if uses[node] > 1 and node.args:
            name = f"n{len(definitions)}"
            definitions.append(f"(define-fun {name} () {_sort(node, sorts)} {body})")
            body = name
        text[node] = body
    return definitions, text


def _datatype(sort: EnumSort, sorts: _Labels) -> str:
    members = " ".join(f"({_member(sort, member, sorts)})" for member in sort.members)
    return f"(declare-datatypes (({_quoted(f'?{sorts[sort]}')} 0)) (({members})))"


def _member(sort: EnumSort, member: str, sorts: _Labels) -> str:
    return _quoted(f"{sorts[sort]}:{member}")


def _sort(node: Term, sorts: _Labels) -> str:
    if isinstance(node.sort, EnumSort):
        return _quoted(f"?{sorts[node.sort]}")
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


def _constant(node: Term, sorts: _Labels) -> str:
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
            return _member(cast("EnumSort", node.sort), str(member), sorts)


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
            return (
                f"(* (div (+ {one} {int(two) - 1}) {two}) {two})"
                if plain
                else f"(align_up {one} {two})"
            )


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


def _encode(node: Term, args: list[str], sorts: _Labels) -> str:
    match node.op:
        case Op.SYMBOL:
            return symbol_name(node)
        case Op.CONST:
            return _constant(node, sorts)
        case Op.FLOOR_DIV | Op.MOD | Op.CEIL_DIV | Op.ALIGN_UP:
            return _divide(node, *args)
        case Op.MIN | Op.MAX:
            return f"({'minimum' if node.op is Op.MIN else 'maximum'} {' '.join(args)})"
        case Op.EQ | Op.LT | Op.LE:
            return f"({_RELATION[node.op][isinstance(node.args[0], Float)]} {' '.join(args)})"
        case Op.TO_FLOAT:
            return f"((_ to_fp {_FLOATS[cast('int', node.sort)]}) RNE (to_real {args[0]}))"
        case Op.WIDEN:
            return f"((_ to_fp 11 53) RNE {args[0]})"
        case op if op in _PLAIN:
            return f"({_PLAIN[op]} {' '.join(args)})"
        case _:
            raise ModelError(f"{node.op} has no SMT-LIB text: unroll it first")
