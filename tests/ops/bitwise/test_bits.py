"""Bitwise operations: signs, widths, booleans, and the errors."""

from __future__ import annotations

from typing import Any

import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import TypeMismatch
from tests.harness.direct import computed, operation


@pytest.mark.parametrize(
    ("type", "version", "element", "inputs", "expected"),
    [
        ("BitwiseAnd", "opset13", et.u8, [[0b1100], [0b1010]], [0b1000]),
        ("BitwiseOr", "opset13", et.u8, [[0b1100], [0b1010]], [0b1110]),
        ("BitwiseXor", "opset13", et.u8, [[0b1100], [0b1010]], [0b0110]),
        ("BitwiseAnd", "opset13", et.i32, [[-1, -8], [7, 12]], [7, 8]),
        ("BitwiseXor", "opset13", et.boolean, [[True, True], [True, False]], [False, True]),
        ("BitwiseNot", "opset13", et.i32, [[0, 5, -1]], [-1, -6, 0]),
        ("BitwiseNot", "opset13", et.u8, [[0, 5]], [255, 250]),
        ("BitwiseNot", "opset13", et.boolean, [[True, False]], [False, True]),
        ("BitwiseLeftShift", "opset15", et.i64, [[1, -3], [40, 2]], [2**40, -12]),
        ("BitwiseLeftShift", "opset15", et.u8, [[255], [4]], [240]),
        ("BitwiseRightShift", "opset15", et.i32, [[-8, 8], [1, 2]], [-4, 2]),
        ("BitwiseRightShift", "opset15", et.u64, [[2**63], [62]], [2]),
    ],
)
def test_values(type: str, version: str, element: et.ElementType, inputs: list[Any], expected: list[Any]) -> None:
    (output,) = computed(type, version, *((x, element) for x in inputs))
    assert output.tolist() == expected


@pytest.mark.parametrize(
    ("type", "version", "a", "b"),
    [
        ("BitwiseAnd", "opset13", et.f32, et.f32),
        ("BitwiseAnd", "opset13", et.i32, et.i64),
        ("BitwiseLeftShift", "opset15", et.boolean, et.boolean),
    ],
)
def test_types_that_are_refused(type: str, version: str, a: et.ElementType, b: et.ElementType) -> None:
    with pytest.raises(TypeMismatch):
        operation(type, version).infer(TensorType(a, Shape(2)), TensorType(b, Shape(2)))


def test_not_of_floats_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="integer"):
        operation("BitwiseNot", "opset13").infer(TensorType(et.f16, Shape(2)))
