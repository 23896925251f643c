"""Pooling: rounding, divisors, padding, indices, adaptive bins; the specification's examples; the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation

NINE = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
SIGNED = np.array([[-1, 2, 3], [4, 5, -6], [-7, 8, 9]], np.float32).reshape(1, 1, 3, 3)
LOW = float(np.finfo(np.float32).min)
TWO_BY_TWO: dict[str, Any] = {"kernel": (2, 2), "strides": (2, 2)}
PADDED = TWO_BY_TWO | {"pads_begin": (1, 1), "pads_end": (1, 1)}


@pytest.mark.parametrize(
    ("data", "attributes", "values", "indices"),
    [
        (
            SIGNED,
            {"kernel": (2, 2), "strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)},
            # the specification prints -6 and 5 at (1, 3), but the window contains 3 and -6
            [[-1, 2, 3, 3], [4, 5, 5, 3], [4, 8, 9, 9], [-7, 8, 9, 9]],
            [[0, 1, 2, 2], [3, 4, 4, 2], [3, 7, 8, 8], [6, 7, 8, 8]],
        ),
        (
            SIGNED,
            {"kernel": (2, 2), "strides": (1, 1), "auto_pad": "same_lower"},
            [[-1, 2, 3], [4, 5, 5], [4, 8, 9]],
            [[0, 1, 2], [3, 4, 4], [3, 7, 8]],
        ),
        (
            SIGNED,
            {"kernel": (2, 2), "strides": (1, 1), "auto_pad": "same_upper"},
            [[5, 5, 3], [8, 9, 9], [8, 9, 9]],
            [[4, 4, 2], [7, 8, 8], [7, 8, 8]],
        ),
        (SIGNED, TWO_BY_TWO | {"auto_pad": "valid", "rounding_type": "ceil"}, [[5, 3], [8, 9]], [[4, 2], [7, 8]]),
        (NINE, PADDED | {"rounding_type": "ceil_torch"}, [[1, 3], [7, 9]], [[0, 2], [6, 8]]),
        (NINE, PADDED, [[1, 3], [7, 9]], [[0, 2], [6, 8]]),
        (
            NINE,
            PADDED | {"rounding_type": "ceil"},
            [[1, 3, LOW], [7, 9, LOW], [LOW, LOW, LOW]],
            [[0, 2, 0], [6, 8, 0], [0, 0, 0]],
        ),
        (
            NINE,
            {
                "kernel": (2, 2),
                "strides": (1, 1),
                "dilations": (2, 2),
                "pads_begin": (1, 1),
                "pads_end": (1, 1),
            },
            [[5, 6, 5], [8, 9, 8], [5, 6, 5]],
            [[4, 5, 4], [7, 8, 7], [4, 5, 4]],
        ),
    ],
)
def test_largest(data: np.ndarray, attributes: dict[str, Any], values: Any, indices: Any) -> None:
    output, places = computed("MaxPool", "opset14", data, **attributes)
    assert output[0, 0].tolist() == values
    assert places[0, 0].tolist() == indices
    if "dilations" not in attributes and attributes.get("rounding_type") != "ceil_torch":
        assert computed("MaxPool", "opset1", data, **attributes)[0].tolist() == output.tolist()


@pytest.mark.parametrize(("axis", "first"), [(0, [0, 9, 18, 27]), (1, [0, 9, 0, 9]), (2, [0, 0, 0, 0]), (-2, [0] * 4)])
def test_indices_count_from_an_axis(axis: int, first: list[int]) -> None:
    # All elements are equal, so the indices are of the first element of each window.
    _, places = computed(
        "MaxPool", "opset8", np.ones((2, 2, 3, 3), np.float32), kernel=(3, 3), strides=(1, 1), axis=axis
    )
    assert places.ravel().tolist() == first


def test_neither_nan_nor_padding_wins() -> None:
    data = np.array([np.nan, -5, -7, np.nan], np.float32).reshape(1, 1, 4)
    (output,) = computed("MaxPool", "opset1", data, kernel=(2,), strides=(2,), pads_begin=(1,), pads_end=(1,))
    assert output.ravel().tolist() == [LOW, -5, LOW]


@pytest.mark.parametrize(
    ("data", "attributes", "exclude", "include"),
    [
        (
            np.arange(1.0, 7).reshape(1, 1, 6),
            {"kernel": (3,), "strides": (3,), "pads_begin": (1,), "pads_end": (1,), "rounding_type": "ceil"},
            [1.5, 4, 6],
            [1, 4, 2],
        ),
        (NINE.astype(float), TWO_BY_TWO | {"rounding_type": "ceil"}, [3, 4.5, 7.5, 9], [3, 4.5, 7.5, 9]),
        (NINE.astype(float), PADDED, [1, 2.5, 5.5, 7], [0.25, 1.25, 2.75, 7]),
        (np.ones((1, 1, 3)), {"kernel": (2,), "strides": (4,), "rounding_type": "ceil"}, [1, 0], [1, 0]),
    ],
)
def test_divisors(data: np.ndarray, attributes: dict[str, Any], exclude: list[float], include: list[float]) -> None:
    for exclude_pad, expected in ((True, exclude), (False, include)):
        (output,) = computed("AvgPool", "opset1", data, exclude_pad=exclude_pad, **attributes)
        np.testing.assert_allclose(output.ravel(), expected)


def test_means_of_integers_round_half_to_even() -> None:
    (output,) = computed("AvgPool", "opset1", ([[[1, 2, 3, 4, -1, -2]]], et.i8), kernel=(2,), strides=(2,))
    assert output.ravel().tolist() == [2, 4, -2]


def test_integers_do_not_overflow_while_they_are_summed() -> None:
    (output,) = computed("AvgPool", "opset1", ([[[200, 250]]], et.u8), kernel=(2,), strides=(2,))
    assert output.ravel().tolist() == [225]


def test_dilated_average() -> None:
    data = np.arange(6.0).reshape(1, 1, 6)
    (output,) = computed("AvgPool", "opset16", data, kernel=(2,), strides=(1,), dilations=(3,))
    assert output.ravel().tolist() == [1.5, 2.5, 3.5]


def test_adaptive_bins_overlap() -> None:
    data = np.array([1.0, 2, 3, 4, 5]).reshape(1, 1, 5)
    (mean,) = computed("AdaptiveAvgPool", "opset8", data, np.array([3]))  # 0..2, 1..4, 3..5
    assert mean.ravel().tolist() == [1.5, 3, 4.5]
    largest, places = computed("AdaptiveMaxPool", "opset8", data, np.array([3]))
    assert (largest.ravel().tolist(), places.ravel().tolist()) == ([2, 4, 5], [1, 3, 4])


def test_an_empty_axis_has_no_bins() -> None:
    with pytest.raises(ExecutionError, match="without elements"):
        computed("AdaptiveAvgPool", "opset8", np.zeros((1, 1, 0)), np.array([2]))


@pytest.mark.parametrize(
    ("type", "version", "attributes", "inputs", "error", "message"),
    [
        ("MaxPool", "opset1", TWO_BY_TWO, ["1,1,4"], ShapeMismatch, "kernel has 2 values"),
        ("MaxPool", "opset1", TWO_BY_TWO, ["1,1"], ShapeMismatch, "rank 3, 4 or 5"),
        ("MaxPool", "opset1", TWO_BY_TWO, ["1,1,4,1"], ShapeMismatch, "spans 2 elements on spatial axis 1"),
        ("MaxPool", "opset1", TWO_BY_TWO, ["0,1,4,4"], ShapeMismatch, "batch of data must not be zero"),
        ("MaxPool", "opset1", TWO_BY_TWO | {"pads_end": (1,)}, ["1,1,4,4"], AttributeInvalid, "attribute pads_end"),
        ("MaxPool", "opset8", TWO_BY_TWO | {"axis": 4}, ["1,1,4,4"], ShapeMismatch, "axis 4 is out of range"),
        (
            "AvgPool",
            "opset1",
            TWO_BY_TWO | {"pads_begin": (2, 0), "exclude_pad": True},
            ["1,1,4,4"],
            ShapeMismatch,
            "must exceed the pads",
        ),
        ("AdaptiveAvgPool", "opset8", {}, ["1,1,4", "2"], TypeMismatch, "i32 or i64, found f32"),
    ],
)
def test_errors(
    type: str, version: str, attributes: dict[str, Any], inputs: list[str], error: type[IRError], message: str
) -> None:
    with pytest.raises(error, match=message):
        operation(type, version, **attributes).infer(*(TensorType(et.f32, Shape.parse(i)) for i in inputs))


@pytest.mark.parametrize(
    ("version", "attributes"),
    [
        ("opset1", {"kernel": (2,), "strides": (1, 1)}),
        ("opset1", {"kernel": (), "strides": ()}),
        ("opset1", {"kernel": (0,), "strides": (1,)}),
        ("opset1", {"kernel": (2,)}),
        ("opset1", {"kernel": (2,), "strides": (1,), "rounding_type": "ceil_torch"}),
        ("opset14", {"kernel": (2,), "strides": (1,), "dilations": (1,)}),
    ],
)
def test_attributes_that_are_refused(version: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        operation("AvgPool", version, **attributes)


@pytest.mark.parametrize(
    ("attributes", "shape", "expected"),
    [
        (TWO_BY_TWO, "...", "?,?,?,?"),
        (TWO_BY_TWO, "?,3,5..9,?", "?,3,2..4,1.."),
        (TWO_BY_TWO | {"rounding_type": "ceil"}, "?,3,5..9,?", "?,3,3..5,1.."),
        (TWO_BY_TWO | {"auto_pad": "same_upper"}, "1,3,5..9,9", "1,3,?,5"),
    ],
)
def test_average_pool_infers_partly_known_shapes(attributes: dict[str, Any], shape: str, expected: str) -> None:
    inferred = operation("AvgPool", "opset1", **attributes).infer(TensorType(et.f32, Shape.parse(shape)))
    assert str(inferred.shape) == f"[{expected}]"
