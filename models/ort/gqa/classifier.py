"""How the runtime tells first prompt, subsequent prompt (chunk) and decode apart.

Source: `CheckInputs` in `onnxruntime/contrib_ops/cpu/bert/group_query_attention_helper.h`
(f5689c80). It reads the total length only where that scalar lives on the CPU; elsewhere no Run is
a prompt of either kind, and nothing is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from routeproof.spec.function import Function, Source
from routeproof.spec.phase import Phases
from routeproof.spec.recipe import Checks
from routeproof.spec.records import Record, select, symbols
from routeproof.spec.terms import FALSE, Bool, Enum, EnumSort, Int, all_of, ite, maximum

from .problem import STATUS, ClassifierInput
from .sizing import ZERO

__all__ = ["CLASSIFIER_ERROR", "ClassifierOutput", "classify", "function", "phases"]

CLASSIFIER_ERROR = EnumSort(
    "classifier_error",
    (
        "none",
        "total_sequence_length_not_positive",
        "batch_size_must_be_1",
        "sequence_length_must_be_1",
    ),
)


@dataclass(frozen=True, slots=True)
class ClassifierOutput(Record):
    """Output of `ort.gqa.classifier`; lengths are in tokens."""

    status: Enum
    error: Annotated[Enum, CLASSIFIER_ERROR]
    is_first_prompt: Bool = FALSE
    is_subsequent_prompt: Bool = FALSE
    total_sequence_length: Int = ZERO
    present_kv_sequence_length: Int = ZERO


def phases(run: ClassifierInput) -> Phases:
    """The phase a Run is classified as, where no check fails."""
    on_cpu, sequence = run.total_sequence_length_on_cpu, run.sequence_length
    whole = sequence == run.total_sequence_length
    first = all_of(on_cpu, whole)
    subsequent = all_of(on_cpu, ~whole, sequence > 1)
    decode = all_of(~first, ~subsequent)
    return Phases({"first_prompt": first, "subsequent_prompt": subsequent, "decode": decode})


def _errors(run: ClassifierInput, phase: Phases) -> Checks:
    """What is rejected, in order; a chunk needs batch 1 whether or not there is a past."""
    on_cpu = run.total_sequence_length_on_cpu
    one_token = run.sequence_length == 1
    checks = Checks(CLASSIFIER_ERROR)
    checks.require(run.total_sequence_length > 0, "total_sequence_length_not_positive", when=on_cpu)
    checks.require(
        run.batch_size == 1, "batch_size_must_be_1", when=phase.conditions["subsequent_prompt"]
    )
    checks.require(one_token, "sequence_length_must_be_1", when=on_cpu & phase.conditions["decode"])
    return checks


def classify(run: ClassifierInput) -> ClassifierOutput:
    """The flags and lengths (tokens), or the error."""
    phase = phases(run)
    errors = _errors(run, phase)
    total, past = run.total_sequence_length, run.past_sequence_length
    on_cpu = run.total_sequence_length_on_cpu
    status = ite(errors.ok, STATUS["ok"], STATUS["invalid_argument"])
    accepted = ClassifierOutput(
        status,
        errors.status,
        is_first_prompt=phase.conditions["first_prompt"],
        is_subsequent_prompt=phase.conditions["subsequent_prompt"],
        total_sequence_length=ite(on_cpu, total, 0),
        present_kv_sequence_length=ite(on_cpu, maximum(total, past), past),
    )
    return select(errors.ok, accepted, ClassifierOutput(status, errors.status))


def function() -> Function:
    """`ort.gqa.classifier`."""
    inputs = symbols(ClassifierInput)
    return Function(
        "ort.gqa.classifier",
        "Prompt, chunk or decode, as the runtime sees it",
        Source(
            "onnxruntime/contrib_ops/cpu/bert/group_query_attention_helper.h",
            "CheckInputs",
            "f5689c80",
        ),
        inputs,
        {"out": classify(inputs)},
    )
