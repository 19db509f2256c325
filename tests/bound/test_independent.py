"""The brute force replays the rows of the real code, and known figures, before it judges others."""

import ast
import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bound import independent
from bound.independent import (
    OK,
    PHASES,
    REVISIONS,
    ROUTES,
    STATUSES,
    Bounds,
    Device,
    Envelope,
    Facts,
    Launch,
    Maximum,
    Node,
    Options,
    Problem,
    State,
    aggregate,
    blocks,
    brute,
    classify,
    complete,
    ladder,
    random_case,
    split_count,
    unfused_over,
)

ROWS = Path(__file__).parents[1] / "golden" / "rows"
DEVICE = Device(major=8, minor=6, sms=82)

# Query heads, KV heads, declared root, prefill consumed, decode consumed (bytes).
FIGURES = {
    "1.5B": (12, 2, 123_273_472, 3_195_136, 56_064),
    "7B": (28, 4, 287_441_152, 7_454_976, 130_304),
}


def _rows(name):
    rows = [
        json.loads(line)
        for line in gzip.decompress((ROWS / f"{name}.jsonl.gz").read_bytes()).splitlines()
    ]
    assert len(rows) >= 300
    return rows


def _lane(value):
    """One lane of exact integers."""
    return np.array([value], object)


def _problem(row):
    lanes = {
        "batch_size": _lane(row["batch_size"]),
        "sequence_length": _lane(row["sequence_length"]),
        "is_first_prompt": np.array([row["is_first_prompt"]]),
    }
    return Problem(**(row | lanes))


def _launch(row):
    """The row has a part for each backend: XQA reads its own, Flash and unfused theirs."""
    part = row["xqa" if row["backend"] == "xqa" else "flash"]
    total = row["unfused" if row["backend"] == "unfused" else "flash"]["total_sequence_length"]
    return Launch(
        backend=row["backend"],
        preprocess_mode=row["preparation"]["preprocess_mode"],
        preparation_fast_decode=row["preparation"]["use_flash_attention_fast_decode"],
        fast_decode=row["flash"]["fast_decode"],
        total_sequence_length=_lane(total),
        local_window_size=row["flash"]["local_window_size"],
        multi_processor_count=part["multi_processor_count"],
        device_major=row["xqa"]["device_major"],
        device_minor=row["xqa"]["device_minor"],
        kv_type=row["xqa"]["kv_type"],
        head_sink_storage=row["xqa"]["head_sink_storage"],
    )


def test_recipes_reproduce_every_complete_row():
    """Status and total bytes, whether the route can be sized or not."""
    for row in _rows("complete"):
        sized = complete(_problem(row["in"]["problem"]), _launch(row["in"]["route"]))
        want = row["out"]["status"], row["out"]["total_workspace_bytes"]
        assert (STATUSES[sized.status[0]], sized.bytes[0]) == want


def test_ladder_reproduces_every_row_of_both_revisions():
    """The route, an error being one."""
    lanes = ("is_first_prompt", "sequence_length", "kv_sequence_length")
    for row in _rows("ladder"):
        facts = Facts(**(row["in"] | {name: np.array([row["in"][name]]) for name in lanes}))
        for revision, out in zip(REVISIONS, ("out", "out_newest"), strict=True):
            route = ROUTES[ladder(facts, revision)[0]]
            assert route.replace("errors", "error") == row[out]["route"]


def test_aggregate_reproduces_every_bounds_row():
    """All five outputs, whether everything can be sized or not."""
    for row in _rows("bounds"):
        bounds = row["in"]["bounds"]
        got = aggregate(Bounds(**bounds | {"reachable_backends": (*bounds["reachable_backends"],)}))
        assert {
            "status": STATUSES[got.status],
            "total_workspace_bytes": got.total_workspace_bytes,
            "persistent_prepack_bytes": got.persistent_prepack_bytes,
            "initialization_scratch_bytes": got.initialization_scratch_bytes,
            "sized_backends": [route for route in ROUTES if route in got.sized_backends],
        } == row["out"]


def test_classifier_reproduces_every_row_with_positive_lengths():
    """Phases by a total length on the CPU; the only error left is a chunk of several batches."""
    seen = Counter()
    for row in _rows("classifier"):
        given, want = row["in"], row["out"]
        names = ("batch_size", "sequence_length", "total_sequence_length")
        lengths = [given[name] for name in names]
        if not given["total_sequence_length_on_cpu"] or min(lengths) < 1:
            continue
        phase, accepted = (axis[0] for axis in classify(*np.array([lengths]).T))
        assert accepted == (want["status"] == "ok")
        if accepted:
            flags = want["is_first_prompt"], want["is_subsequent_prompt"]
            assert flags == (PHASES[phase] == "prefill", PHASES[phase] == "chunk")
        else:
            assert want["error"] == "batch_size_must_be_1"
        seen[PHASES[phase], bool(accepted)] += 1
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("work", "blocks_", "sms", "splits"),
    [
        (3, 97, 68, 20),  # not 17: the 0.85 is a double
        (1, 97, 24, 20),  # not 17: the efficiencies are float32 (24,577 tokens, D <= 64)
        (2, 54, 108, 54),
        (2, 55, 108, 28),
        (66, 9, 82, 1),
        (65, 1, 82, 1),
    ],
)
def test_split_heuristic_of_known_triples(work, blocks_, sms, splits):
    """The examples of the public text, and both reasons not to split."""
    assert split_count(work, blocks_, sms) == splits


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("model", FIGURES)
def test_published_figures(model, revision):
    """Qwen2.5, prompt 1,024, capacity 1,152: what the graph declares and what the run consumes."""
    heads, kv_heads, root, prefill, decode = FIGURES[model]
    node = Node(num_heads=heads, kv_num_heads=kv_heads, head_size=128, do_rotary=True)
    shape = Envelope(batch=(1, 1), query=(1024, 1024), total=(1152, 1152), past_capacity=1152)
    declared = unfused_over(node, shape, "chunk", "one")
    assert declared is not None
    assert declared.bytes == root
    lengths = Envelope(batch=(1, 1), query=(1024, 1024), total=(1024, 1024), past_capacity=1152)
    prompt = brute(node, DEVICE, Options(), lengths, revision)
    assert prompt["prefill", "flash", "both"].bytes == prefill
    lengths = Envelope(batch=(1, 1), query=(1, 1), total=(1, 1152), past_capacity=1152)
    token = brute(node, DEVICE, Options(), lengths, revision)
    assert token["decode", "flash_fast_decode", "both"].bytes == decode


def test_sizes_by_hand():
    """XQA and MEA, which no published figure covers: N = 8, Nk = 2, capacity 1,152."""
    lengths = Envelope(batch=(1, 1), query=(1, 1024), total=(1024, 1024), past_capacity=1152)
    node = Node(num_heads=8, kv_num_heads=2, head_size=128)
    decode = brute(node, DEVICE, Options(), lengths, "newest")["decode", "xqa", "both"]
    # 2 sequences, 5 sub-sequences each; behind 256 bytes of preparation: semaphores, 10 rows of
    # maxima and sums up to the next multiple of a 2,048-byte vector, 10 vectors.
    assert decode.bytes == 256 + 128 + 2 * 2048 + 10 * 2048
    assert decode.state == State(1, 1, 1024, True, True, True, False, False)
    node = Node(num_heads=8, kv_num_heads=2, head_size=256)
    options = Options(disable_flash=True)
    key = ("prefill", "memory_efficient", "none")
    prefill = brute(node, DEVICE, options, lengths, "newest")[key]
    # Expanded K and V over the capacity, a float32 output over the query.
    assert prefill.bytes == 256 + 2 * (2 * 8 * 1152 * 256) + 4 * 1024 * 8 * 256


def test_a_preserved_past_is_only_of_one_aliased_pair():
    """The newest ladder keeps one past tensor of Nk heads; the older refuses such runs."""
    node = Node(num_heads=8, kv_num_heads=2, head_size=128)
    lengths = Envelope(batch=(1, 1), query=(8, 8), total=(64, 64), past_capacity=64)
    newest = brute(node, DEVICE, Options(), lengths, "newest")
    one, none = (newest["chunk", "flash", alias].bytes for alias in ("one", "none"))
    assert one == none + 2 * 64 * 2 * 128
    older = brute(node, DEVICE, Options(), lengths, "older")
    assert ("chunk", "errors", "one") in older
    assert ("chunk", "flash", "one") not in older


def test_a_chunk_of_several_batches_is_an_error():
    """It reaches no route and counts for no declared size."""
    lengths = Envelope(batch=(2, 3), query=(2, 2), total=(5, 5), past_capacity=5)
    found = brute(Node(), DEVICE, Options(), lengths, "newest")
    assert set(found) == {("chunk", "errors", alias) for alias in ("none", "one", "both")}
    assert {maximum.bytes for maximum in found.values()} == {None}
    assert unfused_over(Node(), lengths, "chunk", "none") is None


def test_a_state_that_fails_leaves_no_maximum():
    """A preserved past without a capacity cannot be sized; the other alias states can."""
    lengths = Envelope(batch=(1, 1), query=(1, 4), total=(9, 9), past_capacity=0)
    found = brute(Node(), DEVICE, Options(), lengths, "newest")
    failing = found["chunk", "flash", "one"]
    assert failing == Maximum(None, failing.state, failing.state)
    assert found["chunk", "flash", "none"].bytes is not None
    declared = unfused_over(Node(), lengths, "chunk", "one")
    assert declared is not None
    assert declared.bytes is None
    assert declared.failing_state is not None


@pytest.mark.parametrize("lanes", [1, 2, 100])
def test_one_failing_state_is_enough(monkeypatch, lanes):
    """XQA's grid has 65,535 rows: the batches beyond it fail, in whichever block they are."""
    monkeypatch.setattr(independent, "BLOCK_LANES", lanes)
    lengths = Envelope(batch=(65_533, 65_537), query=(1, 1), total=(9, 9), past_capacity=9)
    node = Node(num_heads=8, kv_num_heads=2, head_size=128)
    xqa = brute(node, DEVICE, Options(), lengths, "newest")["decode", "xqa", "both"]
    assert xqa.bytes is None
    assert xqa.failing_state is not None
    assert xqa.failing_state.batch == 65_536


def _state_by_state(case, revision):
    """The maxima of `brute`, one state after the other in exact integers."""
    node, device, options, envelope = case
    best, failing = {}, set()
    for block in blocks(envelope):
        for axes in zip(*block, strict=True):
            one = type(block)(*(_lane(int(axis)) for axis in axes[:3]), *(np.array([axes[3]]),) * 2)
            for run in independent.RUNS:
                facts = independent._facts(node, device, options, one, run)  # noqa: SLF001
                route = ladder(facts, revision)[0]
                name = ROUTES[route] if axes[4] else "errors"
                key = PHASES[axes[3]], name, run.alias
                best.setdefault(key, None)
                if name in {"cudnn", "errors"}:
                    continue
                problem = independent._problem(  # noqa: SLF001
                    node, envelope, one, one_aliased=run.alias == "one"
                )
                launch = independent._launch(node, device, route, one.total)  # noqa: SLF001
                sized = complete(problem, launch)
                if sized.status[0] != OK:
                    failing.add(key)
                best[key] = max(best[key] or 0, int(sized.bytes[0]))
    return {key: None if key in failing else most for key, most in best.items()}


@pytest.mark.parametrize("revision", REVISIONS)
def test_lanes_do_not_mix(revision):
    """Many states at once give what each gives alone, of Python's integers."""
    rng = np.random.default_rng(3)
    compared = 0
    for _ in range(100):
        case = random_case(rng)
        if sum(len(block.batch) for block in blocks(case.envelope)) <= 60:
            found = brute(*case, revision)
            alone = _state_by_state(case, revision)
            assert {key: maximum.bytes for key, maximum in found.items()} == alone
            compared += 1
    assert compared >= 3


def test_blocks_do_not_matter(monkeypatch):
    """An envelope larger than one block has the same maxima, and the same reachable keys."""
    rng = np.random.default_rng(4)
    cases = [random_case(rng) for _ in range(10)]

    def maxima():
        return [
            {key: (each.bytes, each.failing_state is None) for key, each in found.items()}
            for case in cases
            for found in [brute(*case, "newest")]
        ]

    whole = maxima()
    monkeypatch.setattr(independent, "BLOCK_LANES", 97)
    assert maxima() == whole


def test_witnesses_attain_their_maxima():
    """Each state, as an envelope of its own with the same capacity, has the bytes claimed of it."""
    rng = np.random.default_rng(5)
    seen = Counter()
    for _ in range(30):
        case = random_case(rng)
        node, envelope = case.node, case.envelope
        # The longest total may set the capacity, which an envelope of one state would lose.
        capacity = max(envelope.past_capacity, envelope.total[1])
        if envelope.past_capacity != capacity and not node.is_windowed_kv_cache:
            continue
        for (phase, route, alias), maximum in brute(*case, "newest").items():
            state = maximum.state
            alone = Envelope(
                batch=(state.batch,) * 2,
                query=(state.query,) * 2,
                total=(state.total,) * 2,
                past_capacity=envelope.past_capacity,
                allow_query_above_total=True,
            )
            again = brute(node, case.device, case.options, alone, "newest")[phase, route, alias]
            assert again.bytes == maximum.bytes
            seen[route] += 1
    assert len(seen) >= 5


@pytest.mark.parametrize("revision", REVISIONS)
def test_random_cases_reach_every_route_and_failure(revision):
    """Enough of each for a property test of a few hundred cases to mean something."""
    rng = np.random.default_rng(1)
    sized, failing = Counter(), Counter()
    cases = 300
    states = 0
    for _ in range(cases):
        case = random_case(rng)
        states += sum(len(block.batch) for block in blocks(case.envelope))
        found = brute(*case, revision)
        sized.update({route for (_, route, _), each in found.items() if not each.failing_state})
        failing.update({route for (_, route, _), each in found.items() if each.failing_state})
    assert 1000 <= states / cases <= 6000
    assert min(sized[route] for route in ROUTES) >= 12, sized
    fails = {"older": "flash_fast_decode", "newest": "flash"}[revision]
    assert min(failing[route] for route in ("xqa", "memory_efficient", fails)) >= 1, failing
    assert sum(failing.values()) >= 15, failing


def test_sizes_that_could_wrap_are_refused():
    """NumPy's int64 would wrap without a word."""
    lengths = Envelope(batch=(1, 2**20), query=(1, 2**20), total=(1, 2**20), past_capacity=1)
    with pytest.raises(ValueError, match="too large"):
        brute(Node(), DEVICE, Options(), lengths, "newest")
    with pytest.raises(ValueError, match="too large"):
        unfused_over(Node(), lengths, "chunk", "none")


def test_it_shares_no_code():
    """Only the standard library and NumPy are imported."""
    tree = ast.parse(Path(independent.__file__).read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    assert names <= {"numpy"} | set(sys.stdlib_module_names)
