"""Reductions: no axes, nothing to reduce, integers, partly known values, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import UNBOUNDED_HI, Bounds, TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve


def reduction(type: str, **attributes: Any) -> Any:
    return resolve(type, "opset13")[0](**attributes)


@pytest.mark.parametrize(
    ("type", "x", "axes", "expected"),
    [
        ("ReduceL1", [-1.0, 2.0], [], [-1.0, 2.0]),
        ("ReduceL2", [-1.0, 2.0], [], [-1.0, 2.0]),
        ("ReduceL2", [[3.0, 4.0], [6.0, 8.0]], [1], [5.0, 10.0]),
        ("ReduceL2", [2, 2], [0], 2),
        ("ReduceMean", [1, 2, 4], [0], 2),
        ("ReduceMean", [-1, -2, -4], [0], -2),
        ("ReduceMean", [[1.0, 2.0], [3.0, 4.0]], [0, 1], 2.5),
        ("ReduceSum", [[1, 2], [3, 4]], [0, -2], [4, 6]),
        ("ReduceSum", 3.0, [0], 3.0),
        ("ReduceMax", [[1.0, np.nan, 2.0], [np.nan, 1.0, 2.0]], [1], [2.0, 2.0]),
        ("ReduceMax", [[-np.inf, -np.inf], [np.nan, np.nan]], [1], [np.finfo(np.float64).min] * 2),
        ("ReduceMin", [-np.inf, np.inf], [0], -np.inf),
        ("ReduceMin", [[np.inf, np.inf], [np.nan, np.nan]], [1], [np.inf] * 2),
        ("ReduceLogicalAnd", [[True, False], [True, True]], [1], [False, True]),
        ("ReduceLogicalOr", [[False, False], [False, True]], [1], [False, True]),
    ],
)
def test_values(type: str, x: Any, axes: list[int], expected: Any) -> None:
    output = reduction(type).compute(np.array(x), np.array(axes, np.int64))
    assert output.tolist() == expected


@pytest.mark.parametrize(
    ("type", "dtype", "expected"),
    [
        ("ReduceSum", np.float32, 0),
        ("ReduceProd", np.float32, 1),
        ("ReduceMean", np.float32, 0),
        ("ReduceMean", np.int32, 0),
        ("ReduceMax", np.float32, np.finfo(np.float32).min),
        ("ReduceMin", np.float32, np.inf),
        ("ReduceMax", np.int32, -(2**31)),
        ("ReduceMin", np.int8, 127),
        ("ReduceLogicalAnd", np.bool_, True),
        ("ReduceLogicalOr", np.bool_, False),
    ],
)
def test_nothing_to_reduce(type: str, dtype: Any, expected: float) -> None:
    output = reduction(type).compute(np.zeros((0, 2), dtype), np.array([0]))
    assert output.dtype == dtype
    assert output.tolist() == [expected] * 2


def test_narrow_integers_wrap() -> None:
    x = np.array([200, 100], np.uint8)
    assert reduction("ReduceSum").compute(x, np.array(0)) == 44
    assert reduction("ReduceProd").compute(x, np.array(0)) == 200 * 100 % 256


@pytest.mark.parametrize(
    ("keep_dims", "shape", "axes", "expected"),
    [
        (True, Shape(2, None, 4), [1], Shape(2, 1, 4)),
        (False, Shape(2, (1, 8), 4), [0, -1], Shape((1, 8))),
        (False, Shape(), [], Shape()),
        (True, Shape.unranked(), [0], Shape.unranked()),
    ],
)
def test_shapes_for_known_axes(keep_dims: bool, shape: Shape, axes: list[int], expected: Shape) -> None:
    op = reduction("ReduceSum", keep_dims=keep_dims)
    assert op.infer(TensorType(et.f32, shape), TensorType.of(np.array(axes, np.int64))).shape == expected


@pytest.mark.parametrize(
    ("keep_dims", "axes", "expected"),
    [(True, Shape(2), Shape(None, None, None)), (False, Shape(1), Shape(None, None)), (False, Shape(2), "...")],
)
def test_shapes_for_unknown_axes(keep_dims: bool, axes: Shape, expected: Any) -> None:
    inferred = reduction("ReduceSum", keep_dims=keep_dims).infer(
        TensorType(et.f32, Shape(2, 3, 4)), TensorType(et.i32, axes)
    )
    assert inferred.shape == (Shape.unranked() if expected == "..." else expected)


@pytest.mark.parametrize(
    ("type", "lower", "upper", "expected"),
    [
        ("ReduceProd", [2, 1], [2, UNBOUNDED_HI], (2, UNBOUNDED_HI)),
        ("ReduceProd", [2, 3], [2, 5], (6, 10)),
        ("ReduceProd", [0, 0], [0, UNBOUNDED_HI], (0, 0)),
        ("ReduceSum", [2, 1], [2, UNBOUNDED_HI], (3, UNBOUNDED_HI)),
        ("ReduceMax", [2, 1], [2, 7], (2, 7)),
        ("ReduceMin", [2, 1], [2, 7], (1, 2)),
    ],
)
def test_partly_known_sizes(type: str, lower: list[int], upper: list[int], expected: tuple[int, int]) -> None:
    x = TensorType(et.i64, Shape(2), bounds=Bounds(np.array(lower), np.array(upper)))
    (bounds,) = reduction(type).bounds(x, TensorType.of(np.array([0])))
    assert (bounds.lower.tolist(), bounds.upper.tolist()) == expected


F32 = TensorType(et.f32, Shape(2, 3))


@pytest.mark.parametrize(
    ("type", "x", "axes", "error"),
    [
        ("ReduceSum", F32, TensorType.of(np.array([2])), ShapeMismatch),
        ("ReduceSum", F32, TensorType.of(np.array([-3])), ShapeMismatch),
        ("ReduceSum", F32, TensorType(et.i64, Shape(1, 1)), ShapeMismatch),
        ("ReduceSum", F32, TensorType(et.f32, Shape(1)), TypeMismatch),
        ("ReduceSum", TensorType(et.boolean, Shape(2)), TensorType.of(np.array([0])), TypeMismatch),
        ("ReduceMax", TensorType(et.string, Shape(2)), TensorType.of(np.array([0])), TypeMismatch),
        ("ReduceLogicalOr", F32, TensorType.of(np.array([0])), TypeMismatch),
    ],
)
def test_errors(type: str, x: TensorType, axes: TensorType, error: type[IRError]) -> None:
    with pytest.raises(error):
        reduction(type).infer(x, axes)
