"""Shape arithmetic on sizes that are only partly known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Bounds, TensorType
from tests.harness.direct import operation


def sizes(*dims: Dim | int | tuple[int, int] | None) -> TensorType:
    """An i64 tensor whose elements are these dims."""
    return TensorType(et.i64, Shape(len(dims)), bounds=Bounds.of_dims(map(Dim.of, dims)))


def known(*values: int) -> TensorType:
    return TensorType.of(np.array(values))


@pytest.mark.parametrize(
    ("type", "a", "b", "expected"),
    [
        ("Add", sizes((2, 5)), known(3), (5, 8)),
        ("Add", sizes(None), known(3), None),
        ("Subtract", sizes((2, 5)), known(4), (0, 1)),
        ("Subtract", known(9), sizes((2, 5)), (4, 7)),
        ("Multiply", sizes((2, 5)), sizes((3, 4)), (6, 20)),
        ("Divide", sizes((2, 5)), known(2), (1, 2)),
        ("Divide", known(9), sizes((0, 3)), (3, None)),
        ("Mod", sizes((1, 9)), known(3), (0, 2)),
        ("FloorMod", sizes((1, 9)), known(20), (1, 9)),
        ("FloorMod", known(5), sizes((2, 5)), (0, 4)),
        ("Minimum", sizes((2, 5)), known(3), (2, 3)),
        ("Maximum", sizes((2, 5)), known(3), (3, 5)),
        ("Power", sizes((2, 5)), known(2), (4, 25)),
    ],
)
def test_binary(type: str, a: TensorType, b: TensorType, expected: Any) -> None:
    (bounds,) = operation(type, "opset1").bounds(a, b)
    assert bounds.dims() == (ANY if expected is None else Dim.of(expected),)


@pytest.mark.parametrize(
    ("type", "a", "b"),
    [
        ("Divide", sizes((2, 5)), known(-1)),
        ("Mod", sizes((2, 5)), known(-3)),
        ("Power", known(-2), sizes((1, 3))),
        ("Add", sizes(None), TensorType(et.i64, Shape(1))),
    ],
)
def test_bounds_of_unsupported_operands_are_none(type: str, a: TensorType, b: TensorType) -> None:
    assert operation(type, "opset1").bounds(a, b) is None


def test_a_pdpd_operand_is_aligned() -> None:
    a = TensorType(et.i64, Shape(2, 1), bounds=Bounds(np.array([[1], [2]]), np.array([[3], [4]])))
    op = operation("Add", "opset1", auto_broadcast="pdpd")
    (bounds,) = op.bounds(a, known(10, 20))
    assert (bounds.lower.tolist(), bounds.upper.tolist()) == ([[11], [22]], [[13], [24]])


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(-4, 3, (0, 4)), (2, 5, (2, 5)), (-5, -2, (2, 5)), (-2, 3, (0, 3))]
)
def test_absolute_values(low: int, high: int, expected: tuple[int, int]) -> None:
    x = TensorType(et.i64, Shape(1), bounds=Bounds(np.array([low]), np.array([high])))
    (bounds,) = operation("Abs", "opset1").bounds(x)
    assert bounds.dims() == (Dim.of(expected),)


def test_clamp_cuts_bounds() -> None:
    (bounds,) = operation("Clamp", "opset1", min=1.0, max=4.5).bounds(sizes((0, 3), None, (6, 9)))
    assert bounds.dims() == (Dim(1, 3), Dim(1, 4), Dim(4, 4))


@pytest.mark.parametrize(
    ("to", "expected"),
    [(et.i32, (2, 300)), (et.u8, (0, 255)), (et.u16, (2, 300)), (et.f32, (2, 300)), (et.u4, None), (et.boolean, None)],
)
def test_convert(to: et.ElementType, expected: tuple[int, int] | None) -> None:
    bounds = operation("Convert", "opset1", destination_type=to).bounds(sizes((2, 300)))
    assert bounds is None if expected is None else bounds[0].dims() == (Dim.of(expected),)


@pytest.mark.parametrize(
    ("type", "factor", "expected"),
    [("Multiply", 0.5, [Dim(1, 4), ANY, Dim(3, 3)]), ("Divide", 0.5, [Dim(4, 18), ANY, Dim(14, 14)])],
)
def test_sizes_scaled_as_floats(type: str, factor: float, expected: list[Dim]) -> None:
    """Models often convert sizes to floats, scale them, and convert them back to integers."""
    operands = sizes((2, 9), None, 7)
    to_float, to_int = (operation("Convert", "opset1", destination_type=e) for e in (et.f32, et.i64))
    (wide,) = to_float.bounds(operands)
    (scaled,) = operation(type, "opset1").bounds(
        TensorType(et.f32, Shape(3), bounds=wide), TensorType.of(np.array([factor] * 3, np.float32))
    )
    (bounds,) = to_int.bounds(TensorType(et.f32, Shape(3), bounds=scaled))
    assert bounds.lower.dtype == np.int64
    assert list(bounds.dims()) == expected
