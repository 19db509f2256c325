"""The recipes as the obligations see them: the model's fields beside the restated ones.

Where a recipe contains Flash's split count, the restated sizes are stated for the model's own
count; that the count is the heuristic's is an obligation by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import cast

from routeproof.models.ort.gqa import flash, memory_efficient, preparation, unfused, xqa
from routeproof.models.ort.gqa.problem import (
    FlashInput,
    MemoryEfficientInput,
    PreparationInput,
    UnfusedInput,
    XqaInput,
)
from routeproof.spec.function import Function
from routeproof.spec.records import leaves, symbols
from routeproof.spec.terms import FALSE, Bool, Enum, Int, Term, all_of

from . import restated_fallback, restated_flash, restated_preparation, restated_xqa

__all__ = ["RECIPES", "Compared", "compared", "equal", "outputs"]


@dataclass(frozen=True, slots=True)
class Compared:
    """One recipe twice: the model's output fields, the restated ones, the restated exact total."""

    model: Mapping[str, Term]
    restated: Mapping[str, Term]
    restated_total: Int

    @property
    def ok(self) -> Bool:
        """The model's status is ok."""
        return cast("Enum", self.model["status"]) == "ok"

    @property
    def both_ok(self) -> Mapping[str, Bool]:
        """Both statuses are ok; that they always agree is proved by itself."""
        restated = cast("Enum", self.restated["status"]) == "ok"
        return {"status is ok": self.ok, "restated status is ok": restated}

    @property
    def regions(self) -> Mapping[str, tuple[Int, Int]]:
        """Offset and size (bytes) of every region of the model, in order."""
        suffix = "_offset_bytes"
        names = (name.removesuffix(suffix) for name in self.model if name.endswith(suffix))
        return {name: (self.bytes(f"{name}_offset"), self.bytes(name)) for name in names}

    @property
    def total(self) -> Int:
        """The model's total (bytes)."""
        (name,) = (name for name in self.model if name.startswith("total_"))
        return self.bytes(name.removesuffix("_bytes"))

    def bytes(self, name: str) -> Int:
        """A field of the model that counts bytes."""
        return cast("Int", self.model[f"{name}_bytes"])


def outputs(function: Function, key: str = "out") -> Mapping[str, Term]:
    """The output fields of a modelled function by name."""
    return leaves(function.outputs[key])


def equal(one: Term, two: Term) -> Bool:
    """Equality of two terms; enums, which each side may declare by itself, by member name."""
    if isinstance(one, Enum) and isinstance(two, Enum):
        members = dict.fromkeys((*one.members.members, *two.members.members))
        return all_of(*(_is(one, member) == _is(two, member) for member in members))
    return cast("Int", one) == cast("Int", two)


def _is(term: Enum, member: str) -> Bool:
    return term == member if member in term.members.members else FALSE


def _preparation() -> Compared:
    inputs = symbols(PreparationInput)
    return Compared(
        outputs(preparation.function()),
        restated_preparation.preparation(inputs),
        restated_preparation.preparation_total(inputs),
    )


def _xqa() -> Compared:
    inputs = symbols(XqaInput)
    return Compared(
        outputs(xqa.function()), restated_xqa.xqa(inputs), restated_xqa.xqa_total(inputs)
    )


def _flash() -> Compared:
    inputs = symbols(FlashInput)
    splits = flash.layout(inputs.problem, inputs.config).layout.selected_split_count
    return Compared(
        outputs(flash.function()),
        restated_flash.flash(inputs, splits),
        restated_flash.flash_total(inputs.problem, splits),
    )


def _memory_efficient() -> Compared:
    inputs = symbols(MemoryEfficientInput)
    capacity = inputs.effective_kv_cache_capacity
    return Compared(
        outputs(memory_efficient.function()),
        restated_fallback.memory_efficient(inputs),
        restated_fallback.memory_efficient_total(inputs.problem, capacity),
    )


def _unfused() -> Compared:
    inputs = symbols(UnfusedInput)
    return Compared(
        outputs(unfused.function()),
        restated_fallback.unfused(inputs),
        restated_fallback.unfused_total(inputs.problem, inputs.total_sequence_length),
    )


RECIPES: Mapping[str, Callable[[], Compared]] = {
    "preparation": _preparation,
    "xqa": _xqa,
    "flash": _flash,
    "mea": _memory_efficient,
    "unfused": _unfused,
}


@cache
def compared(name: str) -> Compared:
    """The recipe of that name, built once."""
    return RECIPES[name]()
