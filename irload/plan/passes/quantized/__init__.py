"""Programs of quantized models: values between FakeQuantize and products become bytes."""
