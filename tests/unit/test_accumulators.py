"""The closed form for Flash's accumulators: its table recomputed, its statuses, what it bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import load_function
from routeproof.models.ort.gqa.split_work import MOST_MULTIPROCESSORS, SPLIT_WORK, split_work_of
from routeproof.spec.interpret import evaluate
from routeproof.spec.terms import integer

CLOSED = Evaluator(load_function("ort.gqa.flash_accumulators"))
FLASH = Evaluator(load_function("ort.gqa.flash"))
BOUNDS = {
    "batch_size_bound": 2,
    "sequence_length_bound": 100,
    "num_heads": 6,
    "kv_num_heads": 3,
    "head_size_bound": 72,
    "kv_length_bound": 1024,
    "multi_processor_count": 82,
    "local_window_size": -1,
    "fast_decode": False,
    "split_work": 495,
}
DEFAULTS = {
    "rows": 0,
    "softmax_lse_accumulator_bytes": 0,
    "output_accumulator_bytes": 0,
    "total_bytes": 0,
}


def split_work(device):
    """Return the split work of a device, from the description of the heuristic and not the model.

    Efficiencies are float32, 0.8 is a float32, 0.85 a double; every count of work items below 0.8
    of the device, every count of KV blocks up to where all candidates are eligible.
    """
    candidates = np.arange(1, min(128, device) + 1)
    blocks = np.arange(1, (len(candidates) - 1) ** 2 + 2)[:, None]
    fewer = np.maximum(candidates - 1, 1)
    eligible = (candidates == 1) | (-(-blocks // candidates) != -(-blocks // fewer))
    eligible &= candidates <= blocks
    eligible = np.unique(eligible, axis=0)
    most = 0
    for work in range(1, device + 1):
        if np.float32(work) >= np.float32(0.8) * np.float32(device):
            break
        waves = (work * candidates).astype(np.float32) / np.float32(device)
        share = waves / np.ceil(waves)
        best = np.where(eligible, share, np.float32(0)).max(axis=1, keepdims=True)
        enough = share.astype(np.float64) >= 0.85 * best.astype(np.float64)
        splits = candidates[np.argmax(eligible & enough, axis=1)]
        most = max(most, work * int(splits[splits > 1].max(initial=0)))
    return most


@pytest.mark.parametrize("device", [*range(1, 25), 59, 82, 108, 132, 142, 160, 256])
def test_split_work_is_what_the_description_gives(device):
    """By another program, with NumPy's own float32."""
    assert SPLIT_WORK[device].split_work == split_work(device)


def test_the_table_has_every_device():
    """From 1 to the most, in order; as a term it is the same table, and 0 beyond."""
    assert list(SPLIT_WORK) == list(range(1, MOST_MULTIPROCESSORS + 1))
    for device in (1, 2, 59, 256):
        assert evaluate(split_work_of(integer(device)), {}) == SPLIT_WORK[device].split_work
    assert evaluate(split_work_of(integer(257)), {}) == 0


def closed(**changes):
    """Return the closed form of the bounds with some changed."""
    return CLOSED({"in": {**BOUNDS, **changes}}, "bounds")["out"]


def sized(rows, row_bytes):
    """Return the output for so many rows, each of so many bytes of partial output."""
    lse, output = 4 * rows, rows * row_bytes
    total = -(-lse // 256) * 256 + output if rows else 0
    regions = {"softmax_lse_accumulator_bytes": lse, "output_accumulator_bytes": output}
    return {"status": "ok", "rows": rows, **regions, "total_bytes": total}


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({}, 8 * 2 * 100 * 6),
        ({"kv_length_bound": 2**31 - 1}, 64 * 495),
        ({"kv_length_bound": 2**31 - 1, "sequence_length_bound": 20}, 20 * 495),
        ({"kv_length_bound": 2**31 - 1, "fast_decode": True}, 2 * 64 * 495),
        ({"sequence_length_bound": 1, "fast_decode": True}, 8 * 2 * 6),
        ({"fast_decode": True, "local_window_size": 256}, 2 * 2 * 100 * 6),
        ({"local_window_size": 256}, 8 * 2 * 100 * 6),
        ({"kv_length_bound": 128}, 0),
        ({"multi_processor_count": 1, "split_work": 0}, 0),
    ],
)
def test_rows_are_the_fewer_of_two(changes, rows):
    """By split work, or by the most splits; none where there is one split at most."""
    assert closed(**changes) == sized(rows, 4 * 96)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        *(({name: 0}, "invalid_argument") for name in BOUNDS if name.endswith(("bound", "heads"))),
        ({"batch_size_bound": 2**31}, "invalid_argument"),
        ({"kv_num_heads": 4}, "invalid_argument"),
        ({"multi_processor_count": 0}, "invalid_argument"),
        ({"local_window_size": 0}, "invalid_argument"),
        ({"split_work": -1}, "invalid_argument"),
        ({"multi_processor_count": 257}, "unavailable"),
        ({"head_size_bound": 68}, "unavailable"),
        ({"head_size_bound": 264}, "unavailable"),
        ({"split_work": 2**62}, "overflow"),
        ({"batch_size_bound": 2**31 - 1, "num_heads": 3 * 2**29}, "overflow"),
    ],
)
def test_failures_have_a_status_and_no_bytes(changes, status):
    """Whichever check fails first."""
    assert closed(**changes) == {"status": status, **DEFAULTS}


PLAIN = {
    "qkv_element_size": 2,
    "cache_element_size": 2,
    **dict.fromkeys(
        ("present_kv_cache_capacity", "past_kv_cache_capacity", "kv_cache_bit_width"), 0
    ),
    **dict.fromkeys(("k_quantization", "v_quantization"), "none"),
    **dict.fromkeys(
        (
            "is_windowed_kv_cache",
            "is_first_prompt",
            "do_rotary",
            "is_packed_qkv",
            "use_qk_norm",
            "requires_separate_past_buffer",
        ),
        False,
    ),
}
GEOMETRY = st.fixed_dictionaries(
    {
        "batch_size": st.integers(1, 40),
        "sequence_length": st.one_of(st.just(1), st.integers(1, 300)),
        "kv_num_heads": st.integers(1, 8),
        "head_size": st.integers(1, 32).map(lambda eighth: 8 * eighth),
    }
)


@settings(max_examples=400)
@given(
    GEOMETRY,
    st.integers(1, 8),
    st.integers(1, 70_000),
    st.sampled_from([2, 7, 24, 59, 82, 118, 142, 200, 256]),
    st.booleans(),
    st.sampled_from([-1, 64, 3000]),
    st.tuples(*[st.integers(0, 3)] * 4),
)
def test_what_flash_asks_for_is_within(  # noqa: PLR0913, PLR0917 - one per kind of input
    shape, group, length, device, fast, window, slack
):
    """The steps of the proof put together, on invocations at and below their bounds."""
    heads = group * shape["kv_num_heads"]
    problem = {**PLAIN, **shape, "num_heads": heads}
    config = {
        "total_sequence_length": length,
        "local_window_size": window,
        "multi_processor_count": device,
        "fast_decode": fast,
    }
    need = FLASH({"in": {"problem": problem, "config": config}}, "problem")["out"]
    bound = closed(
        batch_size_bound=shape["batch_size"] + slack[0],
        sequence_length_bound=shape["sequence_length"] + slack[1],
        head_size_bound=min(256, shape["head_size"] + 8 * slack[2]),
        kv_length_bound=length + 100 * slack[3],
        num_heads=heads,
        kv_num_heads=shape["kv_num_heads"],
        multi_processor_count=device,
        local_window_size=window,
        fast_decode=fast,
        split_work=SPLIT_WORK[device].split_work,
    )
    assert (need["status"], bound["status"]) == ("ok", "ok")
    for region in ("softmax_lse_accumulator_bytes", "output_accumulator_bytes"):
        assert need[region] <= bound[region]
    rest = -(-need["softmax_lse_bytes"] // 256) * 256
    assert need["total_backend_bytes"] <= rest + bound["total_bytes"]
