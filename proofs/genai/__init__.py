"""What is claimed of onnx-genai's governed CUDA kernels."""
