"""Bounded searches written out as chains of if-then-else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from routeproof.spec.terms import (
    SEARCHES,
    Bool,
    Float,
    Int,
    Op,
    Term,
    all_of,
    integer,
    ite,
    rebuild,
    substitute,
    topological,
)

__all__ = ["unroll", "unrolled_size", "write_out"]


def unroll(roots: Sequence[Term]) -> tuple[Term, ...]:
    """The roots with every bounded search written out as a chain of if-then-else."""
    done: dict[Term, Term] = {}
    for node in topological(tuple(roots)):
        new = rebuild(node, tuple(done[arg] for arg in node.args))
        done[node] = write_out(new, cast("int", new.value)) if node.op in SEARCHES else new
    return tuple(done[root] for root in roots)


def unrolled_size(roots: Sequence[Term]) -> int:
    """About how many nodes the searches become when they are written out."""
    sizes: dict[Term, int] = {}
    for node in topological(tuple(roots)):
        if node.op in SEARCHES:
            body = topological(node.args[2:-1])
            repeated = sum(sizes.get(one, 1) for one in body if node.args[1] in one.bound)
            sizes[node] = cast("int", node.value) * repeated
    return sum(sizes.values())


def write_out(node: Term, at_most: int) -> Term:
    """One search over the candidates 1..at_most, which must be all that its limit allows."""
    limit, variable, *bodies, result = node.args
    candidates: Iterable[int] = range(1, at_most + 1)
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
