"""Rows of onnx-genai's kernels: figures of their own tests, and malformed lists of inputs."""

import pytest

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import load_function
from routeproof.spec.errors import InputError

F16 = {"dtype": "f16", "present": True}
ABSENT = {"dtype": "undefined", "shape": [], "present": False}


def answer(name, **given):
    """Return what a function answers to a row."""
    return Evaluator(load_function(f"genai.{name}"))({"in": given}, "row")


def attention(*inputs, q=32, kv=8, causal=True, outputs=3):
    """Return what default-domain Attention asks for, in each revision."""
    return answer(
        "std_attention.requirement",
        inputs=list(inputs),
        q_num_heads=q,
        kv_num_heads=kv,
        is_causal=causal,
        output_count=outputs,
    )


def decode(past, mask=ABSENT, **said):
    """Return it for one row of f16, 32 heads over 8 of size 128."""
    new = [{**F16, "shape": [1, 1, size]} for size in (4096, 1024, 1024)]
    cache = {**F16, "shape": [1, 8, past, 128]}
    return attention(*new, mask, cache, cache, **said)


def test_decode_stages_keys_and_values():
    """The figures of the kernel's own unit test."""
    found = decode(2048)
    assert found["out"]["bytes"] == 8_655_104
    assert found["out"]["stage"] == [True, True]
    assert found["out"]["lifetime"] == "SessionPersistent"


def test_fixed_capacity_stages_nothing():
    """Nor does a node with one output."""
    fixed = {"dtype": "f32", "shape": [1, 1, 1, 2048], "present": True}
    assert decode(2048, fixed, causal=False)["out"]["bytes"] == 262_272
    assert decode(2048, outputs=1)["out"]["bytes"] == 262_272


def test_since_1491_causality_does_not_stage():
    """The same metadata, one revision later."""
    fixed = {"dtype": "f32", "shape": [1, 1, 1, 2048], "present": True}
    found = decode(2048, fixed)
    assert found["out_4d4c22732"]["stage"] == [True, True]
    assert found["out_head"]["stage"] == [False, False]


@pytest.mark.parametrize(("bucket", "bytes_"), [(256, 16_904), (512, 33_288), (1024, 66_056)])
def test_the_figures_of_1189(bucket, bytes_):
    """Prepared for one bucket, executed in the next: 16,904 against 33,288."""
    q, k = {**F16, "shape": [1, 16, 1, 192]}, {**F16, "shape": [1, 16, 1, 192]}
    v = {**F16, "shape": [1, 16, 1, 128]}
    mask = {"dtype": "f32", "shape": [1, 1, 1, bucket], "present": True}
    pasts = [{**F16, "shape": [1, 16, bucket, size]} for size in (192, 128)]
    found = attention(q, k, v, mask, *pasts, q=16, kv=16, causal=False)
    assert found["out_4d4c22732"]["bytes"] == bytes_


INPUTS = [{**F16, "shape": [1, 1, 64]}]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (3, "row: inputs: expected a list of inputs, got 3"),
        ([7], r"row: inputs\[0\]: expected an object of dtype, shape and present, got 7"),
        ([{"dtype": "f16", "shape": [1]}], r"row: inputs\[0\]: expected an object of dtype"),
        ([{**F16, "shape": [1.5]}], r"row: inputs\[0\]\.shape: expected a list of integers"),
        ([{**F16, "shape": [True]}], r"row: inputs\[0\]\.shape: expected a list of integers"),
        ([{**F16, "shape": [1] * 7}], r"row: inputs\[0\]\.shape: 7 extents are more than 6"),
        ([{**F16, "shape": [-1]}], "row: field 'query.extent_0': -1 is outside"),
        (
            [{"dtype": "f8", "shape": [1], "present": True}],
            "row: field 'query.dtype': .* is not one of",
        ),
        (
            [{"dtype": "f16", "shape": [1], "present": 1}],
            "row: field 'query.present': expected true",
        ),
    ],
)
def test_malformed_inputs_are_named(inputs, problem):
    """By their place in the list, or by the input's name."""
    with pytest.raises(InputError, match=problem):
        answer("gqa.requirement", num_heads=1, kv_num_heads=1, do_rotary=False, inputs=inputs)


def test_a_row_without_inputs_says_what_is_missing():
    """As of any other function."""
    with pytest.raises(InputError, match="field 'num_heads' is missing"):
        answer("gqa.requirement")
    with pytest.raises(InputError, match=r"row: a\.shape: expected a list of integers"):
        answer("matmul_nbits", K=1, a_dtype="f32", a_shape=None)
