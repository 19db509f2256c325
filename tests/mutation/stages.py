"""In which order the obligations are asked about a change: those near it, all others, the rows.

A surprise in a part is a surprise of the whole, so the first stage that has one is the last to run.
The rules of the calculus are left out: they do not speak of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from routeproof.checkers.registry import load_obligations

from .changes import Change

__all__ = ["CONFORMS", "kind_of", "stages"]

CONFORMS = "conforms"

_MODEL = "ort.gqa."
_BOUND = ("ort.gqa.bound.restated.*", "ort.gqa.bound.tight.*", "ort.gqa.split.*")
_GUARDS = ("ort.gqa.ladder.*", "ort.gqa.absolute.eligibility")
_NEAR = {
    "bounds.py": _BOUND,
    "split.py": _BOUND,
    "capabilities.py": (*_BOUND, *_GUARDS),
    "classifier.py": ("ort.gqa.phase.*", "ort.gqa.absolute.classifier"),
    "eligibility.py": _GUARDS,
    "guard.py": _GUARDS,
    "ladder.py": _GUARDS,
}


def kind_of(obligation: str) -> str:
    """The kind of an obligation, which its id names third: `ort.gqa.layout.xqa.inside`."""
    return obligation.split(".")[2]


def stages(change: Change) -> tuple[Sequence[str], ...]:
    """The patterns of each stage; a recipe's own obligations are near a change of it."""
    recipe = change.state.function.removeprefix(_MODEL).replace("_", "-")
    near = _NEAR.get(change.file, (f"ort.gqa.absolute.{recipe}*",))
    kinds = dict.fromkeys(kind_of(one) for one in load_obligations() if one.startswith(_MODEL))
    others = tuple(f"{_MODEL}{one}.*" for one in kinds if one != CONFORMS)
    return near, others, (f"{_MODEL}{CONFORMS}.*",)
