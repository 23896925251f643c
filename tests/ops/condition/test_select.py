"""Select: broadcasting of three tensors, partly known values, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Bounds, TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve


def select(**attributes: Any) -> Any:
    return resolve("Select", "opset1")[0](**attributes)


def test_specification_example() -> None:
    cond = np.array([[False, False], [True, False], [True, True]])
    then = np.array([[-1, 0], [1, 2], [3, 4]])
    other = np.array([[11, 10], [9, 8], [7, 6]])
    assert select().compute(cond, then, other).tolist() == [[11, 10], [1, 8], [3, 4]]


def test_pdpd_aligns_at_the_axis() -> None:
    op = select(auto_broadcast="pdpd", auto_broadcast_axis=0)
    output = op.compute(np.array([True, False]), np.zeros((2, 3), int), np.array([1, 2]))
    assert output.tolist() == [[0, 0, 0], [2, 2, 2]]


def test_partly_known_values_are_carried_on() -> None:
    then = TensorType(et.i64, Shape(2), bounds=Bounds(np.array([1, 5]), np.array([8, 5])))
    cond, other = TensorType.of(np.array([True, False])), TensorType.of(np.array([3, 4]))
    (bounds,) = select().bounds(cond, then, other)
    assert (bounds.lower.tolist(), bounds.upper.tolist()) == ([1, 4], [8, 4])


@pytest.mark.parametrize(
    ("attributes", "cond", "then", "other", "expected"),
    [
        ({}, Shape(3, 1), Shape(4), Shape(), Shape(3, 4)),
        ({}, Shape(None, 1), Shape(4), Shape(2, 1), Shape(2, 4)),
        ({}, Shape.unranked(), Shape(4), Shape(4), Shape.unranked()),
        ({"auto_broadcast": "none"}, Shape(None, 3), Shape(2, None), Shape(2, 3), Shape(2, 3)),
        ({"auto_broadcast": "pdpd"}, Shape(2), Shape(None, 3), Shape(), Shape(2, 3)),
    ],
)
def test_inferred_shapes(attributes: dict[str, Any], cond: Shape, then: Shape, other: Shape, expected: Shape) -> None:
    types = TensorType(et.boolean, cond), TensorType(et.f32, then), TensorType(et.f32, other)
    assert select(**attributes).infer(*types).shape == expected


@pytest.mark.parametrize(
    ("attributes", "cond", "then", "other", "error"),
    [
        ({}, TensorType(et.i32, Shape()), TensorType(et.f32, Shape()), TensorType(et.f32, Shape()), TypeMismatch),
        ({}, TensorType(et.boolean, Shape()), TensorType(et.f32, Shape()), TensorType(et.f16, Shape()), TypeMismatch),
        (
            {},
            TensorType(et.boolean, Shape(2)),
            TensorType(et.f32, Shape(3)),
            TensorType(et.f32, Shape()),
            ShapeMismatch,
        ),
        (
            {"auto_broadcast": "pdpd"},
            TensorType(et.boolean, Shape()),
            TensorType(et.f32, Shape(1)),
            TensorType(et.f32, Shape(3)),
            ShapeMismatch,
        ),
    ],
)
def test_invalid_inputs_are_rejected(
    attributes: dict[str, Any], cond: TensorType, then: TensorType, other: TensorType, error: type[IRError]
) -> None:
    with pytest.raises(error):
        select(**attributes).infer(cond, then, other)


@pytest.mark.parametrize("axis", [-1, 0, 7])
def test_pdpd_has_one_place_for_equal_ranks(axis: int) -> None:
    op = select(auto_broadcast="pdpd", auto_broadcast_axis=axis)
    types = TensorType(et.boolean, Shape(3)), TensorType(et.f32, Shape(None)), TensorType(et.f32, Shape((2, 3)))
    if axis == 7:
        with pytest.raises(ShapeMismatch, match="axis 7"):
            op.infer(*types)
    else:
        assert op.infer(*types).shape == Shape(3)
