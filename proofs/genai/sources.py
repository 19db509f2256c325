"""Where the genai obligations come from: kernels of the CUDA plugin, and their revisions."""

from __future__ import annotations

from routeproof.spec.function import Source

__all__ = ["FUNCTION_SOURCES"]

_PLUGIN = "onnx-genai, CUDA plugin"

FUNCTION_SOURCES = {
    "std_attention.layout": Source(
        f"{_PLUGIN}, Attention", "workspace layout", "13f664a0a, 4d4c22732"
    ),
    "std_attention.requirement": Source(
        f"{_PLUGIN}, Attention", "requirement", "13f664a0a, 4d4c22732, 4c1b59428"
    ),
    "gqa.layout": Source(f"{_PLUGIN}, GroupQueryAttention", "workspace layout", "d7db6f2c4"),
    "gqa.requirement": Source(
        f"{_PLUGIN}, GroupQueryAttention", "requirement", "d7db6f2c4, ac9c7dd06"
    ),
    "index_share.layout": Source(f"{_PLUGIN}, IndexShare", "workspace layout", "d2db1f5ac"),
    "index_share.requirement": Source(f"{_PLUGIN}, IndexShare", "requirement", "d2db1f5ac"),
    "phase2a.layout": Source(f"{_PLUGIN}, com.microsoft Attention", "Phase-2a layout", "d74ca938d"),
    "matmul_nbits": Source(f"{_PLUGIN}, MatMulNBits", "route choice", "ac9c7dd06"),
}
