"""The solver asked again, of the terms as they stand: no normal form, no abstraction, no text.

An encoding of its own, so that a fault in those of the engines is not repeated: enums are integers,
searches are written out, everything else is the operation of the same meaning.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from routeproof.spec.terms import (
    FALSE,
    SEARCHES,
    TRUE,
    Bool,
    Enum,
    EnumSort,
    Float,
    FloatValue,
    Int,
    Op,
    Term,
    all_of,
    any_of,
    integer,
    ite,
    minimum,
    rebuild,
    rename_bound,
    substitute,
    symbol_int,
    topological,
)

from .products import without_products

__all__ = ["ask_again", "ask_plainly", "written_out"]

_MOST_NODES = 60_000
_MOST_TESTS = 3
_MOST_SPLITS = 3


def ask_again(conditions: Sequence[Bool], seconds: float, splits: int = _MOST_SPLITS) -> str:
    """`sat`, `unsat`, or `unknown` where the solver gives up or the terms are too large.

    What stays open is asked for each value of the flag that most of the terms look at, in turn.
    """
    answer = _asked(conditions, seconds)
    flag = _most_used(conditions) if answer == "unknown" and splits else None
    if flag is None:
        return answer
    for value in _values(flag):
        case = cast("tuple[Bool, ...]", substitute(tuple(conditions), {flag: value}))
        answer = ask_again(case, seconds, splits - 1)
        if answer != "unsat":
            return answer
    return "unsat"


def _asked(conditions: Sequence[Bool], seconds: float) -> str:
    """The answer for the conditions as a whole.

    First with every search and product as an unknown number, case by case where the limit of a
    search is a choice: if there is no state of that, there is none of the claim either.
    """
    hidden = [_without_searches(case) for case in _cases(conditions)]
    for simpler in (tuple, without_products):
        if all(ask_plainly(simpler(case), seconds) == "unsat" for case in hidden):
            return "unsat"
    return ask_plainly(conditions, seconds)


def _most_used(conditions: Sequence[Bool]) -> Bool | Enum | None:
    """The truth value or enum that is an argument most often."""
    users = Counter(
        arg
        for node in topological(tuple(conditions))
        for arg in node.args
        if arg.op is Op.SYMBOL and isinstance(arg, Bool | Enum)
    )
    return next((flag for flag, _ in users.most_common(1)), None)


def _values(flag: Bool | Enum) -> list[Term]:
    if isinstance(flag, Bool):
        return [TRUE, FALSE]
    return [flag.members[member] for member in flag.members.members]


def _cases(conditions: Sequence[Bool]) -> Iterator[tuple[Bool, ...]]:
    """The conditions for each way in which the limits of searches are chosen."""
    limits = (node.args[0] for node in topological(tuple(conditions)) if node.op in SEARCHES)
    tests = dict.fromkeys(one.args[0] for one in limits if one.op is Op.ITE and not one.bound)
    tests = dict.fromkeys(itertools.islice(tests, _MOST_TESTS))
    for values in itertools.product((TRUE, FALSE), repeat=len(tests)):
        chosen = dict(zip(tests, values, strict=True))
        yield cast("tuple[Bool, ...]", substitute(tuple(conditions), chosen))


def ask_plainly(conditions: Sequence[Bool], seconds: float) -> str:
    """The answer for the conditions as they stand."""
    import z3

    encoder = _Encoder(z3)
    solver = z3.SimpleSolver()
    solver.set("timeout", int(seconds * 1000))
    try:
        solver.add(*(encoder.encode(one) for one in conditions), *encoder.domains)
        return str(solver.check())
    except (z3.Z3Exception, _TooLargeError):
        return "unknown"


def _without_searches(conditions: Sequence[Bool]) -> tuple[Bool, ...]:
    """The conditions with a symbol for each search, one for all that differ in names only.

    What the search finds is a candidate within its limit, or what it falls back to.
    """
    renamed = _renamed(conditions)
    searches = [node for node in topological(renamed) if node.op is Op.FIRST and not node.bound]
    symbols = {one: symbol_int(f"search {one.serial}") for one in searches}
    within = []
    for search, found in symbols.items():
        limit, *_, otherwise = cast("tuple[Int, ...]", search.args)
        last = minimum(limit, cast("int", search.value))
        within.append(any_of(found == otherwise, all_of(found >= 1, found <= last)))
    return cast("tuple[Bool, ...]", substitute((*renamed, *within), symbols))


def _renamed(conditions: Sequence[Bool]) -> tuple[Bool, ...]:
    """The conditions with the variables of all searches named alike."""
    done: dict[Term, Term] = {}
    for node in topological(tuple(conditions)):
        new = rebuild(node, tuple(done[arg] for arg in node.args))
        done[node] = rename_bound(new, "%") if node.op in SEARCHES else new
    return tuple(cast("Bool", done[one]) for one in conditions)


class _TooLargeError(Exception):
    """Written out, the searches are more than a solver reads."""


class _Encoder:
    """Terms as expressions; every symbol is declared when it is first met."""

    def __init__(self, z3: Any) -> None:  # noqa: ANN401 - untyped library
        self._z3 = z3
        self.domains: list[Any] = []
        self._done: dict[Term, Any] = {}

    def encode(self, term: Term) -> Any:  # noqa: ANN401 - untyped library
        """The expression of the term."""
        for node in topological((term,)):
            if node not in self._done and not node.bound and node.op not in SEARCHES:
                self._done[node] = self._node(node, [self._done[arg] for arg in node.args])
            elif node.op in SEARCHES and not node.bound:
                self._done[node] = self.encode(_tried(node))
            if len(self._done) > _MOST_NODES:
                raise _TooLargeError
        return self._done[term]

    def _symbol(self, node: Term) -> Any:  # noqa: ANN401 - untyped library
        z3, name = self._z3, f"{node.name} {node.sort_name}"
        if isinstance(node, Bool):
            return z3.Bool(name)
        if isinstance(node, Float):
            return z3.FP(name, self._format(node))
        value = z3.Int(name)
        if isinstance(node.sort, EnumSort):
            self.domains += [value >= 0, value < len(node.sort.members)]
        elif node.domain is not None:
            domain = node.domain
            self.domains += [] if domain.lo is None else [value >= domain.lo]
            self.domains += [] if domain.hi is None else [value <= domain.hi]
            self.domains += [value % domain.multiple_of == 0] if domain.multiple_of > 1 else []
        return value

    def _format(self, node: Term) -> Any:  # noqa: ANN401 - untyped library
        ends = (8, 24) if node.sort == 32 else (11, 53)
        return self._z3.FPSort(*ends)

    def _constant(self, node: Term) -> Any:  # noqa: ANN401 - untyped library
        z3, value = self._z3, node.value
        if isinstance(value, FloatValue):
            bits = z3.BitVecVal(int.from_bytes(value.bits, "big"), 8 * len(value.bits))
            return z3.fpBVToFP(bits, self._format(node))
        if isinstance(node.sort, EnumSort):
            return z3.IntVal(node.sort.members.index(str(value)))
        return (z3.BoolVal if isinstance(value, bool) else z3.IntVal)(value)

    def _node(self, node: Term, args: list[Any]) -> Any:  # noqa: ANN401 - untyped library
        z3 = self._z3
        match node.op:
            case Op.SYMBOL:
                return self._symbol(node)
            case Op.CONST:
                return self._constant(node)
            case Op.ADD | Op.SUB | Op.MUL:
                one, two = args
                return (
                    one + two
                    if node.op is Op.ADD
                    else one - two
                    if node.op is Op.SUB
                    else one * two
                )
            case Op.FLOOR_DIV:
                return self._floor(*args)
            case Op.CEIL_DIV:
                return -self._floor(-args[0], args[1])
            case Op.ALIGN_UP:
                return -self._floor(-args[0], args[1]) * args[1]
            case Op.MOD:
                return args[0] - args[1] * self._floor(*args)
            case Op.MIN:
                return z3.If(args[0] < args[1], *args)
            case Op.MAX:
                return z3.If(args[0] > args[1], *args)
            case Op.ITE:
                return z3.If(*args)
            case Op.NOT:
                return z3.Not(args[0])
            case Op.AND:
                return z3.And(*args)
            case Op.OR:
                return z3.Or(*args)
            case Op.EQ | Op.LT | Op.LE if isinstance(node.args[0], Float):
                compare = {Op.EQ: z3.fpEQ, Op.LT: z3.fpLT, Op.LE: z3.fpLEQ}[node.op]
                return compare(*args)
            case Op.EQ:
                return args[0] == args[1]
            case Op.LT:
                return args[0] < args[1]
            case Op.LE:
                return args[0] <= args[1]
            case _:
                return self._float(node, args)

    def _floor(self, value: Any, divisor: Any) -> Any:  # noqa: ANN401 - untyped library
        z3 = self._z3
        negated = z3.If(divisor > 0, value / divisor, (-value) / (-divisor))
        return z3.If(divisor == 0, z3.IntVal(0), negated)

    def _float(self, node: Term, args: list[Any]) -> Any:  # noqa: ANN401 - untyped library
        z3 = self._z3
        near, up = z3.RNE(), z3.RTP()
        match node.op:
            case Op.TO_FLOAT:
                return z3.fpRealToFP(near, z3.ToReal(args[0]), self._format(node))
            case Op.WIDEN:
                return z3.fpFPToFP(near, args[0], self._format(node))
            case Op.FLOAT_MUL:
                return z3.fpMul(near, *args)
            case Op.FLOAT_DIV:
                return z3.fpDiv(near, *args)
            case _:
                return z3.fpRoundToIntegral(up, args[0])


def written_out(conditions: Sequence[Bool]) -> tuple[Bool, ...]:
    """The conditions with every search written out."""
    done: dict[Term, Term] = {}
    for node in topological(tuple(conditions)):
        new = rebuild(node, tuple(done[arg] for arg in node.args))
        done[node] = _tried(new) if node.op in SEARCHES else new
    return tuple(cast("Bool", done[one]) for one in conditions)


def _tried(search: Term) -> Term:
    """The search tried candidate by candidate, the last one innermost."""
    limit, variable, *bodies, result = search.args
    candidates = range(1, cast("int", search.value) + 1)
    for candidate in reversed(candidates) if search.op is Op.FIRST else candidates:
        at = integer(candidate)
        test, *value = substitute(tuple(bodies), {variable: at})
        tried = all_of(at <= cast("Int", limit), cast("Bool", test))
        if search.op is Op.FIRST:
            result = ite(tried, at, cast("Int", result))
        else:
            new, best = cast("Float", value[0]), cast("Float", result)
            result = ite(all_of(tried, new > best), new, best)
    return result
