"""RandomUniform and Multinomial: known numbers, the effect of seeds, the specification's examples, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch, TypeMismatch
from irload.ops.generation import random
from irload.ops.generation.random import Multinomial, RandomUniform
from irload.ops.registry import resolve


def drawn(
    element: et.ElementType, shape: list[int], low: float, high: float, seeds: tuple[int, int], **rest: Any
) -> Any:
    op = RandomUniform(output_type=element, global_seed=seeds[0], op_seed=seeds[1], **rest)
    return op.compute(np.array(shape), np.array(low, element.dtype), np.array(high, element.dtype))


@pytest.mark.parametrize(
    ("element", "bounds", "seeds", "expected"),
    [
        (et.f32, (0, 1), (150, 10), [0.7011236, 0.30539632, 0.93931055, 0.9456035, 0.11694777, 0.50770056, 0.5197197]),
        (et.i32, (50, 100), (80, 100), [65, 70, 56, 59, 82, 92]),
        (et.f64, (2, 10), (80, 100), [5.65927959, 4.23122376, 2.67008206, 2.36423758]),
    ],
)
def test_published_numbers(element: et.ElementType, bounds: Any, seeds: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(drawn(element, [len(expected)], *bounds, seeds), expected, rtol=1e-7)


def test_alignment_pytorch_draws_from_another_generator() -> None:
    values = drawn(et.f32, [4], 0, 1, (150, 10), alignment="pytorch")
    np.testing.assert_allclose(values, [0.5974867, 0.544582, 0.04074067, 0.5810562], rtol=1e-6)


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
@pytest.mark.parametrize("element", [et.f32, et.f16, et.bf16, et.f64, et.i32, et.i64])
def test_values_are_evenly_spread_and_start_alike(element: et.ElementType, alignment: str) -> None:
    values = drawn(element, [4000], -8, 24, (7, 3), alignment=alignment)
    assert values.dtype == element.dtype
    assert -8 <= values.min() < -7
    assert 22 < values.max() <= 24
    assert abs(values.astype(float).mean() - 8) < 0.7
    np.testing.assert_array_equal(drawn(element, [2, 3], -8, 24, (7, 3), alignment=alignment).ravel(), values[:6])


def test_without_seeds_every_run_differs() -> None:
    assert (drawn(et.f64, [8], 0, 1, (0, 0)) != drawn(et.f64, [8], 0, 1, (0, 0))).any()


def test_values_are_never_folded() -> None:
    assert not RandomUniform.folds
    assert not Multinomial.folds


SCALAR = TensorType(et.f32, Shape())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (TensorType.of(np.array([2, 3])), Shape(2, 3)),
        (TensorType(et.i64, Shape(2)), Shape(None, None)),
        (TensorType(et.i64, Shape((1, 4))), Shape.unranked()),
        (TensorType(et.i64, Shape.unranked()), Shape.unranked()),
    ],
)
def test_inferred_shapes(shape: TensorType, expected: Shape) -> None:
    assert RandomUniform(output_type=et.f32).infer(shape, SCALAR, SCALAR).shape == expected


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        ((TensorType.of(np.array([-1])), SCALAR, SCALAR), ShapeMismatch),
        ((TensorType(et.i64, Shape()), SCALAR, SCALAR), ShapeMismatch),
        ((TensorType(et.f32, Shape(1)), SCALAR, SCALAR), TypeMismatch),
        ((TensorType(et.i64, Shape(1)), SCALAR, TensorType(et.f64, Shape())), TypeMismatch),
        ((TensorType(et.i64, Shape(1)), SCALAR, TensorType(et.f32, Shape(2))), ShapeMismatch),
        ((TensorType(et.i64, Shape(1)), *(TensorType.of(np.array(1, np.float32)),) * 2), ShapeMismatch),
    ],
)
def test_invalid_inputs_are_rejected(inputs: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        RandomUniform(output_type=et.f32).infer(*inputs)


@pytest.mark.parametrize("attributes", [{"output_type": et.u8}, {"output_type": et.f32, "op_seed": -1}, {}])
def test_attributes_that_are_invalid(attributes: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        RandomUniform(**attributes)


def test_bounds_that_only_now_are_known() -> None:
    with pytest.raises(ExecutionError):
        drawn(et.f32, [1], 1, 0, (1, 1))


# -- Multinomial


@pytest.mark.parametrize(
    ("probs", "attributes", "draws", "expected"),
    [
        ([[0.1, 0.5, 0.4]], {"with_replacement": True}, [[0.2, 0.4, 0.6, 0.8, 1]], [[1, 1, 1, 2, 2]]),
        (
            [[-1, 1, 2], [50, 1, 21]],
            {"with_replacement": True, "log_probs": True},
            [[0.1, 0.2, 0.3, 0.9], [0.1, 0.5, 0.9, 0.99]],
            [[1, 1, 2, 2], [0, 0, 0, 0]],
        ),
        ([[0.1, 0.5, 0.4]], {"with_replacement": False}, [[0.3, 0.2]], [[1, 0]]),
        ([[0.1, 0.5, 0.4]], {"with_replacement": False}, [[0.3, 0.3]], [[1, 2]]),
    ],
)
def test_specification_examples(
    probs: Any, attributes: dict[str, Any], draws: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda *_, **__: np.array(draws))
    op = resolve("Multinomial", "opset13")[0](convert_type=et.i32, **attributes)
    output: Any = op.compute(np.array(probs, np.float64), np.array(len(draws[0])))
    assert output.tolist() == expected
    assert output.dtype == np.int32


@pytest.mark.parametrize(
    ("probs", "samples", "error"),
    [
        (TensorType(et.f32, Shape(3)), np.array(1), ShapeMismatch),
        (TensorType(et.i32, Shape(1, 3)), np.array(1), TypeMismatch),
        (TensorType(et.f32, Shape(1, 3)), np.array(-1), ShapeMismatch),
        (TensorType(et.f32, Shape(1, 3)), np.array(4), ShapeMismatch),  # no class is drawn twice
        (TensorType(et.f32, Shape(1, 3)), np.array([1, 1]), ShapeMismatch),
    ],
)
def test_multinomial_rejects_invalid_inputs(probs: TensorType, samples: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        Multinomial(convert_type=et.i32).infer(probs, TensorType.of(samples))


@pytest.mark.parametrize("element", [et.f16, et.bf16])
def test_each_step_is_rounded_in_plans(element: et.ElementType) -> None:
    """Plans compute 16-bit floats in f32."""
    narrow = RandomUniform(output_type=element, global_seed=3)
    bounds = [np.array(bound, element.dtype) for bound in (-35.3, -2.7)]
    shape = np.array([1000])
    wide = narrow.compute(shape, *(bound.astype(np.float32) for bound in bounds))
    np.testing.assert_array_equal(wide, narrow.compute(shape, *bounds))
