"""The shape family: the specification's examples, hand-worked cases with zeros and −1, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core.element import f32, i32, i64
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.ops.shape.reshape import Reshape
from irload.ops.shape.shape_of import ShapeOf, ShapeOf3
from irload.ops.shape.squeeze import Squeeze, Squeeze15, Unsqueeze


def inferred(op: Op, data: str, *values: Any) -> str:
    types = [TensorType.of(np.asarray(v, None if np.size(v) else np.int64)) for v in values]
    result = op.infer(TensorType(f32, Shape.parse(data)), *types)
    assert isinstance(result, TensorType)
    return str(result.shape)


@pytest.mark.parametrize(
    ("data", "target", "special_zero", "expected"),
    [
        ("2,5,5,24", [0, -1, 4], True, "[2,150,4]"),
        ("2,2,3", [0, 0, 1, -1], True, "[2,2,1,3]"),
        ("3,1,1", [0, -1], True, "[3,1]"),
        ("5,6", [10, 3], False, "[10,3]"),
        ("0,3", [0, -1], False, "[0,3]"),
        ("0,3,4", [0, -1, 4], False, "[0,3,4]"),
        ("2,0,4", [0, -1, 4], False, "[0,1,4]"),
        ("0,3", [0, 0, -1], False, "[0,0,1]"),
        ("0,3", [0, -1], True, "[0,3]"),
        ("1", [], False, "[]"),
        ("2,?,4", [0, -1], True, "[2,?]"),
        ("2..4,6", [-1, 3], False, "[4..8,3]"),
        ("?,6", [0, 2, 3], True, "[?,2,3]"),
        ("...", [2, -1], False, "[2,1..]"),
    ],
)
def test_reshape(data: str, target: list[int], special_zero: bool, expected: str) -> None:
    op = Reshape(special_zero=special_zero)
    assert inferred(op, data, target) == expected
    if Shape.parse(data).is_static:
        computed = op.compute(np.zeros(Shape.parse(data).static), np.array(target, np.int64))
        assert str(Shape(*computed.shape)) == expected


@pytest.mark.parametrize(
    ("data", "target", "special_zero"),
    [
        ("2,3", [7], False),
        ("2,3", [4, -1], False),
        ("2,3", [-1, -1], False),
        ("2,3", [-2, 3], False),
        ("2,3", [0, 6], False),
        ("2,3", [0, -1], False),
        ("2,3", [2, 3, 0], True),
        ("2,3", 6, False),
        ("2,3", [[6]], False),
    ],
)
def test_reshape_errors(data: str, target: Any, special_zero: bool) -> None:
    with pytest.raises(ShapeMismatch):
        inferred(Reshape(special_zero=special_zero), data, target)


@pytest.mark.parametrize(
    ("op", "data", "axes", "expected"),
    [
        (Squeeze(), "1,3,1,2", [0, 2], "[3,2]"),
        (Squeeze(), "1", [0], "[]"),
        (Squeeze(), "1,3,1,2", [], "[3,2]"),
        (Squeeze(), "1,3,1", [-1, 2], "[1,3]"),
        (Squeeze(), "2,3,1", [0], "[2,3,1]"),
        (Squeeze15(allow_axis_skip=True), "2,3,1", [0, 2], "[2,3]"),
        (Squeeze15(allow_axis_skip=True), "?,3,1", [0], "[...]"),
        (Squeeze15(), "?,3,1", [0], "[3,1]"),
        (Unsqueeze(), "2,3", [0, 3], "[1,2,3,1]"),
        (Unsqueeze(), "", [0], "[1]"),
        (Unsqueeze(), "2,?", [-1], "[2,?,1]"),
        (Unsqueeze(), "2,3", 1, "[2,1,3]"),
    ],
)
def test_squeeze_and_unsqueeze(op: Op, data: str, axes: Any, expected: str) -> None:
    assert inferred(op, data, axes) == expected


@pytest.mark.parametrize(
    ("op", "data", "axes", "error"),
    [
        (Squeeze(), "1,3", [2], ShapeMismatch),
        (Squeeze(), "1,3", [[0]], ShapeMismatch),
        (Squeeze(), "1,3", [0.5], TypeMismatch),
        (Unsqueeze(), "1,3", [3], ShapeMismatch),
        (Unsqueeze(), "1,3", [], ShapeMismatch),
        (Unsqueeze(), "1,3", [-4], ShapeMismatch),
    ],
)
def test_errors_of_axes(op: Op, data: str, axes: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        inferred(op, data, axes)


def test_shape_of_has_the_values_of_static_dims_and_bounds_of_others() -> None:
    exact = ShapeOf3(output_type=i32).infer(TensorType(f32, Shape(2, 0, 5)))
    assert exact.element is i32
    assert exact.ints == (2, 0, 5)
    partly = ShapeOf().infer(TensorType(f32, Shape.parse("2,?,1..4")))
    assert partly.element is i64
    assert partly.value is None
    assert str(Shape(*(partly.dims or ()))) == "[2,?,1..4]"
    assert str(ShapeOf().infer(TensorType(f32, Shape.unranked())).shape) == "[?]"
