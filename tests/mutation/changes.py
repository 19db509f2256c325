"""The changes of the model: one place each, with a state on which the two models differ.

To add one, append it: a name, what kind of change it is, what it does in a few words, the file
under `models/ort/gqa`, the old text (which must occur there exactly once), the new text, and the
state. `test_changes.py` holds the list against the model, `run.py` runs `check` on each.
"""

from __future__ import annotations

from dataclasses import dataclass

from .states import State, at

__all__ = ["CHANGES", "Change"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file, and a state that tells the changed model from the original."""

    name: str
    kind: str
    what: str
    file: str
    old: str
    new: str
    state: State


_PREPARATION = (
    Change(
        "preparation-row-alignment",
        "alignment",
        "a windowed row need only be a multiple of 8 bytes",
        "preparation.py",
        "whole_rows = cache_row_bytes(problem) % 16 == 0",
        "whole_rows = cache_row_bytes(problem) % 8 == 0",
        at("preparation", head_size=8, cache_element_size=1, is_windowed_kv_cache=True),
    ),
    Change(
        "preparation-length-vectors",
        "constant",
        "five length vectors for a windowed cache, not six",
        "preparation.py",
        "ite(problem.is_windowed_kv_cache, 6, 3)",
        "ite(problem.is_windowed_kv_cache, 5, 3)",
        at("preparation", is_windowed_kv_cache=True),
    ),
    Change(
        "preparation-staging-starts-later",
        "boundary",
        "two tokens are not staged yet",
        "preparation.py",
        "problem.is_windowed_kv_cache & (problem.sequence_length > 1)",
        "problem.is_windowed_kv_cache & (problem.sequence_length > 2)",
        at("preparation", sequence_length=2, is_windowed_kv_cache=True),
    ),
    Change(
        "preparation-compaction-of-one-half",
        "region",
        "the compaction region has room for K only",
        "preparation.py",
        "checks.product(2, tensor, when=compacts)",
        "checks.product(1, tensor, when=compacts)",
        at("preparation", is_windowed_kv_cache=True),
    ),
    Change(
        "preparation-regions-swapped",
        "order of regions",
        "the preprocessed Q, K, V lie before the lengths",
        "preparation.py",
        '    recipe.carve("sequence_lengths", checks.product(4, vectors, problem.batch_size))\n'
        '    recipe.carve("qkv_preprocess", _preprocess_bytes(checks, problem, route))\n',
        '    recipe.carve("qkv_preprocess", _preprocess_bytes(checks, problem, route))\n'
        '    recipe.carve("sequence_lengths", checks.product(4, vectors, problem.batch_size))\n',
        at("preparation", do_rotary=True),
    ),
    Change(
        "preparation-staged-limit-status",
        "status",
        "a staged capacity beyond int32 is an overflow",
        "preparation.py",
        'checks.require(staged <= INT32_MAX, "invalid_argument", when=uses_staging(problem))',
        'checks.require(staged <= INT32_MAX, "overflow", when=uses_staging(problem))',
        at(
            "preparation",
            sequence_length=2,
            present_kv_cache_capacity=2**31 - 1,
            is_windowed_kv_cache=True,
        ),
    ),
    Change(
        "preparation-mixed-quantisation",
        "guard conjunct",
        "XQA takes a cache of which only K is quantised",
        "preparation.py",
        "        k_quantized != v_quantized,\n",
        "",
        at(
            "preparation",
            preprocess_mode="xqa",
            cache_element_size=1,
            kv_cache_bit_width=8,
            k_quantization="per_tensor",
        ),
    ),
    Change(
        "preparation-scale-not-folded",
        "case",
        "per-channel K scales need no copy of Q",
        "preparation.py",
        "        folds_scale,\n        all_of(flash, quantized),\n",
        "        all_of(flash, quantized),\n",
        at(
            "preparation",
            preprocess_mode="xqa",
            cache_element_size=1,
            kv_cache_bit_width=8,
            k_quantization="per_channel",
            v_quantization="per_channel",
        ),
    ),
    Change(
        "preparation-query-formed-when-copied",
        "check",
        "Q is formed, and can overflow, only where it is copied",
        "preparation.py",
        "problem.num_heads, head_size, when=~fast)",
        "problem.num_heads, head_size, when=copies_query)",
        at(
            "preparation",
            preprocess_mode="unfused",
            batch_size=2**30,
            sequence_length=2**30,
            num_heads=2,
            kv_num_heads=1,
            head_size=8,
            present_kv_cache_capacity=1,
        ),
    ),
    Change(
        "preparation-mea-rotary-value",
        "constant",
        "MEA with rotary copies V too",
        "preparation.py",
        "ite(mea & rotary, 1, 0)",
        "ite(mea & rotary, 2, 0)",
        at("preparation", preprocess_mode="memory_efficient", do_rotary=True),
    ),
    Change(
        "preparation-dequantised-slack",
        "constant",
        "a dequantised cache has no 256 bytes behind it",
        "preparation.py",
        "ite(dequantizes, 256, 0)",
        "ite(dequantizes, 0, 0)",
        at("preparation", cache_element_size=1, kv_cache_bit_width=8, k_quantization="per_tensor"),
    ),
)

_VALIDATION = (
    Change(
        "validation-int32-limit",
        "constant",
        "extents may be 2^31",
        "validation.py",
        "value <= INT32_MAX) for value",
        "value <= INT32_MAX + 1) for value",
        at("unfused", batch_size=2**31, num_heads=1, kv_num_heads=1, total_sequence_length=1),
    ),
    Change(
        "validation-quantised-is-both",
        "operator",
        "a cache is quantised when K and V both are",
        "validation.py",
        'return any_of(k_quantization != "none", v_quantization != "none")',
        'return all_of(k_quantization != "none", v_quantization != "none")',
        at("mea", k_quantization="per_tensor"),
    ),
    Change(
        "validation-fast-decode-qk-norm",
        "guard conjunct",
        "fast decode takes QK-norm",
        "validation.py",
        "        problem.use_qk_norm,\n",
        "",
        at("flash", fast_decode=True, use_qk_norm=True),
    ),
    Change(
        "validation-length-before-quantised",
        "order of checks",
        "MEA and unfused look at the KV length before quantisation",
        "validation.py",
        '    checks.require(~quantized, "unavailable")\n'
        '    checks.require(is_positive_int32(kv_length), "invalid_argument")\n',
        '    checks.require(is_positive_int32(kv_length), "invalid_argument")\n'
        '    checks.require(~quantized, "unavailable")\n',
        at("unfused", k_quantization="per_tensor", total_sequence_length=0),
    ),
)

_XQA = (
    Change(
        "xqa-prompt-before-length",
        "order of checks",
        "a first prompt is refused before several tokens are",
        "xqa.py",
        '    checks.require(problem.sequence_length == 1, "unavailable")\n'
        '    checks.require(~problem.is_first_prompt, "invalid_argument")\n',
        '    checks.require(~problem.is_first_prompt, "invalid_argument")\n'
        '    checks.require(problem.sequence_length == 1, "unavailable")\n',
        at("xqa", sequence_length=2, is_first_prompt=True),
    ),
    Change(
        "xqa-grid-limit",
        "constant",
        "the grid holds 65,536 rows",
        "xqa.py",
        "_GRID_LIMIT = 65_535",
        "_GRID_LIMIT = 65_536",
        at("xqa", batch_size=65_536),
    ),
    Change(
        "xqa-row-max-bytes",
        "region",
        "row maxima take half the bytes",
        "xqa.py",
        'rows.carve("row_max", checks.product(128, count))',
        'rows.carve("row_max", checks.product(64, count))',
        at("xqa"),
    ),
    Change(
        "xqa-tile-boundary",
        "boundary",
        "a group of 8 takes the tile of 16",
        "xqa.py",
        "ite(group <= 8, 8,",
        "ite(group < 8, 8,",
        at("xqa", kv_num_heads=1),
    ),
    Change(
        "xqa-semaphore-alignment",
        "alignment",
        "the semaphores end at a multiple of 64",
        "xqa.py",
        "after = checks.align(semaphores, 128)",
        "after = checks.align(semaphores, 64)",
        at("xqa"),
    ),
    Change(
        "xqa-accumulator-alignment",
        "alignment",
        "the accumulator starts at a multiple of 128, not of its vector",
        "xqa.py",
        "checks.align(rows.total, vector)",
        "checks.align(rows.total, 128)",
        at("xqa", head_size=256),
    ),
    Change(
        "xqa-subsequences-round-up",
        "rounding",
        "multiprocessors are divided up, not down",
        "xqa.py",
        "maximum(1, multiprocessors // sequences)",
        "maximum(1, ceil_div(multiprocessors, sequences))",
        at("xqa", multi_processor_count=5),
    ),
    Change(
        "xqa-rotary-alignment",
        "alignment",
        "rotary Q is a multiple of 128 bytes",
        "xqa.py",
        "checks.align(query, 256, when=rotary)",
        "checks.align(query, 128, when=rotary)",
        at("xqa", num_heads=1, kv_num_heads=1, do_rotary=True),
    ),
    Change(
        "xqa-prepacked-sink-converted",
        "case",
        "a prepacked head sink is converted too",
        "xqa.py",
        'sink == "dynamic_conversion"',
        'sink != "none"',
        at("xqa", head_sink_storage="prepacked_fp32"),
    ),
)

_FLASH = (
    Change(
        "flash-rounded-head-size",
        "alignment",
        "accumulators are laid out for multiples of 64",
        "flash.py",
        "return align_up(head_size, 32)",
        "return align_up(head_size, 64)",
        at("flash", head_size=96),
    ),
    Change(
        "flash-splits-by-query-heads",
        "case",
        "fast decode chooses its splits by query heads",
        "flash.py",
        "ite(fast_decode, shape.kv_num_heads, shape.num_heads)",
        "ite(fast_decode, shape.num_heads, shape.num_heads)",
        at("flash", fast_decode=True),
    ),
    Change(
        "flash-window-always",
        "guard conjunct",
        "a window caps the KV length of regular Flash too",
        "flash.py",
        "ite(fast_decode & (window > 0), minimum(kv_length, window), kv_length)",
        "ite(window > 0, minimum(kv_length, window), kv_length)",
        at("flash", local_window_size=256),
    ),
    Change(
        "flash-two-splits-need-nothing",
        "boundary",
        "two splits have no partial results",
        "flash.py",
        "    is_split = splits > 1\n",
        "    is_split = splits > 2\n",
        at("flash", total_sequence_length=512),
    ),
    Change(
        "flash-accumulator-order",
        "order of regions",
        "partial outputs lie before their log-sum-exps",
        "flash.py",
        '    recipe.carve("softmax_lse_accumulator", partial_lse, when=is_split)\n'
        '    recipe.carve("output_accumulator", partial_output, when=is_split)\n',
        '    recipe.carve("output_accumulator", partial_output, when=is_split)\n'
        '    recipe.carve("softmax_lse_accumulator", partial_lse, when=is_split)\n',
        at("flash"),
    ),
    Change(
        "flash-runtime-buffer",
        "operand",
        "the run-time output buffer has the bytes of the log-sum-exps",
        "flash_runtime.py",
        "out_accum_bytes=partial_output.size",
        "out_accum_bytes=partial_lse.size",
        at("flash_runtime"),
    ),
)

_SPLIT = (
    Change(
        "split-ceiling",
        "constant",
        "at most 64 splits",
        "split.py",
        "MAX_SPLITS = 128",
        "MAX_SPLITS = 64",
        at("flash", total_sequence_length=2**20, num_heads=1, kv_num_heads=1),
    ),
    Change(
        "split-ceiling-without-device",
        "operand",
        "more splits than multiprocessors are considered",
        "split.py",
        "minimum(MAX_SPLITS, multiprocessors, kv_blocks)",
        "minimum(MAX_SPLITS, kv_blocks)",
        at("flash", num_heads=2, multi_processor_count=3),
    ),
    Change(
        "split-block-size-boundary",
        "boundary",
        "a head size of 64 takes blocks of 128 tokens",
        "split.py",
        "ite(head_size <= 64, 256,",
        "ite(head_size < 64, 256,",
        at("flash"),
    ),
    Change(
        "split-query-block",
        "constant",
        "one item of work covers 128 query tokens",
        "split.py",
        "_BLOCK_M = 64",
        "_BLOCK_M = 128",
        at("flash", sequence_length=128, num_heads=48),
    ),
    Change(
        "split-fills-device",
        "constant",
        "work for 75 % of the device is enough",
        "split.py",
        "float32(0.8)",
        "float32(0.75)",
        at("flash", num_heads=81, kv_num_heads=81),
    ),
    Change(
        "split-efficiency-width",
        "width",
        "the share of the best efficiency is a float",
        "split.py",
        "enough = float64(0.85) * widen(best)",
        "enough = widen(float32(0.85) * best)",
        # 20 splits, and 17 in floats alone.
        at(
            "flash",
            num_heads=1,
            kv_num_heads=1,
            total_sequence_length=24_577,
            multi_processor_count=24,
        ),
    ),
    Change(
        "split-best-over-all",
        "case",
        "the best efficiency counts splits that are not eligible",
        "split.py",
        "        where=lambda splits: is_eligible(splits, kv_blocks),\n",
        "        where=lambda splits: splits >= 1,\n",
        at("flash", num_heads=1, kv_num_heads=1, multi_processor_count=3),
    ),
)

_FALLBACK = (
    Change(
        "mea-accumulator-boundary",
        "boundary",
        "a head size of 128 has an fp32 accumulator",
        "memory_efficient.py",
        "accumulates = head_size > 128",
        "accumulates = head_size >= 128",
        at("mea", head_size=128),
    ),
    Change(
        "mea-expanded-value-missing",
        "region",
        "V is not expanded",
        "memory_efficient.py",
        'recipe.carve("expanded_value", expanded, when=expands)',
        'recipe.carve("expanded_value", ZERO, when=expands)',
        at("mea"),
    ),
    Change(
        "unfused-scores-width",
        "constant",
        "scores are kept in 2 bytes",
        "unfused.py",
        "checks.product(4, *rows, kv_length)",
        "checks.product(2, *rows, kv_length)",
        at("unfused"),
    ),
    Change(
        "unfused-query-alignment",
        "alignment",
        "Q and Y are multiples of 128 bytes",
        "unfused.py",
        "checks.align(checks.product(problem.qkv_element_size, *rows, problem.head_size), 256)",
        "checks.align(checks.product(problem.qkv_element_size, *rows, problem.head_size), 128)",
        at("unfused", num_heads=1, kv_num_heads=1),
    ),
)

_COMPLETE = (
    Change(
        "complete-backend-alignment",
        "alignment",
        "the backend starts at a multiple of 128",
        "complete.py",
        "Recipe(checks, start=prepared.total_preparation_bytes)",
        "Recipe(checks, alignment=128, start=prepared.total_preparation_bytes)",
        at("complete"),
    ),
    Change(
        "complete-clamp-always",
        "guard conjunct",
        "the KV length is capped without a window too",
        "complete.py",
        "return ite(problem.is_windowed_kv_cache, capped, length)",
        "return capped",
        at(
            "complete",
            backend="unfused",
            preprocess_mode="unfused",
            present_kv_cache_capacity=512,
        ),
    ),
    Change(
        "complete-clamp-to-stored",
        "operand",
        "a window caps the KV length to the stored capacity, not the staged one",
        "complete.py",
        "capped = minimum(length, preparation.effective_capacity(problem))",
        "capped = minimum(length, problem.present_kv_cache_capacity)",
        at(
            "complete",
            backend="unfused",
            preprocess_mode="unfused",
            sequence_length=64,
            present_kv_cache_capacity=512,
            is_windowed_kv_cache=True,
        ),
    ),
    Change(
        "complete-preparation-before-backend",
        "order of checks",
        "preparation fails before cuDNN is refused",
        "complete.py",
        "    _require_consistent(checks, route)\n    checks.include(prepared.checks)\n",
        "    checks.include(prepared.checks)\n    _require_consistent(checks, route)\n",
        at("complete", backend="cudnn", batch_size=0),
    ),
    Change(
        "complete-phase-not-compared",
        "guard conjunct",
        "preparation and Flash may disagree on fast decode",
        "complete.py",
        '    checks.require(same_phase, "invalid_argument", when=backend == "flash")\n',
        "",
        at("complete", fast_decode=True),
    ),
)

_CAPABILITIES = (
    Change(
        "capabilities-xqa-group-of-six",
        "constant",
        "XQA has a kernel for groups of 6",
        "capabilities.py",
        "group.is_in(1, 2, 4, 5, 8, 16, 32)",
        "group.is_in(1, 2, 4, 5, 6, 8, 16, 32)",
        at("eligibility", num_heads=12),
    ),
    Change(
        "capabilities-xqa-head-size",
        "constant",
        "XQA has a kernel for heads of 192",
        "capabilities.py",
        "XQA_HEAD_SIZES = (64, 128, 256)",
        "XQA_HEAD_SIZES = (64, 128, 192, 256)",
        at("xqa", head_size=192),
    ),
    Change(
        "capabilities-fp8-device",
        "operator",
        "FP8 on 8.9 and all later minors",
        "capabilities.py",
        "all_of(major == 8, minor == 9)",
        "all_of(major == 8, minor >= 9)",
        at(
            "xqa",
            cache_element_size=1,
            kv_cache_bit_width=8,
            k_quantization="per_tensor",
            v_quantization="per_tensor",
            kv_type="fp8",
            device_minor=10,
        ),
    ),
    Change(
        "capabilities-flash-head-size",
        "constant",
        "Flash has kernels up to 264",
        "capabilities.py",
        "FLASH_MAX_HEAD_SIZE = 256",
        "FLASH_MAX_HEAD_SIZE = 264",
        at("eligibility", head_size=264),
    ),
    Change(
        "capabilities-mea-device",
        "constant",
        "MEA in fp16 from 5.2",
        "capabilities.py",
        "all_of(major == 5, minor >= 3)",
        "all_of(major == 5, minor >= 2)",
        at("eligibility", device_major=5, device_minor=2),
    ),
    Change(
        "capabilities-mea-head-size",
        "constant",
        "MEA has kernels up to 512",
        "capabilities.py",
        "MEA_MAX_HEAD_SIZE = 1024",
        "MEA_MAX_HEAD_SIZE = 512",
        at("eligibility", head_size=1024),
    ),
    Change(
        "eligibility-cudnn-window",
        "guard conjunct",
        "cuDNN takes a local window",
        "eligibility.py",
        '            ("no_local_window", facts.local_window_size == -1),\n',
        "",
        at("eligibility", local_window_size=128),
    ),
    Change(
        "eligibility-xqa-softcap",
        "comparison",
        "XQA refuses positive softcaps only",
        "eligibility.py",
        '            ("device", facts.device_major >= 8),\n'
        '            ("no_softcap", facts.softcap == float32(0.0)),\n',
        '            ("device", facts.device_major >= 8),\n'
        '            ("no_softcap", facts.softcap <= float32(0.0)),\n',
        at("eligibility", softcap=-1.0),
    ),
)

_LADDER = (
    Change(
        "ladder-cudnn-before-xqa",
        "priority",
        "cuDNN is tried before XQA",
        "ladder.py",
        '        Rung("xqa", guards.xqa.holds),\n        Rung("cudnn", guards.cudnn.holds),\n',
        '        Rung("cudnn", guards.cudnn.holds),\n        Rung("xqa", guards.xqa.holds),\n',
        at("ladder", enable_cudnn_flash_attention=True),
    ),
    Change(
        "ladder-mea-before-flash",
        "priority",
        "MEA is tried before Flash",
        "ladder.py",
        '        Rung("flash", guards.flash_core.holds),\n'
        '        Rung("memory_efficient", guards.mea_core.holds),\n',
        '        Rung("memory_efficient", guards.mea_core.holds),\n'
        '        Rung("flash", guards.flash_core.holds),\n',
        at("ladder", is_first_prompt=True),
    ),
    Change(
        "ladder-newest-shared-memory",
        "guard conjunct",
        "XQA does not probe shared memory",
        "ladder.py",
        'xqa.plus(*_uses_past(facts), ("shared_memory", facts.xqa_shared_memory_ok))',
        "xqa.plus(*_uses_past(facts))",
        at("ladder", xqa_shared_memory_ok=False),
    ),
    Change(
        "ladder-bias-order",
        "order of checks",
        "a bias with smooth softmax is reported before one with a quantised cache",
        "ladder.py",
        "    return (\n"
        '        ("attention_bias_with_quantized_cache", bias & core.is_inputs_quantized),\n'
        '        ("attention_bias_with_smooth_softmax_or_head_sink", '
        "bias & core.use_smooth_softmax),\n"
        "    )\n",
        "    return (\n"
        '        ("attention_bias_with_smooth_softmax_or_head_sink", '
        "bias & core.use_smooth_softmax),\n"
        '        ("attention_bias_with_quantized_cache", bias & core.is_inputs_quantized),\n'
        "    )\n",
        at("ladder", has_attention_bias=True, k_quant_type="per_tensor", smooth_softmax=True),
    ),
    Change(
        "ladder-older-one-token",
        "guard conjunct",
        "the older fast decode asks for one token",
        "ladder.py",
        'newest.fast_decode.without("one_token", "not_windowed")',
        'newest.fast_decode.without("not_windowed")',
        at("ladder", sequence_length=4),
    ),
    Change(
        "ladder-older-scale-tensor",
        "guard conjunct",
        "the older XQA takes two scale tensors",
        "ladder.py",
        '        ("same_scale_tensor", implies(quantized, facts.kv_scales_same_tensor)),\n',
        "",
        at(
            "ladder",
            cache_type="int8",
            k_quant_type="per_tensor",
            v_quant_type="per_tensor",
        ),
    ),
    Change(
        "ladder-mismatch-after-unfused",
        "priority",
        "unfused runs although the cache has another type",
        "ladder.py",
        '        Rung("unfused_cache_type_mismatch", all_of(unfused, ~same_type), runs=False),\n'
        '        Rung("unfused", unfused),\n',
        '        Rung("unfused", unfused),\n'
        '        Rung("unfused_cache_type_mismatch", all_of(unfused, ~same_type), runs=False),\n',
        at(
            "ladder",
            cache_type="bf16",
            enable_xqa=False,
            disable_flash_attention=True,
            disable_memory_efficient_attention=True,
        ),
    ),
    Change(
        "ladder-auto-cudnn-device",
        "constant",
        "cuDNN enables itself from 8.0",
        "ladder.py",
        "facts.device_major >= 9)",
        "facts.device_major >= 8)",
        at("ladder", enable_xqa=False, auto_enable_cudnn_flash_attention=True),
    ),
    Change(
        "ladder-no-route-status",
        "status",
        "no route is not implemented, rather than an invalid argument",
        "ladder.py",
        '"no_route": "invalid_argument"',
        '"no_route": "not_implemented"',
        at(
            "ladder",
            smooth_softmax=True,
            disable_flash_attention=True,
            disable_memory_efficient_attention=True,
        ),
    ),
)

_CLASSIFIER = (
    Change(
        "classifier-present-is-total",
        "operand",
        "the present length ignores a longer past",
        "classifier.py",
        "ite(on_cpu, maximum(total, past), past)",
        "ite(on_cpu, total, past)",
        at("classifier", past_sequence_length=128),
    ),
    Change(
        "classifier-batch-before-total",
        "order of checks",
        "the batch of a chunk is checked before the total length",
        "classifier.py",
        "    checks.require(run.total_sequence_length > 0,"
        ' "total_sequence_length_not_positive", when=on_cpu)\n'
        "    checks.require(\n"
        '        run.batch_size == 1, "batch_size_must_be_1",'
        ' when=phase.conditions["subsequent_prompt"]\n'
        "    )\n",
        "    checks.require(\n"
        '        run.batch_size == 1, "batch_size_must_be_1",'
        ' when=phase.conditions["subsequent_prompt"]\n'
        "    )\n"
        "    checks.require(run.total_sequence_length > 0,"
        ' "total_sequence_length_not_positive", when=on_cpu)\n',
        at("classifier", batch_size=2, sequence_length=2, total_sequence_length=0),
    ),
    Change(
        "classifier-prompt-on-gpu",
        "guard conjunct",
        "a first prompt is seen wherever the total length lives",
        "classifier.py",
        "first = all_of(on_cpu, whole)",
        "first = whole",
        at("classifier", sequence_length=64, total_sequence_length_on_cpu=False),
    ),
)

_BOUNDS = (
    Change(
        "bounds-xqa-count",
        "operator",
        "XQA is sized for the fewer of sequences and multiprocessors",
        "bounds.py",
        "count = maximum(sequences, bounds.multi_processor_count)",
        "count = minimum(sequences, bounds.multi_processor_count)",
        at("bounds", reachable_backends=["xqa"]),
    ),
    Change(
        "bounds-flash-one-split",
        "operand",
        "Flash is sized for one split",
        "bounds.py",
        "splits = split_ceiling(blocks, bounds.multi_processor_count)",
        "splits = minimum(1, split_ceiling(blocks, bounds.multi_processor_count))",
        at("bounds"),
    ),
    Change(
        "bounds-chunk-not-sized",
        "case",
        "the longest chunk is taken for a first prompt",
        "bounds.py",
        "return State(longest, TRUE), State(longest, FALSE)",
        "return State(longest, TRUE), State(longest, TRUE)",
        at(
            "bounds",
            cache_element_size=1,
            kv_cache_bit_width=8,
            k_quantization="per_tensor",
            v_quantization="per_tensor",
            decode_reachable=False,
        ),
    ),
    Change(
        "bounds-persistent-bytes",
        "constant",
        "a prepacked head sink is kept in 2 bytes",
        "bounds.py",
        "persistent = checks.product(4, bounds.num_heads, when=prepacked)",
        "persistent = checks.product(2, bounds.num_heads, when=prepacked)",
        at("bounds", head_sink_may_be_prepacked=True),
    ),
    Change(
        "bounds-head-size-not-rounded",
        "rounding",
        "a head size that is no multiple of 8 is sized as it is",
        "bounds.py",
        "return minimum(bounds.head_size_bound, limit) // 8 * 8",
        "return minimum(bounds.head_size_bound, limit)",
        at("bounds", head_size_bound=100),
    ),
    Change(
        "bounds-xqa-row-padding",
        "constant",
        "no room for the padding of XQA's rows",
        "bounds.py",
        "        127,\n",
        "        0,\n",
        at("bounds", reachable_backends=["xqa"]),
    ),
    Change(
        "bounds-xqa-vector-padding",
        "constant",
        "no room for the padding of XQA's accumulator",
        "bounds.py",
        "        vector - 1,\n",
        "        0,\n",
        at("bounds", reachable_backends=["xqa"]),
    ),
    Change(
        "bounds-fast-decode-window",
        "guard conjunct",
        "fast decode is sized for the capacity, whatever the window",
        "bounds.py",
        "prepared.layout.effective_kv_cache_capacity, bounds.local_window_size, boolean(fast)",
        "prepared.layout.effective_kv_cache_capacity, bounds.local_window_size, FALSE",
        at("bounds", reachable_backends=["flash_fast_decode"], local_window_size=256),
    ),
    Change(
        "bounds-fast-decode-one-token",
        "case",
        "fast decode is sized for one token, not for the longest chunk",
        "bounds.py",
        "flash_bound(bounds, chunk, fast=True)",
        "flash_bound(bounds, decode_state(), fast=True)",
        at("bounds", reachable_backends=["flash_fast_decode"]),
    ),
    Change(
        "bounds-unfused-before-mea",
        "order of checks",
        "unfused is sized first, and kept where MEA overflows",
        "bounds.py",
        '(("memory_efficient", mea_bound), ("unfused", unfused_bound), ("flash", flash_bound))',
        '(("unfused", unfused_bound), ("memory_efficient", mea_bound), ("flash", flash_bound))',
        at(
            "bounds",
            batch_size_bound=2**24,
            present_kv_cache_capacity_bound=2**31 - 1,
            prompt_reachable=False,
            reachable_backends=["memory_efficient", "unfused"],
        ),
    ),
    Change(
        "bounds-failed-route-counted",
        "guard conjunct",
        "a route that fails is counted all the same",
        "bounds.py",
        "counted = all_of(step.reached, checks.ok)",
        "counted = step.reached",
        at("bounds", k_quantization="per_tensor", reachable_backends=["unfused"]),
    ),
    Change(
        "bounds-small-head-first",
        "guard conjunct",
        "a head too small for XQA hides an invalid argument",
        "bounds.py",
        'all_of(started, reachable.has("xqa"), bounds.head_size_bound < XQA_HEAD_SIZES[0])',
        'all_of(reachable.has("xqa"), bounds.head_size_bound < XQA_HEAD_SIZES[0])',
        at("bounds", batch_size_bound=0, head_size_bound=32, reachable_backends=["xqa"]),
    ),
    Change(
        "bounds-smallest-head",
        "constant",
        "a head size below 8 is refused with the routes, not at once",
        "bounds.py",
        "bounds.head_size_bound >= 8",
        "bounds.head_size_bound >= 1",
        at("bounds", head_size_bound=4, head_sink_may_be_prepacked=True),
    ),
)

CHANGES: tuple[Change, ...] = (
    *_PREPARATION,
    *_VALIDATION,
    *_XQA,
    *_FLASH,
    *_SPLIT,
    *_FALLBACK,
    *_COMPLETE,
    *_CAPABILITIES,
    *_LADDER,
    *_CLASSIFIER,
    *_BOUNDS,
)
