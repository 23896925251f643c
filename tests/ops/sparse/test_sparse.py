"""Embedding bags and SparseFillEmptyRows: the specification's examples, empty bags, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve

TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]])
INDICES = np.array([0, 2, 3, 4])
HALVES = np.full(4, 0.5)


def operation(type: str, **attributes: Any) -> Any:
    return resolve(type, "opset16")[0](**attributes)


@pytest.mark.parametrize(
    ("type", "attributes", "inputs", "expected"),
    [
        ("EmbeddingBagOffsets", {}, [[0, 2, 2], 0, HALVES], [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]),
        ("EmbeddingBagOffsets", {}, [[0, 2, 2], -1, [0.5, 0.2, -2, 1]], [[-0.48, -0.66], [0, 0], [2.8, -3.7]]),
        ("EmbeddingBagOffsets", {"reduction": "mean"}, [[0, 2, 2]], [[-1.05, -1.2], [0, 0], [-0.1, 0.4]]),
        ("EmbeddingBagOffsetsSum", {}, [[0, 2, 4]], [[-2.1, -2.4], [-0.2, 0.8], [0, 0]]),
        ("EmbeddingBagOffsetsSum", {}, [[2]], [[-0.2, 0.8]]),
        ("EmbeddingSegmentsSum", {}, [[0, 0, 2, 2], 3, 0, HALVES], [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]),
        ("EmbeddingSegmentsSum", {}, [[1, 1, 1, 1], 2], [[0, 0], [-2.3, -1.6]]),
    ],
)
def test_bags(type: str, attributes: dict[str, Any], inputs: list[Any], expected: list[Any]) -> None:
    output = operation(type, **attributes).compute(TABLE, INDICES, *map(np.asarray, inputs))
    np.testing.assert_allclose(output, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("attributes", "weights", "expected"),
    [
        ({}, None, [[-2.1, -2.4], [-2.0, -2.2], [-0.2, 0.8]]),
        ({}, 0.5, [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]]),
        ({"reduction": "mean"}, None, [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]]),
    ],
)
def test_packed_bags(attributes: dict[str, Any], weights: float | None, expected: list[Any]) -> None:
    indices = np.array([[0, 2], [1, 2], [3, 4]])
    more = [] if weights is None else [np.full(indices.shape, weights)]
    output = operation("EmbeddingBagPacked", **attributes).compute(TABLE, indices, *more)
    np.testing.assert_allclose(output, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("type", "inputs"),
    [
        ("EmbeddingBagOffsets", [[5], [0]]),
        ("EmbeddingBagOffsets", [[-1], [0]]),
        ("EmbeddingBagOffsets", [[1], [2]]),
        ("EmbeddingBagOffsets", [[1, 2], [1, 0]]),
        ("EmbeddingBagPacked", [[[9]]]),
        ("EmbeddingSegmentsSum", [[1], [3], 3]),
        ("EmbeddingSegmentsSum", [[1], [-1], 3]),
    ],
)
def test_indices_out_of_range(type: str, inputs: list[Any]) -> None:
    with pytest.raises(ExecutionError):
        operation(type).compute(TABLE, *map(np.array, inputs))


TABLE_TYPE, FOUR = TensorType(et.f32, Shape(5, 2)), TensorType(et.i32, Shape(4))


@pytest.mark.parametrize(
    ("type", "inputs", "error"),
    [
        ("EmbeddingBagOffsets", [TensorType(et.f32, Shape()), FOUR, FOUR], ShapeMismatch),
        ("EmbeddingBagOffsets", [TABLE_TYPE, TensorType(et.i32, Shape(2, 2)), FOUR], ShapeMismatch),
        ("EmbeddingBagOffsets", [TABLE_TYPE, TensorType(et.i64, Shape(4)), FOUR], TypeMismatch),
        ("EmbeddingBagOffsets", [TABLE_TYPE, FOUR, FOUR, FOUR], ShapeMismatch),
        (
            "EmbeddingBagOffsets",
            [TABLE_TYPE, FOUR, FOUR, TensorType(et.i32, Shape()), TensorType(et.f32, Shape(3))],
            ShapeMismatch,
        ),
        (
            "EmbeddingBagOffsets",
            [TABLE_TYPE, FOUR, FOUR, TensorType(et.i32, Shape()), TensorType(et.f16, Shape(4))],
            TypeMismatch,
        ),
        ("EmbeddingBagPackedSum", [TABLE_TYPE, FOUR], ShapeMismatch),
        (
            "EmbeddingSegmentsSum",
            [TABLE_TYPE, FOUR, TensorType(et.i32, Shape(3)), TensorType(et.i32, Shape())],
            ShapeMismatch,
        ),
        ("EmbeddingSegmentsSum", [TABLE_TYPE, FOUR, FOUR, TensorType(et.i32, Shape(1))], ShapeMismatch),
    ],
)
def test_errors(type: str, inputs: list[TensorType], error: type[IRError]) -> None:
    with pytest.raises(error):
        operation(type).infer(*inputs)


def test_means_take_no_weights() -> None:
    weights = TensorType(et.f32, Shape(2, 2))
    with pytest.raises(AttributeInvalid):
        operation("EmbeddingBagPacked", reduction="mean").infer(TABLE_TYPE, TensorType(et.i32, Shape(2, 2)), weights)


def test_empty_rows_are_filled() -> None:
    op = operation("SparseFillEmptyRows")
    values, indices = np.array([4.0, 1.0, 2.0, 3.0]), np.array([[3, 1], [0, 1], [0, 3], [2, 0]])
    inputs = values, np.array([5, 6]), indices, np.array(9.0)
    places, entries, empty = op.compute(*inputs)
    assert places.tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert entries.tolist() == [1, 2, 9, 3, 4, 9]
    assert empty.tolist() == [False, True, False, False, True]
    assert [t.shape for t in op.infer(*map(TensorType.of, inputs))] == [(6, 2), (6,), (5,)]


@pytest.mark.parametrize("indices", [[[5, 0]], [[0, 6]], [[-1, 0]]])
def test_entries_outside_the_matrix(indices: list[list[int]]) -> None:
    inputs = np.array([1.0]), np.array([5, 6]), np.array(indices), np.array(0.0)
    with pytest.raises(ShapeMismatch):
        operation("SparseFillEmptyRows").infer(*map(TensorType.of, inputs))
    with pytest.raises(ExecutionError):
        operation("SparseFillEmptyRows").compute(*inputs)
