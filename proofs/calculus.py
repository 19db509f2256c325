"""The rules of the monotone calculus, each a lemma that the solver proves without the calculus.

Names are those of `spec.derivation.Rule`. Where a rule asks for a sign, the lemma assumes it, and a
twin without it is refuted: the sign is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.terms import (
    Bool,
    Int,
    IntDomain,
    align_up,
    all_of,
    any_of,
    ceil_div,
    first,
    implies,
    ite,
    maximum,
    minimum,
    symbol_bool,
    symbol_int,
)

__all__ = ["LEMMAS", "TWINS"]

_SOURCE = Source("checkers/calculus.py", "rules", "this version")
a, b, c, d, m, n = (symbol_int(name) for name in "abcdmn")
p, q = symbol_bool("p"), symbol_bool("q")
unit = symbol_int("unit", IntDomain(1))
_Lemma = tuple[str, Mapping[str, Bool], Bool]

_CAP = 4
_hits = tuple(symbol_bool(f"hit {candidate}") for candidate in range(1, _CAP + 1))


def _found() -> Int:
    """A search within the limit m, whatever its condition says of each candidate."""

    def hits(candidate: Int) -> Bool:
        return any_of(*(all_of(candidate == at, hit) for at, hit in enumerate(_hits, 1)))

    return first("candidate", m, hits, otherwise=a, at_most=_CAP)


# What is evident or a fact (absurd, fact, range, same) has no lemma: the ranges and the sums that
# decide it are held against the interpreter on random terms.
_RULES: Mapping[str, _Lemma] = {
    "all": ("a conjunction, part by part", {"p": p, "q": q}, all_of(p, q)),
    "any": ("one part, where the others fail", {"q unless p": implies(~p, q)}, any_of(p, q)),
    "cases": (
        "whether a condition holds or fails",
        {"if p": implies(p, a <= b), "if not p": implies(~p, a <= b)},
        a <= b,
    ),
    "order": ("less, as at most one less", {"a < b": a + 1 <= b}, all_of(a < b, ~(b <= a))),
    "equal": ("equal, as at most each other", {"a <= b": a <= b, "b <= a": b <= a}, a == b),
    "above": ("a fact below the right side", {"a <= b": a <= b, "b <= c": b <= c}, a <= c),
    "search": (
        "a candidate within the limit, or none",
        {"m <= c": m <= c, "1 <= c": c >= 1, "a <= c": a <= c},
        _found() <= c,
    ),
    "search.capped": (
        "a candidate within the cap, or none",
        {"cap <= c": c >= _CAP, "1 <= c": c >= 1, "a <= c": a <= c},
        _found() <= c,
    ),
    "below": ("a fact above the left side", {"a <= b": a <= b, "b <= c": b <= c}, a <= c),
    "apart": ("two integers apart", {"a < b": a + 1 <= b}, a != b),
    "chosen": ("the branch taken", {"p": p, "then": a <= c}, ite(p, a, b) <= c),
    "either": ("both branches", {"then": a <= c, "else": b <= c}, ite(p, a, b) <= c),
    "guarded": (
        "two choices, one condition inside the other",
        {"p implies q": implies(p, q), "then": a <= c, "else": b <= d, "crossed": b <= c},
        ite(p, a, b) <= ite(q, c, d),
    ),
    "guarded.reversed": (
        "two choices, the conditions the other way round",
        {"q implies p": implies(q, p), "then": a <= c, "else": b <= d, "crossed": a <= d},
        ite(p, a, b) <= ite(q, c, d),
    ),
    "wider": (
        "a comparison with more room",
        {"a <= b": a <= b, "c <= d": c <= d},
        all_of(implies(b < c, a < d), implies(b <= c, a <= d)),
    ),
    "least-left": ("one argument of a minimum", {"a <= c": a <= c}, minimum(a, b) <= c),
    "least-right": ("all of a minimum", {"a <= b": a <= b, "a <= c": a <= c}, a <= minimum(b, c)),
    "greatest-left": ("all of a maximum", {"a <= c": a <= c, "b <= c": b <= c}, maximum(a, b) <= c),
    "greatest-right": ("one argument of a maximum", {"a <= b": a <= b}, a <= maximum(b, c)),
    "quotient": (
        "less divided by the same",
        {"a <= b": a <= b},
        all_of(a // unit <= b // unit, ceil_div(a, unit) <= ceil_div(b, unit)),
    ),
    "quotient.divisor": (
        "a size divided by more",
        {"a >= 0": a >= 0, "a <= b": a <= b, "1 <= n": n >= 1, "n <= m": n <= m},
        all_of(a // m <= b // n, ceil_div(a, m) <= ceil_div(b, n)),
    ),
    "quotient.padded": (
        "less padded to the same unit",
        {"a <= b": a <= b},
        align_up(a, unit) <= align_up(b, unit),
    ),
    "rounded": (
        "a quotient of a size",
        {"a >= 0": a >= 0},
        all_of(a // unit <= a, ceil_div(a, unit) <= a),
    ),
    "multiple": (
        "a multiple at most a value",
        {"a is a multiple": a % unit == 0, "a <= b": a <= b},
        a <= b // unit * unit,
    ),
    # The rule takes any constant unit; for a unit that is a symbol the solver finds no answer.
    "unit": (
        "a padded value at most a multiple, for the units in use",
        {"b is a multiple": b % 512 == 0, "a <= b": a <= b},
        all_of(*(align_up(a, step) <= b for step in (8, 16, 32, 64, 128, 256, 512))),
    ),
    "parts": (
        "a sum, product by product",
        {"a <= b": a <= b, "c <= d": c <= d, "rest": n >= 0},
        a + c <= b + d + n,
    ),
    "factors": (
        "a product, factor by factor",
        {"a >= 0": a >= 0, "a <= b": a <= b, "c >= 0": c >= 0, "c <= d": c <= d, "n >= 1": n >= 1},
        a * c <= b * d * n,
    ),
    "replaced.padded": (
        "padding adds less than the unit and takes nothing away",
        {},
        all_of(a <= align_up(a, unit), align_up(a, unit) <= a + (unit - 1)),
    ),
    "cancelled": ("a quotient times its divisor", {}, unit * (a // unit) <= a),
}


def _lemma(rule: str, lemma: _Lemma) -> Obligation:
    title, assuming, goal = lemma

    @obligation(f"calculus.rule.{rule}", title, source=_SOURCE)
    def statement() -> Claim:
        return Claim(goal, assuming, solver_only=True)

    return statement


LEMMAS = tuple(_lemma(rule, lemma) for rule, lemma in _RULES.items())

_NEEDED = {
    "quotient.divisor": "a >= 0",
    "rounded": "a >= 0",
    "factors": "a >= 0",
    "multiple": "a is a multiple",
    "unit": "b is a multiple",
    "guarded": "crossed",
    "parts": "rest",
    "any": "q unless p",
    "cases": "if not p",
    "search": "a <= c",
    "search.capped": "a <= c",
}


def _twin(rule: str, left_out: str) -> Obligation:
    title, assuming, goal = _RULES[rule]

    @obligation(
        f"calculus.rule.{rule}.twin",
        f"{title}, without '{left_out}'",
        source=_SOURCE,
        expect="refuted",
    )
    def statement() -> Claim:
        kept = {name: part for name, part in assuming.items() if name != left_out}
        return Claim(goal, kept, solver_only=True)

    return statement


TWINS = tuple(_twin(rule, left_out) for rule, left_out in _NEEDED.items())
