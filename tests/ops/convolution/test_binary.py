"""BinaryConvolution of quantized data, which the CPU plugin packs into bits."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset1 as op

import irload


@pytest.mark.parametrize(("channels", "window", "pad", "pad_value"), [(24, 1, 0, 0), (32, 3, 0, 0), (8, 3, 1, 1)])
def test_filters_start_with_the_low_bit(channels: int, window: int, pad: int, pad_value: float, tmp_path) -> None:
    rng = np.random.default_rng(channels)
    packed = rng.integers(0, 256, 16 * channels * window * window // 8).astype(np.uint8)
    filters = ov.op.Constant(ov.Tensor(packed, ov.Shape([16, channels, window, window]), ov.Type.u1))
    x = op.parameter([1, channels, 5, 5], np.float32)
    zero, one = (op.constant(np.full((1, 1, 1, 1), v, np.float32)) for v in (0, 1))
    bits = op.fake_quantize(x, zero, zero, zero, one, 2)
    pads = [pad, pad]
    out = op.binary_convolution(bits, filters, [1, 1], pads, pads, [1, 1], "xnor-popcount", pad_value, "EXPLICIT")
    model = ov.Model([out], [x])
    ov.serialize(model, tmp_path / "model.xml")
    data = rng.standard_normal((1, channels, 5, 5)).astype(np.float32)
    expected = ov.compile_model(model, "CPU")(data)[0]
    np.testing.assert_array_equal(irload.compile_model(tmp_path / "model.xml")(data)[0], expected)
