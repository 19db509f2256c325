"""How the runtime classifies a Run: a partition, also where it is not what it means.

Where the total length lives on the GPU the classification is skipped: first prompts look like
decode or chunk.
"""

from __future__ import annotations

from routeproof.models.ort.gqa import classifier
from routeproof.models.ort.gqa.problem import ClassifierInput
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.records import symbols
from routeproof.spec.terms import all_of, implies

from .restated_phases import is_decode, is_first_prompt, is_subsequent_prompt
from .sources import FUNCTION_SOURCES

_SOURCE = FUNCTION_SOURCES["classifier"]
_RUN = symbols(ClassifierInput)
_OUT = classifier.classify(_RUN)
_ACCEPTED = {"the classifier accepts the Run": _OUT.status == "ok"}
_ON_GPU = {"the total length lives on the GPU": ~_RUN.total_sequence_length_on_cpu}


@obligation("ort.gqa.phase.total", "every Run is in some phase", source=_SOURCE)
def total() -> Claim:
    """By the classifier's own conditions."""
    return Claim(classifier.phases(_RUN).total)


@obligation("ort.gqa.phase.disjoint", "no Run is in two phases", source=_SOURCE)
def disjoint() -> Claim:
    """By the classifier's own conditions."""
    return Claim(classifier.phases(_RUN).disjoint)


@obligation(
    "ort.gqa.phase.restated", "an accepted Run is in the phase that the facts state", source=_SOURCE
)
def restated() -> Claim:
    """Flags against the independent statement; decode is neither flag."""
    first, subsequent = _OUT.is_first_prompt, _OUT.is_subsequent_prompt
    return Claim(
        {
            "first prompt": first == is_first_prompt(_RUN),
            "subsequent prompt": subsequent == is_subsequent_prompt(_RUN),
            "decode": all_of(~first, ~subsequent) == is_decode(_RUN),
        },
        assuming=_ACCEPTED,
        shows={"classified": _OUT},
    )


@obligation(
    "ort.gqa.phase.gpu-total-is-never-a-prompt",
    "with the total length on the GPU no Run is a prompt, and nothing is rejected",
    source=_SOURCE,
)
def gpu_total() -> Claim:
    """Whatever the lengths and the batch."""
    return Claim(
        {
            "accepted": _OUT.status == "ok",
            "no prompt": all_of(~_OUT.is_first_prompt, ~_OUT.is_subsequent_prompt),
            "no total length": _OUT.total_sequence_length == 0,
            "present is past": _OUT.present_kv_sequence_length == _RUN.past_sequence_length,
        },
        assuming=_ON_GPU,
        shows={"classified": _OUT},
    )


@obligation(
    "ort.gqa.phase.first-prompt-is-seen",
    "a Run without past whose query is the whole sequence is classified as first prompt",
    source=_SOURCE,
    expect="refuted",
    note="True on the CPU only: on the GPU a first prompt is dispatched as decode or chunk.",
)
def first_prompt_is_seen() -> Claim:
    """The twin of the two GPU cases: the location of the total length is left open."""
    return Claim(
        _OUT.is_first_prompt,
        assuming={
            **_ACCEPTED,
            "the query is the whole sequence": _RUN.sequence_length == _RUN.total_sequence_length,
            "no past": ~_RUN.has_past & (_RUN.past_sequence_length == 0),
            "at least one token": _RUN.sequence_length >= 1,
            "at least one row": _RUN.batch_size >= 1,
        },
        shows={"classified": _OUT},
    )


@obligation(
    "ort.gqa.phase.chunk-needs-batch-one",
    "an accepted chunk has batch 1 where the total length is on the CPU",
    source=_SOURCE,
)
def chunk_needs_batch_one() -> Claim:
    """Several tokens that are not the whole sequence."""
    chunk = all_of(_RUN.sequence_length > 1, _RUN.sequence_length != _RUN.total_sequence_length)
    return Claim(
        implies(chunk, _RUN.batch_size == 1),
        assuming={**_ACCEPTED, "total length on the CPU": _RUN.total_sequence_length_on_cpu},
        shows={"classified": _OUT},
    )


@obligation(
    "ort.gqa.phase.chunk-needs-batch-one.anywhere",
    "an accepted chunk has batch 1, wherever the total length lives",
    source=_SOURCE,
    expect="refuted",
    note="The batch check is skipped together with the classification.",
)
def chunk_needs_batch_one_anywhere() -> Claim:
    """The twin without the location."""
    chunk = all_of(_RUN.sequence_length > 1, _RUN.sequence_length != _RUN.total_sequence_length)
    return Claim(
        implies(chunk, _RUN.batch_size == 1),
        assuming={**_ACCEPTED, "at least one row": _RUN.batch_size >= 1},
        shows={"classified": _OUT},
    )
