"""Random chains of FakeQuantize, convolutions, matmuls and layers that pass bytes through.

All scales are powers of two, so that sums in floats are exact, and no value is on the boundary of two levels.
Therefore results in integers and in floats must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.sanitizing import sanitizing
from irload.record import record
from models.ir import Ref
from tests.plan.llvm.quantized_net import QuantizedNet, conv


@record()
class Value:
    """A value of four axes, whose elements are multiples of `unit`."""

    ref: Ref
    shape: tuple[int, ...]
    unit: float
    per_tensor: bool = False
    """True if one scale applies to all elements."""


class Chain:
    """A random model."""

    def __init__(self, seed: int) -> None:
        self.net = QuantizedNet(seed)
        self.rng = self.net.rng
        self.values: list[Value] = []

    def model(self, length: int) -> Model:
        """The model; its results are the output of the last layer and an intermediate value."""
        shape = (self.pick(1, 2), self.pick(1, 3, 4, 8, 16, 21), self.pick(5, 9, 16), self.pick(4, 7, 12))
        self.quantize(self.net.input(*shape), shape, 2.0**-6)
        for _ in range(length):
            layer = self.pick(self.conv, self.conv, self.depthwise, self.add, self.concat, self.pool, self.activation)
            layer(self.values[-1] if self.rng.random() < 0.7 else self.pick(*self.values))
        last, other = self.values[-1], self.pick(*self.values)
        # A product of data with several scales is in floats: its sums may round, and with compressed weights
        # precision="auto" quantizes the data in groups.
        if self.rng.random() < 0.6 or not last.per_tensor:
            return self.net.model(last.ref, other.ref)
        flat = self.net.op("Reshape", last.ref, self.net.constant([last.shape[0], -1]), special_zero=False)
        weights = self.net.stored(10, int(np.prod(last.shape[1:])), how=self.how(), largest=self.largest())
        return self.net.model(self.net.op("MatMul", flat, weights, transpose_a=False, transpose_b=True), other.ref)

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return options[int(self.rng.integers(len(options)))]

    def how(self) -> str:
        """How weights are stored."""
        return self.pick("compressed", "zero point", "fake")

    def largest(self) -> int:
        """The largest weight, which decides whether sums of two products fit into i16."""
        return self.pick(7, 63, 127)

    def quantize(self, x: Ref, shape: tuple[int, ...], unit: float) -> None:
        """Append a FakeQuantize, sometimes with a scale per channel. Half a unit keeps values off the boundaries."""
        low, quantum = float(self.pick(0, 0, -128, -3)), unit * 2.0 ** self.pick(3, 5, 7, 9)
        width: float | Array = quantum
        if self.rng.random() < 0.2:
            width = (quantum * 0.5 ** self.rng.integers(0, 3, (1, shape[1], 1, 1))).astype(np.float32)
        moved = self.net.op("Add", x, self.net.constant(np.full(1, unit / 2, np.float32)))
        levels = self.pick(256, 256, 255, 16)
        y = self.net.quantized(moved, low, width, levels)
        self.values.append(Value(y, shape, float(np.min(width)), per_tensor=isinstance(width, float)))

    def conv(self, x: Value) -> None:
        """A convolution, perhaps with a bias and an activation."""
        kernel, stride, channels = self.pick(1, 1, 3), self.pick(1, 1, 2), self.pick(4, 8, 10, 24)
        pads = kernel // 2 if min(x.shape[2:]) < kernel else self.pick(0, kernel // 2)
        sizes = tuple((n + 2 * pads - kernel) // stride + 1 for n in x.shape[2:])
        weights = self.net.stored(channels, x.shape[1], kernel, kernel, how=self.how(), largest=self.largest())
        y, unit = conv(self.net, x.ref, weights, pads=pads, strides=stride), x.unit / 128
        if self.rng.random() < 0.5:
            bias = unit * self.rng.integers(-999, 999, (1, channels, 1, 1))
            y = self.net.op("Add", y, self.net.constant(bias.astype(np.float32)))
        if self.rng.random() < 0.5:
            y = self.net.op("ReLU", y)
        self.quantize(y, (x.shape[0], channels, *sizes), unit)

    def depthwise(self, x: Value) -> None:
        """A depthwise convolution of 3 × 3."""
        weights = self.net.stored(x.shape[1], 1, 3, 3, how=self.how(), largest=self.largest())
        ends = self.net.constant([x.shape[1], 1, 1, 3, 3])
        weights = self.net.op("Reshape", weights, ends, special_zero=False)
        self.quantize(conv(self.net, x.ref, weights, "GroupConvolution", 1), x.shape, x.unit / 128)

    def add(self, x: Value) -> None:
        """A sum with a value of the same shape."""
        other = self.pick(*(v for v in self.values if v.shape == x.shape))
        self.quantize(self.net.op("Add", x.ref, other.ref), x.shape, min(x.unit, other.unit))

    def concat(self, x: Value) -> None:
        """A concatenation along the channels, which may be quantized again."""
        other = self.pick(*(v for v in self.values if (v.shape[0], *v.shape[2:]) == (x.shape[0], *x.shape[2:])))
        y, unit = self.net.concat(x.ref, other.ref), min(x.unit, other.unit)
        shape = (x.shape[0], x.shape[1] + other.shape[1], *x.shape[2:])
        if self.rng.random() < 0.5:
            self.quantize(y, shape, unit)
        else:
            self.values.append(Value(y, shape, unit))

    def pool(self, x: Value) -> None:
        """A pooling of 2 × 2: maxima remain quantized, means are quantized again."""
        if min(x.shape[2:]) < 2:
            return
        type = self.pick("MaxPool", "AvgPool")
        window: dict[str, Any] = {"kernel": "2,2", "rounding_type": "floor", "strides": "2,2"}
        window |= {"pads_begin": "0,0", "pads_end": "0,0"}
        window |= {"exclude-pad": True} if type == "AvgPool" else {}
        shape, y = (*x.shape[:2], *(n // 2 for n in x.shape[2:])), self.net.op(type, x.ref, **window)
        if type == "MaxPool":
            self.values.append(Value(y, shape, x.unit, x.per_tensor))
        else:
            self.quantize(y, shape, x.unit / 4)

    def activation(self, x: Value) -> None:
        """A PReLU with a slope of a quarter."""
        slope = self.net.constant(np.full(1, 0.25, np.float32))
        self.quantize(self.net.op("PReLU", x.ref, slope), x.shape, x.unit / 4)


def difference(seed: int) -> str | None:
    """The difference of a random chain in integers from `compute`, None if they agree.

    Winograd's algorithm must be disabled: it rounds sums, which may select another level.
    """
    model = Chain(seed).model(3 + seed % 5)
    shape = model.parameters[0].outputs[0].type.shape.static
    data = (np.random.default_rng(seed).integers(-800, 800, shape) / 64).astype(np.float32)
    with sanitizing():
        result = irload.compile_model(model, 1 + seed % 2, precision="auto")(data)
    wanted = irload.compile_model(model, optimize=False)(data)
    for k in range(len(wanted)):
        if not np.array_equal(result[k], wanted[k]):
            share, most = np.mean(result[k] != wanted[k]), np.abs(result[k] - wanted[k]).max()
            return f"seed {seed}, output {k}: {share:.4f} of the elements differ, by at most {most}"
    return None
