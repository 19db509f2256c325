"""Absolute obligations: the model's bytes and statuses equal closed forms stated a second time.

The `restated_*` modules were written from the facts alone. A wrong recipe stays bounded by itself;
it does not stay equal to these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from routeproof.models.ort.gqa import classifier, eligibility, flash, flash_runtime
from routeproof.models.ort.gqa.problem import (
    ClassifierInput,
    EligibilityFacts,
    FlashInput,
    FlashRuntimeInput,
)
from routeproof.spec.obligation import Claim, Obligation, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import Bool, Enum, Int, Term, all_of, integer

from . import restated_eligibility, restated_flash, restated_flash_runtime, restated_phases
from .recipes import Compared, compared, equal, outputs
from .sources import FUNCTION_SOURCES

__all__ = ["DEFAULTS", "FACTS", "REGIONS", "STATUSES"]

# The regions by recipe; a test compares them with the models' output fields.
_REGIONS = {
    "preparation": (
        "separate_past",
        "staged_key",
        "staged_value",
        "compaction",
        "compaction_key",
        "compaction_value",
        "sequence_lengths",
        "qkv_preprocess",
    ),
    "xqa": (
        "semaphore",
        "row_max",
        "row_sum",
        "output_accumulator",
        "rotary_q",
        "rotary_k",
        "dynamic_head_sink",
    ),
    "flash": ("softmax_lse", "softmax_lse_accumulator", "output_accumulator"),
    "mea": ("expanded_key", "expanded_value", "output_accumulator"),
    "unfused": ("q_bnsh", "y_bnsh", "qk", "softmax"),
}
_DEFAULTS = {"selected_split_count": 1}


def _agree(recipe: Compared, names: list[str]) -> Claim:
    return Claim(
        {name: equal(recipe.model[name], recipe.restated[name]) for name in names},
        assuming=recipe.both_ok,
        shows={
            f"{name} ({side})": fields[name]
            for name in names
            for side, fields in (("model", recipe.model), ("restated", recipe.restated))
        },
    )


def _status(name: str) -> Obligation:
    @obligation(
        f"ort.gqa.absolute.{name}.status",
        f"{name}: the status is that of the first failing check, for any 64-bit input",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        recipe = compared(name)
        model, restated = recipe.model["status"], recipe.restated["status"]
        return Claim(equal_status(model, restated), shows={"model": model, "restated": restated})

    return statement


def equal_status(one: Term, two: Term) -> Bool:
    """Equality of two statuses of the same enum."""
    return cast("Enum", one) == cast("Enum", two)


def _region(name: str, region: str) -> Obligation:
    @obligation(
        f"ort.gqa.absolute.{name}.{region.replace('_', '-')}",
        f"{name}: offset and bytes of {region} equal their closed forms",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        return _agree(compared(name), [f"{region}_offset_bytes", f"{region}_bytes"])

    return statement


def _facts(name: str) -> Obligation:
    @obligation(
        f"ort.gqa.absolute.{name}.facts",
        f"{name}: total, counts and flags equal their closed forms",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        recipe = compared(name)
        covered = {f"{r}{end}" for r in _REGIONS[name] for end in ("_offset_bytes", "_bytes")}
        return _agree(recipe, [n for n in recipe.model if n not in covered and n != "status"])

    return statement


def _defaults(name: str) -> Obligation:
    @obligation(
        f"ort.gqa.absolute.{name}.defaults",
        f"{name}: on a failure every other field is its default",
        source=FUNCTION_SOURCES[name],
    )
    def statement() -> Claim:
        recipe = compared(name)
        fields = {name: term for name, term in recipe.model.items() if name != "status"}
        return Claim(
            {name: _is_default(name, term) for name, term in fields.items()},
            assuming={"status is not ok": ~recipe.ok},
        )

    return statement


def _is_default(name: str, term: Term) -> Bool:
    if isinstance(term, Bool):
        return ~term
    return cast("Int", term) == integer(_DEFAULTS.get(name, 0))


STATUSES = tuple(map(_status, _REGIONS))
REGIONS = tuple(_region(name, region) for name, regions in _REGIONS.items() for region in regions)
FACTS = tuple(map(_facts, _REGIONS))
DEFAULTS = tuple(map(_defaults, _REGIONS))


@obligation(
    "ort.gqa.absolute.flash.split-count",
    "flash: the split count is the heuristic's, in its float32 and double arithmetic",
    source=FUNCTION_SOURCES["flash"],
)
def flash_splits() -> Claim:
    """The restated heuristic, whatever the input."""
    inputs = symbols(FlashInput)
    model = flash.layout(inputs.problem, inputs.config).layout.selected_split_count
    restated = restated_flash.flash_splits(inputs)
    return Claim(model == restated, shows={"model": model, "restated": restated})


@obligation(
    "ort.gqa.absolute.flash-runtime",
    "flash_runtime: splits, buffers and support equal their closed forms",
    source=FUNCTION_SOURCES["flash_runtime"],
)
def flash_runtime_fields() -> Claim:
    """Every field of the run-time sizing; it has no failing status."""
    inputs = symbols(FlashRuntimeInput)
    shape = (inputs.batch_size, inputs.sequence_length, inputs.num_heads, inputs.head_size)
    return _same(
        outputs(flash_runtime.function()),
        restated_flash_runtime.flash_runtime(inputs),
        {"dimensions are positive": all_of(*(size >= 1 for size in shape))},
    )


@obligation(
    "ort.gqa.absolute.eligibility",
    "eligibility: each seq-free core is the conjunction that the facts state",
    source=FUNCTION_SOURCES["eligibility"],
)
def eligibility_fields() -> Claim:
    """Every core, for any facts."""
    facts = symbols(EligibilityFacts)
    return _same(outputs(eligibility.function()), restated_eligibility.eligibility(facts), {})


@obligation(
    "ort.gqa.absolute.classifier",
    "classifier: status, error, flags and lengths are those the facts state",
    source=FUNCTION_SOURCES["classifier"],
)
def classifier_fields() -> Claim:
    """Every field, for any lengths."""
    inputs = symbols(ClassifierInput)
    return _same(outputs(classifier.function()), restated_phases.classifier(inputs), {})


def _same(
    model: Mapping[str, Term], restated: Mapping[str, Term], assuming: Mapping[str, Bool]
) -> Claim:
    return Claim(
        {name: equal(term, restated[name]) for name, term in model.items()},
        assuming,
        shows={f"{n} (model)": t for n, t in model.items()}
        | {f"{n} (restated)": t for n, t in restated.items()},
    )
