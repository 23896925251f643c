"""Comparisons and classifications: NaN, infinities, strings and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import TypeMismatch
from tests.harness.direct import computed, operation

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        ("Equal", [True, False, False, False]),
        ("NotEqual", [False, True, True, True]),
        ("Less", [False, True, False, False]),
        ("LessEqual", [True, True, False, False]),
        ("Greater", [False, False, True, False]),
        ("GreaterEqual", [True, False, True, False]),
    ],
)
def test_comparisons(type: str, expected: list[bool]) -> None:
    a, b = np.array([1, 2, 3, NAN], np.float32), np.array([1, 3, 2, NAN], np.float32)
    assert computed(type, "opset1", a, b)[0].tolist() == expected


@pytest.mark.parametrize(
    ("type", "attributes", "expected"),
    [
        ("IsNaN", {}, [False, False, True, False]),
        ("IsFinite", {}, [False, False, False, True]),
        ("IsInf", {}, [True, True, False, False]),
        ("IsInf", {"detect_negative": False}, [True, False, False, False]),
        ("IsInf", {"detect_positive": False}, [False, True, False, False]),
        ("IsInf", {"detect_positive": False, "detect_negative": False}, [False] * 4),
    ],
)
@pytest.mark.parametrize("element", [et.f64, et.f32, et.f16, et.bf16])
def test_classifications(type: str, attributes: dict[str, Any], expected: list[bool], element: et.ElementType) -> None:
    assert computed(type, "opset10", ([INF, -INF, NAN, 0], element), **attributes)[0].tolist() == expected


def test_strings_compare() -> None:
    (output,) = computed("Equal", "opset1", (["a", "b"], et.string), (["a", "c"], et.string))
    assert output.tolist() == [True, False]


def test_operands_of_two_types_are_refused() -> None:
    with pytest.raises(TypeMismatch):
        operation("Less", "opset1").infer(TensorType(et.i32, Shape(2)), TensorType(et.i64, Shape(2)))


def test_classification_of_integers_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="floating-point"):
        operation("IsNaN", "opset10").infer(TensorType(et.i32, Shape(2)))
