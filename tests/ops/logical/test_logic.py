"""Logic: truth tables, the irregular opsets of exclusive or, and the errors."""

from __future__ import annotations

import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import TypeMismatch, UnknownOperation
from irload.ops.registry import resolve
from tests.harness.direct import computed, operation


@pytest.mark.parametrize(
    ("type", "version", "expected"),
    [
        ("LogicalAnd", "opset1", [False, False, False, True]),
        ("LogicalOr", "opset1", [False, True, True, True]),
        ("LogicalXor", "opset2", [False, True, True, False]),
        ("LogicalXor", "opset1", [False, True, True, False]),
        ("Xor", "opset1", [False, True, True, False]),
    ],
)
def test_truth_tables(type: str, version: str, expected: list[bool]) -> None:
    a, b = ([False, False, True, True], et.boolean), ([False, True, False, True], et.boolean)
    assert computed(type, version, a, b)[0].tolist() == expected


def test_not() -> None:
    assert computed("LogicalNot", "opset1", ([True, False], et.boolean))[0].tolist() == [False, True]
    assert computed("LogicalNot", "opset1", ([0, 3, -1], et.i32))[0].tolist() == [1, 0, 0]


def test_xor_ended_with_opset1() -> None:
    with pytest.raises(UnknownOperation, match="opset1"):
        resolve("Xor", "opset2")


def test_numbers_are_refused() -> None:
    with pytest.raises(TypeMismatch, match="boolean"):
        operation("LogicalAnd", "opset1").infer(TensorType(et.i32, Shape(2)), TensorType(et.i32, Shape(2)))
