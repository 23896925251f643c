"""OneHot: the specification's examples, indices outside, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Bounds, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.sequence.one_hot import OneHot, OneHot16


def marked(op: OneHot, indices: Any, depth: int) -> Any:
    return op.compute(np.asarray(indices), np.asarray(depth), np.array(1), np.array(2)).tolist()


@pytest.mark.parametrize(
    ("op", "indices", "depth", "expected"),
    [
        (OneHot(axis=-1), [0, 3, 1, 2], 3, [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]]),
        (OneHot(axis=1), [[0, 3, 1]], 3, [[[1, 2, 2], [2, 2, 1], [2, 2, 2]]]),
        (OneHot(axis=-1), [-1, 0], 2, [[2, 2], [1, 2]]),
        (OneHot16(axis=-1), [-1, 0], 2, [[2, 2], [1, 2]]),
        (OneHot16(axis=-1, negative_indices_mode="normalize"), [-1, -3, 2], 2, [[2, 1], [2, 2], [2, 2]]),
        (OneHot(axis=0), 1, 3, [2, 1, 2]),
        (OneHot(axis=0), [1], 0, []),
    ],
)
def test_values(op: OneHot, indices: Any, depth: int, expected: Any) -> None:
    assert marked(op, indices, depth) == expected


def test_unsigned_indices_are_never_negative() -> None:
    op = OneHot16(axis=-1, negative_indices_mode="normalize")
    assert marked(op, np.array([255], np.uint8), 2) == [[2, 2]]


VALUE = TensorType(et.f32, Shape())
DEPTH = TensorType.of(np.array(3))


@pytest.mark.parametrize(
    ("indices", "depth", "axis", "expected"),
    [
        (Shape(4, 5), DEPTH, -1, "[4,5,3]"),
        (Shape(4, None), DEPTH, 1, "[4,3,?]"),
        (Shape(4), TensorType(et.i64, Shape()), 0, "[?,4]"),
        (Shape(4), TensorType(et.i64, Shape(), bounds=Bounds(np.array(2), np.array(7))), 0, "[2..7,4]"),
        (Shape.unranked(), DEPTH, 7, "[...]"),
    ],
)
def test_shape(indices: Shape, depth: TensorType, axis: int, expected: str) -> None:
    assert str(OneHot(axis=axis).infer(TensorType(et.i64, indices), depth, VALUE, VALUE).shape) == expected


INDICES = TensorType(et.i64, Shape(4))


@pytest.mark.parametrize(
    ("inputs", "axis", "error", "message"),
    [
        ((INDICES, DEPTH, VALUE, VALUE), 2, ShapeMismatch, "axis 2 is out of range for rank 2"),
        ((INDICES, TensorType.of(np.array(-3)), VALUE, VALUE), 0, ShapeMismatch, "depth must not be negative"),
        ((INDICES, TensorType.of(np.array([3])), VALUE, VALUE), 0, ShapeMismatch, "depth must be a scalar"),
        ((INDICES, DEPTH, TensorType(et.f32, Shape(1)), VALUE), 0, ShapeMismatch, "on_value must be a scalar"),
        ((INDICES, DEPTH, VALUE, TensorType(et.i32, Shape())), 0, TypeMismatch, "must agree, found f32, i32"),
        ((TensorType(et.f32, Shape(4)), DEPTH, VALUE, VALUE), 0, TypeMismatch, "indices must be of an integer type"),
        ((INDICES, TensorType(et.f32, Shape()), VALUE, VALUE), 0, TypeMismatch, "depth must be of an integer type"),
    ],
)
def test_refused(inputs: tuple[TensorType, ...], axis: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        OneHot(axis=axis).infer(*inputs)
