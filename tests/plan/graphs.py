"""Graphs of operations for tests of plans against `compute`: shapes are left to inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import irload
from irload.core.element import ElementType
from irload.core.packing import pack
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.sanitizing import sanitizing
from models import ir

PAIRS = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


class Net:
    """Consecutive layers: `x = net.input(1, 3, 8, 8)`, `net.op("ReLU", x)`, `net.model(y)`."""

    def __init__(self, seed: int = 0) -> None:
        self._graph = ir.Graph()
        self._rng = np.random.default_rng(seed)
        self.shapes: list[tuple[int, ...]] = []

    def input(self, *shape: int) -> ir.Ref:
        """An f32 input."""
        self.shapes.append(shape)
        return self._graph.parameter(f"x{len(self.shapes)}", "f32", shape)

    def integers(self, *shape: int) -> ir.Ref:
        """An i64 input."""
        self.shapes.append(shape)
        return self._graph.parameter(f"x{len(self.shapes)}", "i64", shape)

    def constant(self, value: object) -> ir.Ref:
        """A Const; plain numbers are i64."""
        return self._graph.constant(value)

    def codes(self, values: Array, element: ElementType) -> ir.Ref:
        """A Const of any element type; `values` in its storage dtype."""
        graph, raw = self._graph, pack(values, element)
        attributes = {"element_type": element.name, "shape": ",".join(map(str, values.shape))}
        attributes |= {"offset": str(len(graph.blob)), "size": str(len(raw))}
        graph.blob += raw
        return graph.layer("Const", [], [(element.name, values.shape)], attributes=attributes)[0]

    def weights(self, *shape: int) -> ir.Ref:
        """A Const of normal numbers."""
        return self._graph.constant(self._rng.standard_normal(shape).astype(np.float32))

    def op(self, type: str, *inputs: ir.Ref, version: str = "opset1", outputs: int = 1, **attributes: object) -> ir.Ref:
        """The first output of an operation."""
        return self.ops(type, *inputs, version=version, outputs=outputs, **attributes)[0]

    def ops(
        self, type: str, *inputs: ir.Ref, version: str = "opset1", outputs: int = 1, **attributes: object
    ) -> list[ir.Ref]:
        """All outputs of an operation."""
        types = [("f32", ())] * outputs
        return self._graph.layer(type, inputs, types, version=version, attributes=attributes)

    def conv(self, x: ir.Ref, channels: int, out: int, kernel: int = 1, **attributes: object) -> ir.Ref:
        """A convolution of two spatial axes."""
        w = self.weights(out, channels, kernel, kernel)
        return self.op("Convolution", x, w, **{**PAIRS, **attributes})

    def depthwise(self, x: ir.Ref, channels: int, kernel: int = 3, **attributes: object) -> ir.Ref:
        """A depthwise convolution of two spatial axes."""
        w = self.weights(channels, 1, 1, kernel, kernel)
        return self.op("GroupConvolution", x, w, **{**PAIRS, **attributes})

    def reshape(self, x: ir.Ref, *shape: int) -> ir.Ref:
        """A Reshape."""
        return self.op("Reshape", x, self.constant(list(shape)), special_zero=False)

    def transpose(self, x: ir.Ref, *order: int) -> ir.Ref:
        """A Transpose."""
        return self.op("Transpose", x, self.constant(list(order)))

    def concat(self, *inputs: ir.Ref, axis: int = 1) -> ir.Ref:
        """A Concat."""
        return self.op("Concat", *inputs, axis=axis)

    def model(self, *outputs: ir.Ref) -> Model:
        """The model with these outputs."""
        for output in outputs:
            self._graph.result(output)
        text = f'<net name="n" version="11">{self._graph.text()}</net>'
        return irload.read_model(text.encode(), bytes(self._graph.blob))


def agrees(
    model: Model,
    shapes: Sequence[Sequence[int]],
    *,
    tolerance: float = 1e-5,
    special: bool = False,
    precise: bool = False,
) -> None:
    """Check the plan against `compute`, at one, two and three threads, each run twice on different numbers.

    With `special` the inputs include NaN and infinities, and the results must have them at the same positions.
    """
    rng = np.random.default_rng(7)
    inputs = [[_numbers(rng, shape, special) for shape in shapes] for _ in range(2)]
    plain = irload.compile_model(model, optimize=False)
    expected = [list(plain(arrays).values()) for arrays in inputs]
    for threads in (1, 2, 3):
        with sanitizing():
            plan = irload.compile_model(model, threads, precise=precise)
            for arrays, wanted in zip(inputs, expected, strict=True):
                for actual, value in zip(plan(arrays).values(), wanted, strict=True):
                    close(actual, value, tolerance)


def close(actual: Array, wanted: Array, tolerance: float) -> None:
    """Compare numbers, including the positions of NaN and infinities."""
    finite = np.isfinite(wanted)
    spread = float(np.std(wanted[finite], dtype=np.float64)) if finite.any() else 0.0
    scale = tolerance * max(spread, 1e-3)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(wanted))
    np.testing.assert_array_equal(actual[~finite], wanted[~finite])
    np.testing.assert_allclose(actual[finite], wanted[finite], rtol=tolerance, atol=scale)


def _numbers(rng: np.random.Generator, shape: Sequence[int], special: bool) -> Array:
    array = rng.standard_normal(shape).astype(np.float32)
    if special and array.size:
        flat = array.reshape(-1)
        places = rng.choice(array.size, max(1, min(3, array.size // 8)), replace=False)
        flat[places] = rng.choice(np.float32([np.nan, np.inf, -np.inf]), len(places))
    return array
