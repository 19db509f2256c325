"""Continuous batching: requests that grow in a shared pool of KV extents. A protocol.

Source: `specs/tla/KvAdmission.tla` of onnx-genai (ac9c7dd06), stated here on its own. There prompts
and outputs follow from the request's number; here they may also be symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routeproof.spec.protocol import Event, Protocol, Variable, added, event
from routeproof.spec.terms import (
    Bool,
    Int,
    IntDomain,
    all_of,
    any_of,
    free_symbols,
    implies,
    ite,
    symbol_bool,
    symbol_int,
)

__all__ = ["Pool", "kv_admission"]

_COUNT = IntDomain(0, None)


@dataclass(frozen=True, slots=True)
class Pool:
    """The constants: extents in all, tokens per grant, and each request's prompt and output.

    `most_tokens` is the largest grant that is tried; the module tries up to the capacity. A prompt
    has a token at least, an output two.
    """

    capacity: Int
    most_tokens: int | None
    chunk: Int
    width: Int
    prompts: Sequence[Int]
    outputs: Sequence[Int]
    guards_admission: bool = True


class _Request:
    """One request: what it has done, what it holds and what it still needs (KV extents)."""

    def __init__(self, number: int, prompt: Int, output: Int) -> None:
        self.prompt, self.output = prompt, output
        self.prompted = symbol_int(f"prompt_done[{number}]", _COUNT)
        self.emitted = symbol_int(f"emitted[{number}]", _COUNT)
        self.finished = symbol_bool(f"finished[{number}]")
        self.peak = prompt + output - 1
        decoded = ite(self.emitted > 0, self.emitted - 1, 0)
        self.held = ite(self.finished, 0, self.prompted + decoded)
        self.need = ite(self.finished, 0, self.peak - self.held)

    @property
    def resident(self) -> Bool:
        return all_of(~self.finished, self.held > 0)

    @property
    def variables(self) -> tuple[Variable, ...]:
        initial = ((self.prompted, 0), (self.emitted, 0), (self.finished, False))
        return tuple(Variable(symbol, value) for symbol, value in initial)


def kv_admission(pool: Pool) -> Protocol:
    """The protocol of as many requests as there are prompts."""
    shapes = zip(pool.prompts, pool.outputs, strict=True)
    requests = [_Request(number, *shape) for number, shape in enumerate(shapes, 1)]
    used = added([one.held for one in requests])
    return Protocol(
        "KvAdmission",
        tuple(variable for one in requests for variable in one.variables),
        tuple(
            made
            for number, one in enumerate(requests, 1)
            for made in _grants(pool, number, one, used)
        ),
        _invariants(pool, requests, used),
        given={
            "prompts of a token, outputs of two": all_of(
                *(all_of(one.prompt >= 1, one.output >= 2) for one in requests)
            ),
            "every request fits alone": all_of(*(one.peak <= pool.capacity for one in requests)),
        },
        parameters=free_symbols(
            pool.capacity, pool.chunk, pool.width, *pool.prompts, *pool.outputs
        ),
    )


def _grants(pool: Pool, number: int, one: _Request, used: Int) -> tuple[Event, ...]:
    """A part of the prompt, or some tokens of the output."""
    tokens = symbol_int("tokens", IntDomain(1, pool.most_tokens))
    free = pool.capacity - used
    admitted = any_of(not pool.guards_admission, one.need <= free)
    may = all_of(~one.finished, tokens <= free, admitted)
    left = one.prompt - one.prompted
    prefill = all_of(may, left > 0, tokens <= pool.chunk, tokens <= left)
    whole = tokens == left
    decoding = all_of(one.prompted == one.prompt, one.emitted > 0, one.emitted < one.output)
    rest = one.output - one.emitted
    decode = all_of(may, decoding, tokens <= pool.width, tokens <= rest)
    return (
        event(
            f"prefill {number}",
            prefill,
            [
                (one.prompted, one.prompted + tokens),
                (one.emitted, ite(whole, 1, one.emitted)),
                (one.finished, ite(whole, one.output == 1, one.finished)),
            ],
            tokens,
        ),
        event(
            f"decode {number}",
            decode,
            [
                (one.emitted, one.emitted + tokens),
                (one.finished, any_of(one.finished, tokens == rest)),
            ],
            tokens,
        ),
    )


def _invariants(pool: Pool, requests: Sequence[_Request], used: Int) -> dict[str, Bool]:
    free = pool.capacity - used
    ended = all_of(*(one.finished for one in requests))
    return {
        "TypeOK": all_of(
            *(all_of(one.prompted <= one.prompt, one.emitted <= one.output) for one in requests)
        ),
        "CapacityRespected": used <= pool.capacity,
        "ExtentsConserved": all_of(
            *(any_of(one.finished, one.held + one.need == one.peak) for one in requests)
        ),
        "TerminalReleasesAll": implies(ended, used == 0),
        "NoOverCharge": all_of(*(one.held <= one.peak for one in requests)),
        "ProgressPossible": any_of(
            ended, *(all_of(~one.finished, one.need <= free) for one in requests)
        ),
        "ResidentCanDrain": all_of(
            *(implies(one.resident, one.need <= pool.capacity - one.held) for one in requests)
        ),
        "SafeOrder": _safe_order(requests, free),
    }


def _safe_order(requests: Sequence[_Request], free: Int) -> Bool:
    """Some order finishes all: each needs no more than is free once those before have released.

    Not in the module: it is what makes `ProgressPossible` inductive (the banker's algorithm, as
    many rounds as there are requests).
    """
    done: list[Bool] = [one.finished for one in requests]
    for _ in requests:
        for place, one in enumerate(requests):
            finishes = all_of(~done[place], one.need <= free)
            free = ite(finishes, free + one.held, free)
            done[place] = any_of(done[place], finishes)
    return all_of(*done)
