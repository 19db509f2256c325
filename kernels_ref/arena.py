"""An arena: one allocation of exactly the planned size, carved into the planned regions, watched.

A kernel asks for a region by name and says what its loops put there: parts, each with a shape and
an element type. The arena compares that with the plan (bytes, place, alignment), hands out views,
and never allocates anything else. Two arrangements make a fault show:

* `exact`: regions lie where the plan says, inside a root of exactly the planned bytes;
* `spread`: the same regions moved apart, with guard bytes around each.

Every region starts out filled with a poison byte, another one per arrangement, and is filled with
it again when it is released: what reads scratch before it was written, or after it was given back,
gives other results under another poison. What lies between regions is guard.

Offsets and sizes are in bytes. The arena knows nothing of where a plan comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from routeproof.spec.execution import Fault

from .backends import Backend
from .formats import Format
from .namespace import Array

__all__ = [
    "EXACT",
    "SPREAD",
    "Arena",
    "Arrangement",
    "Event",
    "Part",
    "Plan",
    "Planned",
    "Region",
]

_APART = 512  # a multiple of what any view is aligned to


@dataclass(frozen=True, slots=True)
class Planned:
    """A region of the plan: where it starts, from the root's start, and its size (bytes)."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The regions of one allocation that are not empty, and the allocation's size (bytes)."""

    regions: tuple[Planned, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Part:
    """What a kernel puts in a region, or what it was promised there and has no use for."""

    name: str
    shape: tuple[int, ...]
    format: Format
    needed: bool = True

    @property
    def size(self) -> int:
        """Bytes."""
        return prod(self.shape) * self.format.size

    def __str__(self) -> str:
        """As errors show it."""
        return f"{self.name} {'x'.join(map(str, self.shape))} {self.format.name}"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How regions lie in memory, and what they are filled with."""

    name: str
    poison: int
    guard: int
    apart: int


# All ones are no number in any floating type, and -1 as an integer.
EXACT = Arrangement("exact", 0xFF, 0xC3, 0)
SPREAD = Arrangement("spread", 0x5A, 0x3C, _APART)


@dataclass(frozen=True, slots=True)
class Event:
    """A region was carved or released; `live` are the bytes in use after it."""

    what: str
    region: str
    size: int
    live: int


@dataclass(slots=True)
class Region:
    """A region in use: the parts it was asked for, where it lies, and what was written to it."""

    planned: Planned
    parts: tuple[Part, ...]
    alignment: int
    behind: int
    memory: Array | None
    touched: Array | None = None
    idle: str = ""

    @property
    def needed(self) -> int:
        """Bytes that the kernel has a use for."""
        return sum(part.size for part in self.parts if part.needed)

    def untouched(self, touched: Array) -> list[Part]:
        """The needed parts of which no byte was written, by a mask over the region."""
        at, found = 0, []
        for part in self.parts:
            if part.needed and part.size and not touched[at : at + part.size].any():
                found.append(part)
            at += part.size
        return found

    @property
    def asked(self) -> int:
        """Bytes asked for, those without a use included, before any rounding."""
        return sum(part.size for part in self.parts)


@dataclass(slots=True)
class Arena:
    """One launch's scratch; see the module.

    `unneeded` is the closed list of what kernels may leave untouched: `region`, or `region.part`,
    with the reason. Without a backend nothing is allocated: regions are carved on paper.

    Raises:
        Fault: by every method, where the plan and the kernel differ.
    """

    plan: Plan
    unneeded: Mapping[str, str] = field(default_factory=dict)
    backend: Backend | None = None
    arrangement: Arrangement = EXACT
    events: list[Event] = field(default_factory=list)
    regions: dict[str, Region] = field(default_factory=dict)
    root_taken: int = 0
    _memory: Array | None = None
    _places: dict[str, int] = field(default_factory=dict)
    _live: int = 0

    def __post_init__(self) -> None:
        """Refuse a plan that contradicts itself; allocate, guard and poison."""
        _check(self.plan)
        for number, region in enumerate(_ordered(self.plan), 1):
            self._places[region.name] = region.offset + number * self.arrangement.apart
        if self.backend is None:
            return
        size = self.plan.total + (len(self.plan.regions) + 1) * self.arrangement.apart
        root = self.backend.allocate(size)
        if root.requested != size:
            raise Fault("the root", f"{root.requested:,} bytes were requested for {size:,}")
        self.root_taken = root.taken
        self._memory = root.memory
        self._memory[...] = self.arrangement.guard
        for region in self.plan.regions:
            self._bytes_of(region)[...] = self.arrangement.poison

    def _bytes_of(self, region: Planned) -> Array:
        start = self._places[region.name]
        memory: Array = self._memory[start : start + region.size]  # type: ignore[index]
        return memory

    @property
    def peak(self) -> int:
        """The most bytes in use at once."""
        return max((event.live for event in self.events), default=0)

    def carve(
        self,
        name: str,
        *parts: Part,
        alignment: int = 256,
        rounding: int = 1,
        behind: str = "",
    ) -> list[Array]:
        """The needed parts of a region, one behind the other, as arrays of their shapes.

        `alignment` is what the region's start has to be a multiple of, counted from the root, or
        from the region `behind`; the region ends at a multiple of `rounding`, from its start.
        """
        planned = self._planned(name, parts, rounding)
        origin = self.regions[behind].planned.offset if behind else 0
        if over := (planned.offset - origin) % alignment:
            raise Fault(
                name,
                f"{planned.size:,} bytes start at byte {planned.offset:,}, which is {over:,} bytes "
                f"behind a multiple of {alignment:,}{f' from {behind}' if behind else ''}",
            )
        memory = None if self._memory is None else self._bytes_of(planned)
        self.regions[name] = Region(planned, parts, alignment, origin, memory)
        self._note("carve", planned, planned.size)
        return [] if memory is None else list(_views(memory, parts))

    def _planned(self, name: str, parts: Sequence[Part], rounding: int) -> Planned:
        """The region as planned, if it is what the kernel asks for."""
        if name in self.regions:
            raise Fault(name, "is carved twice")
        for part in parts:
            if not part.needed and not {name, f"{name}.{part.name}"} & self.unneeded.keys():
                raise Fault(name, f"{part.size:,} bytes of {part} are in no list of exceptions")
        needs = -(-sum(part.size for part in parts) // rounding) * rounding
        planned = next((one for one in self.plan.regions if one.name == name), Planned(name, 0, 0))
        what = " + ".join(map(str, parts)) + (f", rounded to {rounding}" if rounding > 1 else "")
        if planned.size != needs:
            less, more = needs - planned.size, planned.size - needs
            raise Fault(
                name,
                f"the kernel needs {needs:,} bytes ({what}), the plan has {planned.size:,}: "
                + (f"{less:,} bytes short" if less > 0 else f"{more:,} bytes that nothing uses"),
            )
        return planned

    def excuse(self, name: str) -> None:
        """Say that this launch has no use for a region, as the list of exceptions foresees."""
        if name not in self.unneeded:
            size = self._carved(name).planned.size
            raise Fault(name, f"{size:,} bytes are in no list of exceptions")
        self._carved(name).idle = self.unneeded[name]

    def _carved(self, name: str) -> Region:
        if name not in self.regions:
            raise Fault(name, "is no region that was carved: 0 bytes")
        return self.regions[name]

    def release(self, name: str) -> None:
        """Give a region back: what was written is counted, and poisoned again."""
        region = self._carved(name)
        if name not in self.in_use:
            raise Fault(name, f"{region.planned.size:,} bytes are released twice")
        if region.memory is not None and self.backend is not None:
            written = region.memory != self.arrangement.poison
            region.touched = self.backend.to_host(written).copy()
            region.memory[...] = self.arrangement.poison
        region.memory = None
        self._note("release", region.planned, -region.planned.size)

    def _note(self, what: str, planned: Planned, change: int) -> None:
        self._live += change
        self.events.append(Event(what, planned.name, planned.size, self._live))

    @property
    def in_use(self) -> list[str]:
        """Regions carved and not released."""
        released = {event.region for event in self.events if event.what == "release"}
        return [name for name in self.regions if name not in released]

    def close(self) -> None:
        """Release what is in use, then look for damage, bytes nobody asked for and loose places."""
        for name in self.in_use:
            self.release(name)
        self._check_guards()
        for region in self.plan.regions:
            if region.name not in self.regions:
                raise Fault(region.name, f"{region.size:,} bytes that no kernel asks for")
        self._check_places()

    def _check_guards(self) -> None:
        if self._memory is None or self.backend is None:
            return
        memory = self.backend.to_host(self._memory)
        guarded = np.ones(memory.size, bool)
        for one in self.plan.regions:
            guarded[self._places[one.name] : self._places[one.name] + one.size] = False
        damaged = np.flatnonzero(guarded & (memory != self.arrangement.guard))
        if not damaged.size:
            return
        first, count = int(damaged[0]), damaged.size
        ordered = _ordered(self.plan)
        near = [one for one in ordered if self._places[one.name] <= first][-1:] or ordered[:1]
        start = self._places[near[0].name] if near else 0
        where = (
            "in front of it" if first < start else f"from {first - start:,} bytes after its start"
        )
        name = near[0].name if near else "the root"
        raise Fault(name, f"{count:,} guard bytes are overwritten, {where}")

    def _check_places(self) -> None:
        """Regions lie in the order of their requests, each as early as its alignment allows.

        Nothing lies behind the last; a plan without regions has nothing behind them.
        """
        end, last = 0, "the root"
        for planned, name in zip(_ordered(self.plan), self.regions, strict=True):
            if planned.name != name:
                raise Fault(
                    name, f"{self.regions[name].planned.size:,} bytes lie behind {planned.name}"
                )
        for planned in _ordered(self.plan):
            region = self.regions[planned.name]
            start = -(-(end - region.behind) // region.alignment) * region.alignment + region.behind
            if planned.offset > start:
                raise Fault(
                    planned.name,
                    f"{planned.size:,} bytes start at byte {planned.offset:,}, "
                    f"{planned.offset - start:,} bytes later than {last} and alignment ask for",
                )
            end, last = planned.offset + planned.size, planned.name
        if end != self.plan.total:
            raise Fault(last, f"{self.plan.total - end:,} bytes behind its end are planned")


def _ordered(plan: Plan) -> list[Planned]:
    return sorted(plan.regions, key=lambda region: region.offset)


def _check(plan: Plan) -> None:
    """Regions have names and sizes, do not overlap, and lie inside the root."""
    end, last, seen = 0, "the root's start", set[str]()
    for region in _ordered(plan):
        if region.name in seen or region.size < 1:
            raise Fault(region.name, f"is planned twice, or with {region.size:,} bytes")
        seen.add(region.name)
        if region.offset < end:
            raise Fault(
                region.name,
                f"{region.size:,} bytes overlap {last} by {end - region.offset:,} bytes",
            )
        end, last = region.offset + region.size, region.name
        if end > plan.total:
            raise Fault(
                region.name,
                f"{region.size:,} bytes end at byte {end:,}, {end - plan.total:,} bytes beyond "
                f"the root of {plan.total:,}",
            )


def _views(memory: Array, parts: Sequence[Part]) -> Iterator[Array]:
    at = 0
    for part in parts:
        if part.needed:
            yield memory[at : at + part.size].view(part.format.storage).reshape(part.shape)
        at += part.size
