"""onnx-genai's CUDA workspace governance: what its kernels plan, and what they execute."""
