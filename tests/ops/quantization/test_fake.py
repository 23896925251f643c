"""FakeQuantize and FakeConvert: halves, steps, bounds per channel, saturation, the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve


def operation(type: str, **attributes: Any) -> Any:
    return resolve(type, "opset13")[0](**attributes)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("x", "low", "high", "out_low", "out_high", "levels", "expected"),
    [
        ([0.5, 1.5, 2.5, 3.5], 0, 4, 0, 4, 5, [0, 2, 2, 4]),
        ([-1, 0, 4, 9], 0, 4, 10, 20, 5, [10, 10, 20, 20]),
        ([-0.1, 0, 0.1], 0, 0, -1, 1, 2, [-1, -1, 1]),
        ([-1, 1, 2], 1, -1, 0, 8, 9, [0, 0, 8]),
    ],
)
def test_fake_quantize(
    x: list[float], low: float, high: float, out_low: float, out_high: float, levels: int, expected: list[float]
) -> None:
    with np.errstate(all="ignore"):  # as the executor calls it
        output = operation("FakeQuantize", levels=levels).compute(
            f32(*x), f32(low), f32(high), f32(out_low), f32(out_high)
        )
    assert output.dtype == np.float32
    assert output.tolist() == expected


def test_bounds_with_leading_ones_that_the_data_lacks() -> None:
    op = operation("FakeQuantize", levels=3)
    x, low, high = f32(0, 0.9), np.array([[[0.0]]], np.float32), np.array([[[1.0, 2.0]]], np.float32)
    assert op.infer(*map(TensorType.of, (x, low, high, low, high))).shape == (2,)
    assert op.compute(x, low, high, low, high).tolist() == [0, 1]


X = TensorType(et.f32, Shape(1, 3, 4))
ONE = TensorType(et.f32, Shape(1))


@pytest.mark.parametrize(
    ("x", "bound", "attributes", "error"),
    [
        (X, TensorType(et.f32, Shape(2, 1, 1)), {}, ShapeMismatch),
        (X, TensorType(et.f32, Shape(3)), {}, ShapeMismatch),
        (X, TensorType(et.f32, Shape(2, 1, 3, 4)), {}, ShapeMismatch),
        (X, ONE, {"auto_broadcast": "none"}, ShapeMismatch),
        (TensorType(et.i32, Shape(1, 3, 4)), ONE, {}, TypeMismatch),
    ],
)
def test_fake_quantize_errors(
    x: TensorType, bound: TensorType, attributes: dict[str, Any], error: type[IRError]
) -> None:
    with pytest.raises(error):
        operation("FakeQuantize", levels=4, **attributes).infer(x, bound, ONE, ONE, ONE)


@pytest.mark.parametrize(
    ("to", "x", "expected"),
    [
        ("f8e4m3", [0.3, 0.33, 2.7, 500, -1e9, 0.0049, np.inf], [0.3125, 0.34375, 2.75, 448, -448, 0.005859375, 448]),
        ("f8e5m2", [0.33, 2.7, 60000, 1e9, -np.inf, 4e-5], [0.3125, 2.5, 57344, 57344, -57344, 4.57763671875e-05]),
    ],
)
def test_fake_convert_saturates(to: str, x: list[float], expected: list[float]) -> None:
    assert operation("FakeConvert", destination_type=to).compute(f32(*x), f32(1)).tolist() == expected


def test_fake_convert_scales_and_shifts() -> None:
    output = operation("FakeConvert", destination_type="f8e4m3").compute(f32(5.3), f32(2), f32(0.5))
    assert output.tolist() == [(10 + 0.5) / 2]  # 10.1 rounds to 10


@pytest.mark.parametrize(
    ("data", "scale", "error"),
    [
        (TensorType(et.f64, Shape(2)), TensorType(et.f64, Shape(1)), TypeMismatch),
        (X, TensorType(et.f16, Shape(1)), TypeMismatch),
        (X, TensorType(et.f32, Shape(2, 1, 1)), ShapeMismatch),
    ],
)
def test_fake_convert_errors(data: TensorType, scale: TensorType, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("FakeConvert").infer(data, scale)
