"""Induction: an invariant of a protocol as one claim about a first state and about every event.

Proved, the invariant holds after any number of steps. Refuted says only that it is not inductive
by itself: the counterexample is a state that need not be reachable. `using` are other invariants
that strengthen it; they have to be proved as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from routeproof.spec.errors import UnknownNameError
from routeproof.spec.obligation import Claim
from routeproof.spec.protocol import Protocol
from routeproof.spec.terms import Bool, all_of, implies, substitute
from routeproof.spec.text import closest

__all__ = ["inductive"]


def inductive(protocol: Protocol, names: Sequence[str], using: Sequence[str] = ()) -> Claim:
    """The named invariants hold at first, and no event breaks them, `using` others.

    Quantifies over every state in the variables' domains and every value of the parameters.
    """
    for name in (*names, *using):
        if name not in protocol.invariants:
            hint = closest(name, list(protocol.invariants))
            raise UnknownNameError(f"{protocol.name} has no invariant {name!r}{hint}")
    wanted = all_of(*(protocol.invariants[name] for name in names))
    (first,) = substitute((wanted,), protocol.initial)
    goals: dict[str, Bool] = {"at first": implies(protocol.starts, cast("Bool", first))}
    for event in protocol.events:
        after = {variable: event.after(variable) for variable in protocol.symbols}
        (kept,) = substitute((wanted,), after)
        goals[event.name] = implies(event.enabled, cast("Bool", kept))
    strengthened = {name: protocol.invariants[name] for name in (*names, *using)}
    return Claim(goals, {**protocol.given, **strengthened})
