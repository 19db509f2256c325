"""`bound --plot`: the numbers that are drawn, then the file that they are drawn into."""

import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from routeproof.checkers.bounding.answer import answer
from routeproof.checkers.bounding.command import run_bound
from routeproof.checkers.bounding.counts import counts
from routeproof.checkers.bounding.plot import check_plot, write_plot
from routeproof.checkers.bounding.series import series, spans_decades
from routeproof.checkers.registry import load_question
from routeproof.models.ort.gqa.split import fills_device, selected_split_count
from routeproof.spec.errors import InputError
from routeproof.spec.interpret import evaluate
from routeproof.spec.terms import integer

NODE = {"num_heads": 4, "kv_num_heads": 2, "head_size": 64}
SMALL = {
    "node": NODE,
    "device": {"sm": "8.0", "sms": 11},
    "envelope": {"batch": [1, 2], "query": [1, 140], "total": [1, 600]},
    "ladder": "older",
}
WINDOWED = {
    **SMALL,
    "node": {**NODE, "window": 300, "windowed_cache": True},
    "envelope": {"query": [60, 500], "total": [50, 900], "allow_query_above_total": True},
}
CUDNN = {**SMALL, "device": {"sm": "9.0", "sms": 11}, "ladder": "newest"}
UNFUSED = {  # its recipe overflows where query and total are long
    **SMALL,
    "kernel_options": dict.fromkeys(("xqa", "flash", "memory_efficient"), "off"),
    "envelope": {"query": [1, 2**31 - 1], "total": [1, 2**31 - 1]},
}
TITLE = "4 heads, 2 KV heads, head size 64 on compute capability 8.0 (11 multiprocessors)"


def answered(document):
    """Return the answer to a document."""
    return answer(load_question(document))


@pytest.fixture(autouse=True)
def _few_lengths(monkeypatch):
    """Draw a dozen lengths at most, which is quick."""
    monkeypatch.setattr("routeproof.checkers.bounding.series._MOST", 8)
    monkeypatch.setattr("routeproof.checkers.bounding.series._MOST_JUMPS", 3)


@pytest.fixture(scope="module", name="small")
def small_answer():
    """Return the answer to a small envelope in which Flash splits, by both of its routes."""
    return answered(SMALL)


def alone(document, length):
    """Return the maxima by route of the document with that one query length, and the unfused."""
    found = answered({**document, "envelope": {**document["envelope"], "query": length}})
    sizes = {}
    for entry in found.entries:
        sizes.setdefault(entry.route, []).append(entry.exact_bytes)
    exact = {route: max(some) for route, some in sizes.items() if None not in some}
    return exact, found.unfused_bytes


def test_largest_points_are_the_answer(small):
    """The maximum of each curve is the answer's, also of the reference; so are the bounds."""
    found = series(small)
    assert {curve.route for curve in found.curves} == {"flash", "flash_fast_decode", "xqa"}
    for curve in found.curves:
        entries = [one for one in small.entries if one.route == curve.route]
        assert max(curve.maxima.values()) == curve.exact == max(e.exact_bytes for e in entries)
        assert curve.structural == max(e.structural_bytes for e in entries)
        assert len(curve.attained) == len(entries)
        assert all(size <= curve.maxima[length] for length, size in curve.attained)
    assert max(found.reference.maxima.values()) == found.reference.exact == small.unfused_bytes


@pytest.mark.parametrize("document", [SMALL, WINDOWED, CUDNN], ids=["small", "windowed", "cudnn"])
def test_each_point_is_the_answer_of_that_length(document):
    """A length alone, read as a question of its own, has the maxima that are drawn for it."""
    found = series(answered(document))
    drawn = sorted(found.reference.maxima)
    assert len(drawn) > 5
    for length in drawn:
        routes, unfused = alone(document, length)
        assert {
            curve.route: curve.maxima[length] for curve in found.curves if length in curve.maxima
        } == routes
        assert found.reference.maxima[length] == unfused


def test_a_length_whose_recipe_fails_has_no_point():
    """Beyond some length the bytes do not fit 64 bits: nothing is drawn there, nor called exact."""
    found = series(answered(UNFUSED))
    (curve,) = found.curves
    first, last = found.lengths
    assert curve.maxima[first] == alone(UNFUSED, first)[0]["unfused"]
    assert last not in curve.maxima
    assert alone(UNFUSED, last) == ({}, None)
    assert curve.exact is None


def test_a_long_range_is_sampled():
    """The ends, where maxima are attained, and both sides of the jumps are among the lengths."""
    envelope = {"query": [1, 5000], "total": [1, 6000]}
    found = series(answered({**SMALL, "envelope": envelope}))
    drawn = {*found.reference.maxima}
    assert found.lengths == (1, 5000)
    assert drawn >= {1, 64, 65, 5000}
    assert drawn >= {length for curve in found.curves for length, _ in curve.attained}
    assert len(drawn) < 20
    assert spans_decades(found.lengths)


def test_costly_lengths_are_left_out(monkeypatch, small):
    """Where a curve costs too many regimes, the answer's own lengths come first."""
    monkeypatch.setattr("routeproof.checkers.bounding.series._MOST_REGIMES", 1)
    curve = series(small).curves[0]
    assert len(curve.maxima) == 1
    assert {*curve.maxima} <= {length for length, _ in curve.attained}


def test_map_is_the_heuristic(small):
    """Every cell is what the interpreter finds, and the device is filled where it says so."""
    found = counts(small)
    assert found.work == tuple(range(1, 12))
    assert found.blocks == (1, 2, 3)  # 600 tokens, 256 each
    device = integer(11)
    for (row, column), count in np.ndenumerate(found.counts):
        work, blocks = integer(found.work[row]), integer(found.blocks[column])
        assert evaluate(selected_split_count(work, blocks, device), {}) == count
    filled = [evaluate(fills_device(integer(work), device), {}) for work in found.work]
    assert found.filled == found.work[filled.index(True)]


def test_states_lie_where_their_recipe_splits(small):
    """The states on the map are those of the Flash entries, with the count of the map."""
    found = counts(small)
    labels = {label for state in found.states for label in state.labels}
    assert labels == {
        f"{one.phase} by {one.route}" for one in small.entries if one.route.startswith("flash")
    }
    for state in found.states:
        if state.work <= found.work[-1]:
            assert found.counts[state.work - 1, state.blocks - 1] == state.count
    splits = {one.phase for one in small.entries if "flash.output_accumulator" in _names(one)}
    assert splits == {
        label.split()[0] for state in found.states if state.count > 1 for label in state.labels
    }


def _names(entry):
    return [one.name for one in entry.regions]


def test_a_wide_map_is_sampled():
    """Both ends are there, and no more than a picture can show."""
    envelope = {"query": 1, "total": [1, 2_000_000]}
    found = counts(answered({**SMALL, "envelope": envelope}))
    assert (found.blocks[0], found.blocks[-1]) == (1, -(-2_000_000 // 256))
    assert found.counts.shape == (11, 1024)


def test_svg_tells_what_it_shows(small, tmp_path):
    """Well-formed, equal for equal answers, with title, axes, routes and bounds as text."""
    paths = tmp_path / "one.svg", tmp_path / "two.svg"
    for path in paths:
        write_plot(path, small)
    one, two = (path.read_bytes() for path in paths)
    assert one == two
    text = " ".join(ET.fromstring(one).itertext())  # noqa: S314 - our own file
    for part in (
        f"{TITLE}: batch 1..2, query 1..140, total 1..600; older ladder, alias any",
        "query length (tokens), 8 of 1..140",
        "workspace (bytes)",
        "work items",
        "KV blocks",
        "xqa: ",
        "flash: ",
        "flash_fast_decode: ",
        "unfused on the same states: ",
        "structural bound of all routes: ",
        "device filled: 1 split from 9 work items on",
        "chunk by flash, ",
    ):
        assert part in text


def test_png_has_its_signature(small, tmp_path):
    """The ending decides the format."""
    write_plot(tmp_path / "one.png", small)
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(
    ("document", "part"),
    [
        (CUDNN, "cudnn: reachable, its recipe is not known"),
        (UNFUSED, "unfused: no exact maximum"),
        (UNFUSED, "No reachable route splits its KV length"),
    ],
)
def test_what_is_missing_is_said(document, part, tmp_path):
    """A route without a recipe, maxima that are not exact, no split: each has its words."""
    write_plot(tmp_path / "one.svg", answered(document))
    assert part in (tmp_path / "one.svg").read_text()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("one.jpg", "ends in .svg or .png"),
        ("one", "ends in .svg or .png"),
        ("none/one.svg", "there is no folder none"),
        ("folder.svg", "is a folder"),
    ],
)
def test_what_cannot_be_written_is_refused_first(path, message, tmp_path, monkeypatch):
    """The path is looked at before the document, which is empty here, and nothing is printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InputError, match=message):
        run_bound({}, "text", type(tmp_path)(path))


def test_without_matplotlib(monkeypatch, tmp_path):
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"needs matplotlib: pip install 'routeproof\[plot\]'"):
        check_plot(tmp_path / "one.svg")


def test_errors_alone_are_no_picture(tmp_path, capsys):
    """The answer is still printed."""
    document = {**SMALL, "alias": "one", "envelope": {"query": 5, "total": 9}}
    with pytest.raises(InputError, match="no Run of this envelope reaches a route"):
        run_bound(document, "csv", tmp_path / "one.svg")
    assert capsys.readouterr().out.startswith("phase,")
    assert not (tmp_path / "one.svg").exists()


def test_the_command_draws(tmp_path, capsys):
    """The picture comes beside the same answer, and changes no status."""
    statuses, printed = [], []
    for path in (None, tmp_path / "one.svg"):
        statuses.append(run_bound(SMALL, "json", path))
        printed.append(capsys.readouterr().out)
    assert statuses == [0, 0]
    assert printed[0] == printed[1]
    assert (tmp_path / "one.svg").exists()
