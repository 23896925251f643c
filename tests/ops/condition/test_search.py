"""NonZero and Bucketize: order, zeros, boundaries, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.condition.search import Bucketize, NonZero


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([[0, 3, 0], [1, 0, 2]], [[0, 1, 1], [1, 0, 2]]),
        ([-0.0, np.nan, 0.0], [[1]]),
        ([False, True], [[1]]),
        (5, [[0]]),
    ],
)
def test_indices_in_row_major_order(x: Any, expected: list[list[int]]) -> None:
    assert NonZero().compute(np.asarray(x)).tolist() == expected


@pytest.mark.parametrize(("x", "shape"), [(np.zeros((2, 0)), (2, 0)), (np.zeros(3), (1, 0)), (np.zeros(()), (0, 0))])
def test_nothing_found(x: Any, shape: tuple[int, ...]) -> None:
    output = NonZero(output_type=et.i32).compute(x)
    assert (output.shape, output.dtype) == (shape, np.int32)


def test_number_of_indices_is_bounded() -> None:
    inferred = NonZero().infer(TensorType(et.f32, Shape(2, (1, 4))))
    assert (inferred.element, inferred.shape) == (et.i64, Shape(2, (0, 8)))


@pytest.mark.parametrize(("right", "expected"), [(True, [0, 0, 1, 1, 2, 3]), (False, [0, 1, 1, 2, 3, 3])])
def test_a_boundary_belongs_to_one_side(right: bool, expected: list[int]) -> None:
    op = Bucketize(output_type=et.i32, with_right_bound=right)
    output = op.compute(np.array([0.0, 1.0, 1.5, 2.0, 3.0, 9.0]), np.array([1.0, 2.0, 3.0]))
    assert output.tolist() == expected
    assert output.dtype == np.int32


def test_without_boundaries_all_is_one_bucket() -> None:
    assert Bucketize(output_type=et.i64).compute(np.ones((2, 1)), np.zeros(0)).tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: NonZero().infer(TensorType(et.string, Shape())), TypeMismatch),
        (lambda: NonZero(output_type=et.f32), AttributeInvalid),
        (lambda: Bucketize(), AttributeInvalid),
        (lambda: _bucketize(Shape(2), et.f32, Shape()), ShapeMismatch),
        (lambda: _bucketize(Shape(2), et.boolean, Shape(2)), TypeMismatch),
    ],
)
def test_invalid_inputs_are_rejected(make: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        make()


def _bucketize(data: Shape, element: et.ElementType, buckets: Shape) -> TensorType:
    return Bucketize(output_type=et.i64).infer(TensorType(element, data), TensorType(et.f32, buckets))
