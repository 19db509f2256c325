"""What each kernel is compiled for: head sizes, group sizes, devices, element types.

Sources, all under `onnxruntime/contrib_ops/cuda/bert/`: `group_query_attention_eligibility.h`
(0994faae) and `group_query_attention_workspace_xqa_flash.cc` (bcdb68db).
"""

from __future__ import annotations

from routeproof.spec.terms import Bool, Enum, Int, all_of, any_of, ite

__all__ = [
    "FLASH_MAX_HEAD_SIZE",
    "MEA_MAX_HEAD_SIZE",
    "XQA_HEAD_SIZES",
    "flash_supports",
    "has_fp8",
    "mea_has_kernel",
    "xqa_has_group_size",
    "xqa_has_head_size",
]

XQA_HEAD_SIZES = (64, 128, 256)
FLASH_MAX_HEAD_SIZE = 256
MEA_MAX_HEAD_SIZE = 1024


def xqa_has_head_size(head_size: Int) -> Bool:
    """XQA is compiled for the head size (elements): not monotone."""
    return head_size.is_in(*XQA_HEAD_SIZES)


def xqa_has_group_size(num_heads: Int, kv_num_heads: Int, quantized: Bool) -> Bool:
    """XQA is compiled for this many query heads per KV head: not monotone."""
    group = num_heads // kv_num_heads
    return ite(quantized, group.is_in(4, 8, 16, 32), group.is_in(1, 2, 4, 5, 8, 16, 32))


def has_fp8(major: Int, minor: Int) -> Bool:
    """The device computes with FP8: 9.0 and later, or exactly 8.9."""
    return any_of(major >= 9, all_of(major == 8, minor == 9))


def flash_supports(major: Int, head_size: Int, num_heads: Int, kv_num_heads: Int) -> Bool:
    """`is_supported` of Flash: device, head size (elements), whole groups."""
    return all_of(
        major >= 8,
        head_size % 8 == 0,
        head_size <= FLASH_MAX_HEAD_SIZE,
        num_heads % kv_num_heads == 0,
    )


def mea_has_kernel(element_type: Enum, major: Int, minor: Int, head_size: Int) -> Bool:
    """MEA has a kernel: head size (elements), and 5.3 for fp16 or 8.0 for bf16."""
    fp16_device = any_of(major > 5, all_of(major == 5, minor >= 3))
    device = ite(element_type == "bf16", major >= 8, fp16_device)
    return all_of(head_size % 8 == 0, head_size <= MEA_MAX_HEAD_SIZE, device)
