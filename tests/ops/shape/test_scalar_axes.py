"""Axes 0 and -1 of a scalar, which PyTorch and OpenVINO accept in some operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.errors import ShapeMismatch
from tests.harness import runtime
from tests.harness.case import Case, const, param
from tests.harness.ir import ir_of

X = np.array(-3.5, np.float32)
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "CumSum": ("opset3", {}, ()),
    "CumSum exclusive": ("opset3", {"exclusive": True}, ()),
    "CumSum reverse": ("opset3", {"exclusive": True, "reverse": True}, ()),
    "ReduceL1": ("opset4", {"keep_dims": False}, (1,)),
    "ReduceL2": ("opset4", {"keep_dims": False}, ()),
    "ReduceMax": ("opset1", {"keep_dims": False}, (1,)),
    "ReduceMean": ("opset1", {"keep_dims": False}, ()),
    "ReduceProd": ("opset1", {"keep_dims": False}, (1,)),
    "Roll": ("opset7", {}, (1,)),
    "Squeeze": ("opset1", {}, (1,)),
}


def case_of(name: str, axis: int) -> Case:
    type = name.split()[0]
    version, attributes, shape = CASES[name]
    axes = const(np.full(shape, axis), et.i64)
    inputs = [param(X), *([const(np.array([2]), et.i64)] if type == "Roll" else []), axes]
    return Case(type, version, inputs, attributes, oracle="cpu")  # the reference crashes on CumSum


@pytest.mark.parametrize("options", [{}, {"jit": False}, {"optimize": False}], ids=str)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", CASES)
def test_the_first_axis_of_a_scalar(name: str, axis: int, options: dict[str, Any]) -> None:
    case = case_of(name, axis)
    (result,) = irload.compile_model(irload.read_model(*ir_of(case)), 1, **options)(X).values()
    (expected,) = runtime.outputs(case)
    assert result.shape == expected.shape == ()
    assert result == expected


@pytest.mark.parametrize("name", CASES)
def test_other_axes_are_errors(name: str) -> None:
    with pytest.raises(ShapeMismatch, match=r"1 is out of range for rank 0; expected -1\.\.0"):
        irload.read_model(*ir_of(case_of(name, 1)))
