"""Obligations about ONNX Runtime's CUDA GroupQueryAttention."""
