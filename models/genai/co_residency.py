"""Several models on one device: loading, serving, evicting. A protocol.

Source: `specs/tla/CoResidency.tla` of onnx-genai (ac9c7dd06), stated here on its own. There the
footprints follow from the model's number; here they may also be symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

from routeproof.spec.protocol import Event, Protocol, Variable, added, event
from routeproof.spec.terms import (
    Bool,
    Int,
    IntDomain,
    all_of,
    any_of,
    free_symbols,
    implies,
    integer,
    ite,
    symbol_bool,
    symbol_int,
)

__all__ = ["co_residency"]

_COUNT = IntDomain(0, None)


def co_residency(  # noqa: PLR0913 - the constants of the module
    models: int,
    *,
    capacity: Int,
    footprints: Sequence[Int],
    pinned: int,
    requests: Int,
    retires_before_evict: bool = True,
) -> Protocol:
    """The protocol of so many models, the first `pinned` of which are never evicted."""
    keys = range(1, models + 1)
    resident = [symbol_bool(f"resident[{one}]") for one in keys]
    retired = [symbol_int(f"retired[{one}]", _COUNT) for one in keys]
    since = [symbol_int(f"served_since[{one}]", _COUNT) for one in keys]
    wasted = symbol_int("wasted", _COUNT)
    held = [ite(here, size, 0) for here, size in zip(resident, footprints, strict=True)]
    free = capacity - added(held)
    pending = [done < requests for done in retired]
    waits = any_of(
        *(
            all_of(open_, ~here, size > free)
            for open_, here, size in zip(pending, resident, footprints, strict=True)
        )
    )
    events: list[Event] = []
    for one in keys:
        here, size = resident[one - 1], footprints[one - 1]
        served, done = since[one - 1], retired[one - 1]
        guard = all_of(~here, pending[one - 1], size <= free)
        events.append(event(f"load {one}", guard, [(here, ~here), (served, integer(0))]))
        if one > pinned:
            guard = all_of(here, waits, any_of(not retires_before_evict, served > 0))
            thrown = ite(served == 0, wasted + 1, wasted)
            effects = [(here, ~here), (served, integer(0)), (wasted, thrown)]
            events.append(event(f"evict {one}", guard, effects))
        guard = all_of(here, pending[one - 1])
        events.append(event(f"serve {one}", guard, [(done, done + 1), (served, served + 1)]))
    kept = added(held[:pinned])
    return Protocol(
        "CoResidency",
        (
            *(Variable(one, False) for one in resident),
            *(Variable(one, 0) for one in (*retired, *since)),
            Variable(wasted, 0),
        ),
        tuple(events),
        {
            "CapacityRespected": added(held) <= capacity,
            "PinnedStaysResident": all_of(*(served >= 0 for served in since[:pinned])),
            "ServedOnlyWhenResident": all_of(
                *(
                    implies(done > 0, served >= 0)
                    for done, served in zip(retired, since, strict=True)
                )
            ),
            "ProgressPossible": all_of(
                *(
                    implies(open_, any_of(here, size <= free, size <= capacity - kept))
                    for open_, here, size in zip(pending, resident, footprints, strict=True)
                )
            ),
            "NoWastedResidency": wasted == 0,
        },
        given=_admissible(capacity, footprints, pinned, requests),
        parameters=free_symbols(capacity, requests, *footprints),
    )


def _admissible(
    capacity: Int, footprints: Sequence[Int], pinned: int, requests: Int
) -> dict[str, Bool]:
    """What the implementation accepts: any unpinned model fits beside all pinned ones."""
    beside = added(footprints[:pinned])
    return {
        "sizes are positive": all_of(*(size >= 1 for size in footprints)),
        "a request at least": requests >= 1,
        "pinned models fit together": beside <= capacity,
        "an unpinned one fits beside them": all_of(
            *(beside + size <= capacity for size in footprints[pinned:])
        ),
    }
