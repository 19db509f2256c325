"""Obligations about ONNX Runtime."""
