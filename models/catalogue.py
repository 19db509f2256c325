"""Names of everything modelled, each with the module that defines it, imported only when asked."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FUNCTIONS", "LADDERS", "OWN", "QUESTIONS"]

_GQA = "routeproof.models.ort.gqa"
_GENAI = "routeproof.models.genai"

# Each module has `function()`, which builds the `Function` of that name.
FUNCTIONS: Mapping[str, str] = {
    "ort.gqa.preparation": f"{_GQA}.preparation",
    "ort.gqa.xqa": f"{_GQA}.xqa",
    "ort.gqa.flash": f"{_GQA}.flash",
    "ort.gqa.mea": f"{_GQA}.memory_efficient",
    "ort.gqa.unfused": f"{_GQA}.unfused",
    "ort.gqa.complete": f"{_GQA}.complete",
    "ort.gqa.bounds": f"{_GQA}.bounds",
    "ort.gqa.eligibility": f"{_GQA}.eligibility",
    "ort.gqa.ladder": f"{_GQA}.ladder",
    "ort.gqa.classifier": f"{_GQA}.classifier",
    "ort.gqa.flash_runtime": f"{_GQA}.flash_runtime",
    "ort.gqa.flash_accumulators": f"{_GQA}.accumulators",
    "ort.gqa.closed_bounds": f"{_GQA}.closed_bounds",
    "genai.std_attention.layout": f"{_GENAI}.std_attention",
    "genai.std_attention.requirement": f"{_GENAI}.std_requirement",
    "genai.index_share.layout": f"{_GENAI}.index_share",
    "genai.index_share.requirement": f"{_GENAI}.index_share_requirement",
    "genai.gqa.layout": f"{_GENAI}.gqa",
    "genai.gqa.requirement": f"{_GENAI}.gqa_requirement",
    "genai.phase2a.layout": f"{_GENAI}.phase2a",
    "genai.matmul_nbits": f"{_GENAI}.matmul_nbits",
}

# Formulas of this project: no real code computes them, so that there are no recorded rows.
OWN = frozenset({"ort.gqa.flash_accumulators", "ort.gqa.closed_bounds"})

# Each module has `ladders()`, which builds the `Ladder` of every revision.
LADDERS: Mapping[str, str] = {"ort.gqa": f"{_GQA}.ladder"}

# Each module has `question(document)`, which reads what `bound` is asked.
QUESTIONS: Mapping[str, str] = {"ort.gqa": f"{_GQA}.question"}
