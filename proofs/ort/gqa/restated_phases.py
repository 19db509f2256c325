"""Restates how a Run's phase is told from the CPU scalar T, the total sequence length.

Source: group_query_attention_helper.h, CheckInputs, ONNX Runtime,
onnxruntime/contrib_ops/cuda/bert/, revision f5689c80. Lengths are tokens. Where T lives on the GPU
nothing is checked and nothing is recognised.
"""

from __future__ import annotations

from routeproof.models.ort.gqa.problem import STATUS, ClassifierInput
from routeproof.proofs.ort.gqa.restated_common import Fields
from routeproof.spec.terms import Bool, EnumSort, all_of, ite, maximum

__all__ = [
    "CLASSIFIER_ERROR",
    "classifier",
    "classifier_errors",
    "is_decode",
    "is_first_prompt",
    "is_subsequent_prompt",
]

CLASSIFIER_ERROR = EnumSort(
    "classifier_error",
    (
        "none",
        "total_sequence_length_not_positive",
        "batch_size_must_be_1",
        "sequence_length_must_be_1",
    ),
)


def length_is_refused(inp: ClassifierInput) -> Bool:
    """T is on the CPU and not positive."""
    return inp.total_sequence_length_on_cpu & (inp.total_sequence_length < 1)


def batch_is_refused(inp: ClassifierInput) -> Bool:
    """Several query tokens that are not the whole sequence, and more than one row."""
    i = inp
    return all_of(
        i.total_sequence_length_on_cpu,
        i.total_sequence_length >= 1,
        i.sequence_length > 1,
        i.sequence_length != i.total_sequence_length,
        i.batch_size != 1,
    )


def query_is_refused(inp: ClassifierInput) -> Bool:
    """No query token."""
    i = inp
    return all_of(
        i.total_sequence_length_on_cpu, i.total_sequence_length >= 1, i.sequence_length < 1
    )


def classifier_errors(inp: ClassifierInput) -> dict[str, Bool]:
    """The condition of each error; no two hold together."""
    return {
        "total_sequence_length_not_positive": length_is_refused(inp),
        "batch_size_must_be_1": batch_is_refused(inp),
        "sequence_length_must_be_1": query_is_refused(inp),
    }


def is_first_prompt(inp: ClassifierInput) -> Bool:
    """The query is the whole sequence, be it a single token."""
    i = inp
    return all_of(
        i.total_sequence_length_on_cpu,
        i.total_sequence_length >= 1,
        i.sequence_length == i.total_sequence_length,
    )


def is_subsequent_prompt(inp: ClassifierInput) -> Bool:
    """Several tokens of a single row that are not the whole sequence; past is not looked at."""
    i = inp
    return all_of(
        i.total_sequence_length_on_cpu,
        i.total_sequence_length >= 1,
        i.sequence_length > 1,
        i.sequence_length != i.total_sequence_length,
        i.batch_size == 1,
    )


def is_decode(inp: ClassifierInput) -> Bool:
    """Accepted and no prompt: one token after others, or anything with T on the GPU."""
    i = inp
    one_more = (i.sequence_length == 1) & (i.total_sequence_length > 1)
    return ~i.total_sequence_length_on_cpu | one_more


def classifier(inp: ClassifierInput) -> Fields:
    """Every output field; on an error both flags are false and both lengths 0."""
    on_cpu, total = inp.total_sequence_length_on_cpu, inp.total_sequence_length
    past, wrong = inp.past_sequence_length, classifier_errors(inp)
    error = CLASSIFIER_ERROR["none"]
    for name, condition in wrong.items():
        error = ite(condition, CLASSIFIER_ERROR[name], error)
    fails = error != "none"
    return {
        "status": ite(fails, STATUS["invalid_argument"], STATUS["ok"]),
        "error": error,
        "is_first_prompt": is_first_prompt(inp),
        "is_subsequent_prompt": is_subsequent_prompt(inp),
        "total_sequence_length": ite(fails | ~on_cpu, 0, total),
        "present_kv_sequence_length": ite(fails, 0, ite(on_cpu, maximum(total, past), past)),
    }
