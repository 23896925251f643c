"""Activations: their edges (NaN, infinities, large values), integers, and the errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset8 as ops

import irload
from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation
from tests.harness.runtime import core

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("type", "version", "attributes", "x", "expected"),
    [
        ("ReLU", "opset1", {}, [NAN, -INF, -2, 3], [NAN, 0, 0, 3]),
        ("Clamp", "opset1", {"min": -1.0, "max": 2.0}, [NAN, -INF, 0.5, 7], [NAN, -1, 0.5, 2]),
        ("Elu", "opset1", {"alpha": 2.0}, [-INF, 0, INF], [-2, 0, INF]),
        ("Sigmoid", "opset1", {}, [-1000, 0, 1000], [0, 0.5, 1]),
        ("SoftPlus", "opset4", {}, [-1000, 0, 1000, INF], [0, math.log(2), 1000, INF]),
        ("Mish", "opset4", {}, [-1000, 0, 1000], [0, 0, 1000]),
        ("HSigmoid", "opset5", {}, [-4, -3, 0, 3, 4], [0, 0, 0.5, 1, 1]),
        ("HSwish", "opset4", {}, [-4, -3, 0, 3, 4], [0, 0, 0, 3, 4]),
        ("SoftSign", "opset9", {}, [-3, 0, 1], [-0.75, 0, 0.5]),
        ("Gelu", "opset2", {}, [-1000, 0, 1, 1000], [0, 0, 0.8413447, 1000]),
        ("Gelu", "opset7", {"approximation_mode": "tanh"}, [0, 1], [0, 0.841192]),
        ("Swish", "opset4", {}, [0, 2], [0, 2 / (1 + math.exp(-2))]),
        ("SoftMax", "opset1", {"axis": 0}, [1000, 1000], [0.5, 0.5]),
        ("SoftMax", "opset8", {"axis": -1}, [-INF, -INF], [NAN, NAN]),
        ("LogSoftmax", "opset5", {"axis": 0}, [-1000, 0], [-1000, 0]),
    ],
)
def test_values(type: str, version: str, attributes: dict[str, Any], x: list[float], expected: list[float]) -> None:
    (output,) = computed(type, version, np.array(x, np.float32), **attributes)
    np.testing.assert_allclose(output, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("element", "low", "high", "expected"),
    [
        (et.i32, -1.5, 2.5, [-1, -1, 0, 2, 2]),
        (et.i8, -1e9, 1e9, [-100, -2, 0, 3, 100]),
        (et.i64, -INF, 0.0, [-100, -2, 0, 0, 0]),
        (et.i64, -3.4e38, 3.4e38, [-100, -2, 0, 3, 100]),
        (et.i64, -2.5, INF, [-2, -2, 0, 3, 100]),
    ],
)
def test_clamp_keeps_integers_within(element: et.ElementType, low: float, high: float, expected: list[int]) -> None:
    (output,) = computed("Clamp", "opset1", ([-100, -2, 0, 3, 100], element), min=low, max=high)
    assert output.tolist() == expected


def test_clamp_of_unsigned_below_zero() -> None:
    (output,) = computed("Clamp", "opset1", ([0, 3, 200], et.u8), min=-5.0, max=100.0)
    assert output.tolist() == [0, 3, 100]


def test_sigmoid_of_integers_is_a_step() -> None:
    assert computed("Sigmoid", "opset1", ([-3, 0, 1], et.i32))[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("x", "slope", "factor"),
    [
        ((2, 3, 4), (3,), lambda n, c, w: c + 2),  # by channel
        ((2, 3, 4), (4,), lambda n, c, w: w + 2),  # no channel matches: the last axis
        ((2, 3, 3), (3,), lambda n, c, w: c + 2),  # the channel axis takes precedence over the last axis
        ((2, 3, 4), (3, 1), lambda n, c, w: c + 2),
        ((2, 3, 4), (1,), lambda n, c, w: 0 * n + 2),
        ((), (1,), lambda: 2),  # PyTorch's slope of a scalar
        ((3,), (1, 1), lambda n: 0 * n + 2),
        ((3,), (1, 3), lambda n: n + 2),
    ],
)
def test_prelu_slopes(x: tuple[int, ...], slope: tuple[int, ...], factor: Any) -> None:
    slopes = np.arange(2, 2 + math.prod(slope)).reshape(slope).astype(np.float32)
    (output,) = computed("PReLU", "opset1", -np.ones(x, np.float32), slopes)
    assert np.array_equal(output, -np.broadcast_to(factor(*np.indices(x)), x))


def test_prelu_of_integers() -> None:
    (output,) = computed("PReLU", "opset1", np.array([[-3, 2], [-7, 5]], np.int32), np.array([2, 3], np.int32))
    assert output.tolist() == [[-6, 2], [-14, 5]]


def test_selu_and_hard_sigmoid() -> None:
    x = np.array([-1, 0, 2], np.float32)
    (output,) = computed("Selu", "opset1", x, np.array([2], np.float32), np.array([3], np.float32))
    np.testing.assert_allclose(output, [6 * (math.exp(-1) - 1), 0, 6], rtol=1e-6)
    (output,) = computed("HardSigmoid", "opset1", x, np.float32(0.5), np.float32(0.25))
    assert output.tolist() == [0, 0.25, 1]


def test_softmax_of_a_scalar_is_one() -> None:
    assert computed("SoftMax", "opset8", np.float32(3), axis=0)[0] == 1


def f32(*dims: int | None) -> TensorType:
    return TensorType(et.f32, Shape(*dims))


@pytest.mark.parametrize(
    ("type", "version", "attributes", "inputs", "error"),
    [
        ("SoftMax", "opset1", {"axis": 2}, [f32(2, 3)], ShapeMismatch),
        ("SoftMax", "opset8", {"axis": -3}, [f32(2, 3)], ShapeMismatch),
        ("SoftMax", "opset8", {}, [TensorType(et.string, Shape(2, 3))], TypeMismatch),
        ("HSwish", "opset4", {}, [TensorType(et.boolean, Shape(2, 3))], TypeMismatch),
        ("LogSoftmax", "opset5", {"axis": 1}, [f32(2)], ShapeMismatch),
        ("HardSigmoid", "opset1", {}, [f32(2), f32(1), f32()], ShapeMismatch),
        ("Selu", "opset1", {}, [f32(2), f32(2), f32(1)], ShapeMismatch),
        ("Swish", "opset4", {}, [f32(2), f32(1)], ShapeMismatch),
        ("PReLU", "opset1", {}, [f32(2, 3), f32(5)], ShapeMismatch),
        ("PReLU", "opset1", {}, [f32(2, 1), f32(2, 3)], ShapeMismatch),
        ("PReLU", "opset1", {}, [f32(2), f32(2, 2)], ShapeMismatch),
        ("PReLU", "opset1", {}, [f32(), f32(2)], ShapeMismatch),
        ("Mish", "opset4", {}, [TensorType(et.i32, Shape(2))], TypeMismatch),
        ("ReLU", "opset1", {}, [TensorType(et.boolean, Shape(2))], TypeMismatch),
    ],
)
def test_inputs_that_are_refused(
    type: str, version: str, attributes: dict[str, Any], inputs: list[TensorType], error: type[IRError]
) -> None:
    with pytest.raises(error):
        operation(type, version, **attributes).infer(*inputs)


@pytest.mark.parametrize(
    ("type", "attributes"),
    [
        ("Clamp", {"min": 3.0, "max": 1.0}),
        ("Clamp", {"min": NAN, "max": 1.0}),
        ("SoftMax", {"axis": -1}),
    ],
)
def test_attributes_that_are_refused(type: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        operation(type, "opset1", **attributes)


@pytest.mark.parametrize("with_relu", [False, True])
@pytest.mark.parametrize("whole", [False, True], ids=["HSigmoid", "HSwish"])
@pytest.mark.parametrize(("scale", "effective"), [(float(np.float16(1 / 6)), 1 / 6), (1 / 6 - 2e-4, 1 / 6 - 2e-4)])
def test_the_runtime_divides_by_six_for_scales_close_to_it(
    tmp_path, with_relu: bool, whole: bool, scale: float, effective: float
) -> None:
    """A deviation of OpenVINO: irload multiplies by the scale of the file."""
    x = ops.parameter([1, 64], np.float32)
    shifted = ops.add(x, np.float32(3))
    gate = ops.minimum(ops.relu(shifted), np.float32(6)) if with_relu else ops.clamp(shifted, 0.0, 6.0)
    scaled = ops.multiply(gate, np.float32(scale))
    model = ov.Model([ops.multiply(x, scaled) if whole else scaled], [x])
    ov.save_model(model, tmp_path / "gate.xml", compress_to_fp16=False)
    data = np.linspace(-4, 9, 64, dtype=np.float32)[None]
    exact = np.clip(data.astype(np.float64) + 3, 0, 6) * (data if whole else 1)
    theirs = core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(data)[0]
    np.testing.assert_allclose(theirs, exact * effective, rtol=1e-5, atol=1e-6)
    ours = irload.compile_model(tmp_path / "gate.xml")(data)[0]
    np.testing.assert_allclose(ours, exact * scale, rtol=1e-5, atol=1e-6)
