"""Evidence in words: in what a bound grows, through which operations; what was enumerated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeproof.spec.derivation import Digests, Rule, unpack
from routeproof.spec.obligation import Claim
from routeproof.spec.text import render

from .evidence.conditions import parts_of
from .evidence.steps import Use, check_derivation

__all__ = ["tell_derivation", "tell_enumeration"]

_WORDS = {
    Rule.PARTS: "sums of products",
    Rule.QUOTIENT: "quotients and padding",
    Rule.ROUNDED: "quotients",
    Rule.MULTIPLE: "multiples",
    Rule.UNIT: "padding",
    Rule.REPLACED: "padding",
    Rule.CANCELLED: "a quotient times its divisor",
    Rule.GUARDED: "choices",
    Rule.CHOSEN: "choices",
    Rule.EITHER: "choices",
    Rule.LEAST_LEFT: "minima",
    Rule.LEAST_RIGHT: "minima",
    Rule.GREATEST_LEFT: "maxima",
    Rule.GREATEST_RIGHT: "maxima",
    Rule.SEARCH: "the limit of a search",
}


def tell_derivation(claim: Claim, texts: Sequence[str | None]) -> Iterator[str]:
    """Lines for people; the derivation is followed on the way, as `certify` does."""
    parts, facts = parts_of(tuple(claim.conditions.values()), tuple(claim.goals.values()))
    names, uses, total = Digests(), list[Use](), 0
    for part, text in zip(parts, texts, strict=True):
        if text is not None:
            step, count = unpack(text)
            uses += check_derivation(part, step, facts, names)
            total += count
    derived = sum(text is not None for text in texts)
    yield f"derived: {derived} of {len(parts)} parts, {total:,} steps, followed again"
    ways: dict[str, Counter[str]] = {}
    for left, right, path in uses:
        because = f"non-decreasing in {render(left)} because {render(left)} <= {render(right)}"
        ways.setdefault(because, Counter()).update({_WORDS[one] for one in path if one in _WORDS})
    for because, words in ways.items():
        through = ", ".join(word for word, _ in words.most_common())
        yield f"{because}{f', through {through}' if through else ''}"


def tell_enumeration(found: Mapping[str, Any]) -> Iterator[str]:
    """Lines for people: the box, from where one value stands for all, states per regime."""
    yield f"enumerated: {found['states']:,} states, {found['admitted']:,} of them admitted"
    for name, (low, high) in found["box"].items():
        settled = f"; {high:,} stands for all beyond, where it settles"
        yield f"  {name} {low:,}..{high:,}{settled if name in found['settles'] else ''}"
    regimes: Mapping[str, int] = found["regimes"]
    width = max(map(len, regimes), default=0)
    for name, count in regimes.items():
        share = count / max(1, found["admitted"])
        yield f"  regime {name:{width}}  {count:>12,} states  {share:7.2%}"
