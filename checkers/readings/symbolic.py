"""The SymPy reading: a term as mathematics, in closed form, as text or LaTeX.

For people and reports; it proves nothing. Integers are exact (floor, ceiling, mod, min, max,
cases); what SymPy must not compute with is opaque: float arithmetic and comparisons (SymPy has no
NaN that compares), searches. A large formula names its parts, so that it stays readable and the
work stays linear. The first call loads SymPy.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from routeproof.spec.errors import UnsupportedError
from routeproof.spec.interpret import State, Value
from routeproof.spec.terms import (
    Bool,
    Enum,
    Int,
    IntDomain,
    Term,
    Width,
    free_symbols,
    rebuild,
    symbol_bool,
    symbol_enum,
    symbol_float,
    symbol_int,
    topological,
)

from .intervals import Interval, intervals, prune

if TYPE_CHECKING:
    import sympy

__all__ = ["ClosedForm", "closed_form", "evaluate", "latex", "pretty", "to_sympy"]

Box = Mapping[str, Interval]
_LARGEST = 20_000  # nodes of one expression: some seconds in SymPy
_LONG = 24  # nodes of a part that gets a line of its own
_SHARED = 8  # nodes of a part that gets one if it occurs twice


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """An expression, and the named parts it refers to, each in terms of those before it."""

    value: sympy.Basic
    parts: Mapping[str, sympy.Basic]

    def __str__(self) -> str:
        """Readable mathematics: one line, or the formula and then its parts."""
        from .notation import text

        if not self.parts:
            return text(self.value)
        lines = (f"  {name} = {text(part)}" for name, part in self.parts.items())
        return "\n".join([text(self.value), "where", *lines])

    @property
    def latex(self) -> str:
        """LaTeX for a display, the parts aligned below the formula."""
        from .notation import latex, latex_name

        if not self.parts:
            return latex(self.value)
        lines = (f"{latex_name(name)} &= {latex(part)}" for name, part in self.parts.items())
        body = " \\\\\n".join([f"& {latex(self.value)}", *lines])
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


def closed_form(term: Term, box: Box | None = None, given: Sequence[Bool] = ()) -> ClosedForm:
    """The formula over a box and under conditions taken as true, without all that they decide."""
    from .formula import Translation, factored

    (short,) = prune((term,), box, given)
    value, parts = _named(short, box)
    translation = Translation(intervals((value, *parts.values()), box))
    done = {name: factored(translation.of(part)) for name, part in parts.items()}
    return ClosedForm(factored(translation.of(value)), done)


def pretty(term: Term, box: Box | None = None, given: Sequence[Bool] = ()) -> str:
    """The closed form as text: one line if it is short, else the formula and its named parts."""
    return str(closed_form(term, box, given))


def latex(term: Term, box: Box | None = None, given: Sequence[Bool] = ()) -> str:
    """The closed form as LaTeX for a display."""
    return closed_form(term, box, given).latex


def to_sympy(term: Term, box: Box | None = None) -> sympy.Basic:
    """The term as one SymPy expression; symbols are assumed to have the box's or domain's sign."""
    from .formula import Translation

    size: dict[Term, int] = {}
    for node in topological((term,)):
        size[node] = 1 + sum(size[arg] for arg in node.args)
    if size[term] > _LARGEST:
        raise UnsupportedError(f"{size[term]} nodes are too many for one formula: use closed_form")
    return Translation(intervals((term,), box)).of(term)


def evaluate(formula: ClosedForm | sympy.Basic, state: State) -> Value:
    """The formula's value on a state, computed by SymPy; what is opaque to it is unsupported."""
    from .formula import evaluated, from_python, to_python

    form = formula if isinstance(formula, ClosedForm) else ClosedForm(formula, {})
    values = {name: from_python(value) for name, value in state.items()}
    for name, part in form.parts.items():
        values[name] = evaluated(part, values, {})
    return to_python(evaluated(form.value, values, {}))


def _named(term: Term, box: Box | None) -> tuple[Term, dict[str, Term]]:
    """The term with its long and shared parts replaced by symbols, and what each stands for."""
    nodes = topological((term,))
    users = Counter(arg for node in nodes for arg in node.args)
    ranges = intervals((term,), box)
    taken = {symbol.name for symbol in free_symbols(term)} | set(box or ())
    names = (name for name in map("t{}".format, itertools.count(1)) if name not in taken)
    size: dict[Term, int] = {}
    done: dict[Term, Term] = {}
    parts: dict[str, Term] = {}
    for node in nodes:
        size[node] = 1 + sum(size[arg] for arg in node.args)
        done[node] = rebuild(node, tuple(done[arg] for arg in node.args))
        is_long = size[node] >= (_SHARED if users[node] > 1 else _LONG)
        if is_long and not node.bound and node is not term:
            name = next(names)
            parts[name], done[node], size[node] = done[node], _symbol(node, name, ranges), 1
    return done[term], parts


def _symbol(node: Term, name: str, ranges: Mapping[Term, Interval]) -> Term:
    """A symbol of the node's sort and range."""
    match node:
        case Int():
            return symbol_int(name, IntDomain(ranges[node].lo, ranges[node].hi))
        case Bool():
            return symbol_bool(name)
        case Enum():
            return symbol_enum(name, node.members)
        case _:
            return symbol_float(name, cast("Width", node.sort))
