"""Enumerations repeated: every state of the box again, and why no state lies outside of it.

The box may be cut off where a symbol settles. Then, from that value on, each comparison that
mentions the symbol must keep one truth value: ranges decide it, or a solver that is asked again.
Of values that nothing tells apart, the first is evaluated for all where the evidence says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

import numpy as np

from routeproof.spec.derivation import Digests
from routeproof.spec.interpret import evaluate
from routeproof.spec.obligation import Claim
from routeproof.spec.program import Program
from routeproof.spec.terms import (
    Bool,
    Float,
    FloatValue,
    Int,
    Op,
    Term,
    all_of,
    any_of,
    boolean,
    free_symbols,
    substitute,
    topological,
)

from .columns import Column, Columns
from .conditions import Facts
from .groups import told_apart
from .ranges import Range, declared, range_of, simplified
from .reasking import ask_again, written_out
from .refused import require, shown

__all__ = ["check_enumeration"]

_BLOCK = 1 << 17
_MOST_STATES = 1 << 26
_COMPARISONS = (Op.LT, Op.LE, Op.EQ)


def check_enumeration(claim: Claim, found: Mapping[str, Any], seconds: float) -> int:
    """Repeat the enumeration that the evidence tells of; how many states it has."""
    conditions, goals = tuple(claim.conditions.values()), tuple(claim.goals.values())
    terms = (*conditions, *goals, *claim.regimes.values())
    symbols = {one.name: one for one in free_symbols(*terms)}
    box = found.get("box")
    require(isinstance(box, dict) and box.keys() == symbols.keys(), "the box has other symbols")
    tried = {
        symbols[name]: _tried(symbols[name], span)
        for name, span in cast("dict[str, Any]", box).items()
    }
    states = math.prod((one.stop - one.start - 1) // one.step + 1 for one in tried.values())
    require(states <= _MOST_STATES, f"{states:,} states are too many to be tried again")
    admits, goal = all_of(*conditions), all_of(*goals)
    kinds = (admits, *(admits & one for one in (~goal, *claim.regimes.values())))
    settles = _settling(kinds, tried, Facts(conditions, {}).box(), seconds)
    roots = (admits, goal, *claim.regimes.values())
    axes, groups = _axes(roots, tried, found.get("groups"))
    (admitted, *counts), digest = _evaluated(roots, axes)
    repeated = {
        "box": box,
        "settles": settles,
        "groups": groups,
        "states": states,
        "admitted": admitted,
        "regimes": dict(zip(claim.regimes, counts, strict=True)),
        "digest": digest,
    }
    require(found == repeated, "the enumeration was another one")
    return states


def _tried(symbol: Term, span: Any) -> range:  # noqa: ANN401 - JSON
    """The values that a range of the evidence stands for."""
    is_pair = isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)
    require(is_pair and -(2**63) <= span[0] <= span[1] < 2**63, "a range of the box is malformed")
    step = _step(symbol)
    values = range(-(-span[0] // step) * step, span[1] + 1, step)
    require(values.start < values.stop, f"{symbol.name} is not tried at all")
    return values


def _step(symbol: Term) -> int:
    return symbol.domain.multiple_of if isinstance(symbol, Int) and symbol.domain else 1


# Coverage


def _settling(
    kinds: Sequence[Bool], tried: Mapping[Term, range], ranges: Mapping[str, Range], seconds: float
) -> dict[str, int]:
    """No state outside the box is of a kind that none inside is; the symbols that are cut off."""
    found: dict[str, int] = {}
    for symbol, values in tried.items():
        if isinstance(symbol, Bool):
            require(values == range(2), f"{symbol.name} is not tried both ways")
        elif not isinstance(symbol, Int):
            members = getattr(symbol.sort, "members", ())
            require(values == range(len(members)), f"{symbol.name} has other members")
        else:
            least, most = ranges.get(symbol.name, declared(symbol))
            require(values[0] < least + _step(symbol), f"{symbol.name} may lie below the box")
            if values[-1] + _step(symbol) <= most:
                beyond = {**ranges, symbol.name: (values[-1], most)}
                _settles(kinds, symbol, values[-1], beyond, seconds)
                found[symbol.name] = values[-1]
    return found


def _settles(
    kinds: Sequence[Bool], symbol: Int, at: int, beyond: Mapping[str, Range], seconds: float
) -> None:
    """Nothing in the conditions depends on the symbol from a value on."""
    rest = _simplified(written_out(kinds), beyond)
    while comparisons := _innermost(rest, symbol):
        kept: dict[Term, Bool] = {}
        for one in comparisons:
            shown(len(free_symbols(one)) == 1, f"{symbol.name} does not settle alone")
            kept[one] = boolean(evaluate(one, {symbol.name: at}))
        changes = any_of(*(cast("Bool", one) != value for one, value in kept.items()))
        answer = ask_again((symbol >= at, changes), seconds)
        shown(answer == "unsat", f"{symbol.name} is not shown to settle at {at}: {answer}")
        rest = _simplified(cast("tuple[Bool, ...]", substitute(rest, kept)), beyond)
    names = {one.name for one in free_symbols(*rest)}
    shown(symbol.name not in names, f"{symbol.name} is not shown to settle at {at}")


def _innermost(conditions: Sequence[Bool], symbol: Int) -> list[Bool]:
    """The comparisons that mention the symbol and hold no other that does."""
    mentions: set[Term] = set()
    outside: set[Term] = set()
    found: list[Bool] = []
    for node in topological(tuple(conditions)):
        if node is not symbol and mentions.isdisjoint(node.args):
            continue
        mentions.add(node)
        compares = node.op in _COMPARISONS and not isinstance(node.args[0], Bool)
        if not outside.isdisjoint(node.args):
            outside.add(node)
        elif compares:
            outside.add(node)
            found.append(cast("Bool", node))
    return found


def _simplified(conditions: tuple[Bool, ...], box: Mapping[str, Range]) -> tuple[Bool, ...]:
    """The conditions without what the ranges of integers and floats decide."""
    while True:
        conditions = simplified(conditions, (), box)
        decided = _decided_floats(conditions, box)
        if not decided:
            return conditions
        conditions = cast("tuple[Bool, ...]", substitute(conditions, decided))


def _decided_floats(conditions: Sequence[Bool], box: Mapping[str, Range]) -> dict[Term, Bool]:
    known: dict[Term, Range] = {}
    decided: dict[Term, Bool] = {}
    for node in topological(tuple(conditions)):
        if isinstance(node, Int):
            known[node] = range_of(node, known, box)
        elif isinstance(node, Float) and (ends := _float_range(node, known)):
            known[node] = ends
        elif node.op in (Op.LT, Op.LE) and isinstance(node.args[0], Float):
            if not all(arg in known for arg in node.args):
                continue
            (low, high), (lower, higher) = (known[arg] for arg in node.args)
            strict = node.op is Op.LT
            if high < lower or (high == lower and not strict):
                decided[node] = boolean(True)
            elif low > higher or (low == higher and strict):
                decided[node] = boolean(False)
    return decided


def _float_range(node: Float, known: Mapping[Term, Range]) -> Range | None:
    """The range of a float that is never NaN, from ends that are rounded as it is."""
    dtype: type[np.floating[Any]] = np.float32 if node.sort == 32 else np.float64
    ends = [known.get(arg) for arg in node.args if isinstance(arg, Int | Float)]
    if None in ends:
        return None
    match node.op, cast("list[Range]", ends):
        case Op.CONST, _:
            value = cast("FloatValue", node.value).number
            return None if math.isnan(value) else (value, value)
        case Op.TO_FLOAT, [(low, high)] if low >= -(2**63) and high < 2**63:
            rounded = np.array([low, high], np.int64).astype(dtype)
            return float(rounded[0]), float(rounded[1])
        case Op.WIDEN, [one]:
            return one
        case Op.CEILING, [(low, high)]:
            return float(np.ceil(dtype(low))), float(np.ceil(dtype(high)))
        case Op.FLOAT_MUL, [(low, high), (lower, higher)] if low >= 0 <= lower:
            ends_of = (dtype(low) * dtype(lower), dtype(high) * dtype(higher))
            return _finite(*ends_of) if max(high, higher) < math.inf else None
        case Op.FLOAT_DIV, [(low, high), (lower, higher)] if low >= 0 < lower:
            ends_of = (dtype(low) / dtype(higher), dtype(high) / dtype(lower))
            return _finite(*ends_of) if high < math.inf else None
    return None


def _finite(low: np.floating[Any], high: np.floating[Any]) -> Range | None:
    return (float(low), float(high)) if np.isfinite(high) else None


# Evaluation


def _axes(
    roots: Sequence[Bool],
    tried: Mapping[Term, range],
    named: Any,  # noqa: ANN401 - JSON
) -> tuple[dict[str, tuple[Column, Column]], dict[str, int]]:
    """Per symbol the values to evaluate and how many each stands for; groups of those named."""
    require(isinstance(named, dict), "groups of values are an object")
    axes, groups = dict[str, tuple[Column, Column]](), dict[str, int]()
    for symbol, values in tried.items():
        if symbol.name in named and isinstance(symbol, Int):
            axes[symbol.name] = told_apart(roots, symbol, tried)
            groups[symbol.name] = len(axes[symbol.name][0])
        else:
            column = np.array(values, bool if isinstance(symbol, Bool) else np.int64)
            axes[symbol.name] = column, np.ones(len(column), np.int64)
    return axes, groups


def _evaluated(
    roots: tuple[Bool, ...], axes: Mapping[str, tuple[Column, Column]]
) -> tuple[list[int], str]:
    """How many states are admitted, in all and per regime, and the digest of which.

    None of them breaks the goal.
    """
    admits, goal, *kinds = roots
    names = Digests()
    digest = blake2b(f"{names(admits)} {names(goal)}".encode(), digest_size=16)
    program, totals = Program(roots, Columns()), [0] * (1 + len(kinds))
    for pieces in _blocks([range(len(values)) for values, _ in axes.values()]):
        shape = tuple(map(len, pieces)) or (1,)
        block = [
            (values[piece.start : piece.stop], counts[piece.start : piece.stop])
            for (values, counts), piece in zip(axes.values(), pieces, strict=True)
        ]
        inputs = {
            name: values.reshape([-1 if at == place else 1 for at in range(len(block))])
            for place, (name, (values, _)) in enumerate(zip(axes, block, strict=True))
        }
        with np.errstate(all="ignore"):
            met, holds, *inside = (np.broadcast_to(one, shape) for one in program(inputs))
        require(not (met & ~holds).any(), "a state of the box breaks it")
        digest.update(met.tobytes())
        weights: Column = np.ones((), np.int64)
        for _, counts in block:
            weights = np.multiply.outer(weights, counts)
        totals = [
            total + int(np.sum(weights.reshape(shape)[met & kind]))
            for total, kind in zip(totals, (met, *inside), strict=True)
        ]
    return totals, digest.hexdigest()


def _blocks(axes: list[range]) -> Iterator[list[range]]:
    """The box in pieces, in the order of the whole."""
    if math.prod(map(len, axes)) <= _BLOCK:
        yield axes
        return
    at = next(index for index, axis in enumerate(axes) if len(axis) > 1)
    middle = len(axes[at]) // 2
    for part in (axes[at][:middle], axes[at][middle:]):
        yield from _blocks([*axes[:at], part, *axes[at + 1 :]])
