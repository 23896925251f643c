"""Passes for quantized models: values between FakeQuantize and Conv or MatMul become u8."""
