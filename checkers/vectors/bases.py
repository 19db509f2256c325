"""States to start from: the rows a user gives, or recorded rows of the real code, or samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from routeproof.checkers.counterexample import rest_value
from routeproof.checkers.evaluator import recorded
from routeproof.checkers.registry import build, function_names, load_obligations
from routeproof.checkers.sampling import Sampler, constants_of
from routeproof.spec.function import Function
from routeproof.spec.interpret import State
from routeproof.spec.obligation import Rows
from routeproof.spec.records import leaves
from routeproof.spec.terms import Bool, Enum, Term

__all__ = ["default_bases"]

_BATCHES = 4


def default_bases(function: Function) -> list[State]:
    """Recorded inputs of the function, or else sampled ones; the smallest and largest in turn.

    Small states make readable vectors, and arithmetic overflows near large ones.
    """
    states = [*_recorded(function.name)] or _sampled(function)
    states.sort(key=_size)
    return list(
        islice(chain.from_iterable(zip(states, reversed(states), strict=True)), len(states))
    )


def _size(state: State) -> int:
    return sum(value.bit_length() for value in state.values() if isinstance(value, int))


def _recorded(name: str) -> list[State]:
    """The inputs of every row that an obligation replays for the function."""
    if name not in function_names():
        return []
    replaying = (one for one in load_obligations().values() if one.expected == "replayed")
    statements = map(build, replaying)
    rows = (one for one in statements if isinstance(one, Rows) and one.function == name)
    return [row.state for one in rows for row in recorded(one)]


def _sampled(function: Function) -> list[State]:
    """The state at rest, and for each value of an output that is a flag or an enum some states."""
    symbols = tuple(leaves(function.inputs).values())
    outputs = [t for record in function.outputs.values() for t in leaves(record).values()]
    rest: State = {one.name: rest_value(one) for one in symbols}
    found = [rest]

    def keep(state: State) -> bool:
        found.append(state)
        return False  # so that the search goes on

    constants = constants_of(outputs)
    for condition in _conditions(outputs):
        Sampler(condition, symbols, constants).find(keep, rest, _BATCHES, seed=0)
    return found


def _conditions(outputs: Sequence[Term]) -> list[Bool]:
    wanted: dict[Bool, None] = {}
    for term in outputs:
        if isinstance(term, Bool):
            wanted |= {term: None, ~term: None}
        elif isinstance(term, Enum):
            wanted |= dict.fromkeys(term == member for member in term.members.members)
    return list(wanted)
