"""ONNX Runtime, as far as its kernels choose routes and ask for scratch memory."""
