"""Gathers, slices and scatters: hand-worked cases of indices and ends out of range and of duplicates; the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core.element import f32
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch, TypeMismatch
from irload.ops.movement.gather import Gather, Gather7, Gather8
from irload.ops.movement.gather_nd import GatherElements, GatherND, GatherND5, GatherTree
from irload.ops.movement.scatter import ScatterElementsUpdate, ScatterElementsUpdate12, ScatterUpdate
from irload.ops.movement.scatter_nd import ScatterNDUpdate, ScatterNDUpdate15
from irload.ops.movement.slicing import Slice, SliceScatter
from irload.ops.movement.strided_slice import StridedSlice

A = np.array
NUMBERS = np.arange(1, 6)
LAST = np.iinfo(np.int64).max


def inferred(op: Op, data: str, *values: Any) -> str:
    types = [TensorType.of(A(v)) if not isinstance(v, TensorType) else v for v in values]
    result = op.infer(TensorType(f32, Shape.parse(data)), *types)
    assert isinstance(result, TensorType)
    return str(result.shape)


@pytest.mark.parametrize("op", [Gather(), Gather7(), Gather8()])
def test_gather_counts_negatives_from_the_end_and_fills_with_zeros_outside(op: Op) -> None:
    assert op.compute(NUMBERS, A([0, 4, -1, -5, 5, -6]), A(0)).tolist() == [1, 5, 5, 1, 0, 0]


def test_gather_with_batch_dims() -> None:
    data = A([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    indices = A([[0, 0, 4], [4, 0, 0]])
    assert Gather8(batch_dims=1).compute(data, indices, A(1)).tolist() == [[1, 1, 5], [10, 6, 6]]
    assert Gather8(batch_dims=-1).compute(data, indices, A(1)).tolist() == [[1, 1, 5], [10, 6, 6]]


def test_gather_takes_its_axis_at_run_time() -> None:
    axis = TensorType(f32, Shape())  # the value is unknown, the type wrong
    with pytest.raises(TypeMismatch):
        inferred(Gather8(), "2,3", [0], axis)
    assert Gather8().compute(np.eye(2), A([1]), A([1])).tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        (0, LAST, 1, [1, 2, 3, 4, 5]),
        (-2, LAST, 1, [4, 5]),
        (LAST, -LAST, -1, [5, 4, 3, 2, 1]),
        (-1, -LAST, -2, [5, 3, 1]),
        (1, 4, 2, [2, 4]),
        (9, 2, 1, []),
        (3, 3, 1, []),
        (-9, -9, -1, [1]),  # a start before the first element is clamped to it
        (2, -1, -1, []),
    ],
)
def test_slice(start: int, stop: int, step: int, expected: list[int]) -> None:
    ends = A([start]), A([stop]), A([step])
    assert Slice().compute(NUMBERS, *ends).tolist() == expected
    assert inferred(Slice(), "5", *ends) == f"[{len(expected)}]"


@pytest.mark.parametrize("start", range(-4, 5))
@pytest.mark.parametrize("stop", range(-4, 5))
@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_intervals_of_slices_hold_every_length(start: int, stop: int, step: int) -> None:
    ends = A([start]), A([stop]), A([step])
    for low, high in ((0, 6), (2, 5), (3, None)):
        out = Slice().infer(TensorType(f32, Shape((low, high))), *map(TensorType.of, ends)).shape
        for size in range(low, (high or 12) + 1):
            assert out.contains(Shape(*Slice().compute(np.arange(size), *ends).shape))


@pytest.mark.parametrize(
    ("data", "masks", "ends", "expected"),
    [
        ("2,3,4", {"begin_mask": [0, 1, 1], "end_mask": [1, 1, 0]}, ([1, 0, 0], [0, 0, 2]), "[1,3,2]"),
        ("1,2,3", {"begin_mask": [0, 0, 0], "shrink_axis_mask": [1, 0, 0]}, ([0, 0, 0], [1, 2, 3]), "[2,3]"),
        ("1,2,3", {"begin_mask": [0, 0], "new_axis_mask": [1, 0]}, ([0, 0], [9, 9]), "[1,1,2,3]"),
        ("5,5,5,5", {"begin_mask": [0, 0, 0], "ellipsis_mask": [0, 1, 0]}, ([1, 0, 1], [3, 0, 2]), "[2,5,5,1]"),
        ("2,3", {"begin_mask": [0], "ellipsis_mask": [1], "new_axis_mask": [1]}, ([0], [0]), "[2,3]"),
        ("2,3", {"begin_mask": [0], "new_axis_mask": [1], "shrink_axis_mask": [1]}, ([0], [0]), "[1,2,3]"),
    ],
)
def test_strided_slice(
    data: str, masks: dict[str, list[int]], ends: tuple[list[int], list[int]], expected: str
) -> None:
    op = StridedSlice(**{k: tuple(v) for k, v in masks.items()})
    assert inferred(op, data, *ends) == expected
    computed = op.compute(np.zeros(Shape.parse(data).static), A(ends[0]), A(ends[1]))
    assert str(Shape(*computed.shape)) == expected


def test_scatters_let_the_last_of_repeated_indices_win() -> None:
    updates = A([10, 20, 30])
    assert ScatterUpdate().compute(NUMBERS, A([1, -1, 1]), updates, A(0)).tolist() == [1, 30, 3, 4, 20]
    assert ScatterElementsUpdate().compute(NUMBERS, A([1, -1, 1]), updates, A(0)).tolist() == [1, 30, 3, 4, 20]
    assert ScatterNDUpdate().compute(NUMBERS, A([[1], [-1], [1]]), updates).tolist() == [1, 30, 3, 4, 20]


@pytest.mark.parametrize(
    ("reduction", "initial", "expected"),
    [
        ("sum", True, [1, 32, 3, 4, 25]),
        ("sum", False, [1, 30, 3, 4, 20]),
        ("prod", True, [1, 400, 3, 4, 100]),
        ("min", False, [1, 10, 3, 4, 20]),
        ("max", True, [1, 20, 3, 4, 20]),
        ("mean", False, [1, 15, 3, 4, 20]),
        ("mean", True, [1, 10, 3, 4, 12]),
    ],
)
def test_scatter_elements_reduces(reduction: str, initial: bool, expected: list[int]) -> None:
    op = ScatterElementsUpdate12(reduction=reduction, use_init_val=initial)
    assert op.compute(NUMBERS, A([1, 4, 1]), A([10, 20, 20]), A(0)).tolist() == expected


def test_the_mean_of_integers_is_floored() -> None:
    op = ScatterElementsUpdate12(reduction="mean", use_init_val=False)
    assert op.compute(A([0]), A([0, 0]), A([-3, -4]), A(0)).tolist() == [-4]


def test_scatter_nd_reduces() -> None:
    rows = A([[0], [0], [2]])
    assert ScatterNDUpdate15(reduction="sub").compute(NUMBERS, rows, A([1, 1, 1])).tolist() == [-1, 2, 2, 4, 5]


def test_gather_nd_keeps_or_merges_batch_dims() -> None:
    data, indices = np.arange(12).reshape(2, 3, 2), np.zeros((2, 3, 1), int)
    assert GatherND(batch_dims=2).compute(data, indices).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert GatherND5(batch_dims=2).compute(data, indices).tolist() == [0, 2, 4, 6, 8, 10]


def test_gather_tree_follows_parents_and_ends_beams() -> None:
    steps = A([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]])
    parents = A([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]])
    result = GatherTree().compute(steps, parents, A([3]), A(10))
    assert result.tolist() == [[[2, 2, 2]], [[6, 5, 6]], [[7, 8, 9]]]
    assert GatherTree().compute(steps, parents, A([3]), A(5)).tolist()[2] == [[7, 5, 9]]


def test_slice_scatter_takes_backward_slices() -> None:
    ends = A([-1]), A([-9]), A([-2])
    assert SliceScatter().compute(NUMBERS, A([10, 20, 30]), *ends).tolist() == [30, 2, 20, 4, 10]


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (ScatterUpdate(), (NUMBERS, A([5]), A([0]), A(0))),
        (ScatterElementsUpdate(), (NUMBERS, A([-6]), A([0]), A(0))),
        (ScatterNDUpdate(), (NUMBERS, A([[5]]), A([0]))),
        (GatherElements(), (NUMBERS, A([5]))),
        (GatherND(), (NUMBERS, A([[5]]))),
        (Slice(), (NUMBERS, A([0]), A([1]), A([0]))),
    ],
)
def test_values_that_cannot_be_computed(op: Op, inputs: tuple[Any, ...]) -> None:
    with pytest.raises(ExecutionError):
        op.compute(*inputs)


@pytest.mark.parametrize(
    ("op", "data", "values", "error"),
    [
        (Gather8(), "2,3", ([0], 2), ShapeMismatch),
        (Gather8(), "", (0, 0), ShapeMismatch),
        (Gather8(), "2,3", ([0.5], 0), TypeMismatch),
        (Gather8(batch_dims=1), "2,3", ([0, 0, 0], 1), ShapeMismatch),
        (Gather8(batch_dims=1), "2,3", ([0, 0], 0), ShapeMismatch),
        (Slice(), "2,3", ([0], [1], [0]), ShapeMismatch),
        (Slice(), "2,3", ([0, 0], [1], [1]), ShapeMismatch),
        (Slice(), "2,3", ([0, 0], [1, 1], [1, 1], [1, -1]), ShapeMismatch),
        (Slice(), "2", ([0, 0], [1, 1], [1, 1]), ShapeMismatch),
        (StridedSlice(begin_mask=()), "2", ([0, 0], [1, 1]), ShapeMismatch),
        (StridedSlice(begin_mask=(0,), shrink_axis_mask=(1,)), "2", ([2], [3]), ShapeMismatch),
        (StridedSlice(begin_mask=()), "2", ([0], [1], [0]), ShapeMismatch),
        (ScatterUpdate(), "2,3", ([0], [[1.0, 2.0]], 0), TypeMismatch),
        (ScatterUpdate(), "2,3", ([0], np.zeros((1, 2), np.float32), 0), ShapeMismatch),
        (ScatterElementsUpdate(), "2,3", ([[0]], np.zeros((1, 2), np.float32), 0), ShapeMismatch),
        (ScatterNDUpdate(), "2,3", ([[0, 0, 0]], np.zeros(1, np.float32)), ShapeMismatch),
        (GatherElements(axis=2), "2,3", ([[0]],), ShapeMismatch),
        (GatherND(batch_dims=1), "2", ([[0]],), ShapeMismatch),
    ],
)
def test_errors(op: Op, data: str, values: tuple[Any, ...], error: type[IRError]) -> None:
    with pytest.raises(error):
        inferred(op, data, *values)


def test_masks_hold_zeros_and_ones_and_one_ellipsis() -> None:
    with pytest.raises(AttributeInvalid):
        StridedSlice(begin_mask=(2,))
    with pytest.raises(AttributeInvalid):
        StridedSlice(begin_mask=(), ellipsis_mask=(1, 1))
