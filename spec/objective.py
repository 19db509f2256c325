"""What is maximised over an envelope: a size, the axes it grows along, and what breaks its growth.

A size grows with every axis (batch, query length, KV length) except through one *held* part, such
as a split count, that jumps with its keys. Where the keys stand still, or where the held part has
settled, the held part is constant and the largest state is the corner: such a box is a *regime*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .interpret import Value
from .obligation import Claim
from .terms import Bool, Int, Term, substitute

__all__ = [
    "Case",
    "Domain",
    "Execution",
    "Fact",
    "Held",
    "Lemma",
    "Objective",
    "Question",
    "Run",
    "Step",
]


@dataclass(frozen=True, slots=True)
class Step:
    """Along an axis the keys stand still within a stretch that ends at x: `every` divides x + `at`.

    Beyond `up_to` they stand still for good.
    """

    axis: Int
    every: Int
    at: Int
    up_to: Int


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The part that is not monotone: `value` is a term over the keys' symbols.

    `keys` gives each of those symbols the term over the axes that it stands for, the first of them
    the one that settles: where `settled` holds, the value is 1, and it holds for every larger key.
    """

    value: Int
    keys: Mapping[Term, Int]
    settled: Bool
    steps: tuple[Step, ...]

    @property
    def part(self) -> Int:
        """The held part as it stands in the size."""
        (whole,) = substitute((self.value,), {**self.keys})
        return whole if isinstance(whole, Int) else self.value


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """A size in bytes and the condition under which it is one, over axes and static symbols.

    `within` is what every state of it satisfies, such as a query of several tokens.
    """

    name: str
    axes: tuple[Int, ...]
    size: Int
    ok: Bool
    within: Mapping[str, Bool]
    held: Held | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Lemma:
    """A claim over all facts that an answer rests on."""

    name: str
    claim: Claim


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """The range of each axis, ends included; of two axes, that they are equal or one is less."""

    ranges: Mapping[Int, tuple[int, int]]
    equal: tuple[Int, Int] | None = None
    less: tuple[Int, Int] | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """A row that a modelled function is applied to, and what it has to answer, by dotted path."""

    function: str
    row: Mapping[str, Any]
    answers: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One phase, route and alias state: what is maximised, where, and how a state is executed.

    `facts` are the static symbols' values; `runtime` the run-time facts beside the axes; `names`
    are the axes' names in reports. `execute` gives the rows that show a state for what it is, the
    recipe first: its size is `out.total_workspace_bytes`.
    """

    phase: str
    route: str
    alias: str
    objective: Objective
    domain: Domain
    facts: Mapping[str, Value]
    runtime: Mapping[str, Value]
    names: Mapping[Int, str]
    execute: Callable[[Mapping[Int, int]], tuple[Execution, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One Run of a question's node, whether or not a case speaks of it.

    `dispatch` are the rows that find its way, the ladder first: its answer below `outcome` has a
    `route`, and an `error` where that is `error`. `recipe` gives the row that sizes a route, by
    `out.status` and `out.total_workspace_bytes`. `outside` names what the envelope does not admit.
    """

    dispatch: tuple[Execution, ...]
    outcome: str
    recipe: Callable[[str], Execution]
    outside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact that the answer depends on, and where its value comes from."""

    section: str
    name: str
    value: str | int | float | bool | None
    origin: str


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that `bound` answers for one node, device and envelope.

    `cases` are the reachable ones with a recipe, `references` the unfused route on the same states;
    `unsized` are reachable routes without a recipe (phase, route, alias), which make the whole
    unavailable, and `errors` the reachable errors. `lemmas` are what the choice of cases rests on.
    `structural` gives the row of the aggregate for a set of routes, `closed` that of the closed
    form (None: the device is beyond its table), `preserved` the bytes that an
    alias state adds to it, `regions` name, offset and size of the parts of an executed recipe;
    `run` takes a state by the names that reports give it, lengths and run-time facts.
    """

    facts: tuple[Fact, ...]
    conditional_on: tuple[str, ...]
    cases: tuple[Case, ...]
    references: Mapping[tuple[str, str], tuple[Case, ...]]
    unsized: tuple[tuple[str, str, str], ...]
    errors: tuple[tuple[str, str, str], ...]
    structural: Callable[[frozenset[str]], Execution]
    closed: Callable[[frozenset[str]], Execution | None]
    preserved: Callable[[str], int]
    regions: Callable[[Mapping[str, Any]], list[tuple[str, int, int]]]
    run: Callable[[Mapping[str, Value]], Run]
    lemmas: tuple[Lemma, ...]
