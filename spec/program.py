"""A term compiled once into a flat list of steps over numbered slots, for any algebra of values.

The Python interpreter and the NumPy reading differ only in the algebra: what a value is and what
each operation does to it. The body of a bounded search becomes a nested list of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from .errors import InputError, ModelError
from .terms import SEARCHES, Op, Term, topological

__all__ = ["Algebra", "Program"]

V = TypeVar("V")
_Step = Callable[[list[Any]], None]


class Algebra(Protocol[V]):
    """What one reading does with each kind of node; values are opaque to the program."""

    def constant(self, node: Term) -> V:
        """The value of a constant."""

    def operation(self, node: Term) -> Callable[..., V]:
        """The function that computes the node from the values of its arguments."""

    def search(self, node: Term, limit: V, fallback: V, body: Callable[[V], list[V]]) -> V:
        """The value of a `first` or `greatest` node; `body(c)` gives its body's values at c."""


class Program(Generic[V]):
    """Compiled roots: call it with a value per symbol name, get a value per root."""

    def __init__(self, roots: Sequence[Term], algebra: Algebra[V]) -> None:
        """Compile; the cost is linear in the number of distinct nodes."""
        self._algebra = algebra
        loose = sorted({one.name.split()[0] for root in roots for one in root.bound})
        if loose:
            raise ModelError(f"bound variable {', '.join(loose)} outside its search has no value")
        order = topological(tuple(roots))
        self._slot = {node: index for index, node in enumerate(order)}
        self._roots = [self._slot[root] for root in roots]
        self.symbols = tuple(node for node in order if node.op is Op.SYMBOL)
        self._blank: list[Any] = [
            algebra.constant(node) if node.op is Op.CONST else None for node in order
        ]
        self._steps = self._compile(order, frozenset())

    def __call__(self, state: Mapping[str, V]) -> list[V]:
        """The roots' values; a symbol without a value is an `InputError`."""
        slots = self._blank.copy()
        for symbol in self.symbols:
            if symbol.name not in state:
                raise InputError(f"no value for {symbol.name!r}")
            slots[self._slot[symbol]] = state[symbol.name]
        for step in self._steps:
            step(slots)
        return [slots[slot] for slot in self._roots]

    def _compile(self, nodes: Sequence[Term], scope: frozenset[Term]) -> list[_Step]:
        """Steps for the nodes whose bound variables are all in scope, in order."""
        leaves = (Op.SYMBOL, Op.CONST, Op.BOUND)
        return [
            self._search(node, scope) if node.op in SEARCHES else self._plain(node)
            for node in nodes
            if node.op not in leaves and node.bound <= scope
        ]

    def _plain(self, node: Term) -> _Step:
        function, out = self._algebra.operation(node), self._slot[node]
        sources = [self._slot[arg] for arg in node.args]
        match sources:
            case [one]:

                def step(slots: list[Any]) -> None:
                    slots[out] = function(slots[one])

            case [one, two]:

                def step(slots: list[Any]) -> None:
                    slots[out] = function(slots[one], slots[two])

            case _:

                def step(slots: list[Any]) -> None:
                    slots[out] = function(*[slots[source] for source in sources])

        return step

    def _search(self, node: Term, scope: frozenset[Term]) -> _Step:
        limit, variable, *bodies, fallback = node.args
        inside = [part for part in topological(tuple(bodies)) if variable in part.bound]
        steps = self._compile(inside, scope | {variable})
        out, at = self._slot[node], self._slot[variable]
        limit_at, fallback_at = self._slot[limit], self._slot[fallback]
        body_at = [self._slot[body] for body in bodies]
        search = self._algebra.search

        def step(slots: list[Any]) -> None:
            def body(value: Any) -> list[Any]:  # noqa: ANN401 - as opaque as every slot
                slots[at] = value
                for inner in steps:
                    inner(slots)
                return [slots[slot] for slot in body_at]

            slots[out] = search(node, slots[limit_at], slots[fallback_at], body)

        return step
