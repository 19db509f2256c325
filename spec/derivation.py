"""Derivations: why `s <= t` (or a condition) holds, as steps that a reader or a checker can follow.

A step names its rule and the choices that the rule leaves open; what it derives follows from the
goal, the rule and these choices, so the goal is not repeated. Terms among the choices are named by
their `digest`, which depends on their structure alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from .errors import InputError
from .terms import FloatValue, Term, topological

__all__ = ["Digests", "Rule", "Step", "pack", "unpack"]


class Rule(StrEnum):
    """The rules; each is a lemma of `proofs/calculus.py`, proved there by a solver."""

    # Conditions
    FACT = "fact"
    ABSURD = "absurd"
    ALL = "all"
    ANY = "any"
    ORDER = "order"
    EQUAL = "equal"
    APART = "apart"
    # Comparisons `left <= right`
    SAME = "same"
    RANGE = "range"
    BELOW = "below"
    ABOVE = "above"
    CHOSEN = "chosen"
    CASES = "cases"
    GUARDED = "guarded"
    EITHER = "either"
    WIDER = "wider"
    LEAST_LEFT = "least-left"
    LEAST_RIGHT = "least-right"
    GREATEST_LEFT = "greatest-left"
    GREATEST_RIGHT = "greatest-right"
    SEARCH = "search"
    QUOTIENT = "quotient"
    ROUNDED = "rounded"
    MULTIPLE = "multiple"
    UNIT = "unit"
    # Sums of products
    PARTS = "parts"
    FACTORS = "factors"
    REPLACED = "replaced"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One application of a rule: choices (numbers, terms, tuples of them), and its premises."""

    rule: Rule
    choices: tuple[Any, ...] = ()
    premises: tuple[Step, ...] = ()


class Digests:
    """A name for every term that depends on its structure alone, computed once each."""

    def __init__(self, size: int = 8) -> None:
        """Names of `size` bytes, in hexadecimal digits."""
        self._size = size
        self._found: dict[Term, str] = {}

    def __call__(self, term: Term) -> str:
        """The name of the term."""
        if term not in self._found:
            for node in topological((term,), self._found):
                self._found[node] = self._digest(node)
        return self._found[term]

    def _digest(self, node: Term) -> str:
        value = node.value.bits.hex() if isinstance(node.value, FloatValue) else repr(node.value)
        args = " ".join([self._found[arg] for arg in node.args])
        text = f"{node.sort_name} {node.op} {args} {value} {node.sort!r} {node.domain!r}"
        return blake2b(text.encode(), digest_size=self._size).hexdigest()


def pack(root: Step, names: Digests) -> str:
    """The steps as JSON text, shared steps once, premises (by number) before what they support."""
    numbers: dict[Step, int] = {}
    rows: list[list[Any]] = []

    def plain(choice: object) -> object:
        if isinstance(choice, Term):
            return names(choice)
        return [plain(one) for one in choice] if isinstance(choice, tuple) else choice

    stack = [root]
    while stack:
        step = stack[-1]
        waiting = [one for one in step.premises if one not in numbers]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if step not in numbers:
            numbers[step] = len(rows)
            rows.append(
                [str(step.rule), plain(step.choices), [numbers[one] for one in step.premises]]
            )
    return json.dumps(rows, separators=(",", ":"))


def unpack(text: object) -> tuple[Step, int]:
    """The last step with all it rests on, terms by their names, and how many there are."""
    steps: list[Step] = []

    def read(choice: object) -> object:
        return tuple(map(read, choice)) if isinstance(choice, list) else choice

    try:
        for rule, choices, premises in json.loads(text):  # type: ignore[arg-type]
            if any(not 0 <= one < len(steps) for one in premises):
                raise InputError(f"step {len(steps)} rests on a step that is not before it")
            supports = tuple(steps[one] for one in premises)
            steps.append(Step(Rule(rule), tuple(map(read, choices)), supports))
        return steps[-1], len(steps)
    except (TypeError, ValueError, IndexError, RecursionError) as error:
        raise InputError(f"malformed derivation at step {len(steps)}: {error}") from error
