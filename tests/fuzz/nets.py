"""Small models of many operations, which the fuzzer mutates in addition to models/ and single operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType, element_of_dtype
from tests.harness.body import Body, Value, back_edges, input_entry, output_entry, port_map
from tests.harness.case import Array
from tests.harness.material import random_array

NUMPY: dict[str, Any] = {"auto_broadcast": "numpy"}


@dataclass
class Net:
    """A model under construction, with a good input for every Parameter."""

    body: Body = field(default_factory=lambda: Body(bytearray()))
    inputs: list[Array] = field(default_factory=list[Array])
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def input(self, array: Any, shape: str | None = None, element: ElementType | None = None) -> Value:
        """A Parameter that accepts the array; `shape` if it accepts other shapes, too."""
        array = np.asarray(array)
        self.inputs.append(array)
        shape_text = ",".join(map(str, array.shape)) if shape is None else shape
        return self.body.parameter(element or element_of_dtype(array.dtype), shape_text)

    def random(self, *shape: int, element: ElementType = et.f32) -> Array:
        """Values between −1 and 1, or small integers."""
        return random_array(self.rng, shape, element, *((-3, 3) if element.is_integer else (-1, 1)))

    def const(self, *shape: int, element: ElementType = et.f32) -> Value:
        """A constant of random values."""
        return self.body.constant(self.random(*shape, element=element), element)

    def ints(self, *values: int) -> Value:
        """A 1-D constant of i64 values."""
        return self.body.constant(np.array(values, np.int64))

    def scalar(self, value: float, element: ElementType = et.f32) -> Value:
        """A scalar constant."""
        return self.body.constant(np.array(value), element)

    def op(self, type: str, *inputs: Value, version: str = "opset1", **data: Any) -> Value:
        """A layer of one output."""
        return self.body.op(type, *inputs, version=version, **data)

    def many(self, type: str, outputs: int, *inputs: Value, version: str, tail: str = "", **data: Any) -> list[Value]:
        """A layer of several outputs."""
        return self.body.nested(type, version, inputs, outputs, tail, **data)

    def results(self, *values: Value) -> Net:
        """Results for these values; completes the net."""
        for value in values:
            self.body.result(value)
        return self


def windows(axes: int, pads: int = 0, stride: int = 1) -> dict[str, Any]:
    """The attributes of a convolution."""
    sides = {"pads_begin": [pads] * axes, "pads_end": [pads] * axes}
    return {"strides": [stride] * axes, "dilations": [1] * axes, **sides, "auto_pad": "explicit"}


def pool(axes: int, inside: bool | None = None) -> dict[str, Any]:
    """The attributes of a 2×2 pooling. `inside`: whether an average excludes the padding."""
    sides = {"pads_begin": [0] * axes, "pads_end": [0] * axes}
    rest = {} if inside is None else {"exclude-pad": inside}
    return {
        "strides": [2] * axes,
        "kernel": [2] * axes,
        **sides,
        "rounding_type": "floor",
        "auto_pad": "explicit",
        **rest,
    }


def vision() -> Net:
    """Convolutions of all kinds, pooling, batch normalization, a classifier."""
    n = Net()
    x = n.input(n.random(1, 3, 12, 12))
    y = n.op("Add", n.op("Convolution", x, n.const(8, 3, 3, 3), **windows(2, 1)), n.const(1, 8, 1, 1), **NUMPY)
    y = n.op("ReLU", y)
    grouped = n.op("GroupConvolution", y, n.const(8, 1, 1, 3, 3), **windows(2, 1))
    y = n.op("Add", y, n.op("Clamp", grouped, min=0.0, max=6.0), **NUMPY)
    y = n.op("MaxPool", y, **pool(2))
    scale = n.body.constant(np.abs(n.random(8)) + 1)
    y = n.op("BatchNormInference", y, scale, n.const(8), n.const(8), scale, version="opset5", epsilon=0.001)
    up = n.op("ConvolutionBackpropData", y, n.const(8, 4, 2, 2), **windows(2, 0, 2))
    y = n.op("AvgPool", up, **pool(2, inside=True))
    y = n.op("ReduceMean", n.op("PRelu", y, n.const(4)), n.ints(2, 3), keep_dims=False)
    y = n.op("MatMul", y, n.const(5, 4), transpose_a=False, transpose_b=True)
    return n.results(n.op("Softmax", y, version="opset8", axis=1), up)


def volume() -> Net:
    """Convolutions over three axes and over one."""
    n = Net()
    x = n.input(n.random(1, 2, 4, 6, 6))
    y = n.op("Convolution", x, n.const(4, 2, 3, 3, 3), **windows(3, 1))
    y = n.op("Sigmoid", n.op("MaxPool", y, **pool(3)))
    up = n.op("ConvolutionBackpropData", y, n.const(4, 2, 2, 2, 2), **windows(3, 0, 2))
    flat = n.op("Reshape", up, n.ints(0, 2, -1), special_zero=True)
    line = n.op("Convolution", flat, n.const(3, 2, 5), **windows(1, 2, 3))
    return n.results(up, n.op("HSwish", line, version="opset4"))


def shapes() -> Net:
    """Shapes computed at run time: slices, ranges, broadcasts, tiles, paddings, resizing."""
    n = Net()
    x = n.input(n.random(2, 3, 4, 5), "1..4,3,?,?")
    shape = n.op("ShapeOf", x, version="opset3", output_type="i64")
    height = n.op("Gather", shape, n.ints(2), n.scalar(0, et.i64), version="opset8", batch_dims=0)
    count = n.op("Squeeze", height, n.ints(0))
    line = n.op("Range", n.scalar(0, et.i64), count, n.scalar(1, et.i64), version="opset4", output_type="f32")
    masks: dict[str, Any] = {
        "begin_mask": [0] * 4,
        "end_mask": [1, 1, 0, 1],
        "new_axis_mask": [],
        "shrink_axis_mask": [],
    }
    cut = n.op("StridedSlice", x, n.ints(0, 0, 1, 0), n.ints(0, 0, -1, 0), n.ints(1, 1, 1, 1), **masks)
    padded = n.op("Pad", cut, n.ints(0, 0, 1, 1), n.ints(0, 0, 1, 2), n.scalar(0.5), pad_mode="constant")
    sizes = {"mode": "linear_onnx", "shape_calculation_mode": "scales", "coordinate_transformation_mode": "asymmetric"}
    more = {"nearest_mode": "floor", "antialias": False, "pads_begin": [0], "pads_end": [0], "cube_coeff": -0.75}
    scales = n.body.constant(np.array([2, 1.5], np.float32))
    large = n.op("Interpolate", padded, n.ints(0, 0), scales, n.ints(2, 3), version="opset4", **sizes, **more)
    tiled = n.op("Tile", line, n.ints(3))
    wide = n.op("Broadcast", line, n.op("Concat", n.ints(2), height, axis=0), version="opset3", mode="numpy")
    first = n.op("Slice", x, n.ints(0), n.ints(2), n.ints(1), n.ints(3), version="opset8")
    moved = n.op("Transpose", first, n.ints(0, 2, 3, 1))
    ones = n.op("NonZero", n.op("Greater", x, n.scalar(0), **NUMPY), version="opset3", output_type="i64")
    return n.results(large, tiled, wide, moved, ones)


def selection() -> Net:
    """Gathering and scattering, sorting, one-hot vectors."""
    n = Net()
    x = n.input(n.random(4, 6))
    where = n.input(np.array([1, 0, 3], np.int64), "?")
    layer = n.op("Gather", x, where, n.scalar(0, et.i64), version="opset8", batch_dims=0)
    points = n.body.constant(np.array([[0, 1], [3, 5]], np.int64))
    deep = n.op("GatherND", x, points, version="opset8", batch_dims=0)
    put = n.op("ScatterUpdate", x, n.ints(2, 0), n.const(2, 6), n.scalar(0, et.i64), version="opset3")
    put = n.op("ScatterNDUpdate", put, points, deep, version="opset4")
    put = n.op(
        "ScatterElementsUpdate", put, n.body.constant(np.array([[1, 2]])), n.const(1, 2), n.ints(1), version="opset3"
    )
    top = n.many("TopK", 2, put, n.scalar(3, et.i64), version="opset11", axis=1, mode="max", sort="value", stable=True)
    hot = n.op("OneHot", where, n.scalar(5, et.i64), n.scalar(1), n.scalar(0), axis=-1)
    total = n.op("CumSum", layer, n.scalar(1, et.i64), version="opset3", exclusive=False, reverse=True)
    kinds: dict[str, Any] = {
        "version": "opset10",
        "sorted": True,
        "index_element_type": "i64",
        "count_element_type": "i64",
    }
    unique = n.many("Unique", 4, where, **kinds)
    halves = n.many("VariadicSplit", 2, x, n.scalar(1, et.i64), n.ints(2, -1), version="opset1")
    chosen = n.op("Select", n.op("Less", halves[0], n.scalar(0), **NUMPY), halves[0], n.scalar(2), **NUMPY)
    return n.results(*top, hot, total, *unique, chosen, halves[1], deep)


def attention() -> Net:
    """Normalization and attention in f32, f16 and bf16."""
    n = Net()
    x = n.input(n.random(1, 4, 8))
    mvn: dict[str, Any] = {"version": "opset6", "normalize_variance": True, "eps": 1e-5, "eps_mode": "INSIDE_SQRT"}
    y = n.op("Multiply", n.op("MVN", x, n.ints(-1), **mvn), n.const(8), **NUMPY)
    half = n.op("Convert", n.const(8, 8, element=et.f16), destination_type="f32")
    query = n.op("MatMul", y, half, transpose_a=False, transpose_b=False)
    scores = n.op("MatMul", query, y, transpose_a=False, transpose_b=True)
    weighed = n.op("Softmax", n.op("Divide", scores, n.scalar(2.8), m_pythondiv=True), version="opset8", axis=-1)
    out = n.op("Gelu", n.op("MatMul", weighed, y), version="opset7", approximation_mode="tanh")
    low = n.op("Convert", out, destination_type="bf16")
    low = n.op("Add", low, n.const(1, 4, 8, element=et.bf16), **NUMPY)
    short = n.op("Swish", n.op("Convert", out, destination_type="f16"), version="opset4")
    whole = n.op("ScaledDotProductAttention", out, y, y, version="opset13", causal=True)
    return n.results(low, short, whole)


def quantized() -> Net:
    """Constants of 8 and 4 bits, their zero points, and FakeQuantize."""
    n = Net()
    x = n.input(n.random(1, 3, 6, 6))
    pixels = n.input(n.random(1, 3, 6, 6, element=et.u8))
    limits = [n.scalar(v) for v in (-1, 1, -1, 1)]
    fake = n.op("FakeQuantize", x, *limits, levels=256, **NUMPY)
    weights = n.op("Convert", n.const(4, 3, 3, 3, element=et.i8), destination_type="f32")
    filters = n.op("Multiply", weights, n.const(4, 1, 1, 1), **NUMPY)
    y = n.op(
        "Convolution",
        n.op("Add", fake, n.op("Convert", pixels, destination_type="f32"), **NUMPY),
        filters,
        **windows(2, 1),
    )
    flat = n.op("Reshape", y, n.ints(1, -1), special_zero=False)
    packed = n.op("Convert", n.const(6, 144, element=et.u4), destination_type="f16")
    zero = n.op("Convert", n.const(6, 1, element=et.u4), destination_type="f16")
    centred = n.op("Multiply", n.op("Subtract", packed, zero, **NUMPY), n.const(6, 1, element=et.f16), **NUMPY)
    signed = n.op("Convert", n.const(6, 6, element=et.i4), destination_type="f32")
    y = n.op("MatMul", flat, n.op("Convert", centred, destination_type="f32"), transpose_a=False, transpose_b=True)
    return n.results(
        n.op("MatMul", y, signed), n.op("BitwiseAnd", pixels, n.const(1, element=et.u8), version="opset13")
    )


def detection() -> Net:
    """Boxes: anchors, suppression, pooling of regions."""
    n = Net()
    boxes = n.input(np.abs(n.random(1, 6, 4)) + np.array([0, 0, 1, 1], np.float32))
    scores = n.input(np.abs(n.random(1, 2, 6)))
    image = n.input(n.random(1, 2, 8, 8))
    limits = [n.scalar(3, et.i64), n.scalar(0.5), n.scalar(0.1), n.scalar(0)]
    kinds: dict[str, Any] = {"box_encoding": "corner", "sort_result_descending": True, "output_type": "i64"}
    kept = n.many("NonMaxSuppression", 3, boxes, scores, *limits, version="opset9", **kinds)
    prior: dict[str, Any] = {
        "min_size": [4.0],
        "max_size": [6.0],
        "aspect_ratio": [2.0],
        "flip": True,
        "clip": False,
        "step": 4.0,
    }
    prior |= {"offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2], "scale_all_sizes": True, "fixed_ratio": []}
    anchors = n.op("PriorBox", n.ints(2, 2), n.ints(8, 8), **prior, fixed_size=[], density=[], version="opset1")
    rois = n.op("Reshape", boxes, n.ints(6, 4), special_zero=False)
    align: dict[str, Any] = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "avg"}
    batch = n.body.constant(np.zeros(6, np.int64))
    pooled = n.op("ROIAlign", image, rois, batch, version="opset9", **align, aligned_mode="asymmetric")
    grid = n.op(
        "GridSample",
        image,
        n.const(1, 3, 3, 2),
        version="opset9",
        mode="bilinear",
        padding_mode="border",
        align_corners=False,
    )
    return n.results(*kept, anchors, pooled, grid)


def recurrent() -> Net:
    """An LSTM over a sequence, a cell in a TensorIterator, and a loop inside the branch of an If."""
    n = Net()
    x = n.input(n.random(2, 5, 3))
    start = n.input(n.random(2, 4))
    lengths = n.body.constant(np.array([5, 3], np.int64))
    state = n.op("Unsqueeze", start, n.ints(1))
    weights = [n.const(1, 16, 3), n.const(1, 16, 4), n.const(1, 16)]
    kind: dict[str, Any] = {"hidden_size": 4, "direction": "forward", "version": "opset5"}
    whole = n.many("LSTMSequence", 3, x, state, state, lengths, *weights, **kind)

    inner = Body(n.body.weights)
    step, before = inner.parameter(et.f32, "2,1,3"), inner.parameter(et.f32, "2,4")
    flat = inner.op("Reshape", step, inner.constant(np.array([2, 3])), special_zero=False)
    gates = [inner.constant(n.random(*s)) for s in ((12, 3), (12, 4), (12,))]
    after = inner.op("GRUCell", flat, before, *gates, version="opset3", hidden_size=4, linear_before_reset=False)
    each = inner.result(inner.op("Unsqueeze", after, inner.constant(np.array([1]))))
    carried = inner.result(after)
    lines = (
        input_entry(0, step, axis=1),
        input_entry(1, before),
        output_entry(2, each, axis=1),
        output_entry(3, carried),
    )
    tail = port_map(*lines) + back_edges((carried, before)) + inner.xml()
    walked = n.many("TensorIterator", 2, x, start, version="opset1", tail=tail)

    choice = n.input(np.array(True))
    chosen = n.many("If", 1, choice, start, version="opset8", tail=_doubling(n.body.weights) + _halving(n.body.weights))
    return n.results(*whole, *walked, *chosen)


def _doubling(weights: bytearray) -> str:
    """A branch that doubles its input three times, in a loop."""
    then, body = Body(weights), Body(weights)
    outer = then.parameter(et.f32, "2,4")
    body.parameter(et.i64, "")
    value = body.parameter(et.f32, "2,4")
    more, doubled = body.result(body.constant(np.array(True))), body.result(body.op("Add", value, value, **NUMPY))
    purpose = input_entry(-1, Value(0, 0), purpose="current_iteration")
    lines = (
        purpose,
        input_entry(2, value),
        output_entry(-1, more, purpose="execution_condition"),
        output_entry(3, doubled),
    )
    tail = port_map(*lines) + back_edges((doubled, value)) + body.xml()
    trips, go = then.constant(np.array(3)), then.constant(np.array(True))
    out = then.result(then.nested("Loop", "opset5", [trips, go, outer], 1, tail)[0])
    return port_map(input_entry(1, outer), output_entry(2, out), tag="then_port_map") + then.xml("then_body")


def _halving(weights: bytearray) -> str:
    """A branch that halves its input."""
    other = Body(weights)
    value = other.parameter(et.f32, "2,4")
    out = other.result(other.op("Multiply", value, other.constant(np.float32(0.5)), **NUMPY))
    return port_map(input_entry(1, value), output_entry(2, out), tag="else_port_map") + other.xml("else_body")


def states() -> Net:
    """Two variables: a running sum, and a history that grows."""
    n = Net()
    x = n.input(n.random(1, 3))
    total: dict[str, Any] = {"variable_id": "total", "variable_type": "f32", "variable_shape": "1,3"}
    before = n.op("ReadValue", n.const(1, 3), version="opset6", **total)
    after = n.op("Add", before, x, **NUMPY)
    n.op("Assign", after, version="opset6", variable_id="total")
    grown: dict[str, Any] = {"variable_id": "past", "variable_type": "f32", "variable_shape": "?,3"}
    past = n.op("ReadValue", n.const(1, 3), version="opset6", **grown)
    longer = n.op("Concat", past, after, axis=0)
    n.op("Assign", longer, version="opset6", variable_id="past")
    return n.results(after, n.op("ReduceSum", longer, n.ints(0), keep_dims=True))


def signals() -> Net:
    """Strings and Fourier transforms."""
    n = Net()
    text = n.input(np.array(["one", "", "three"], object), "?", et.string)
    parts = n.many("StringTensorUnpack", 3, text, version="opset15")
    again = n.op("StringTensorPack", *parts, version="opset15")
    wave = n.input(n.random(2, 8, 2))
    spectrum = n.op("DFT", wave, n.ints(1), version="opset7")
    real = n.op("IRDFT", spectrum, n.ints(1), n.ints(12), version="opset9")
    product = n.op("Einsum", real, real, version="opset7", equation="ab,cb->ac")
    return n.results(again, parts[1], product)


NETS: dict[str, Callable[[], Net]] = {
    f.__name__: f
    for f in (vision, volume, shapes, selection, attention, quantized, detection, recurrent, states, signals)
}
