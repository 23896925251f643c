"""CumSum and SegmentMax: the specifications' examples, their attributes, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.remarks import collecting
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import ExecutionError, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [1, 3, 6, 10, 15]),
        (True, False, [0, 1, 3, 6, 10]),
        (False, True, [15, 14, 12, 9, 5]),
        (True, True, [14, 12, 9, 5, 0]),
    ],
)
def test_cum_sum(exclusive: bool, reverse: bool, expected: list[float]) -> None:
    x = np.arange(1.0, 6.0)
    assert computed("CumSum", "opset3", x, 0, exclusive=exclusive, reverse=reverse)[0].tolist() == expected
    assert computed("CumSum", "opset3", x, exclusive=exclusive, reverse=reverse)[0].tolist() == expected


def test_cum_sum_along_a_negative_axis_wraps_narrow_integers() -> None:
    (output,) = computed("CumSum", "opset3", ([[100, 100, 100], [1, 2, 3]], et.u8), -1)
    assert output.tolist() == [[100, 200, 44], [1, 3, 6]]


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [False, True, True, True]),
        (True, False, [False, False, True, True]),
        (False, True, [True, True, True, False]),
        (True, True, [True, True, False, False]),
    ],
)
def test_cum_sum_of_booleans_is_a_running_or(exclusive: bool, reverse: bool, expected: list[bool]) -> None:
    """OpenVINO returns these values."""
    x = np.array([False, True, True, False])
    with collecting() as remarks:
        assert computed("CumSum", "opset3", x, 0, exclusive=exclusive, reverse=reverse)[0].tolist() == expected
    assert any("numeric type by the specification" in text for text in remarks)


@pytest.mark.parametrize(
    ("data", "axis", "error"),
    [
        (TensorType(et.f32, Shape(2, 3)), TensorType.of(np.array(2)), ShapeMismatch),
        (TensorType(et.f32, Shape(2, 3)), TensorType.of(np.array(-3)), ShapeMismatch),
        (TensorType(et.f32, Shape(2, 3)), TensorType(et.i16, Shape()), TypeMismatch),
        (TensorType(et.string, Shape(2, 3)), TensorType(et.i32, Shape()), TypeMismatch),
    ],
)
def test_cum_sum_errors(data: TensorType, axis: TensorType, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("CumSum", "opset3").infer(data, axis)


def test_cum_sum_along_an_axis_that_only_running_shows() -> None:
    with pytest.raises(ExecutionError, match="axis 4 is out of range"):
        operation("CumSum", "opset3").compute(np.zeros(3), np.array(4))


@pytest.mark.parametrize(
    ("fill", "count", "expected"),
    [
        ("zero", None, [[3, 2], [0, 0], [-1, -2]]),
        ("zero", 4, [[3, 2], [0, 0], [-1, -2], [0, 0]]),
        ("lowest", 4, [[3, 2], [-(2**63)] * 2, [-1, -2], [-(2**63)] * 2]),
        ("zero", 1, [[3, 2]]),
        ("zero", 0, []),
    ],
)
def test_segment_max(fill: str, count: int | None, expected: list[Any]) -> None:
    data = np.array([[1, 2], [3, -4], [-1, -2]])
    inputs = [data, np.array([0, 0, 2]), *([] if count is None else [np.array(count)])]
    (output,) = computed("SegmentMax", "opset16", *inputs, fill_mode=fill)
    assert output.tolist() == expected
    assert output.shape == (len(expected), 2)


@pytest.mark.parametrize(("element", "lowest"), [(et.f16, -65504.0), (et.bf16, -3.3895314e38), (et.f32, -3.4028235e38)])
def test_the_lowest_value_is_finite(element: et.ElementType, lowest: float) -> None:
    (output,) = computed("SegmentMax", "opset16", ([2.0], element), np.array([1]), fill_mode="lowest")
    np.testing.assert_allclose(output.astype(np.float64), [lowest, 2], rtol=1e-6)


@pytest.mark.parametrize(
    ("data", "ids", "count", "error"),
    [
        (Shape(), TensorType(et.i64, Shape(1)), None, ShapeMismatch),
        (Shape(3), TensorType(et.i64, Shape(3, 1)), None, ShapeMismatch),
        (Shape(3), TensorType(et.i64, Shape(2)), None, ShapeMismatch),
        (Shape(3), TensorType(et.i64, Shape(3)), TensorType(et.i64, Shape(1)), ShapeMismatch),
        (Shape(2), TensorType.of(np.array([1, 0])), None, ShapeMismatch),
        (Shape(2), TensorType(et.i64, Shape(2)), TensorType.of(np.array(-1)), ShapeMismatch),
        (Shape(2), TensorType(et.u8, Shape(2)), None, TypeMismatch),
    ],
)
def test_segment_max_errors(data: Shape, ids: TensorType, count: TensorType | None, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("SegmentMax", "opset16").infer(TensorType(et.f32, data), ids, count)


def test_segment_ids_that_only_running_shows_unsorted() -> None:
    with pytest.raises(ExecutionError, match="sorted"):
        operation("SegmentMax", "opset16").compute(np.zeros(2), np.array([1, 0]))
