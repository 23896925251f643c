"""MatMul, Einsum, Inverse and GroupedMatMul: the specification's examples, hand-worked cases, the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve
from tests.harness import runtime
from tests.harness.case import Case, param
from tests.harness.ir import ir_of


def operation(type: str, **attributes: Any) -> Any:
    return resolve(type, "opset17")[0](**attributes)


def f32(*dims: Any) -> TensorType:
    return TensorType(et.f32, Shape(*dims))


@pytest.mark.parametrize(
    ("a", "b", "transposes", "expected"),
    [
        ((1024,), (1024, 1000), (False, False), (1000,)),
        ((1000, 1024), (1024,), (False, False), (1000,)),
        ((1, 1024), (1000, 1024), (False, True), (1, 1000)),
        ((5,), (5,), (True, True), ()),
        ((4, 2), (4, 3), (True, False), (2, 3)),
        ((2, 1, 3, 4), (5, 4, 6), (False, False), (2, 5, 3, 6)),
        ((3, 0), (0, 2), (False, False), (3, 2)),
        (((1, 3), 4), (4, None), (False, False), ((1, 3), None)),
        ((None, 4), ((7, 9), 2), (False, False), (None, 2)),
        (((2, 3), 4, 4), ((4, 5), 4, 4), (False, False), (None, 4, 4)),
    ],
)
def test_matmul_shapes(a: Any, b: Any, transposes: tuple[bool, bool], expected: Any) -> None:
    op = operation("MatMul", transpose_a=transposes[0], transpose_b=transposes[1])
    assert op.infer(f32(*a), f32(*b)).shape == Shape(*expected)


def test_matmul_of_an_empty_inner_axis_is_zero() -> None:
    assert operation("MatMul").compute(np.ones((2, 0)), np.ones((0, 3))).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("options", [{}, {"jit": False}, {"optimize": False}], ids=str)
def test_matmul_of_booleans(options: dict[str, Any]) -> None:
    a, b = np.array([[1, 0, 1], [0, 1, 0]], bool), np.array([[1, 0], [0, 0], [1, 1]], bool)
    case = Case("MatMul", "opset1", [param(a, et.boolean), param(b, et.boolean)], {}, oracle="cpu")
    model = irload.read_model(*ir_of(case))
    assert any("numeric type by the specification, found boolean" in text for text in model.warnings)
    (result,), (expected,) = irload.compile_model(model, 1, **options)([a, b]).values(), runtime.outputs(case)
    assert result.tolist() == expected.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        (f32(), f32(2), ShapeMismatch),
        (f32(2, 3), f32(2, 3), ShapeMismatch),
        (f32(2, 1, 3), f32(3, 3, 1), ShapeMismatch),
        (f32(2, 3), TensorType(et.f16, Shape(3, 1)), TypeMismatch),
        (TensorType(et.string, Shape(1, 1)), TensorType(et.string, Shape(1, 1)), TypeMismatch),
    ],
)
def test_matmul_errors(a: TensorType, b: TensorType, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("MatMul").infer(a, b)


NINE = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
EIGHTEEN = [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0], [14.0, 16.0, 18.0]]


@pytest.mark.parametrize(
    ("equation", "operands", "expected"),
    [
        ("i,i->", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 32.0),
        ("ij,j->i", [[[1.0, 2.0, 3.0]] * 2, [4.0, 5.0, 6.0]], [32.0, 32.0]),
        ("kii->k", [[NINE, EIGHTEEN]], [15.0, 30.0]),
        ("kii->ki", [[NINE, EIGHTEEN]], [[1.0, 5.0, 9.0], [2.0, 10.0, 18.0]]),
        ("a...->...", [NINE], [12.0, 15.0, 18.0]),
        ("a...,...->a...", [NINE, [0.5]], [[0.5, 1.0, 1.5], [2.0, 2.5, 3.0], [3.5, 4.0, 4.5]]),
        ("AbC", [[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]], [[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]]),
        ("a b , b -> a", [[[1.0, 2.0]], [3.0, 4.0]], [11.0]),
        ("a...->a", [NINE], [6.0, 15.0, 24.0]),
        ("bba,a", [[[[1.0], [2.0]], [[3.0], [4.0]]], [10.0]], 50.0),
        ("ij,jk->ik", [[[2.0]], [[1.0, 2.0], [3.0, 4.0]]], [[8.0, 12.0]]),
    ],
)
def test_einsum_examples(equation: str, operands: list[Any], expected: Any) -> None:
    arrays = [np.array(o) for o in operands]
    op = operation("Einsum", equation=equation)
    output = op.compute(*arrays)
    assert output.tolist() == expected
    assert op.infer(*map(TensorType.of, arrays)).shape == output.shape


def test_einsum_of_three_operands_with_an_ellipsis() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.uniform(-2, 2, shape) for shape in ((2, 3, 4, 5), (2, 7, 1, 5), (2, 4, 6)))
    expected = np.zeros((4, 5, 3, 7))
    for x, y, j, k in np.ndindex(expected.shape):
        expected[x, y, j, k] = sum(a[i, j, x, y] * b[i, k, 0, y] * c[i].sum() for i in range(2))
    np.testing.assert_allclose(operation("Einsum", equation="ab...,ac...,ade->...bc").compute(a, b, c), expected)


@pytest.mark.parametrize("equation", ["a1->a", "ab->a->b", "ab->c", "ab->aab", "a......b", "a..b->a", "ab,->é"])
def test_einsum_equations_that_are_none(equation: str) -> None:
    with pytest.raises(AttributeInvalid):
        operation("Einsum", equation=equation)


@pytest.mark.parametrize(
    ("equation", "operands", "error"),
    [
        ("ab", [f32(2, 3), f32(2, 3)], ShapeMismatch),
        ("ab->a", [f32(2, 3, 4)], ShapeMismatch),
        ("abc->a", [f32(2, 3)], ShapeMismatch),
        ("aa->a", [f32(2, 3)], ShapeMismatch),
        ("ij,jk->ik", [f32(2, 3), f32(4, 5)], ShapeMismatch),
        ("ij->ji", [TensorType(et.boolean, Shape(2, 3))], TypeMismatch),
        ("i,i->i", [f32(2), TensorType(et.i32, Shape(2))], TypeMismatch),
    ],
)
def test_einsum_errors(equation: str, operands: list[TensorType], error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("Einsum", equation=equation).infer(*operands)


def test_inverse_of_a_matrix_and_of_its_transpose() -> None:
    x = np.array([[2.0, 1.0], [4.0, 3.0]])
    np.testing.assert_allclose(operation("Inverse").compute(x), [[1.5, -0.5], [-2, 1]])
    np.testing.assert_allclose(operation("Inverse", adjoint=True).compute(x), [[1.5, -2], [-0.5, 1]])


@pytest.mark.parametrize(
    ("x", "error"),
    [(f32(3), ShapeMismatch), (f32(2, 3), ShapeMismatch), (TensorType(et.i32, Shape(2, 2)), TypeMismatch)],
)
def test_inverse_errors(x: TensorType, error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("Inverse").infer(x)


def test_grouped_matmul_by_offsets() -> None:
    a, b = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[[10.0], [1.0]], [[20.0], [2.0]], [[30.0], [3.0]]])
    output = operation("GroupedMatMul").compute(a, b, np.array([1, 1, 3]))
    assert output.tolist() == [[10, 1], [60, 6], [90, 9], [0, 0]]


@pytest.mark.parametrize("offsets", [[2, 1, 3], [1, 2, 5], [-1, 0, 1]])
def test_grouped_matmul_offsets_must_rise(offsets: list[int]) -> None:
    with pytest.raises(ExecutionError):
        operation("GroupedMatMul").compute(np.ones((4, 1)), np.ones((3, 2, 1)), np.array(offsets))


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        ([f32(6, 4), f32(2, 5, 4)], ShapeMismatch),
        ([f32(6, 4), f32(2, 4, 5), TensorType(et.i32, Shape(2))], ShapeMismatch),
        ([f32(6, 4), f32(2, 5, 4), TensorType(et.u8, Shape(2))], TypeMismatch),
        ([f32(2, 3, 4), f32(3, 5, 4)], ShapeMismatch),
        ([f32(6, 4), f32(5, 4), TensorType(et.i32, Shape(2))], ShapeMismatch),
    ],
)
def test_grouped_matmul_errors(inputs: list[TensorType], error: type[IRError]) -> None:
    with pytest.raises(error):
        operation("GroupedMatMul").infer(*inputs)
