"""The kernels against attention by others: ONNX Runtime on the CPU, and ONNX's reference evaluator.

ONNX Runtime's CPU `GroupQueryAttention` has no QK-norm, no fp8 cache and no bf16, refuses padding
in a prompt with a windowed cache, and on a first prompt with a quantised cache attends to what it
has quantised, where the modelled code attends to K and V as they are: there the caches are
compared and the output is not. The reference evaluator runs default-domain `Attention`, which has
neither rotary embedding, nor windows, sinks or quantised caches.
"""

import numpy as np
import onnxruntime
import pytest
from kernels.launches import HOST, sized
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from routeproof.kernels_ref import formats
from routeproof.kernels_ref.arena import Arena
from routeproof.kernels_ref.gqa import crosscheck, tensors
from routeproof.kernels_ref.gqa.plan import UNNEEDED

SEED = 3
DECODE = {"total": 40, "capacity": 50}
ROWS = {**DECODE, "batch": 3}
PROMPT = {"tokens": 20, "total": 20, "capacity": 30, "batch": 2}
CHUNK = {"tokens": 5, "total": 40}
LONG = {"total": 700, "capacity": 720, "num_heads": 8, "kv_num_heads": 1}
SINKS = {"head_sink": "prepacked_fp32", "smooth_softmax": True}
WINDOWED = {"windowed_cache": True, "window": 16, "capacity": 16}
STORED = {"int8": np.int8, "int4": np.uint8, "fp16": np.float16}
EVERY = ("xqa", "flash", "flash_fast_decode", "memory_efficient", "unfused")
SEVERAL = ("flash", "memory_efficient", "unfused")
CASES = [
    (EVERY, DECODE),
    (EVERY, ROWS),
    (EVERY, LONG),
    (EVERY, {**DECODE, "rotary": True}),
    (EVERY, {**ROWS, "rotary": True, "packed": True}),
    (EVERY, {**DECODE, "window": 7}),
    (EVERY[:-1], {**DECODE, **SINKS}),
    (EVERY[1:], {**DECODE, "softcap": 3.0}),
    (("flash", "memory_efficient"), {**DECODE, "smooth_softmax": True}),
    (("xqa", *SEVERAL), {**DECODE, **WINDOWED}),
    (SEVERAL, PROMPT),
    (SEVERAL, {**PROMPT, "rotary": True, "packed": True, "head_size": 192}),
    (SEVERAL, {**PROMPT, "causal": False}),
    (SEVERAL, {**PROMPT, "window": 3, "softcap": 3.0}),
    (SEVERAL, CHUNK),
    (SEVERAL, {**CHUNK, **WINDOWED, "rotary": True}),
    (SEVERAL, {"total": 40, "alias": (False, False)}),
    (SEVERAL, {"total": 40, "alias": (True, False), "capacity": 39}),
    (("unfused",), {**PROMPT, "attention_bias": True}),
    (("unfused",), {**DECODE, "attention_bias": True, "softcap": 3.0}),
]
QUANTISED = [
    (routes, {**run, "cache": cache, "quantization": scales})
    for cache in ("int8", "int4")
    for scales in ("per_tensor", "per_channel")
    for routes, run in (
        (EVERY[:2] if cache == "int8" else EVERY[1:2], ROWS),
        (EVERY[1:2], CHUNK),
        (EVERY[1:2], {**DECODE, **WINDOWED}),
        (EVERY[1:2], PROMPT),
    )
]


def inputs(launch, given):
    """Return the operator's inputs by name, in order; those that are absent are None."""
    rows = (launch.batch, launch.tokens, -1)
    past = tensors.past_length(launch, given.lengths)
    caches = []
    for cache in (given.past_key, given.past_value):
        rest = cache.copy()
        for one, length in enumerate(past):
            rest[one, :, length:] = 0  # what no one may read need not be a number
        caches.append(rest.view(STORED[launch.cache]))
    new = [one.reshape(rows) for one in (given.query, given.key, given.value)]
    if launch.packed:
        new = [np.concatenate(new, axis=2), None, None]
    return {
        **dict(zip(("query", "key", "value"), new, strict=True)),
        "past_key": caches[0],
        "past_value": caches[1],
        "seqlens_k": given.lengths - 1,
        "total_sequence_length": np.array(launch.total, np.int32),
        "cos_cache": given.cosines if launch.rotary else None,
        "sin_cache": given.sines if launch.rotary else None,
        "position_ids": None,
        "attention_bias": given.bias if launch.bias else None,
        "head_sink": given.sink if launch.sink != "none" else None,
        "k_scale": given.k_scale.reshape(-1) if launch.quantized else None,
        "v_scale": given.v_scale.reshape(-1) if launch.quantized else None,
        "q_norm_weight": given.q_weight if launch.qk_norm else None,
        "k_norm_weight": given.k_weight if launch.qk_norm else None,
    }


def attributes(launch):
    """Return the operator's attributes."""
    said = {
        "num_heads": launch.heads,
        "kv_num_heads": launch.kv_heads,
        "do_rotary": int(launch.rotary),
        "local_window_size": launch.window,
        "softcap": float(launch.softcap),
        "smooth_softmax": int(launch.smooth),
        "sliding_window_cache": int(launch.windowed),
        "causal": int(launch.causal),
    }
    if launch.quantized:
        scales = {"k_quant_type": launch.k_scales.upper(), "v_quant_type": launch.v_scales.upper()}
        said |= scales | {"kv_cache_bit_width": 4 if launch.cache == "int4" else 8}
    return said


def declared(name, array=None, kind=TensorProto.FLOAT16):
    """Return a graph's input or output."""
    shape = None if array is None else array.shape
    kind = kind if array is None else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, shape)


def by_onnxruntime(launch, given):
    """Return output, present keys and present values of the operator on the CPU."""
    named = inputs(launch, given)
    fed = {name: one for name, one in named.items() if one is not None}
    names = [name if name in fed else "" for name in named]
    results = ("output", "present_key", "present_value")
    node = helper.make_node(
        "GroupQueryAttention", names, results, domain="com.microsoft", **attributes(launch)
    )
    cache = helper.np_dtype_to_tensor_dtype(fed["past_key"].dtype)
    graph = helper.make_graph(
        [node],
        "one",
        [declared(name, one) for name, one in fed.items()],
        [declared(one, kind=TensorProto.FLOAT16 if one == "output" else cache) for one in results],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, fed)


def executed(launch, planned, given):
    """Return what a launch leaves behind on the host."""
    return crosscheck.execute(launch, given, Arena(planned, UNNEEDED, HOST))


def valid(launch, given):
    """Yield each row with its new tokens and with the tokens that its cache holds."""
    past = tensors.past_length(launch, given.lengths)
    for row, (length, had) in enumerate(zip(given.lengths, past, strict=True)):
        yield row, length - had, min(length, launch.capacity)


@pytest.mark.parametrize(
    ("route", "said"), [(route, said) for routes, said in CASES + QUANTISED for route in routes]
)
def test_onnxruntime_gives_the_same(route, said):
    """The output within the rounding of fp16, the cache to the bit."""
    launch, planned = sized(route, **said)
    given = tensors.draw(launch, SEED)
    output, *presents = by_onnxruntime(launch, given)
    done = executed(launch, planned, given)
    limit = 4 * formats.unit("fp16") * np.abs(done.output).max()
    for row, tokens, held in valid(launch, given):
        for ours, theirs in zip((done.present_key, done.present_value), presents, strict=True):
            bits = np.ascontiguousarray(theirs[row, :, :held]).view(np.uint8)
            assert np.array_equal(ours[row, :, :held], bits)
        if launch.quantized and launch.first_prompt:
            continue
        shape = (tokens, launch.heads, launch.head_size)
        wanted = output[row, :tokens].reshape(shape).astype(np.float64)
        assert np.abs(done.output[row, :tokens] - wanted).max() <= limit


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({**DECODE, "qk_norm": True}, "q_norm_weight / k_norm_weight inputs are not supported"),
        ({**PROMPT, **WINDOWED}, "is too small for sequence_length"),
    ],
)
def test_what_onnxruntime_refuses(said, problem):
    """If it no longer does, the table in the docs is too modest."""
    launch, _ = sized("flash", **said)
    with pytest.raises(Exception, match=problem):
        by_onnxruntime(launch, tensors.draw(launch, SEED))


def by_reference(launch, given):
    """Return output and presents of default-domain Attention by ONNX's reference evaluator."""
    past = launch.total - launch.tokens
    new = [one.transpose(0, 2, 1, 3) for one in (given.query, given.key, given.value)]
    fed = dict(zip("qkv", new, strict=True))
    names = [*fed, ""]
    if launch.bias:
        names[3], fed["mask"] = "mask", given.bias
    if past:
        caches = [
            one[:, :, :past].copy().view(np.float16) for one in (given.past_key, given.past_value)
        ]
        fed |= dict(zip(("past_k", "past_v"), caches, strict=True))
        names += ["past_k", "past_v"]
    outputs = ["y", *(["present_k", "present_v"] if past else [])]
    node = helper.make_node(
        "Attention", names, outputs, is_causal=int(launch.causal), softcap=float(launch.softcap)
    )
    graph = helper.make_graph(
        [node],
        "one",
        [declared(name, one) for name, one in fed.items()],
        [declared(name) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    return ReferenceEvaluator(model).run(None, fed)


REFERENCED = [
    (SEVERAL, {"tokens": 20, "total": 20}),
    (SEVERAL, {"tokens": 20, "total": 20, "causal": False}),
    (SEVERAL, {"tokens": 20, "total": 20, "softcap": 3.0}),
    (SEVERAL, {"tokens": 5, "total": 40}),
    (SEVERAL, {"total": 700, "kv_num_heads": 1}),
    (SEVERAL, {"tokens": 20, "total": 20, "head_size": 192}),
    (("unfused",), {"tokens": 20, "total": 20, "attention_bias": True}),
]


@pytest.mark.parametrize(
    ("route", "said"), [(route, said) for routes, said in REFERENCED for route in routes]
)
def test_the_reference_evaluator_gives_the_same(route, said):
    """Of default-domain Attention: shared heads, causal or not, capped, biased, with a past."""
    launch, planned = sized(route, **said)
    given = tensors.draw(launch, SEED)
    wanted, *presents = by_reference(launch, given)
    done = executed(launch, planned, given)
    limit = 16 * formats.unit("fp16") * np.abs(done.output).max()  # it multiplies in fp16
    shown = done.output.transpose(0, 2, 1, 3).astype(np.float64)
    assert np.abs(shown - wanted.astype(np.float64)).max() <= limit
    for ours, theirs in zip((done.present_key, done.present_value), presents, strict=False):
        assert np.array_equal(ours[:, :, : launch.total].copy().view(np.float16), theirs)
