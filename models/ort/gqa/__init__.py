"""ONNX Runtime's CUDA GroupQueryAttention: its routes, their order and their scratch memory."""
