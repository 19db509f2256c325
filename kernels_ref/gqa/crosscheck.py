"""One launch executed in its recipe's regions, twice, and everything compared that can differ.

Once in a root of exactly the planned bytes, once with the regions apart and guarded, under another
poison: outputs and caches have to be the same bits. They are compared with plain attention too. A
launch that is too large to execute, or that no Run is like, is carved on paper: every byte is
asked for and none is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import numpy as np

from routeproof.kernels_ref.arena import EXACT, SPREAD, Arena, Plan
from routeproof.kernels_ref.backends import Backend
from routeproof.kernels_ref.namespace import Array
from routeproof.spec.execution import Fault, LaunchReport, RegionBytes
from routeproof.spec.interpret import Value

from . import flash, memory_efficient, oracle, preparation, tensors, unfused, xqa
from .launch import Launch, Route
from .oracle import Executed
from .plan import UNNEEDED

__all__ = ["MOST_BYTES", "MOST_WORK", "carve", "check_counts", "crosscheck", "execute"]

MOST_BYTES = 1 << 28
"""Bytes of scratch and tensors up to which a launch is executed."""
MOST_WORK = 1 << 31
"""Multiplications up to which a launch is executed."""

_KERNELS: dict[Route, ModuleType] = {
    "xqa": xqa,
    "flash": flash,
    "flash_fast_decode": flash,
    "memory_efficient": memory_efficient,
    "unfused": unfused,
}


def crosscheck(launch: Launch, plan: Plan, backend: Backend, contents: int) -> LaunchReport:
    """Execute the launch, or carve it on paper, and say what its regions are used for.

    `contents` is the seed of what its tensors hold.

    Raises:
        Fault: the plan and the kernel differ, or a result is wrong; names region and bytes.
    """
    if why := _obstacle(launch, plan):
        arena = Arena(plan, UNNEEDED)
        carve(arena, launch)
        arena.close()
        return replace(_report(launch, (arena,)), on_paper=why)
    given = tensors.draw(launch, contents)
    arenas = tuple(Arena(plan, UNNEEDED, backend, how) for how in (EXACT, SPREAD))
    one, two = (execute(launch, given, arena) for arena in arenas)
    _check_same(one, two)
    report = replace(
        _report(launch, arenas),
        error=oracle.check(launch, given, one),
        is_padded=bool((given.lengths < launch.total).any()),
        is_constant=bool((one.output == one.output.reshape(-1)[0]).all()),
    )
    _check_touched(arenas)
    return report


def check_counts(launch: Launch, recipe: Mapping[str, Value]) -> None:
    """The recipe's counts are those that the kernel derives on its own.

    Raises:
        Fault: one differs; its name and both values.
    """
    derived = {
        "preparation.effective_kv_cache_capacity": launch.visible,
        "preparation.cache_row_bytes": launch.row,
    }
    if launch.route == "xqa":
        derived["xqa.subsequences_per_sequence"] = xqa.stretches(launch)
        derived["xqa.m_tile_size"] = xqa.tile_rows(launch)
    elif launch.route.startswith("flash"):
        derived["flash.selected_split_count"] = flash.splits(launch)
    for name, count in derived.items():
        if recipe[f"out.{name}"] != count:
            raise Fault(name, f"the recipe has {recipe[f'out.{name}']:,}, the kernel {count:,}")


def _obstacle(launch: Launch, plan: Plan) -> str:
    """Why the launch is not executed, or nothing."""
    work = launch.batch * launch.heads * launch.tokens * launch.head_size * launch.visible
    size = plan.total + _tensor_bytes(launch)
    if size > MOST_BYTES:
        return f"{size:,} bytes of scratch and tensors are more than {MOST_BYTES:,}"
    if work > MOST_WORK:
        return f"{work:,} multiplications are more than {MOST_WORK:,}"
    return launch.obstacle()


def _tensor_bytes(launch: Launch) -> int:
    rows = launch.batch * launch.kv_heads * (launch.capacity + launch.past_capacity)
    new = launch.batch * launch.tokens * (launch.heads + launch.kv_heads) * launch.head_size
    bias = launch.batch * launch.heads * launch.tokens * launch.total if launch.bias else 0
    return 2 * rows * launch.row + (2 * new + bias) * launch.storage.size


def carve(arena: Arena, launch: Launch) -> tuple[preparation.Scratch, list[Array]]:
    """Every region of preparation and route, none of them given back."""
    return preparation.carve(arena, launch), _KERNELS[launch.route].carve(arena, launch)


def execute(launch: Launch, given: tensors.Tensors, arena: Arena) -> Executed:
    """One execution on the arena's backend; what the tensors hold afterwards, on the host.

    Raises:
        Fault: the plan and the kernel differ.
    """
    backend = arena.backend
    if backend is None:
        raise ValueError("an arena on paper has no memory to execute in")
    bound = tensors.bind(launch, given, backend, arena.arrangement.poison)
    route = _KERNELS[launch.route]
    with np.errstate(over="ignore"):  # a softcap near 0 divides scores beyond the largest number
        prepared = preparation.prepare(bound, arena, preparation.carve(arena, launch))
        own = route.carve(arena, launch)
        route.attend(bound, prepared, arena, own)
    preparation.finish(bound, arena, prepared)
    shares = own[0] if launch.route.startswith("flash") else bound.xp.zeros(0, "float32")
    tensors_left = (bound.output, bound.present_key, bound.present_value, shares)
    found = Executed(*(backend.to_host(one).copy() for one in tensors_left))
    arena.close()
    return found


def _check_same(one: Executed, two: Executed) -> None:
    """The same bits, whatever scratch held before: else something read what it had not written."""
    for name in Executed.__dataclass_fields__:
        bits = [np.ascontiguousarray(getattr(done, name)).view(np.uint8) for done in (one, two)]
        if differing := int((bits[0] != bits[1]).sum()):
            raise Fault(
                name,
                f"{differing:,} of {bits[0].size:,} bytes depend on what scratch held before the "
                "launch: something is read that was not written",
            )


def _check_touched(arenas: tuple[Arena, ...]) -> None:
    """Every part that the kernel has a use for is written: else it is reserved for nothing."""
    for name, region in arenas[0].regions.items():
        for part in () if region.idle else region.untouched(_touched(arenas, name)):
            raise Fault(name, f"none of the {part.size:,} bytes of {part.name!r} is written")


def _touched(arenas: tuple[Arena, ...], name: str) -> Array:
    """Which bytes of a region were written in either run."""
    masks = [one for arena in arenas if (one := arena.regions[name].touched) is not None]
    return np.asarray(np.logical_or.reduce(masks) if masks else np.zeros(0, bool))


def _report(launch: Launch, arenas: tuple[Arena, ...]) -> LaunchReport:
    """What the arenas say; nothing of the results."""
    return LaunchReport(
        route=launch.route,
        extents=str(launch),
        counted={
            "cache mode": launch.mode,
            "quantisation": f"{launch.cache} {launch.k_scales}" if launch.quantized else "none",
            "V scales": "as K" if launch.v_scales == launch.k_scales else "other than K",
            "type": launch.element,
        },
        regions=tuple(_bytes(arenas, name) for name in arenas[0].regions),
        total=arenas[0].plan.total,
        peak=arenas[0].peak,
        taken=arenas[0].root_taken,
        splits=_splits(launch),
    )


def _splits(launch: Launch) -> int:
    """Into how many parts the keys were divided."""
    if launch.route == "xqa":
        return xqa.stretches(launch)
    return flash.splits(launch) if launch.route.startswith("flash") else 1


def _bytes(arenas: tuple[Arena, ...], name: str) -> RegionBytes:
    """One region; a byte is touched if it was written in either run."""
    region = arenas[0].regions[name]
    touched = int(_touched(arenas, name).sum())
    notes = dict.fromkeys(
        arenas[0].unneeded[key]
        for part in region.parts
        if not part.needed
        for key in (name, f"{name}.{part.name}")
        if key in arenas[0].unneeded
    )
    notes |= dict.fromkeys([region.idle] if region.idle else [])
    return RegionBytes(name, region.planned.size, region.asked, touched, "; ".join(notes))
