"""Concat, Split, Tile, Transpose, blocks and others: hand-worked cases and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core.element import f32, i64
from irload.core.op import Op, infer_outputs
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import ExecutionError, IRError, ShapeMismatch, TypeMismatch
from irload.inference import Inference
from irload.ops.movement.blocks import BatchToSpace, DepthToSpace, ShuffleChannels, SpaceToBatch, SpaceToDepth
from irload.ops.movement.broadcast import Broadcast, Broadcast1, Tile
from irload.ops.movement.concat import Concat, Split, VariadicSplit
from irload.ops.movement.patches import ExtractImagePatches
from irload.ops.movement.reverse import Reverse, ReverseSequence, Roll
from irload.ops.movement.transpose import Transpose
from irload.ops.movement.unique import Unique
from tests.harness.case import Case, const, param
from tests.harness.ir import ir_of

A = np.array


def types(*values: Any) -> list[TensorType]:
    return [TensorType(f32, Shape.parse(v)) if isinstance(v, str) else TensorType.of(A(v)) for v in values]


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (Concat(axis=1), ("1,2", "1,3"), "[1,5]"),
        (Concat(axis=-1), ("?,2", "4,..3"), "[4,2..5]"),
        (Concat(axis=0), ("...", "4,3"), "[4..,3]"),
        (Transpose(), ("2,3,?", np.array([], int)), "[?,3,2]"),
        (Tile(), ("2,3", [2]), "[2,6]"),
        (Tile(), ("3", [2, 0]), "[2,0]"),
        (Broadcast(mode="bidirectional"), ("2,1", [3]), "[2,3]"),
        (Broadcast(mode="explicit"), ("3", [2, 3, 4], [1]), "[2,3,4]"),
        (Broadcast1(mode="numpy"), ("3", [2, 3], [7]), "[2,3]"),
        (Broadcast1(mode="pdpd"), ("2,1,?", [1, 3, 4], [0]), "[2,3,4]"),
        (Broadcast1(mode="pdpd", first_axis=1), ("2,1", [5, 2, 3], [0]), "[5,2,3]"),
        (Broadcast1(mode="pdpd", first_axis=-1), ("3", [2, 3], [0]), "[2,3]"),
        (Broadcast1(mode="pdpd"), ("...", [1, 3], [0]), "[?,?]"),
    ],
)
def test_shapes(op: Op, inputs: tuple[Any, ...], expected: str) -> None:
    (result,) = infer_outputs(op, types(*inputs), Inference())
    assert isinstance(result, TensorType)
    assert str(result.shape) == expected


def test_pdpd_keeps_the_rank() -> None:
    output = Broadcast1(mode="pdpd").compute(A([[1], [2]]), A([1, 3]), A([0]))
    assert output.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_pdpd_takes_three_inputs_as_in_the_runtime() -> None:
    with pytest.raises(ShapeMismatch, match="requires the input axes_mapping"):
        infer_outputs(Broadcast1(mode="pdpd"), types("1,1", [2, 3]), Inference())


def test_splits() -> None:
    assert [a.tolist() for a in Split(num_splits=2).compute(np.arange(4), A(0))] == [[0, 1], [2, 3]]
    parts = VariadicSplit().compute(np.arange(6), A(-1), A([1, -1, 2]))
    assert [a.tolist() for a in parts] == [[0], [1, 2, 3], [4, 5]]
    (whole,) = infer_outputs(VariadicSplit(), types("?,2", 0, [-1]), Inference())
    assert str(whole.shape) == "[?,2]"


def test_modes_of_depth_to_space_differ() -> None:
    data = np.arange(8).reshape(1, 8, 1, 1)
    blocks = DepthToSpace(block_size=2, mode="blocks_first").compute(data)
    depth = DepthToSpace(block_size=2, mode="depth_first").compute(data)
    assert blocks.tolist() == [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]
    assert depth.tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]
    assert np.array_equal(SpaceToDepth(block_size=2, mode="depth_first").compute(depth), data)


def test_batch_to_space_undoes_space_to_batch() -> None:
    data = np.arange(24).reshape(2, 1, 4, 3)
    block, begin, end = A([1, 1, 2, 3]), A([0, 0, 1, 0]), A([0, 0, 1, 3])
    there = SpaceToBatch().compute(data, block, begin, end)
    assert there.shape == (12, 1, 3, 2)
    assert np.array_equal(BatchToSpace().compute(there, block, begin, end), data)


def test_shuffled_channels() -> None:
    assert ShuffleChannels(axis=0, group=2).compute(np.arange(6)).tolist() == [0, 3, 1, 4, 2, 5]


def test_orders() -> None:
    data = np.arange(6).reshape(2, 3)
    assert Roll().compute(data, A(1), A([0, 1])).tolist() == [[5, 3, 4], [2, 0, 1]]
    assert Roll().compute(data, A([1, 1]), A([1, 1])).tolist() == [[1, 2, 0], [4, 5, 3]]
    assert Reverse(mode="index").compute(data, A([1, 1])).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert Reverse(mode="index").compute(data, A([1, -1])).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert Reverse(mode="mask").compute(data, A([True, False])).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert ReverseSequence().compute(data, A([2, 3])).tolist() == [[1, 0, 2], [5, 4, 3]]
    with pytest.raises(ExecutionError):
        ReverseSequence().compute(data, A([4, 1]))


def test_unique_in_order_of_occurrence() -> None:
    data = A([2, 1, 1, 3, 2])
    values, first, inverse, counts = Unique(sorted=False).compute(data)
    assert (values.tolist(), first.tolist()) == ([2, 1, 3], [0, 1, 3])
    assert (inverse.tolist(), counts.tolist()) == ([0, 1, 1, 2, 0], [2, 2, 1])
    values, first, *_ = Unique().compute(data)
    assert (values.tolist(), first.tolist()) == ([1, 2, 3], [1, 0, 3])


def test_patches_of_the_specification() -> None:
    op = ExtractImagePatches(sizes=(3, 3), strides=(5, 5), rates=(1, 1), auto_pad="valid")
    result = op.compute(np.arange(1, 101).reshape(1, 1, 10, 10))
    assert result[0, :, 0, 0].tolist() == [1, 2, 3, 11, 12, 13, 21, 22, 23]
    assert result[0, 0].tolist() == [[1, 6], [51, 56]]


@pytest.mark.parametrize(
    ("op", "inputs", "error"),
    [
        (Concat(axis=0), (), ShapeMismatch),
        (Concat(axis=2), ("1,2", "1,2"), ShapeMismatch),
        (Concat(axis=0), ("1,2", "1,3"), ShapeMismatch),
        (Concat(axis=0), ("1,2", "1"), ShapeMismatch),
        (Concat(axis=0), ("1", [1]), TypeMismatch),
        (Split(num_splits=2), ("3", 0), ShapeMismatch),
        (Split(num_splits=2), ("4", [[0]]), ShapeMismatch),
        (VariadicSplit(), ("4", 0, [1, 2]), ShapeMismatch),
        (VariadicSplit(), ("4", 0, [-1, -1]), ShapeMismatch),
        (VariadicSplit(), ("4", 0, [5, -1]), ShapeMismatch),
        (Transpose(), ("2,3", [0, 0]), ShapeMismatch),
        (Transpose(), ("2,3", [0, 1, 2]), ShapeMismatch),
        (Broadcast(mode="numpy"), ("3", [2]), ShapeMismatch),
        (Broadcast(mode="numpy"), ("3", [-1]), ShapeMismatch),
        (Broadcast(mode="numpy"), ("3", [3], [0]), ShapeMismatch),
        (Broadcast(mode="explicit"), ("3", [3]), ShapeMismatch),
        (Broadcast(mode="explicit"), ("3,2", [3, 2], [1, 0]), ShapeMismatch),
        (Broadcast(mode="bidirectional"), ("3", [2]), ShapeMismatch),
        (Broadcast1(mode="pdpd"), ("3", [2, 3]), ShapeMismatch),
        (Broadcast1(mode="pdpd", first_axis=1), ("2,3", [2, 3]), ShapeMismatch),
        (Broadcast1(mode="pdpd", first_axis=-1), ("1,2,3", [2, 3]), ShapeMismatch),
        (Broadcast1(mode="pdpd"), ("2,3", [2, 2]), ShapeMismatch),
        (Tile(), ("3", [[1]]), ShapeMismatch),
        (DepthToSpace(block_size=2), ("1,6,2,2",), ShapeMismatch),
        (SpaceToDepth(block_size=2), ("1,6",), ShapeMismatch),
        (BatchToSpace(), ("3,4", [1, 2], [0, 0], [0, 0]), ShapeMismatch),
        (SpaceToBatch(), ("3,4", [1, 0], [0, 0], [0, 0]), ShapeMismatch),
        (ShuffleChannels(group=2), ("1,3",), ShapeMismatch),
        (Roll(), ("3", [1, 2], [0]), ShapeMismatch),
        (Reverse(mode="mask"), ("3", [1]), TypeMismatch),
        (Reverse(), ("3", [1]), ShapeMismatch),
        (Reverse(), ("3", [-2]), ShapeMismatch),
        (Unique(), ("3", 1), ShapeMismatch),
    ],
)
def test_errors(op: Op, inputs: tuple[Any, ...], error: type[IRError]) -> None:
    with pytest.raises(error):
        infer_outputs(op, types(*inputs), Inference())


def test_unique_wants_a_known_axis() -> None:
    with pytest.raises(ShapeMismatch):
        Unique().infer(TensorType(f32, Shape(3)), TensorType(i64, Shape()))


def test_without_a_mode_an_axes_mapping_applies() -> None:
    """OpenVINO's default, in plain execution and in plans."""
    x = np.arange(2, dtype=np.float32)
    inputs = [param(x), const(A([2, 3])), const(A([0]))]
    model = irload.read_model(*ir_of(Case("Broadcast", "opset1", inputs)))
    for optimize in (False, True):
        output = irload.compile_model(model, optimize=optimize)(x)[0]
        assert output.tolist() == [[0, 0, 0], [1, 1, 1]]
