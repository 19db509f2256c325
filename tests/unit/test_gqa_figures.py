"""Published figures and the split heuristic's known examples, computed by the models."""

import pytest

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.registry import load_function
from routeproof.models.ort.gqa.split import kv_blocks, selected_split_count
from routeproof.spec.interpret import evaluate
from routeproof.spec.terms import integer, symbol_int

# Qwen2.5 models in fp16, batch 1, rotary, prompt 1,024, capacity 1,152, 82 multiprocessors:
# query heads, KV heads, declared root, prefill consumed, decode consumed (bytes).
FIGURES = {
    "1.5B": (12, 2, 123_273_472, 3_195_136, 56_064),
    "7B": (28, 4, 287_441_152, 7_454_976, 130_304),
}


def _complete(heads, kv_heads, backend, tokens, **changes):
    problem = {
        "qkv_element_size": 2,
        "cache_element_size": 2,
        "batch_size": 1,
        "sequence_length": tokens,
        "num_heads": heads,
        "kv_num_heads": kv_heads,
        "head_size": 128,
        "present_kv_cache_capacity": 1_152,
        "past_kv_cache_capacity": 1_152,
        "kv_cache_bit_width": 0,
        "k_quantization": "none",
        "v_quantization": "none",
        "is_windowed_kv_cache": False,
        "is_first_prompt": tokens > 1,
        "do_rotary": True,
        "is_packed_qkv": False,
        "use_qk_norm": False,
        "requires_separate_past_buffer": False,
        **changes,
    }
    fast = backend == "fast_decode"
    name = "flash" if fast else backend
    total = 1_152 if backend == "unfused" else tokens if tokens > 1 else 1_025
    route = {
        "backend": name,
        "preparation": {"preprocess_mode": name, "use_flash_attention_fast_decode": fast},
        "xqa": {
            "device_major": 0,
            "device_minor": 0,
            "multi_processor_count": 0,
            "kv_type": "none",
            "head_sink_storage": "none",
            "is_bf16": False,
        },
        "flash": {
            "total_sequence_length": total,
            "local_window_size": -1,
            "multi_processor_count": 82,
            "fast_decode": fast,
        },
        "unfused": {"total_sequence_length": total},
    }
    row = {"in": {"problem": problem, "route": route}}
    return Evaluator(load_function("ort.gqa.complete"))(row, "row")["out"]


@pytest.mark.parametrize("model", FIGURES)
def test_declared_root_is_unfused_with_a_preserved_past(model):
    """The declared root holds the unfused route and one preserved past tensor."""
    heads, kv_heads, declared, *_ = FIGURES[model]
    out = _complete(heads, kv_heads, "unfused", 1_024, requires_separate_past_buffer=True)
    assert out["total_workspace_bytes"] == declared


@pytest.mark.parametrize("model", FIGURES)
def test_prefill_consumes_flash_with_one_split(model):
    """A prompt of 1,024 tokens fills the device without splits."""
    heads, kv_heads, _, prefill, _ = FIGURES[model]
    out = _complete(heads, kv_heads, "flash", 1_024)
    assert (out["flash"]["selected_split_count"], out["total_workspace_bytes"]) == (1, prefill)


@pytest.mark.parametrize("model", FIGURES)
def test_decode_consumes_fast_decode_with_nine_splits(model):
    """Nine splits, chosen by KV heads; choosing by query heads would miss the figure."""
    heads, kv_heads, _, _, decode = FIGURES[model]
    out = _complete(heads, kv_heads, "fast_decode", 1)
    assert (out["flash"]["selected_split_count"], out["total_workspace_bytes"]) == (9, decode)


@pytest.mark.parametrize(
    ("work", "head_size", "kv_length", "multiprocessors", "splits"),
    [
        (3, 256, 97 * 64, 68, 20),  # 17 when "best" counts ineligible candidates
        (1, 64, 24_577, 24, 20),  # 17 in double arithmetic throughout
        (2, 64, 13_824, 108, 54),  # not monotone: one token more ...
        (2, 64, 13_825, 108, 28),  # ... halves the splits
    ],
)
def test_split_examples(work, head_size, kv_length, multiprocessors, splits):
    """The float32 and double arithmetic of the heuristic at its known edges."""
    length, device = symbol_int("length"), symbol_int("device")
    count = selected_split_count(integer(work), kv_blocks(length, integer(head_size)), device)
    assert evaluate(count, {"length": kv_length, "device": multiprocessors}) == splits
