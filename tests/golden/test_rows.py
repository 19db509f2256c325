"""The models reproduce rows of the real code that `check` does not replay."""

import gzip
import json
from pathlib import Path

import pytest

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import function_names, load_function
from routeproof.models.catalogue import OWN

ROWS = Path(__file__).parent / "rows"
MODELLED = [name for name in function_names() if name not in OWN]
PACKAGED = Path(__file__).parents[2] / "proofs" / "ort" / "gqa" / "rows"


def _rows(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.mark.parametrize("name", MODELLED)
def test_every_row_is_reproduced_field_by_field(name):
    """Outputs equal the recorded ones as JSON: a 1 is not a true."""
    rows = _rows(ROWS / f"{name.removeprefix('ort.gqa.')}.jsonl.gz")
    evaluate = Evaluator(load_function(name))
    assert len(rows) >= 300
    for row in rows:
        want = {key: value for key, value in row.items() if key != "in"}
        assert json.dumps(evaluate(row, "row"), sort_keys=True) == json.dumps(want, sort_keys=True)


@pytest.mark.parametrize("name", MODELLED)
def test_packaged_rows_are_other_rows(name):
    """The rows shipped for `check` and the rows kept for the tests do not overlap."""
    stem = name.removeprefix("ort.gqa.")
    here, there = (
        {json.dumps(row, sort_keys=True) for row in _rows(folder / f"{stem}.jsonl.gz")}
        for folder in (ROWS, PACKAGED)
    )
    assert here
    assert there
    assert not here & there
