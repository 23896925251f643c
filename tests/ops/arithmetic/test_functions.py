"""Functions of real numbers: their values on integers, their edges, and the precision of erf and its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import TypeMismatch
from irload.ops.special import erf, erfc, erfinv
from tests.harness.direct import computed, operation

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("type", "version", "element", "x", "expected"),
    [
        ("Exp", "opset1", et.i32, [0, 1, 2, -1], [1, 2, 7, 0]),
        ("Log", "opset1", et.i32, [1, 2, 8, 20], [0, 0, 2, 2]),
        ("Sqrt", "opset1", et.i32, [0, 2, 3, 8], [0, 1, 2, 3]),
        ("Sin", "opset1", et.i64, [1, 2, 5], [0, 0, 0]),
        ("Cos", "opset1", et.i64, [0, 1, 3, 4], [1, 1, -1, -1]),
        ("Asin", "opset1", et.i32, [0, 1, -1, 2], [0, 1, -1, -(2**31)]),
        ("Acos", "opset1", et.i32, [0, 1, -1], [2, 0, 3]),
        ("Atanh", "opset4", et.i32, [0, 1, -3], [0, 2**31 - 1, -(2**31)]),
        ("Tanh", "opset1", et.i32, [0, 1, -1], [0, 1, -1]),
        ("Abs", "opset1", et.i32, [-(2**31), -3], [-(2**31), 3]),
        ("Sign", "opset1", et.f32, [NAN, -2, 0, 5], [NAN, -1, 0, 1]),
        ("Floor", "opset1", et.i32, [-3, 3], [-3, 3]),
        ("Ceiling", "opset1", et.f32, [-1.5, 1.2, INF], [-1, 2, INF]),
        ("Sqrt", "opset1", et.f32, [-1, INF], [NAN, INF]),
        ("Log", "opset1", et.f32, [0, -1], [-INF, NAN]),
        ("ErfInv", "opset17", et.f32, [1, -1, 1.5, 0], [INF, -INF, NAN, 0]),
    ],
)
def test_values(type: str, version: str, element: et.ElementType, x: list[Any], expected: list[Any]) -> None:
    (output,) = computed(type, version, (x, element))
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("half_to_even", [-2, -2, -0.0, 0, 2, 2, 3]), ("half_away_from_zero", [-3, -2, -1, 1, 2, 3, 3])],
)
def test_round(mode: str, expected: list[float]) -> None:
    (output,) = computed("Round", "opset5", ([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6], et.f32), mode=mode)
    assert output.tolist() == expected


def test_round_half_away_does_not_add_before_it_cuts() -> None:
    """The largest f32 number below 0.5 rounds to 0, although the f32 sum of it and 0.5 is 1."""
    x = np.nextafter(np.float32(0.5), np.float32(0))
    (output,) = computed("Round", "opset5", np.array([x]), mode="half_away_from_zero")
    assert output.tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_and_erfc_are_exact_to_two_units(dtype: Any) -> None:
    x = np.concatenate([np.linspace(-6, 6, 4001), np.logspace(-30, 0, 500)]).astype(dtype)
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(erf(x), [math.erf(v) for v in x.tolist()], rtol=2 * unit)
    np.testing.assert_allclose(erfc(x), [math.erfc(v) for v in x.tolist()], rtol=40 * unit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erfinv_inverts_erf(dtype: Any) -> None:
    y = np.concatenate([np.linspace(-0.999, 0.999, 2001), np.logspace(-20, -3, 200)]).astype(dtype)
    back = [math.erf(v) for v in erfinv(y).tolist()]
    np.testing.assert_allclose(back, y, rtol=4 * np.finfo(dtype).eps)


def test_erfinv_near_one() -> None:
    tail = np.array([1e-3, 1e-8, 2.0**-52])
    np.testing.assert_allclose([math.erfc(v) for v in erfinv(1 - tail).tolist()], 1 - (1 - tail), rtol=1e-12)


@pytest.mark.parametrize(
    ("type", "version", "element"),
    [("Exp", "opset1", et.boolean), ("ErfInv", "opset17", et.i32), ("Abs", "opset1", et.string)],
)
def test_types_that_are_refused(type: str, version: str, element: et.ElementType) -> None:
    with pytest.raises(TypeMismatch):
        operation(type, version).infer(TensorType(element, Shape(2)))
