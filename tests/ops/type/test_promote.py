"""ConvertPromoteTypes: the common type of every kind of pair, and the pairs without one."""

from __future__ import annotations

from typing import Any

import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import TypeMismatch
from tests.harness.direct import computed, operation

UNSAFE, SCALARS = {"promote_unsafe": True}, {"pytorch_scalar_promotion": True}
TENSOR, SCALAR = Shape(2, 3), Shape()


def promoted(a: TensorType, b: TensorType, **attributes: Any) -> et.ElementType:
    first, second = operation("ConvertPromoteTypes", "opset14", **attributes).infer(a, b)
    assert first.element is second.element
    return first.element


@pytest.mark.parametrize(
    ("a", "b", "attributes", "expected"),
    [
        (et.i32, et.i32, {}, et.i32),
        (et.boolean, et.u8, {}, et.u8),
        (et.f16, et.boolean, {}, et.f16),
        (et.i8, et.f16, {}, et.f16),
        (et.i64, et.f32, UNSAFE, et.f32),
        (et.i8, et.i64, {}, et.i64),
        (et.u8, et.u16, {}, et.u16),
        (et.u8, et.i16, {}, et.i16),
        (et.u8, et.i8, UNSAFE, et.i16),
        (et.u32, et.i8, UNSAFE, et.i64),
        (et.u64, et.i64, UNSAFE, et.f32),
        (et.u64, et.i64, {**UNSAFE, "u64_integer_promotion_target": et.f64}, et.f64),
        (et.f16, et.f32, {}, et.f32),
        (et.f16, et.bf16, UNSAFE, et.f32),
        (et.f8e4m3, et.f8e5m2, UNSAFE, et.f16),
        (et.dynamic, et.f32, {}, et.dynamic),
    ],
)
def test_pairs(a: et.ElementType, b: et.ElementType, attributes: dict[str, Any], expected: et.ElementType) -> None:
    assert promoted(TensorType(a, TENSOR), TensorType(b, TENSOR), **attributes) is expected
    assert promoted(TensorType(b, TENSOR), TensorType(a, TENSOR), **attributes) is expected


@pytest.mark.parametrize(
    ("tensor", "scalar", "attributes", "expected"),
    [
        (et.i32, et.i8, SCALARS, et.i32),
        (et.i8, et.i32, {**SCALARS, **UNSAFE}, et.i8),
        (et.f16, et.f32, {**SCALARS, **UNSAFE}, et.f16),
        (et.i16, et.u32, SCALARS, et.i16),
        (et.i8, et.i32, UNSAFE, et.i32),
    ],
)
def test_scalars(
    tensor: et.ElementType, scalar: et.ElementType, attributes: dict[str, Any], expected: et.ElementType
) -> None:
    assert promoted(TensorType(tensor, TENSOR), TensorType(scalar, SCALAR), **attributes) is expected


def test_a_scalar_rule_waits_for_the_rank() -> None:
    assert promoted(TensorType(et.i8, Shape.unranked()), TensorType(et.i32, SCALAR), **SCALARS) is et.dynamic


@pytest.mark.parametrize(
    ("a", "b", "shape", "attributes"),
    [
        (et.i32, et.f32, TENSOR, {}),
        (et.u8, et.i8, TENSOR, {}),
        (et.u64, et.i64, TENSOR, {}),
        (et.f16, et.bf16, TENSOR, {}),
        (et.i8, et.i32, SCALAR, SCALARS),
        (et.nf4, et.f32, TENSOR, UNSAFE),
        (et.string, et.f32, TENSOR, UNSAFE),
    ],
)
def test_pairs_without_a_common_type(
    a: et.ElementType, b: et.ElementType, shape: Shape, attributes: dict[str, Any]
) -> None:
    with pytest.raises(TypeMismatch):
        promoted(TensorType(a, TENSOR), TensorType(b, shape), **attributes)


def test_values_are_converted() -> None:
    a, b = computed("ConvertPromoteTypes", "opset14", ([1, 200], et.u8), ([-1, 5], et.i16))
    assert (a.tolist(), b.tolist(), a.dtype) == ([1, 200], [-1, 5], b.dtype)
