"""Bounded searches written out as chains of if-then-else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from routeproof.spec.terms import (
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

__all__ = ["unroll", "write_out"]


def unroll(roots: Sequence[Term]) -> tuple[Term, ...]:
    """The roots with every bounded search written out as a chain of if-then-else."""
    done: dict[Term, Term] = {}
    for node in topological(tuple(roots)):
        new = rebuild(node, tuple(done[arg] for arg in node.args))
        is_search = node.op in (Op.FIRST, Op.GREATEST)
        done[node] = write_out(new, cast("int", new.value)) if is_search else new
    return tuple(done[root] for root in roots)


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
