"""States to start from: rows that a user gives, rows recorded of the real code, or samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from routeproof.checkers.counterexample import rest_value
from routeproof.checkers.evaluator import Evaluator, recorded
from routeproof.checkers.registry import build, load_obligations
from routeproof.checkers.sampling import Sampler, constants_of
from routeproof.spec.function import Function
from routeproof.spec.interpret import State, Value
from routeproof.spec.obligation import Rows
from routeproof.spec.records import leaves
from routeproof.spec.terms import Bool, Enum, Term

__all__ = ["default_bases", "looked_up"]

_BATCHES = 4


def default_bases(function: Function) -> list[State]:
    """Recorded inputs of the function, or else others; the smallest and largest in turn.

    Small states make readable vectors, and arithmetic overflows near large ones. Without rows of
    its own a function starts from those on which it is needed in full, from rows of another
    function whose inputs are among its own, and from samples.
    """
    states = _recorded(function, whole=True)
    if not states:
        evaluator = Evaluator(function)
        attained = [evaluator.state({"in": row}, function.name) for row in function.attained()]
        states = [*attained, *_recorded(function, whole=False)] or _sampled(function)
    states.sort(key=_size)
    return list(
        islice(chain.from_iterable(zip(states, reversed(states), strict=True)), len(states))
    )


def _size(state: State) -> int:
    return sum(value.bit_length() for value in state.values() if isinstance(value, int))


def _recorded(function: Function, *, whole: bool) -> list[State]:
    """The inputs of every row that an obligation replays for the function.

    Or, if not `whole`, for one whose inputs are among its own; what is left is at rest, or as a
    table gives it.
    """
    rest = {one.name: rest_value(one) for one in leaves(function.inputs).values()}
    replaying = (one for one in load_obligations().values() if one.expected == "replayed")
    found: list[State] = []
    for rows in map(build, replaying):
        if isinstance(rows, Rows) and (rows.function == function.name or not whole):
            states = [row.state for row in recorded(rows)]
            found += [
                looked_up(function, {**rest, **one}) for one in states if one.keys() <= rest.keys()
            ]
    return found


def looked_up(function: Function, state: dict[str, Value]) -> State:
    """The state with each input that a table gives."""
    for name, table in function.tables.items():
        by = state[table.by]
        state[name] = table.at(by) if isinstance(by, int) else table.outside
    return state


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
