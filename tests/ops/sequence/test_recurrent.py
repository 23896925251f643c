"""Recurrent cells and sequences: hand-worked cases of gates, optional inputs, lengths and directions; the errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.op import Op
from irload.core.remarks import collecting
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.sequence.cells import GRUCell, LSTMCell1, LSTMCell4, RNNCell
from irload.ops.sequence.sequences import GRUSequence, LSTMSequence, RNNSequence


def row(*values: float) -> Any:
    return np.array([values], np.float32)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


ZERO, ONE = row(0), row(1)


def test_lstm_gates_are_in_the_order_f_i_c_o() -> None:
    # Only the bias is nonzero: f = σ(1), i = σ(2), c̃ = tanh(3), o = σ(4); the previous cell state is 5.
    h, c = LSTMCell4().compute(ZERO, ZERO, row(5), np.zeros((4, 1)), np.zeros((4, 1)), np.array([1.0, 2, 3, 4]))
    cell = sigmoid(1) * 5 + sigmoid(2) * math.tanh(3)
    np.testing.assert_allclose([h, c], [[[sigmoid(4) * math.tanh(cell)]], [[cell]]], rtol=1e-6)


def test_gru_gates_are_in_the_order_z_r_h() -> None:
    recurrence = np.array([[0.0], [0], [2]])
    output = GRUCell().compute(ZERO, row(3), np.zeros((3, 1)), recurrence, np.array([1.0, 2, 4]))
    inner = math.tanh(sigmoid(2) * 3 * 2 + 4)
    np.testing.assert_allclose(output, [[(1 - sigmoid(1)) * inner + sigmoid(1) * 3]], rtol=1e-6)


def test_linear_before_reset_gates_the_recurrent_bias_too() -> None:
    recurrence, bias = np.array([[0.0], [0], [0.5]]), np.array([1.0, 2, -1, 0.25])
    output = GRUCell(linear_before_reset=True).compute(ZERO, row(3), np.zeros((3, 1)), recurrence, bias)
    inner = math.tanh(sigmoid(2) * (3 * 0.5 + 0.25) - 1)
    np.testing.assert_allclose(output, [[(1 - sigmoid(1)) * inner + sigmoid(1) * 3]], rtol=1e-6)


def test_clip_bounds_the_inputs_of_activations() -> None:
    cell = RNNCell(activations=("relu",), clip=0.5)
    output = cell.compute(
        np.array([[3.0], [-3], [0.25]]), np.zeros((3, 1)), np.ones((1, 1)), np.zeros((1, 1)), np.zeros(1)
    )
    np.testing.assert_allclose(output, [[0.5], [0], [0.25]])


@pytest.mark.parametrize(("input_forget", "peepholes"), [(True, ()), (False, (np.array([1.0, 2, 3]),))])
def test_old_lstm_has_neither_coupled_gates_nor_peepholes(input_forget: bool, peepholes: tuple[Any, ...]) -> None:
    weights, bias = np.zeros((4, 1)), np.array([1.0, 2, 3, 4])
    cell = LSTMCell1(hidden_size=1, input_forget=input_forget)
    h, c = cell.compute(ZERO, ZERO, row(5), weights, weights, bias, *peepholes)
    inner = sigmoid(1) * 5 + sigmoid(2) * math.tanh(3)
    np.testing.assert_allclose([h, c], [[[sigmoid(4) * math.tanh(inner)]], [[inner]]], rtol=1e-6)


# A network that adds: h = relu(x + h), so states are running sums.
SUM: dict[str, Any] = {"activations": ("relu",)}
DATA = np.array([[1, 2, 4], [8, 16, 32]], np.float32)[..., None]


def sums(direction: str, lengths: list[int], directions: int = 1) -> tuple[Any, Any]:
    ones = np.ones((directions, 1, 1), np.float32)
    start, bias = np.zeros((2, directions, 1), np.float32), np.zeros((directions, 1), np.float32)
    y, h = RNNSequence(direction=direction, **SUM).compute(DATA, start, np.array(lengths), ones, ones, bias)
    return y[..., 0].tolist(), h[..., 0].tolist()


@pytest.mark.parametrize(
    ("direction", "lengths", "y", "last"),
    [
        ("forward", [3, 3], [[[1, 3, 7]], [[8, 24, 56]]], [[7], [56]]),
        ("forward", [2, 3], [[[1, 3, 0]], [[8, 24, 56]]], [[3], [56]]),
        ("reverse", [3, 3], [[[7, 6, 4]], [[56, 48, 32]]], [[7], [56]]),
        ("reverse", [3, 2], [[[7, 6, 4]], [[24, 16, 0]]], [[7], [24]]),
        ("forward", [0, 1], [[[0, 0, 0]], [[8, 0, 0]]], [[0], [8]]),
    ],
)
def test_lengths_and_directions(direction: str, lengths: list[int], y: Any, last: Any) -> None:
    assert sums(direction, lengths) == (y, last)


def test_outputs_of_both_directions_are_stacked() -> None:
    y, last = sums("bidirectional", [3, 1], 2)
    assert y == [[[1, 3, 7], [7, 6, 4]], [[8, 0, 0], [8, 0, 0]]]
    assert last == [[7, 7], [8, 8]]


@pytest.mark.parametrize("lengths", [[4, 1], [1, -1]])
def test_lengths_beyond_the_data_are_rejected(lengths: list[int]) -> None:
    with pytest.raises(ExecutionError, match=r"sequence_lengths must be in 0\.\.3"):
        sums("forward", lengths)


# -- inference --------------------------------------------------------------------------------------------------------


def infer(op: Op, *shapes: Shape, lengths: int | None = None, element: et.ElementType = et.f32) -> list[str]:
    """The shapes of the outputs; input number `lengths` is i64."""
    inputs = [TensorType(et.i64 if k == lengths else element, s) for k, s in enumerate(shapes)]
    result: Any = op.infer(*inputs)
    return [str(t.shape) for t in (result if isinstance(result, tuple) else (result,))]


X, H, W, R, B = Shape(2, 3), Shape(2, 4), Shape(16, 3), Shape(16, 4), Shape(16)
ANY = Shape.unranked()


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ((X, H, H, W, R, B), "[2,4]"),
        ((ANY, ANY, ANY, W, R, B), "[?,4]"),
        ((ANY, ANY, ANY, W, ANY, ANY), "[?,4]"),
        ((Shape((1, 5), 3), Shape(None, 4), ANY, W, R, B), "[1..5,4]"),
        ((X, ANY, ANY, ANY, ANY, B), "[2,?]"),
    ],
)
def test_cell_shapes(shapes: tuple[Shape, ...], expected: str) -> None:
    assert infer(LSTMCell4(), *shapes) == [expected] * 2


def test_sequence_shapes() -> None:
    shapes = Shape(2, 7, 3), Shape(2, 2, 4), Shape(2), Shape(2, 12, 3), Shape(2, 12, 4), Shape(2, 16)
    op = GRUSequence(direction="bidirectional", linear_before_reset=True, hidden_size=4)
    assert infer(op, *shapes, lengths=2) == ["[2,2,7,4]", "[2,2,4]"]


@pytest.mark.parametrize(
    ("position", "shape", "message"),
    [
        (0, Shape(2, 3, 1), "X must have 2 axes"),
        (0, Shape(3, 3), "batch_size differs"),
        (0, Shape(2, 5), "input_size differs"),
        (2, Shape(2, 5), "hidden_size differs"),
        (3, Shape(15, 3), "W must have 4 · 4 rows, found 15"),
        (4, Shape(12, 4), "R must have 4 · 4 rows, found 12"),
        (5, Shape(12), "B must have 4 · 4 rows, found 12"),
        (5, Shape(), "B must have 1 axes"),
    ],
)
def test_cell_shapes_that_disagree(position: int, shape: Shape, message: str) -> None:
    shapes = [X, H, H, W, R, B]
    shapes[position] = shape
    with pytest.raises(ShapeMismatch, match=message):
        infer(LSTMCell4(), *shapes)


def test_hidden_size_is_that_of_the_peepholes_that_the_runtime_adds() -> None:
    with pytest.raises(ShapeMismatch, match="hidden_size is 5, the inputs have 4"):
        infer(LSTMCell1(hidden_size=5), X, H, H, W, R, B)


def test_peepholes_of_another_size() -> None:
    with pytest.raises(ShapeMismatch, match="P must have 3 · 4 rows, found 16"):
        infer(LSTMCell1(hidden_size=4), X, H, H, W, R, B, B)


@pytest.mark.parametrize("op", [LSTMCell4(hidden_size=5), LSTMCell4(hidden_size=-3)])
def test_hidden_size_is_that_of_the_inputs(op: Op) -> None:
    with collecting() as remarks:
        infer(op, X, H, H, W, R, B)
    assert len(remarks) == 1
    assert "hidden_size must be 4" in remarks[0]


def test_number_of_directions_is_that_of_the_attribute() -> None:
    shapes = Shape(2, 7, 3), Shape(2, 1, 4), Shape(2, 1, 4), Shape(2), Shape(2, 16, 3), Shape(2, 16, 4), Shape(2, 16)
    with pytest.raises(ShapeMismatch, match="num_directions differs between the inputs: 1 and 2"):
        infer(LSTMSequence(), *shapes, lengths=3)


def test_types() -> None:
    with pytest.raises(TypeMismatch, match="floating-point type, found i32"):
        infer(LSTMCell4(), X, H, H, W, R, B, element=et.i32)
    shapes = Shape(2, 7, 3), Shape(2, 1, 4), Shape(2), Shape(1, 4, 3), Shape(1, 4, 4), Shape(1, 4)
    with pytest.raises(TypeMismatch, match="sequence_lengths must be of an integer type"):
        infer(RNNSequence(), *shapes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"activations": "sigmoid,tanh"}, "must have 3 values, found sigmoid, tanh"),
        ({"activations": "sigmoid,tanh,softmax"}, "'softmax' is not one of sigmoid, tanh, relu"),
    ],
)
def test_attributes_that_cannot_be(text: dict[str, str], message: str) -> None:
    with pytest.raises(AttributeInvalid, match=message):
        LSTMCell4.parse(text)
