"""Exact maxima: what `routeproof bound` rests on, and its answers decided another way.

The lemmas speak of all facts; each twin drops what a lemma needs. For two published models every
maximum is claimed of every state of the envelope and enumerated, without regimes or lemmas; for one
of them one byte less is refuted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar, cast

from routeproof.checkers.maximise import Maximum, lemmas, maximise
from routeproof.models.ort.gqa.objectives import BATCH, QUERY, TOTAL, objective
from routeproof.models.ort.gqa.problem import CompleteInput, UnfusedConfig
from routeproof.models.ort.gqa.question import lemmas as route_lemmas
from routeproof.models.ort.gqa.question import question
from routeproof.models.ort.gqa.split import selected_split_count
from routeproof.models.ort.gqa.xqa import subsequences_per_sequence
from routeproof.spec.objective import Case, Objective
from routeproof.spec.obligation import Claim, Invocation, Obligation, obligation
from routeproof.spec.records import Record, leaves, symbols
from routeproof.spec.terms import (
    Bool,
    Int,
    IntDomain,
    Term,
    all_of,
    constant,
    free_symbols,
    integer,
    substitute,
    symbol_int,
)

from .bounds import short_name
from .sources import FUNCTION_SOURCES, LADDER

__all__ = ["ENUMERATED", "LEMMAS", "LESS", "ROUTES"]

R = TypeVar("R", bound=Record)

_SOURCE = FUNCTION_SOURCES["complete"]
_LEMMAS = {
    "corner": "the corner needs most",
    "larger": "larger states are its own",
    "keys": "the keys grow",
    "settled": "settled, it is 1",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A route in a phase and a cache mode; statements are built when they are asked for."""

    route: str
    phase: str
    windowed: bool = False
    separate: bool = False

    @property
    def objective(self) -> Objective:
        """What is maximised there."""
        return objective(self.route, self.phase, windowed=self.windowed, separate=self.separate)

    @property
    def name(self) -> str:
        """As ids spell it."""
        modes = (*["windowed"] * self.windowed, *["separate-past"] * self.separate)
        return ".".join((short_name(self.route), self.phase, *modes))


def _places() -> Iterator[Place]:
    """Every route in every phase that it can serve, in every cache mode."""
    for route in ("memory_efficient", "unfused", "flash"):
        for phase in ("first", "chunk", "decode"):
            yield Place(route, phase)
            yield Place(route, phase, windowed=True)
            yield Place(route, phase, separate=True)
        yield Place(route, "single", windowed=True)
    for phase in ("chunk", "decode"):
        yield Place("flash_fast_decode", phase)
    for windowed in (False, True):
        yield Place("xqa", "decode", windowed=windowed)


def _lemma(place: Place, kind: str) -> Obligation:
    what = _LEMMAS[kind]

    @obligation(
        f"ort.gqa.exact.{place.name}.{kind}",
        f"{place.name.replace('.', ', ')}: {what}",
        source=_SOURCE,
    )
    def statement() -> Claim:
        return next(one.claim for one in lemmas(place.objective) if one.name.endswith(what))

    return statement


LEMMAS = tuple(
    _lemma(place, kind)
    for place in _places()
    for kind in _LEMMAS
    if kind in ("corner", "larger") or place.route not in ("memory_efficient", "unfused")
)


def _route(revision: str) -> Obligation:
    @obligation(
        f"ort.gqa.exact.route.{revision}",
        "a query of two tokens takes the route of any longer one",
        source=LADDER[revision],
    )
    def statement() -> Claim:
        (lemma,) = route_lemmas(revision)
        return lemma.claim

    return statement


ROUTES = tuple(map(_route, ("newest", "older")))


def _splits(blocks: Int, work: int = 2) -> Int:
    """Flash's splits on 108 multiprocessors."""
    return selected_split_count(integer(work), blocks, integer(108))


def _stretches(rows: Int) -> Int:
    """XQA's sub-sequences of all sequences on 108 multiprocessors, for 64 tiles of cache."""
    return rows * subsequences_per_sequence(rows, integer(64 * 256), integer(108))


@obligation(
    "ort.gqa.exact.flash.decode.corner.splits-vary",
    "one block of KV more needs no fewer splits",
    source=_SOURCE,
    expect="refuted",
    note="The twin: in a regime splits are held constant because they fall from one to the next.",
)
def splits_vary() -> Claim:
    """The corner of the envelope does not need most."""
    blocks = symbol_int("kv_blocks", IntDomain(1, 64))
    fewer, more = _splits(blocks), _splits(blocks + 1)
    return Claim(fewer <= more, shows={"splits": fewer, "splits of one block more": more})


@obligation(
    "ort.gqa.exact.xqa.decode.corner.stretches-vary",
    "one row more needs no fewer stretches",
    source=_SOURCE,
    expect="refuted",
    note="The twin: stretches per sequence are held constant because they fall as rows are added.",
)
def stretches_vary() -> Claim:
    """The largest batch does not need most."""
    rows = symbol_int("sequences", IntDomain(1, 64))
    fewer, more = _stretches(rows), _stretches(rows + 1)
    return Claim(fewer <= more, shows={"stretches": fewer, "of one row more": more})


@obligation(
    "ort.gqa.exact.flash.decode.settled.three-quarters",
    "work for three quarters of the device is never split",
    source=_SOURCE,
    expect="refuted",
    note="The twin: it takes 0.8 of the multiprocessors.",
)
def settled_later() -> Claim:
    """81 items on 108 multiprocessors."""
    blocks = symbol_int("kv_blocks", IntDomain(1, 64))
    splits = _splits(blocks, 81)
    return Claim(splits == 1, shows={"splits": splits})


_NODES = {"qwen2.5-1.5b": "Qwen2.5-1.5B-Instruct", "qwen2.5-7b": "Qwen2.5-7B-Instruct"}


@cache
def _cases(preset: str) -> dict[str, Case]:
    """Each route and phase of a published model: 82 multiprocessors, 1,152 tokens, any ladder."""
    found: dict[str, Case] = {}
    for ladder in ("newest", "older"):
        asked = question(
            {
                "node": preset,
                "device": {"sm": "12.0", "sms": 82},
                "kernel_options": {"cudnn": "off"},
                "envelope": {"query": "1..1024", "total": "1..1152", "past_capacity": 1152},
                "ladder": ladder,
            }
        )
        found |= {case.objective.name: case for case in asked.cases}
    return dict(sorted(found.items()))


def _admits(case: Case) -> dict[str, Bool]:
    """The case's domain as conditions."""
    domain = case.domain
    names = {BATCH: "batch", QUERY: "query", TOTAL: "total"}
    found = {
        names[axis]: all_of(axis >= low, axis <= high)
        for axis, (low, high) in domain.ranges.items()
    }
    if domain.equal:
        found["a first prompt"] = domain.equal[0] == domain.equal[1]
    if domain.less:
        found["a chunk"] = domain.less[0] < domain.less[1]
    return found


def _at_most(case: Case, spare: int) -> Claim:
    """The size on every state of the case against its maximum, less what is claimed to be spare."""
    most, size = cast("Maximum", maximise(case)).size, case.objective.size
    axes = set(case.objective.axes)
    roots = (size, case.objective.ok)
    facts: dict[Term, Term] = {
        one: constant(one, case.facts[one.name]) for one in free_symbols(*roots) if one not in axes
    }
    bytes_, ok = substitute(roots, facts)
    _, high = case.domain.ranges[TOTAL]
    return Claim(
        {"the recipe is ok": cast("Bool", ok), "bytes": cast("Int", bytes_) <= most - spare},
        _admits(case),
        shows={"bytes": bytes_},
        settles={TOTAL.name: high} if any(one is TOTAL for one in free_symbols(bytes_, ok)) else {},
        launches=Invocation("ort.gqa.complete", _inputs(case)),
    )


def _inputs(case: Case) -> CompleteInput:
    """The recipe's input on the case's axes; both backends that read T read the same."""
    inputs = symbols(CompleteInput)
    axes = set(case.objective.axes)
    fixed = {
        name: one if one in axes else constant(one, case.facts[name])
        for name, one in leaves(inputs).items()
    }
    whole = _filled(inputs, fixed)
    return replace(whole, route=replace(whole.route, unfused=UnfusedConfig(TOTAL)))


def _filled(record: R, values: Mapping[str, Term], prefix: str = "") -> R:
    """The record with the value of each leaf's path."""
    parts: dict[str, Any] = {}
    for field in fields(record):
        path, part = f"{prefix}{field.name}", getattr(record, field.name)
        parts[field.name] = (
            _filled(part, values, f"{path}.") if isinstance(part, Record) else values[path]
        )
    return replace(record, **parts)


def _enumerated(preset: str, name: str, *, spare: int) -> Obligation:
    route, _, rest = name.partition(".")
    title = f"{short_name(route)}, {rest.replace('.', ', ')}"
    twin = ".one-byte-less" if spare else ""

    @obligation(
        f"ort.gqa.exact.{preset}.{short_name(route)}.{rest}{twin}",
        f"{_NODES[preset]}, {title}: no state needs more than the maximum"
        f"{' less one byte' if spare else ''}",
        source=_SOURCE,
        expect="refuted" if spare else "proved",
        note="The twin: the maximum is attained." if spare else "",
    )
    def statement() -> Claim:
        return _at_most(_cases(preset)[name], spare)

    return statement


# Older and newest take the same routes but for chunks that share both pairs; one alias state on
# the newest preserves the past.
_NAMES = (
    "flash.chunk",
    "flash.chunk.separate-past",
    "flash.decode",
    "flash.decode.separate-past",
    "flash.first",
    "flash.first.separate-past",
    "flash_fast_decode.chunk",
    "flash_fast_decode.decode",
)
_ALL = tuple((preset, name) for preset in _NODES for name in _NAMES)
ENUMERATED = tuple(_enumerated(*one, spare=0) for one in _ALL)
LESS = tuple(_enumerated("qwen2.5-1.5b", name, spare=1) for name in _NAMES)
