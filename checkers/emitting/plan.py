"""What an emitted function does, in which order, in no language yet.

The outputs are split at the first condition under which all of them are plain values: it becomes a
guard, which returns them, and the rest is simplified by its failure. What the guards leave is the
last answer. A term that several places mention becomes a local, defined before the first of them.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

from routeproof.checkers.readings.intervals import Interval, intervals, prune
from routeproof.spec.errors import InputError, UnsupportedError
from routeproof.spec.function import Function, Table
from routeproof.spec.records import EnumSet, leaves
from routeproof.spec.terms import (
    FALSE,
    Bool,
    Enum,
    EnumSort,
    Int,
    IntDomain,
    Op,
    Term,
    any_of,
    substitute,
    symbols_among,
    topological,
)

__all__ = [
    "INT64",
    "Answer",
    "Define",
    "Field",
    "Guard",
    "LookUp",
    "Plan",
    "Step",
    "mentioned",
    "outside",
    "plan",
]

_LEAVES = frozenset({Op.SYMBOL, Op.CONST})
_COMPARISONS = frozenset({Op.EQ, Op.LT, Op.LE})
_ARITHMETIC = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.FLOOR_DIV, Op.CEIL_DIV, Op.MOD, Op.ALIGN_UP, Op.MIN, Op.MAX}
)
_WRITTEN = _LEAVES | _COMPARISONS | _ARITHMETIC | {Op.ITE, Op.NOT, Op.AND, Op.OR}
_LONGEST = 7  # operators in one expression; beyond, a part of it gets a name

INT64 = Interval(-(2**63), 2**63 - 1)
UINT64 = Interval(0, 2**64 - 1)
_KNOWN = Interval(-(2**126), 2**126)  # what no operation on 128 bits can miss
_Box = Mapping[str, Interval]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One input or output: its name, a term of its sort, the range of its type if an integer."""

    name: str
    term: Term
    machine: Interval | None


@dataclass(frozen=True, slots=True, eq=False)
class LookUp:
    """An input that is not passed: its symbol, the symbol it is looked up by, the table."""

    symbol: Int
    by: Int
    table: Table


@dataclass(frozen=True, slots=True, eq=False)
class Define:
    """Compute a local; where it may fail for want of a known value, that is no failure yet."""

    node: Term
    may_fail: bool


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """Where the condition holds, return plain values: one per output."""

    test: Bool
    values: tuple[Term, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Return the outputs."""

    values: tuple[Term, ...]


Step = Define | Guard | Answer


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything that the text of a language is made from; the last step is an answer."""

    function: Function
    inputs: tuple[Field, ...]
    look_ups: tuple[LookUp, ...]
    outputs: tuple[Field, ...]
    steps: tuple[Step, ...]

    @property
    def sorts(self) -> tuple[EnumSort, ...]:
        """Every enum that the text speaks of."""
        nodes = (*[field.term for field in self.inputs], *topological(mentioned(self.steps)))
        return tuple(dict.fromkeys(one.members for one in nodes if isinstance(one, Enum)))


def plan(function: Function) -> Plan:
    """The plan of a function; inputs on which no output depends are left out."""
    named = _outputs(function)
    _require_written(function, named)
    declared = leaves(function.inputs)
    look_ups = [_look_up(name, table, declared) for name, table in function.tables.items()]
    spans = {one.symbol.name: _span(one) for one in look_ups}
    ends, boxes = _split(tuple(named.values()), spans)
    steps = _scheduled(ends, boxes)
    used = set(symbols_among(topological(mentioned(steps))))
    if not used:
        raise UnsupportedError(f"{function.name}: no output depends on an input")
    look_ups = [one for one in look_ups if one.symbol in used]
    used |= {one.by for one in look_ups}
    used -= {one.symbol for one in look_ups}
    return Plan(
        function,
        tuple(
            Field(name, declared[path], _machine(declared[path]))
            for path, name in _short_names(function).items()
            if declared[path] in used
        ),
        tuple(look_ups),
        tuple(_typed(named, ends, boxes)),
        steps,
    )


def outside(symbol: Int, machine: Interval | None) -> Bool:
    """The condition that a value of the machine type is not in the symbol's domain."""
    domain = cast("IntDomain", symbol.domain)
    known = machine or Interval()
    return any_of(
        domain.lo is not None and domain.lo != known.lo and symbol < domain.lo,
        domain.hi is not None and domain.hi != known.hi and symbol > domain.hi,
        domain.multiple_of > 1 and symbol % domain.multiple_of != 0,
    )


def mentioned(steps: Iterable[Step]) -> tuple[Term, ...]:
    """The roots of all that the steps compute."""
    found: list[Term] = []
    for step in steps:
        match step:
            case Define(node=node):
                found.append(node)
            case Guard(test, values):
                found += (test, *values)
            case Answer(values):
                found += values
    return tuple(found)


def _outputs(function: Function) -> dict[str, Term]:
    """Every output by its path; the key of the record in front where there are several."""
    several = len(function.outputs) > 1
    return {
        name: term
        for key, record in function.outputs.items()
        for name, term in leaves(record, key if several else "").items()
    }


def _require_written(function: Function, named: Mapping[str, Term]) -> None:
    for name, root in named.items():
        for node in topological((root,)):
            is_float = node.sort_name == "float"
            if is_float or node.op not in {*_WRITTEN, Op.BOUND}:
                kind = f"a float ({node.op})" if is_float else f"the search '{node.op}'"
                raise UnsupportedError(
                    f"{function.name}: output {name!r} needs {kind}; code is emitted for integers, "
                    "booleans and enums without searches"
                )


def _look_up(name: str, table: Table, declared: Mapping[str, Term]) -> LookUp:
    """The table of an input: another input is the index, every value one that it may take."""
    symbol, by = declared.get(name), declared.get(table.by)
    if not isinstance(symbol, Int) or not isinstance(by, Int) or table.by == name:
        raise InputError(f"table of {name!r} by {table.by!r}: two integer inputs are needed")
    for value in (*table.values, table.outside):
        if value not in cast("IntDomain", symbol.domain) or value not in INT64:
            raise InputError(f"table of {name!r}: {value} is outside {symbol.domain}")
    return LookUp(symbol, by, table)


def _span(look_up: LookUp) -> Interval:
    values = (*look_up.table.values, look_up.table.outside)
    return Interval(min(values), max(values))


def _short_names(function: Function) -> dict[str, str]:
    """The last part of each input's path, or all of it where two inputs share the last."""
    short = dict(_named(function.inputs, ""))
    often = Counter(short.values())
    return {path: one if often[one] == 1 else path for path, one in short.items()}


def _named(node: object, path: str) -> Iterator[tuple[str, str]]:
    last = path.rpartition(".")[2]
    if isinstance(node, Term):
        yield path, last
    elif isinstance(node, EnumSet):
        yield from ((f"{path}.{member}", f"{last}_{member}") for member in node.present)
    else:
        for field in fields(cast("Any", node)):
            yield from _named(getattr(node, field.name), f"{path}.{field.name}".lstrip("."))


def _machine(symbol: Term) -> Interval | None:
    """The 64-bit type of an integer input, the signed one if either would do."""
    if not isinstance(symbol, Int):
        return None
    domain = cast("IntDomain", symbol.domain)
    for machine in (INT64, UINT64):
        if all(end is not None and end in machine for end in (domain.lo, domain.hi)):
            return machine
    raise UnsupportedError(f"{symbol.name}: {domain} is the range of no 64-bit type")


def _typed(
    named: Mapping[str, Term], ends: Sequence[Guard | Answer], boxes: Sequence[_Box]
) -> Iterator[Field]:
    """The outputs; one that is never negative has an unsigned type."""
    spans = [intervals(end.values, box) for end, box in zip(ends, boxes, strict=True)]
    for at, (name, root) in enumerate(named.items()):
        if not isinstance(root, Int):
            yield Field(name, root, None)
            continue
        lows = [found[end.values[at]].lo for found, end in zip(spans, ends, strict=True)]
        is_signed = any(low is None or low < 0 for low in lows)
        yield Field(name, root, INT64 if is_signed else UINT64)


# Guards


def _split(roots: tuple[Term, ...], box: _Box) -> tuple[list[Guard | Answer], list[_Box]]:
    """The guards and the answer behind them, and what is known of symbols before each."""
    ends: list[Guard | Answer] = []
    boxes = [box]
    given: list[Bool] = []
    roots = prune(roots, box)
    while (guard := _first_guard(roots, box)) is not None:
        ends.append(guard)
        given.append(~guard.test)
        box = _narrowed(box, ~guard.test)
        boxes.append(box)
        roots = _under(roots, box, given)
    return [*ends, Answer(roots)], boxes


def _first_guard(roots: tuple[Term, ...], box: _Box) -> Guard | None:
    """The first condition of an output under which every output is plain."""
    tests = dict.fromkeys(cast("Bool", root.args[0]) for root in roots if root.op is Op.ITE)
    for test in tests:
        for side in (test, ~test):
            values = _under(roots, box, (side,))
            if all(value.op in _LEAVES for value in values):
                return Guard(side, values)
    return None


def _under(roots: tuple[Term, ...], box: _Box, given: Sequence[Bool]) -> tuple[Term, ...]:
    """The roots where the conditions hold: an `and` is false with the last one that is refuted."""
    refuted = given[-1].args[0] if given[-1].op is Op.NOT else FALSE
    parts = set(refuted.args) if refuted.op is Op.AND else {refuted}
    gone = {
        node: FALSE
        for node in topological(roots)
        if node.op is Op.AND and parts.issubset(node.args)
    }
    return prune(substitute(roots, gone), box, given)


def _narrowed(box: _Box, fact: Bool) -> _Box:
    """The box without values of symbols that the fact excludes (a superset of what it admits)."""
    match fact.op:
        case Op.AND:
            for part in fact.args:
                box = _narrowed(box, cast("Bool", part))
            return box
        case Op.OR:
            return _joined([_narrowed(box, cast("Bool", part)) for part in fact.args])
        case Op.NOT if fact.args[0].op is Op.AND:
            return _narrowed(box, any_of(*(~cast("Bool", one) for one in fact.args[0].args)))
        case Op.NOT if fact.args[0].op in (Op.LT, Op.LE):
            (test,) = fact.args
            two, one = cast("tuple[Int, Int]", test.args)
            return _compared(box, one <= two if test.op is Op.LT else one < two)
        case _:
            return _compared(box, fact)


def _joined(boxes: Sequence[_Box]) -> _Box:
    """Each symbol that all of the boxes bound, between its least and its greatest end."""
    common = [name for name in boxes[0] if all(name in box for box in boxes)]
    return {name: _hull([box[name] for box in boxes]) for name in common}


def _hull(spans: Sequence[Interval]) -> Interval:
    lows, highs = [one.lo for one in spans], [one.hi for one in spans]
    return Interval(
        None if None in lows else min(cast("list[int]", lows)),
        None if None in highs else max(cast("list[int]", highs)),
    )


def _compared(box: _Box, fact: Bool) -> _Box:
    """The box where a symbol is compared with a constant."""
    if fact.op not in _COMPARISONS or not isinstance(fact.args[0], Int):
        return box
    one, two = fact.args
    strict = int(fact.op is Op.LT)
    for symbol, other, is_left in ((one, two, True), (two, one, False)):
        if symbol.op is Op.SYMBOL and other.op is Op.CONST:
            value = cast("int", other.value)
            known = box.get(symbol.name) or Interval.of(cast("IntDomain", symbol.domain))
            low, high = known.lo, known.hi
            if fact.op is Op.EQ or is_left:
                high = value - strict if high is None else min(high, value - strict)
            if fact.op is Op.EQ or not is_left:
                low = value + strict if low is None else max(low, value + strict)
            return box if _is_empty(low, high) else {**box, symbol.name: Interval(low, high)}
    return box


def _is_empty(low: int | None, high: int | None) -> bool:
    return low is not None and high is not None and low > high


# Locals


def _scheduled(steps: Sequence[Guard | Answer], boxes: Sequence[_Box]) -> tuple[Step, ...]:
    """The steps, each behind the locals that it is the first to mention.

    Guards that return the same are one where no local comes between them.
    """
    wanted = _locals(mentioned(steps))
    done: set[Term] = set()
    found: list[Step] = []
    for step, box in zip(steps, boxes, strict=True):
        roots = mentioned([step])
        risky = _risky(roots, box)
        for node in topological(roots, done):
            done.add(node)
            if node in wanted:
                found.append(Define(node, _may_fail(node, risky, wanted)))
        last = found[-1] if found else None
        if isinstance(last, Guard) and isinstance(step, Guard) and _is_one(last, step, wanted):
            found[-1] = Guard(last.test | step.test, step.values)
        else:
            found.append(step)
    return tuple(found)


def _risky(roots: tuple[Term, ...], box: _Box) -> set[Term]:
    """The terms for which a value may be needed that is not known to fit 128 bits."""
    spans = intervals(roots, box)
    risky: set[Term] = set()
    for node in topological(roots):
        span = spans.get(node, _KNOWN)
        is_known = all(end is not None and end in _KNOWN for end in (span.lo, span.hi))
        if not is_known or not risky.isdisjoint(node.args):
            risky.add(node)
    return risky


def _may_fail(node: Term, risky: Container[Term], named: Container[Term]) -> bool:
    """Whether the text of the term needs a value, to decide by it, that may be unknown."""
    if not isinstance(node, Int):
        return node in risky
    tests = [one.args[0] for one in _written(node, named) if one.op is Op.ITE]
    return any(test in risky for test in tests)


def _written(node: Term, named: Container[Term]) -> Iterator[Term]:
    """The terms that the definition of the term writes out."""
    yield node
    for arg in node.args:
        if arg not in named:
            yield from _written(arg, named)


def _is_one(one: Guard, two: Guard, wanted: Container[Term]) -> bool:
    """Whether the guards return the same, and no `or` of theirs has a name that would be lost."""
    same = all(map(operator.is_, one.values, two.values))
    return same and one.test not in wanted and two.test not in wanted


def _locals(roots: tuple[Term, ...]) -> set[Term]:
    """The terms with a name: those written more than once, and parts of what would be too long.

    A comparison is written where it is used: it needs its value there, and only there.
    """
    nodes = topological(roots)
    uses = Counter(roots)
    named: set[Term] = set()
    for node in reversed(nodes):
        inline = node.op in _COMPARISONS or node.op is Op.NOT
        if node.op not in _LEAVES and not inline and uses[node] > 1:
            named.add(node)
        for arg in node.args:
            uses[arg] += uses[node] if inline else 1
    lengths: dict[Term, int] = {}
    for node in nodes:
        length = sum(lengths[arg] for arg in node.args) + (node.op not in _LEAVES)
        if length > _LONGEST and not isinstance(node, Bool):
            named.add(node)
        lengths[node] = 0 if node in named else length
    return named
