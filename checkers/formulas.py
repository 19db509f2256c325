"""What a claim says, as readable mathematics: each goal under the claim's own conditions.

Where the conditions decide a part (a status is ok, a flag is set), the part is left out, so that
a goal about bytes shows the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from routeproof.spec.obligation import Claim
from routeproof.spec.terms import Bool, Int, Op, Term, all_of

from .abstraction import box_of
from .normalise import normalise, push_negations

__all__ = ["Formulas"]

_LONGEST = 600


class Formulas:
    """The formulas of a claim as text or LaTeX."""

    def __init__(self, claim: Claim, form: str) -> None:
        """`form` is `text` or `latex`; long text is cut and says so."""
        self._claim = claim
        self._latex = form == "latex"
        self._terms = normalise((*claim.conditions.values(), *claim.goals.values()))
        count = len(claim.conditions)
        stated = all_of(*cast("tuple[Bool, ...]", self._terms[:count]))
        known = push_negations(stated)
        self._given = (*_conjuncts(stated), *_conjuncts(known))
        self._box = box_of((known,))

    @property
    def assumptions(self) -> Mapping[str, str]:
        """Each assumption by itself."""
        return {name: self._text(term, ()) for name, term in self._claim.assuming.items()}

    @property
    def goals(self) -> Mapping[str, str]:
        """Each goal, simplified by the conditions."""
        terms = self._terms[len(self._claim.conditions) :]
        return {n: self._goal(t) for n, t in zip(self._claim.goals, terms, strict=True)}

    def _goal(self, goal: Term) -> str:
        """Both sides of an equation, also where simplifying makes them the same."""
        if goal.op is Op.EQ and isinstance(goal.args[0], Int):
            one, two = (self._text(side, self._given) for side in goal.args)
            return f"{one} (on both sides)" if one == two else f"{one}\nequals {two}"
        return self._text(goal, self._given)

    def _text(self, term: Term, given: tuple[Bool, ...]) -> str:
        from .readings.symbolic import latex, pretty

        if self._latex:
            return latex(term, self._box if given else None, given)
        text = pretty(term, self._box if given else None, given)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... (--latex or --smtlib)"


def _conjuncts(condition: Bool) -> tuple[Bool, ...]:
    return cast("tuple[Bool, ...]", condition.args if condition.op is Op.AND else (condition,))
