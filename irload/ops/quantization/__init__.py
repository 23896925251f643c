"""Quantization: rounding of floats to few levels."""
