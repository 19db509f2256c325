"""The split heuristic regime by regime: which term caps the split count, and Flash's bytes then.

The regimes are those of `max_splits = min(128, SM, nb)`, with SM the multiprocessors and nb the
blocks of KV; ties belong to every regime that they touch. Each is proved by itself, and that no
state lies outside all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from routeproof.models.ort.gqa import flash
from routeproof.models.ort.gqa.problem import STATUS, FlashInput
from routeproof.models.ort.gqa.split import (
    MAX_SPLITS,
    kv_blocks,
    selected_split_count,
    split_ceiling,
    work_items,
)
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.recipe import Checks
from routeproof.spec.records import symbols
from routeproof.spec.terms import (
    Bool,
    Float,
    Int,
    IntDomain,
    all_of,
    any_of,
    ceiling,
    float32,
    implies,
    integer,
    maximum,
    symbol_int,
    to_float,
)

from .sources import FUNCTION_SOURCES

__all__ = ["BYTES", "COUNTS", "EFFICIENT", "FEWER_WAVES", "REACHED"]

_SOURCE = FUNCTION_SOURCES["flash_runtime"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the heuristic reads: work items, blocks of KV, multiprocessors."""

    work: Int
    blocks: Int
    device: Int

    @property
    def splits(self) -> Int:
        """The split count that the heuristic selects."""
        return selected_split_count(self.work, self.blocks, self.device)

    @property
    def most(self) -> Int:
        """The most splits that it considers."""
        return split_ceiling(self.blocks, self.device)

    @property
    def fills_device(self) -> Bool:
        """The work alone keeps 0.8 of the multiprocessors busy, as the source's floats see it."""
        return to_float(self.work, 32) >= float32(0.8) * to_float(self.device, 32)

    def efficiency(self, splits: Int) -> Float:
        """The share of multiprocessors busy over all waves of that many splits, in float32."""
        waves = to_float(self.work * splits, 32) / to_float(self.device, 32)
        return waves / ceiling(waves)


@dataclass(frozen=True, slots=True)
class Regime:
    """States of one kind, and the cap of their split count: where `exact`, it is the count."""

    where: str
    most: str
    holds: Callable[[Choice], Bool]
    cap: Callable[[Choice], Int]
    exact: bool = False


_REGIMES: Mapping[str, Regime] = {
    "enough-work": Regime(
        "work for 0.8 of the multiprocessors",
        "1 split",
        lambda choice: choice.fills_device,
        lambda _: integer(1),
        exact=True,
    ),
    "one-candidate": Regime(
        "one multiprocessor or one block",
        "1 split",
        lambda choice: choice.most <= 1,
        lambda _: integer(1),
        exact=True,
    ),
    "capped-by-128": Regime(
        "128 multiprocessors and 128 blocks or more",
        "128 splits",
        lambda choice: all_of(choice.device >= MAX_SPLITS, choice.blocks >= MAX_SPLITS),
        lambda _: integer(MAX_SPLITS),
    ),
    "capped-by-device": Regime(
        "at most 128 multiprocessors, as many blocks or more",
        "1 split per multiprocessor",
        lambda choice: all_of(choice.device <= MAX_SPLITS, choice.device <= choice.blocks),
        lambda choice: choice.device,
    ),
    "capped-by-blocks": Regime(
        "at most 128 blocks, as many multiprocessors or more",
        "1 split per block",
        lambda choice: all_of(choice.blocks <= MAX_SPLITS, choice.blocks <= choice.device),
        lambda choice: choice.blocks,
    ),
}


def _choice(work: int = 2**63 - 1, blocks: int = 2**31 - 1, device: int = 2**63 - 1) -> Choice:
    """Any choice up to the given sizes; small ones leave a counterexample that is soon minimal."""
    return Choice(
        symbol_int("work_items", IntDomain(1, work)),
        symbol_int("kv_blocks", IntDomain(1, blocks)),
        symbol_int("multi_processor_count", IntDomain(1, device)),
    )


def _count(name: str, regime: Regime) -> Obligation:
    @obligation(
        f"ort.gqa.split.regime.{name}",
        f"{regime.where}: {'exactly' if regime.exact else 'at most'} {regime.most}",
        source=_SOURCE,
    )
    def statement() -> Claim:
        choice = _choice()
        splits, cap = choice.splits, regime.cap(choice)
        return Claim(
            splits == cap if regime.exact else all_of(splits >= 1, splits <= cap),
            {regime.where: regime.holds(choice)},
            shows={"splits": splits, "cap": cap},
        )

    return statement


def _bytes(name: str, regime: Regime) -> Obligation:
    @obligation(
        f"ort.gqa.split.regime.{name}.bytes",
        f"{regime.where}: Flash needs at most the bytes of {regime.most}",
        source=FUNCTION_SOURCES["flash"],
    )
    def statement() -> Claim:
        inputs = symbols(FlashInput)
        problem, config = inputs.problem, inputs.config
        heads = flash.split_heads(problem, config.fast_decode)
        length = flash.split_kv_length(
            config.total_sequence_length, config.local_window_size, config.fast_decode
        )
        choice = Choice(
            work_items(problem.batch_size, heads, problem.sequence_length),
            kv_blocks(length, problem.head_size),
            config.multi_processor_count,
        )
        # Blocks as a cap get a name: inside a product, the solver sees no range of the formula.
        named, cap = _choice().blocks, regime.cap(choice)
        by_blocks = (
            {"kv_blocks cover the KV": choice.blocks == named} if cap is choice.blocks else {}
        )
        recipe = flash.layout(problem, config)
        most = flash.buffers(Checks(STATUS), problem, named if by_blocks else cap).total
        return Claim(
            recipe.layout.total_backend_bytes <= most,
            {"status is ok": recipe.ok, **by_blocks, regime.where: regime.holds(choice)},
            shows={"splits": choice.splits, "bytes for the cap": most},
        )

    return statement


def _reached(name: str, regime: Regime) -> Obligation:
    @obligation(
        f"ort.gqa.split.regime.{name}.reached",
        f"{regime.where}: fewer than {regime.most}",
        source=_SOURCE,
        expect="refuted",
        note="The twin: the cap is reached.",
    )
    def statement() -> Claim:
        choice = _choice()
        splits, cap = choice.splits, regime.cap(choice)
        return Claim(
            splits <= cap - 1,
            {regime.where: regime.holds(choice), "a choice": cap >= 2},
            shows={"splits": splits, "cap": cap},
        )

    return statement


COUNTS = tuple(_count(*item) for item in _REGIMES.items())
BYTES = tuple(_bytes(*item) for item in _REGIMES.items())
REACHED = tuple(_reached(*item) for item in _REGIMES.items() if not item[1].exact)


@dataclass(frozen=True, slots=True)
class Device:
    """Multiprocessors, one number or all up to one, and the waves that no choice on it exceeds."""

    multiprocessors: int
    waves: int
    any_smaller: bool = False

    @property
    def name(self) -> str:
        """How ids call it."""
        return f"up-to-{self.multiprocessors}" if self.any_smaller else str(self.multiprocessors)

    @property
    def words(self) -> str:
        """How titles call it."""
        return f"{'up to ' if self.any_smaller else ''}{self.multiprocessors} multiprocessors"

    @property
    def choice(self) -> Choice:
        """Any work and KV length on it."""
        if self.any_smaller:
            return _choice(device=self.multiprocessors)
        return replace(_choice(), device=integer(self.multiprocessors))

    @property
    def settles(self) -> Mapping[str, int]:
        """Work for the whole device is enough; beyond (c - 1)^2 blocks c splits are eligible."""
        candidates = min(MAX_SPLITS, self.multiprocessors)
        return {"work_items": self.multiprocessors, "kv_blocks": (candidates - 1) ** 2 + 1}


_DEVICES = (
    Device(32, 7, any_smaller=True),
    Device(46, 7),
    Device(82, 7),
    Device(108, 7),
    Device(132, 7),
    Device(142, 10),
)


def _waves(device: Device, waves: int) -> Claim:
    """All splits of all work items, in multiples of the device; and how many states are of a kind.

    Where splits are as many as two caps allow, the state counts for both.
    """
    choice = device.choice
    splits, idle = choice.splits, ~choice.fills_device
    capped = all_of(idle, splits > 1, splits == choice.most)
    return Claim(
        implies(idle, splits * choice.work <= waves * choice.device),
        shows={"splits": splits, "splits of all work items": splits * choice.work},
        settles=device.settles,
        regimes={
            "work enough: 1 split": ~idle,
            "the efficiency rule: 1 split": all_of(idle, splits == 1),
            "the efficiency rule: several": all_of(idle, splits > 1, splits < choice.most),
            "capped by 128": all_of(capped, splits == MAX_SPLITS),
            "capped by the device": all_of(capped, splits == choice.device),
            "capped by KV blocks": all_of(capped, splits == choice.blocks),
        },
    )


def _efficient(device: Device) -> Obligation:
    @obligation(
        f"ort.gqa.split.regime.efficient.{device.name}",
        f"{device.words}, work not enough: at most {device.waves} waves of splits",
        source=_SOURCE,
        note="Every count of work items and of KV blocks is tried, up to where each settles.",
    )
    def statement() -> Claim:
        return _waves(device, device.waves)

    return statement


def _fewer_waves(device: Device) -> Obligation:
    @obligation(
        f"ort.gqa.split.regime.efficient.{device.name}.one-less",
        f"{device.words}, work not enough: at most {device.waves - 1} waves of splits",
        source=_SOURCE,
        expect="refuted",
        note="The twin: where few splits are eligible, the efficient ones are many.",
    )
    def statement() -> Claim:
        return _waves(device, device.waves - 1)

    return statement


EFFICIENT = tuple(map(_efficient, _DEVICES))
FEWER_WAVES = tuple(_fewer_waves(one) for one in (_DEVICES[0], _DEVICES[-1]))


@obligation("ort.gqa.split.regime.cover", "every state lies in one of the regimes", source=_SOURCE)
def cover() -> Claim:
    """Whatever the work, also without the two regimes of a single split."""
    choice = _choice()
    caps = (regime for regime in _REGIMES.values() if not regime.exact)
    return Claim(any_of(*(regime.holds(choice) for regime in caps)))


@obligation(
    "ort.gqa.split.regime.cover.without-128",
    "the device or the blocks are always the cap",
    source=_SOURCE,
    expect="refuted",
    note="The twin of the cover: one regime less.",
)
def cover_less() -> Claim:
    """Beyond 128 of both, the constant is the cap."""
    choice = _choice()
    names = ("capped-by-device", "capped-by-blocks")
    return Claim(any_of(*(_REGIMES[name].holds(choice) for name in names)))


@obligation(
    "ort.gqa.split.regime.idle",
    "wherever multiprocessors idle and there is a choice, rows are split",
    source=_SOURCE,
    expect="refuted",
    note="The regimes of a single split are sufficient for 1, not necessary.",
)
def idle() -> Claim:
    """One split may already be efficient enough."""
    choice = _choice()
    single = any_of(*(regime.holds(choice) for regime in _REGIMES.values() if regime.exact))
    splits = choice.splits
    return Claim(splits >= 2, {"neither single regime": ~single}, shows={"splits": splits})


@obligation(
    "ort.gqa.split.regime.one-wave",
    "the splits of all work items fit the device at once",
    source=_SOURCE,
    expect="refuted",
    note="A full second wave is as efficient as a full first one.",
)
def one_wave() -> Claim:
    """Hence SM // work is no cap."""
    choice = _choice(work=8, blocks=8, device=8)
    splits = choice.splits
    return Claim(
        splits <= maximum(1, choice.device // choice.work),
        shows={"splits": splits, "splits of all work items": splits * choice.work},
    )


@obligation(
    "ort.gqa.split.regime.most-efficient",
    "7 blocks on 132 multiprocessors: the choice is as efficient as 7 splits",
    source=_SOURCE,
    expect="refuted",
    note="The fewest splits within 85 % of the best efficiency are chosen, not the best.",
)
def most_efficient() -> Claim:
    """All of 1 to 7 are considered, and 7 is eligible."""
    work = symbol_int("work_items", IntDomain(32, 64))
    choice = Choice(work, integer(7), integer(132))
    chosen, other = choice.efficiency(choice.splits), choice.efficiency(integer(7))
    return Claim(
        chosen >= other,
        {"no work for 0.8 of the multiprocessors": ~choice.fills_device},
        shows={
            "splits": choice.splits,
            "efficiency": chosen,
            "efficiency of 7 splits": other,
        },
    )
