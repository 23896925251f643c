"""Pad: the specification's examples, nGraph's published example, crops, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core.element import f32, i64
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.movement.pad import NGraphPad, Pad, Pad12

DATA = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
BEGIN, END = np.array([0, 1]), np.array([2, 3])


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        (
            "constant",
            [[0, 1, 2, 3, 4, 0, 0, 0], [0, 5, 6, 7, 8, 0, 0, 0], [0, 9, 10, 11, 12, 0, 0, 0], [0] * 8, [0] * 8],
        ),
        ("edge", [[1, 1, 2, 3, 4, 4, 4, 4], [5, 5, 6, 7, 8, 8, 8, 8], *[[9, 9, 10, 11, 12, 12, 12, 12]] * 3]),
        (
            "reflect",
            [
                [2, 1, 2, 3, 4, 3, 2, 1],
                [6, 5, 6, 7, 8, 7, 6, 5],
                [10, 9, 10, 11, 12, 11, 10, 9],
                [6, 5, 6, 7, 8, 7, 6, 5],
                [2, 1, 2, 3, 4, 3, 2, 1],
            ],
        ),
        (
            "symmetric",
            [
                [1, 1, 2, 3, 4, 4, 3, 2],
                [5, 5, 6, 7, 8, 8, 7, 6],
                [9, 9, 10, 11, 12, 12, 11, 10],
                [9, 9, 10, 11, 12, 12, 11, 10],
                [5, 5, 6, 7, 8, 8, 7, 6],
            ],
        ),
    ],
)
def test_the_examples_of_the_specification(mode: str, rows: list[list[int]]) -> None:
    assert Pad12(pad_mode=mode).compute(DATA, BEGIN, END).tolist() == rows


def test_negative_counts_crop() -> None:
    result = Pad12(pad_mode="constant").compute(DATA, np.array([-1, 1]), np.array([0, -2]), np.array(7))
    assert result.tolist() == [[7, 5, 6], [7, 9, 10]]


def test_a_crop_of_everything_is_empty() -> None:
    assert Pad12().compute(DATA, np.array([-3, 0]), np.array([0, 0])).shape == (0, 4)


def test_ngraphs_published_example() -> None:
    op = NGraphPad(padding_below=(1, 2), padding_above=(1, 0), padding_interior=(1, 2))
    result = op.compute(np.arange(1, 10).reshape(3, 3), np.array(42))
    expected = np.full((7, 9), 42)
    expected[1:7:2, 2::3] = np.arange(1, 10).reshape(3, 3)
    assert result.tolist() == expected.tolist()


def test_ngraph_crops_after_spreading() -> None:
    op = NGraphPad(padding_below=(-1,), padding_above=(-1,), padding_interior=(1,))
    assert op.compute(np.array([1, 2, 3]), np.array(0)).tolist() == [0, 2, 0]


@pytest.mark.parametrize(("dim", "padded"), [("3", "10"), ("0", "3"), ("1..3", "4..10"), ("?", "3..")])
def test_ngraph_output_dims(dim: str, padded: str) -> None:
    op = NGraphPad(padding_below=(2,), padding_above=(1,), padding_interior=(2,))
    out = op.infer(TensorType(f32, Shape.parse(dim)), TensorType(f32, Shape()))
    assert out.shape == Shape.parse(padded)


def _pad(mode: str, shape: str, begin: Any, end: Any) -> Shape:
    return (
        Pad12(pad_mode=mode)
        .infer(TensorType(f32, Shape.parse(shape)), TensorType.of(np.asarray(begin)), TensorType.of(np.asarray(end)))
        .shape
    )


@pytest.mark.parametrize(
    ("mode", "shape", "begin", "end", "error"),
    [
        ("reflect", "3", [3], [0], ShapeMismatch),
        ("symmetric", "3", [0], [4], ShapeMismatch),
        ("edge", "0", [1], [0], ShapeMismatch),
        ("constant", "3", [-2], [-2], ShapeMismatch),
        ("constant", "3,3", [1], [1], ShapeMismatch),
        ("constant", "3", [[1]], [1], ShapeMismatch),
        ("constant", "3", [1.5], [1], TypeMismatch),
    ],
)
def test_errors(mode: str, shape: str, begin: Any, end: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        _pad(mode, shape, begin, end)


@pytest.mark.parametrize(("mode", "count"), [("reflect", 2), ("symmetric", 3)])
def test_the_longest_pads_that_a_mode_allows(mode: str, count: int) -> None:
    assert _pad(mode, "3", [count], [count]) == (3 + 2 * count,)


def test_ngraph_lists_of_different_lengths() -> None:
    with pytest.raises(AttributeInvalid):
        NGraphPad(padding_below=(1,), padding_above=(1, 2))


def test_pad_1_crops_like_the_runtime() -> None:
    ones = TensorType.of(np.array([-1]))
    assert Pad().infer(TensorType(i64, Shape(4)), ones, ones).shape == (2,)
