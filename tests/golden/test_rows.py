"""The models reproduce rows of the real code that `check` does not replay."""

import gzip
import json
from pathlib import Path

import pytest

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import function_names, load_function
from routeproof.models.catalogue import OWN

ROWS = Path(__file__).parent / "rows"
PROOFS = Path(__file__).parents[2] / "proofs"
MODELLED = [name for name in function_names() if name not in OWN]


def stem(name):
    """Return a function's name as its rows have it."""
    return name.removeprefix("ort.gqa.")


def packaged(name):
    """Return the file of rows that `check` replays."""
    folder = PROOFS / ("genai" if name.startswith("genai.") else "ort/gqa") / "rows"
    return folder / f"{stem(name).removeprefix('genai.')}.jsonl.gz"


def _rows(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.mark.parametrize("name", MODELLED)
def test_every_row_is_reproduced_field_by_field(name):
    """Outputs equal the recorded ones as JSON: a 1 is not a true."""
    rows = _rows(ROWS / f"{stem(name)}.jsonl.gz")
    evaluate = Evaluator(load_function(name))
    assert len(rows) >= 300
    for row in rows:
        want = {key: value for key, value in row.items() if key != "in"}
        assert json.dumps(evaluate(row, "row"), sort_keys=True) == json.dumps(want, sort_keys=True)


@pytest.mark.parametrize("name", MODELLED)
def test_packaged_rows_are_other_rows(name):
    """The rows shipped for `check` and the rows kept for the tests do not overlap."""
    here, there = (
        {json.dumps(row, sort_keys=True) for row in _rows(path)}
        for path in (ROWS / f"{stem(name)}.jsonl.gz", packaged(name))
    )
    assert here
    assert there
    assert not here & there
