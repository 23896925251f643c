"""Eye: diagonals beyond the matrix, batches, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.generation.eye import Eye


@pytest.mark.parametrize(
    ("diagonal", "expected"),
    [
        (0, [[1, 0, 0], [0, 1, 0]]),
        (2, [[0, 0, 1], [0, 0, 0]]),
        (-1, [[0, 0, 0], [1, 0, 0]]),
        (9, [[0, 0, 0], [0, 0, 0]]),
        (-(2**62), [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_diagonals(diagonal: int, expected: list[list[int]]) -> None:
    output = Eye(output_type=et.u8).compute(np.array(2), np.array([3]), np.array(diagonal))
    assert output.tolist() == expected
    assert output.dtype == np.uint8


def test_batches_are_equal() -> None:
    output = Eye(output_type=et.f32).compute(np.array(2), np.array(2), np.array(0), np.array([2, 1]))
    assert output.tolist() == [[[[1, 0], [0, 1]]], [[[1, 0], [0, 1]]]]


SCALAR = TensorType(et.i64, Shape())


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ((), Shape(2, None)),
        ((TensorType(et.i64, Shape(2)),), Shape(None, None, 2, None)),
        ((TensorType(et.i64, Shape(None)),), Shape.unranked()),
        ((TensorType.of(np.array([4])),), Shape(4, 2, None)),
    ],
)
def test_inferred_shapes(batch: tuple[TensorType, ...], expected: Shape) -> None:
    assert Eye(output_type=et.f32).infer(TensorType.of(np.array(2)), SCALAR, SCALAR, *batch).shape == expected


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        ((TensorType.of(np.array(-1)), SCALAR, SCALAR), ShapeMismatch),
        ((TensorType.of(np.array([1, 2])), SCALAR, SCALAR), ShapeMismatch),
        ((TensorType(et.f32, Shape()), SCALAR, SCALAR), TypeMismatch),
        ((SCALAR, SCALAR, SCALAR, SCALAR), ShapeMismatch),
        ((SCALAR, SCALAR, SCALAR, TensorType.of(np.array([-1]))), ShapeMismatch),
    ],
)
def test_invalid_inputs_are_rejected(inputs: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        Eye(output_type=et.f32).infer(*inputs)


def test_output_type_must_be_numeric() -> None:
    with pytest.raises(AttributeInvalid):
        Eye()
