"""How two operands broadcast: the three rules of auto_broadcast, on shapes known, partly known and unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation

PDPD = {"auto_broadcast": "pdpd"}


@pytest.mark.parametrize(
    ("attributes", "a", "b", "expected"),
    [
        ({}, Shape(8, 1, 6, 1), Shape(7, 1, 5), Shape(8, 7, 6, 5)),
        ({}, Shape(), Shape(2, 0), Shape(2, 0)),
        ({}, Shape(None, 4), Shape(3, 1), Shape(3, 4)),
        ({}, Shape((2, 5)), Shape(None), Shape((2, 5))),
        ({}, Shape.unranked(), Shape(3), Shape.unranked()),
        ({"auto_broadcast": "none"}, Shape(None, (2, 9)), Shape(3, (5, 12)), Shape(3, (5, 9))),
        ({"auto_broadcast": "none"}, Shape.unranked(), Shape(3), Shape(3)),
        (PDPD, Shape(2, 3, 4, 5), Shape(2), Shape(2, 3, 4, 5)),
        ({**PDPD, "auto_broadcast_axis": 1}, Shape(2, 3, 4, 5), Shape(3, 4), Shape(2, 3, 4, 5)),
        ({**PDPD, "auto_broadcast_axis": -1}, Shape(2, 3, 4, 5), Shape(4, 5), Shape(2, 3, 4, 5)),
        ({**PDPD, "auto_broadcast_axis": 1}, Shape(2, None), Shape((4, 6)), Shape(2, (4, 6))),
        (PDPD, Shape(2, 3), Shape.unranked(), Shape.unranked()),
    ],
)
def test_shapes(attributes: dict[str, Any], a: Shape, b: Shape, expected: Shape) -> None:
    inferred = operation("Add", "opset1", **attributes).infer(TensorType(et.f32, a), TensorType(et.f32, b))
    assert inferred.shape == expected


@pytest.mark.parametrize(
    ("attributes", "a", "b"),
    [
        ({}, Shape(2, 3), Shape(4)),
        ({}, Shape((2, 3)), Shape((4, 5))),
        ({"auto_broadcast": "none"}, Shape(2, 3), Shape(3)),
        ({"auto_broadcast": "none"}, Shape(2, 3), Shape(2, 1)),
        (PDPD, Shape(3), Shape(2, 3)),
        (PDPD, Shape(2, 1), Shape(2, 3)),
        (PDPD, Shape(2, 3, 4), Shape(3)),
        ({**PDPD, "auto_broadcast_axis": 2}, Shape(2, 3, 4), Shape(4, 1)),
        ({**PDPD, "auto_broadcast_axis": 7}, Shape(2, 3, 4), Shape()),
    ],
)
def test_shapes_that_do_not_broadcast(attributes: dict[str, Any], a: Shape, b: Shape) -> None:
    op = operation("Multiply", "opset1", **attributes)
    with pytest.raises(ShapeMismatch):
        op.infer(TensorType(et.f32, a), TensorType(et.f32, b))


def test_pdpd_aligns_at_the_axis() -> None:
    a, b = np.zeros((2, 3, 2), np.float32), np.array([1, 2, 3], np.float32)
    (output,) = computed("Add", "opset1", a, b, auto_broadcast="pdpd", auto_broadcast_axis=1)
    assert output[1].tolist() == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [(et.f32, et.f16, TypeMismatch), (et.boolean, et.boolean, TypeMismatch), (et.string, et.string, TypeMismatch)],
)
def test_types_that_do_not_agree(a: et.ElementType, b: et.ElementType, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("Subtract", "opset1").infer(TensorType(a, Shape(2)), TensorType(b, Shape(2)))


def test_a_dynamic_type_becomes_the_other() -> None:
    inferred = operation("Add", "opset1").infer(TensorType(et.dynamic, Shape(2)), TensorType(et.f16, Shape(2)))
    assert inferred.element is et.f16


def test_axis_below_minus_one_is_refused() -> None:
    with pytest.raises(AttributeInvalid, match="at least -1"):
        operation("Add", "opset1", auto_broadcast="pdpd", auto_broadcast_axis=-2)
