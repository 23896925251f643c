"""StringTensorPack and StringTensorUnpack: the specifications' examples, UTF-8, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Dim, Shape
from irload.core.tensor import TensorType
from irload.errors import ExecutionError, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation


def symbols(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize(
    ("begins", "ends", "text", "expected"),
    [
        ([0, 5], [5, 13], "IntelOpenVINO", ["Intel", "OpenVINO"]),
        ([0, 3, 3, 8, 9], [3, 3, 8, 9, 13], "OMZGenAI 2024", ["OMZ", "", "GenAI", " ", "2024"]),
        ([0, 8], [1, 9], "123456789", ["1", "9"]),
        ([[0, 5], [13, 16]], [[5, 13], [16, 21]], "IntelOpenVINOOMZGenAI", [["Intel", "OpenVINO"], ["OMZ", "GenAI"]]),
        ([0], [2], "ü", ["ü"]),
    ],
)
def test_pack(begins: list[Any], ends: list[Any], text: str, expected: list[Any]) -> None:
    (output,) = computed("StringTensorPack", "opset15", np.array(begins), np.array(ends), symbols(text))
    assert output.tolist() == expected


@pytest.mark.parametrize(
    ("data", "begins", "ends", "text"),
    [
        (["Intel", "OpenVINO"], [0, 5], [5, 13], "IntelOpenVINO"),
        (["OMZ", "", "GenAI"], [0, 3, 3], [3, 3, 8], "OMZGenAI"),
        (["ü", "日"], [0, 2], [2, 5], "ü日"),
        ([], [], [], ""),
    ],
)
def test_unpack(data: list[str], begins: list[int], ends: list[int], text: str) -> None:
    parts = computed("StringTensorUnpack", "opset15", (data, et.string))
    assert [parts[0].tolist(), parts[1].tolist(), parts[2].tobytes().decode()] == [begins, ends, text]


def test_unpack_infers_the_length_of_a_constant() -> None:
    op = operation("StringTensorUnpack", "opset15")
    data = TensorType.of(np.array(["ab", "ü"], object), et.string)
    assert op.infer(data)[2].shape == (4,)
    assert op.infer(data.without_value())[2].shape == Shape(Dim(0, None))


@pytest.mark.parametrize(
    ("begins", "ends", "error"),
    [
        (TensorType.of(np.array([1, 0])), TensorType.of(np.array([2, 3])), ShapeMismatch),
        (TensorType.of(np.array([0, 1])), TensorType.of(np.array([3, 2])), ShapeMismatch),
        (TensorType.of(np.array([-1, 1])), TensorType.of(np.array([1, 2])), ShapeMismatch),
        (TensorType.of(np.array([0, 1])), TensorType.of(np.array([1, 9])), ShapeMismatch),
        (TensorType(et.i64, Shape(2)), TensorType(et.i64, Shape(3)), ShapeMismatch),
        (TensorType(et.i64, Shape(2)), TensorType(et.i32, Shape(2)), TypeMismatch),
        (TensorType(et.u8, Shape(2)), TensorType(et.u8, Shape(2)), TypeMismatch),
    ],
)
def test_pack_errors(begins: TensorType, ends: TensorType, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("StringTensorPack", "opset15").infer(begins, ends, TensorType(et.u8, Shape(4)))


def test_pack_beyond_symbols_that_only_running_shows() -> None:
    with pytest.raises(ExecutionError, match="within the 3 symbols"):
        operation("StringTensorPack", "opset15").compute(np.array([0]), np.array([4]), symbols("abc"))


@pytest.mark.parametrize("element", [et.u8, et.f32])
def test_unpack_takes_strings_alone(element: et.ElementType) -> None:
    with pytest.raises(TypeMismatch, match="strings"):
        operation("StringTensorUnpack", "opset15").infer(TensorType(element, Shape(2)))
