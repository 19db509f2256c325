"""Explicit exploration: every state that a protocol can reach, level by level, for small bounds.

A cross-check of proofs, and a finder of shortest traces; it proves nothing beyond the bounds that
it was given. Parameters take every value of their domains, states of a level are evaluated in
columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from routeproof.spec.errors import InputError
from routeproof.spec.interpret import State, Value
from routeproof.spec.protocol import Event, Protocol
from routeproof.spec.terms import Bool, EnumSort, Int, Term

from .readings.vectorised import columns, compile_numpy, values

__all__ = ["Exploration", "Step", "explore"]

_Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One row of a trace: what happened, with which parameters, and the state it led to."""

    event: str
    parameters: Mapping[str, Value]
    state: Mapping[str, Value]


@dataclass(slots=True)
class Exploration:
    """What was found: distinct states, transitions between them, steps to the farthest state.

    `traces` has a shortest trace to a state that breaks it, for each invariant that is broken.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    traces: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Known:
    """A state that was reached: how, and from which."""

    state: State
    event: str
    parameters: Mapping[str, Value]
    parent: tuple[Value, ...] | None


def explore(
    protocol: Protocol, most: int = 1_000_000, *, stops_at_fault: bool = False
) -> Exploration:
    """Every reachable state, or those up to the first level on which an invariant is broken.

    Raises:
        InputError: a variable has no initial value, a parameter's domain has no end, or there are
            more than `most` states.
    """
    start = {one.symbol.name: one.initial for one in protocol.variables}
    if free := [name for name, value in start.items() if value is None]:
        raise InputError(f"{protocol.name}: {', '.join(free)} has no initial value to start from")
    found, successors = Exploration(), [_Successors(protocol, one) for one in protocol.events]
    judge = compile_numpy(tuple(protocol.invariants.values()))
    first = cast("State", start)
    known = {tuple(first.values()): _Known(first, "start", {}, None)}
    level = [first]
    while level:
        _judge(protocol, judge(columns(protocol.symbols, level)), level, known, found)
        if stops_at_fault and found.traces:
            break
        following: list[State] = []
        for one in successors:
            for parent, parameters, state in one.of(level):
                found.transitions += 1
                key = tuple(state.values())
                if key not in known:
                    origin = tuple(parent.values())
                    known[key] = _Known(state, one.name, parameters, origin)
                    following.append(state)
        found.states = len(known)
        if found.states > most:
            raise InputError(f"{protocol.name}: more than {most:,} states")
        found.depth += bool(following)
        level = following
    return found


def _judge(
    protocol: Protocol,
    verdicts: Sequence[_Rows],
    level: Sequence[State],
    known: Mapping[tuple[Value, ...], _Known],
    found: Exploration,
) -> None:
    for name, holds in zip(protocol.invariants, verdicts, strict=True):
        wrong = np.flatnonzero(~np.broadcast_to(holds, (len(level),)))
        found.broken[name] = found.broken.get(name, 0) + wrong.size
        if wrong.size and name not in found.traces:
            found.traces[name] = tuple(_trace(level[int(wrong[0])], known))


def _trace(state: State, known: Mapping[tuple[Value, ...], _Known]) -> Iterator[Step]:
    steps = []
    key: tuple[Value, ...] | None = tuple(state.values())
    while key is not None:
        one = known[key]
        steps.append(Step(one.event, one.parameters, one.state))
        key = one.parent
    return reversed(steps)


class _Successors:
    """One event, compiled: whether it is enabled, and every variable afterwards."""

    def __init__(self, protocol: Protocol, one: Event) -> None:
        self.name = one.name
        self._variables, self._parameters = protocol.symbols, one.parameters
        names = [parameter.name for parameter in one.parameters]
        domains = [_domain(protocol, parameter) for parameter in one.parameters]
        self._chosen = [
            dict(zip(names, choice, strict=True)) for choice in itertools.product(*domains)
        ]
        after = tuple(one.after(variable) for variable in self._variables)
        self._program = compile_numpy((one.enabled, *after))

    def of(self, level: Sequence[State]) -> Iterator[tuple[State, Mapping[str, Value], State]]:
        """Each state of the level with the parameters that let the event happen, and its result."""
        rows = len(level) * len(self._chosen)
        named = columns(self._variables, level)
        each = {name: np.repeat(column, len(self._chosen)) for name, column in named.items()}
        chosen = columns(self._parameters, self._chosen)
        each |= {name: np.tile(column, len(level)) for name, column in chosen.items()}
        enabled, *after = self._program(each)
        taken = np.flatnonzero(np.broadcast_to(enabled, (rows,)))
        results = [
            values(variable, np.broadcast_to(column, (rows,))[taken])
            for variable, column in zip(self._variables, after, strict=True)
        ]
        names = [variable.name for variable in self._variables]
        for place, result in zip(taken, zip(*results, strict=True), strict=True):
            state, choice = divmod(int(place), len(self._chosen))
            yield level[state], self._chosen[choice], dict(zip(names, result, strict=True))


def _domain(protocol: Protocol, parameter: Term) -> Iterator[Value]:
    if isinstance(parameter, Bool):
        return iter((False, True))
    if isinstance(parameter.sort, EnumSort):
        return iter(parameter.sort.members)
    domain = parameter.domain if isinstance(parameter, Int) else None
    if domain is None or domain.lo is None or domain.hi is None:
        raise InputError(f"{protocol.name}: the domain of {parameter.name!r} has no end")
    return iter(range(domain.lo, domain.hi + 1, domain.multiple_of))
