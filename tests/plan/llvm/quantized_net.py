"""Quantized models as NNCF and older tools write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from models.ir import Ref
from tests.plan.graphs import PAIRS, Net

QUANTUM = 0.125


class QuantizedNet(Net):
    """A net of layers as NNCF and older tools write them: FakeQuantize of data, i8 weights with a scale per channel."""

    def __init__(self, seed: int) -> None:
        Net.__init__(self, seed)
        self.rng = np.random.default_rng(seed)

    def quantized(self, x: Ref, low: float = 0.0, quantum: float | Array = QUANTUM, levels: int = 256) -> Ref:
        """A FakeQuantize with a zero point of −low."""
        ends = (np.asarray(end * quantum, np.float32) for end in (low, low + levels - 1) * 2)
        return self.op("FakeQuantize", x, *map(self.constant, ends), levels=levels, auto_broadcast="numpy")

    def stored(self, *shape: int, how: str = "compressed", largest: int = 127, channel: int = 0) -> Ref:
        """Weights with a scale of 2⁻⁶ or 2⁻⁷ per channel. `how`: "compressed", "zero point", or "fake" (quantized)."""
        whole = self.rng.integers(-largest, largest + 1, shape)
        scale = (0.5 ** self.rng.integers(6, 8, shape[channel])).astype(np.float32)
        scale = scale.reshape([-1 if k == channel else 1 for k in range(len(shape))])
        if how == "fake":  # the levels of u8, as the Model Optimizer stores them
            data = self.op("Convert", self.constant((whole + 127).astype(np.uint8)), destination_type="f32")
            ends = (0.0, 254.0, -127 * scale, 127 * scale)
            ends = (self.constant(np.asarray(end, np.float32)) for end in ends)
            return self.op("FakeQuantize", data, *ends, levels=255, auto_broadcast="numpy")
        data = self.op("Convert", self.constant(whole.astype(np.int8)), destination_type="f32")
        if how == "zero point":
            data = self.op("Subtract", data, self.constant(np.zeros_like(scale)))
        return self.op("Multiply", data, self.constant(scale))


def conv(net: QuantizedNet, x: Ref, weights: Ref, type: str = "Convolution", pads: int = 0, strides: int = 1) -> Ref:
    """A convolution of two axes."""
    attributes: dict[str, Any] = {
        **PAIRS,
        "pads_begin": f"{pads},{pads}",
        "pads_end": f"{pads},{pads}",
        "strides": f"{strides},{strides}",
    }
    return net.op(type, x, weights, **attributes)
