"""Quantization: operations that round floats to few levels and back."""
