"""Binary arithmetic on integers: wrapping, divisions and remainders of every sign, powers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.errors import ExecutionError
from tests.harness.direct import computed

NAN = float("nan")


@pytest.mark.parametrize(
    ("type", "element", "a", "b", "expected"),
    [
        ("Add", et.u8, [250], [10], [4]),
        ("Subtract", et.u8, [3], [5], [254]),
        ("Multiply", et.i8, [100], [3], [44]),
        ("SquaredDifference", et.i32, [3, -2], [5, 1], [4, 9]),
        ("Divide", et.i32, [7, -7, 7, -7, -6], [2, 2, -2, -2, 2], [3, -4, -4, 3, -3]),
        ("Divide", et.f32, [1, -1, 0], [0, 0, 0], [np.inf, -np.inf, NAN]),
        ("Mod", et.i32, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
        ("FloorMod", et.i32, [7, -7, 7, -7], [3, 3, -3, -3], [1, 2, -2, -1]),
        ("Mod", et.f32, [5.5, -5.5], [2, 2], [1.5, -1.5]),
        ("FloorMod", et.f32, [5.5, -5.5], [2, 2], [1.5, 0.5]),
        ("Mod", et.f32, [0.3, -0.7, 1, 1e10], [0.1, 0.1, 0.1, 0.1], [0, 0, 0, 0]),  # multiples up to rounding
        ("Mod", et.f32, [6, -6, 1, np.inf, 1], [3, 3, np.inf, 1, 0], [0, 0, NAN, NAN, NAN]),
        ("FloorMod", et.f32, [6, -6, 1, -1, 5], [3, 3, np.inf, np.inf, -np.inf], [0, 0, NAN, NAN, NAN]),
        ("Power", et.i32, [2, 2, -2, 0, 1], [10, -1, 3, 0, -5], [1024, 0, -8, 1, 1]),
        ("Power", et.i32, [10], [10], [-(2**31)]),
        ("Power", et.f32, [2, -8, 0], [-1, 3, 0], [0.5, -512, 1]),
        ("Maximum", et.f32, [1, NAN, 2], [3, 0, NAN], [3, NAN, NAN]),
        ("Minimum", et.i64, [1, 5], [3, -5], [1, -5]),
    ],
)
def test_values(type: str, element: et.ElementType, a: list[Any], b: list[Any], expected: list[Any]) -> None:
    (output,) = computed(type, "opset1", (a, element), (b, element))
    np.testing.assert_array_equal(output, expected)


def test_divide_truncates_without_pythondiv() -> None:
    (output,) = computed(
        "Divide", "opset1", ([7, -7, 7, -7, -6], et.i32), ([2, 2, -2, -2, 2], et.i32), m_pythondiv=False
    )
    assert output.tolist() == [3, -3, -3, 3, -3]


@pytest.mark.parametrize("type", ["Divide", "Mod", "FloorMod"])
def test_integer_division_by_zero_is_an_error(type: str) -> None:
    with pytest.raises(ExecutionError, match="division by zero"):
        computed(type, "opset1", ([1, 2], et.i64), ([1, 0], et.i64))


def test_half_precision_is_rounded_once() -> None:
    """1 + 2⁻¹¹ is half way between two f16 values; additions in f16 and in f32 must both round to the even one."""
    (output,) = computed("Add", "opset1", ([1, 2048], et.f16), ([2**-11, 1], et.f16))
    assert output.tolist() == [1, 2048]
