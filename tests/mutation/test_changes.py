"""The list of changes fits the model, no change is equivalent, and obligations catch some quickly.

That `check` catches every one takes an hour: see `run.py` and docs/mutation.md.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from mutation.changes import CHANGES, Change
from mutation.results import caught
from mutation.stages import CONFORMS, kind_of, stages
from mutation.states import at
from mutation.tree import (
    ROOT,
    MutationError,
    apply,
    changed,
    check,
    differences,
    evaluate,
    original,
)

from routeproof.checkers.registry import load_obligations, select_obligations

_QUICK = {
    "unfused-scores-width": "ort.gqa.absolute.unfused.qk",
    "classifier-prompt-on-gpu": "ort.gqa.phase.gpu-total-is-never-a-prompt",
    "ladder-cudnn-before-xqa": "ort.gqa.ladder.newest.xqa",
    # A bound that only grows keeps every promise of its own.
    "bounds-fast-decode-window": "ort.gqa.bound.tight.flash-fast-decode.chunk.local-window",
    "bounds-persistent-bytes": "ort.gqa.bound.restated.persistent",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with nothing changed."""
    return original(tmp_path_factory.mktemp("mutation") / "tree")


@pytest.fixture(scope="module")
def before(tree: Path) -> dict[str, object]:
    """Return what the original says on the state of each change."""
    outputs = evaluate(tree, [change.state for change in CHANGES])
    return {change.name: output for change, output in zip(CHANGES, outputs, strict=True)}


def named(name: str) -> Change:
    """Return the change of that name."""
    return next(change for change in CHANGES if change.name == name)


def test_names_are_unique():
    """A result is kept under the name of its change."""
    assert max(Counter(change.name for change in CHANGES).values()) == 1


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_not_equivalent(change, tree, before):
    """The old text occurs once, and the state tells the changed model from the original."""
    with changed(tree, change) as copy:
        (after,) = evaluate(copy, [change.state])
    assert differences(before[change.name], after)


@pytest.mark.parametrize(("name", "obligation"), _QUICK.items(), ids=list(_QUICK))
def test_caught(name, obligation, tree):
    """`check` exits with 1 on the changed model, for the one obligation, and with 0 before."""
    assert check(tree, [obligation])["summary"]["exit_status"] == 0
    with changed(tree, named(name)) as copy:
        found = caught(name, [check(copy, [obligation])], (), 0.0)
    assert found.exit_status == 1
    assert found.surprises == {obligation.split(".")[2]: [obligation]}


def test_the_stages_are_all_obligations_about_the_model():
    """Nothing is left out for good, and the rows of the real code come last."""
    known = load_obligations()
    expected = {name for name in known if name.startswith("ort.gqa.")}
    for change in CHANGES:
        near, others, rows = stages(change)
        asked = [
            {one.id for one in select_obligations(known, patterns)}
            for patterns in (near, others, rows)
        ]
        assert asked[0]
        assert asked[1] | asked[2] == expected
        assert not {name for name in asked[0] | asked[1] if kind_of(name) == CONFORMS}


def test_old_text_has_to_occur_once():
    """A change that no longer fits the model, or fits it twice, is an error that says so."""
    change = named("split-ceiling")
    for text, times in (("", 0), (f"{change.old}\n{change.old}", 2)):
        with pytest.raises(MutationError, match=f"split-ceiling: .* occurs {times} times in split"):
            apply(change, text)


def test_states_name_fields_that_exist():
    """A state moved in a field that its function does not have is an error."""
    with pytest.raises(KeyError, match=r"ort\.gqa\.xqa has no field 'heads'"):
        at("xqa", heads=1)


def test_the_page_is_about_the_listed_changes():
    """docs/mutation.md was written from this list, and most of it has been run."""
    page = (ROOT / "docs/mutation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \(", page, re.MULTILINE)
    assert set(rows) <= {change.name for change in CHANGES}
    assert len(rows) == len(set(rows))
    assert len(rows) > len(CHANGES) / 2
