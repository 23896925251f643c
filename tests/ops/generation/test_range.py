"""Range: the specification's examples, lengths, conversions, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve


def evaluated(start: Any, stop: Any, step: Any, output_type: et.ElementType) -> Any:
    """Return the computed values after checking that their number equals the inferred one."""
    op = resolve("Range", "opset4")[0](output_type=output_type)
    arrays = [np.asarray(n) for n in (start, stop, step)]
    output = op.compute(*arrays)
    assert op.infer(*map(TensorType.of, arrays)).shape == output.shape
    return output


@pytest.mark.parametrize(
    ("start", "stop", "step", "output_type", "expected"),
    [
        (2, 23, 3, et.i32, [2, 5, 8, 11, 14, 17, 20]),
        (23, 2, -3, et.i32, [23, 20, 17, 14, 11, 8, 5]),
        (1.0, 2.5, 0.5, et.f32, [1.0, 1.5, 2.0]),
        (0.5, 3.9, 1.5, et.i64, [0, 1, 2]),  # start, stop and step are truncated first
        (0.0, 5.0, 0.5, et.i64, []),  # step is truncated to 0
        (3, 3, 1, et.i64, []),
        (5, 0, 1, et.i64, []),
        (0, 5, -1, et.i64, []),
    ],
)
def test_values(start: Any, stop: Any, step: Any, output_type: et.ElementType, expected: list[float]) -> None:
    values = evaluated(start, stop, step, output_type)
    assert values.tolist() == expected
    assert values.dtype == output_type.dtype


def test_length_is_that_of_the_rounded_step() -> None:
    assert evaluated(np.float32(0), np.float32(1), np.float32(0.1), et.f32).shape == (10,)


def test_large_integers_stay_exact() -> None:
    assert evaluated(2**62 + 1, 2**62 + 4, 2, et.i64).tolist() == [2**62 + 1, 2**62 + 3]


def test_unknown_length() -> None:
    scalar = TensorType(et.i64, Shape())
    assert resolve("Range", "opset4")[0](output_type=et.f32).infer(scalar, scalar, scalar).shape == Shape(None)


@pytest.mark.parametrize(
    ("version", "inputs", "error"),
    [
        ("opset4", (0.0, 5.0, 0.0), ShapeMismatch),
        ("opset4", (0, np.inf, 1), ShapeMismatch),
        ("opset4", ([0], 5, 1), ShapeMismatch),
        ("opset4", (True, 5, 1), TypeMismatch),
        ("opset1", (0, 5, 0), ShapeMismatch),
        ("opset1", (0, 5.0, 1), TypeMismatch),
    ],
)
def test_invalid_inputs_are_rejected(version: str, inputs: Any, error: type[IRError]) -> None:
    op: Any = resolve("Range", version)[0](**({"output_type": et.i64} if version == "opset4" else {}))
    with pytest.raises(error):
        op.infer(*(TensorType.of(np.asarray(n)) for n in inputs))


@pytest.mark.parametrize("output_type", [et.boolean, et.dynamic, et.string])
def test_output_type_must_be_numeric(output_type: et.ElementType) -> None:
    with pytest.raises(AttributeInvalid):
        resolve("Range", "opset4")[0](output_type=output_type)
