"""Operations of floats applied to integers: computed in f32 and rounded, as in OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.element import ElementType
from tests.harness import runtime
from tests.harness.case import Case, Input
from tests.harness.ir import ir_of

AXES = Input(np.array([1]), et.i64, True)
MVN = {"eps": 0, "normalize_variance": "false", "eps_mode": "inside_sqrt"}

ROWS: list[tuple[str, str, dict[str, Any], ElementType, Any, Any]] = [
    # 1.5 · (e^−1 − 1) = −0.948 and 1.5 · (e^−9 − 1) = −1.4998
    ("Elu", "opset1", {"alpha": 1.5}, et.i32, [[-1, 0, 7], [-9, 1, 2]], [[-1, 0, 7], [-1, 1, 2]]),
    ("Elu", "opset1", {"alpha": -2}, et.i8, [[-1, 0, 7], [-9, 1, 2]], [[1, 0, 7], [2, 1, 2]]),
    ("Elu", "opset1", {"alpha": 1}, et.boolean, [[True, False]], [[True, False]]),
    # ½ is rounded to the even 0; an i64 is truncated to its low 32 bits
    ("HSigmoid", "opset5", {}, et.i64, [[0, 1, -3, 2**32 + 1]], [[0, 1, 0, 1]]),
    ("HSwish", "opset4", {}, et.i16, [[-2, -1, 1, 2, 300]], [[0, 0, 1, 2, 300]]),
    # a value beyond an i32 after rounding to f32 becomes the smallest i32
    ("HSwish", "opset4", {}, et.i32, [[2**31 - 1, 5]], [[-(2**31), 5]]),
    ("SoftMax", "opset8", {"axis": 1}, et.i32, [[0, 1, 0], [5, 5, 5]], [[0, 1, 0], [0, 0, 0]]),
    ("LogSoftmax", "opset5", {"axis": 1}, et.i32, [[0, 3, 1], [5, 5, 5]], [[-3, 0, -2], [-1, -1, -1]]),
    ("LogSoftmax", "opset5", {"axis": 1}, et.u8, [[0, 3, 1], [5, 5, 5]], [[0, 0, 0], [0, 0, 0]]),
    # the means are −2.5 and 34.5
    ("MVN", "opset6", MVN, et.i32, [[-9, -4, -1, 4], [30, 40, 33, 35]], [[-6, -2, 2, 6], [-4, 6, -2, 0]]),
    ("MVN", "opset6", MVN, et.u8, [[1, 2, 255], [0, 0, 6]], [[0, 0, 169], [0, 0, 4]]),
    ("MVN", "opset6", MVN, et.u16, [[1, 2, 255], [0, 0, 6]], [[65451, 65452, 169], [65534, 65534, 4]]),
    ("GRN", "opset1", {"bias": 0}, et.i32, [[3, 4], [-1, 0]], [[1, 1], [-1, 0]]),
    ("NormalizeL2", "opset1", {"eps": 0, "eps_mode": "add"}, et.i8, [[3, -4], [-1, 0]], [[1, -1], [-1, 0]]),
    ("LRN", "opset1", {"alpha": 1, "beta": 0.5, "bias": 0, "size": 1}, et.i32, [[9, -9], [2, 1]], [[1, -1], [1, 1]]),
]


def case_of(type_: str, version: str, attributes: dict[str, Any], element: ElementType, x: Any) -> Case:
    with_axes = [AXES] if type_ in ("MVN", "NormalizeL2", "LRN") else []
    return Case(type_, version, [Input(np.array(x, element.dtype), element), *with_axes], attributes)


@pytest.mark.parametrize(("type_", "version", "attributes", "element", "x", "expected"), ROWS)
def test_rounded_as_in_the_runtime(
    type_: str, version: str, attributes: dict[str, Any], element: ElementType, x: Any, expected: Any
) -> None:
    case = case_of(type_, version, attributes, element, x)
    model = irload.read_model(*ir_of(case))
    assert sum("floating-point type by the specification" in w for w in model.warnings) == 1
    for optimize in (False, True):
        output = irload.compile_model(model, optimize=optimize)(case.inputs[0].value)[0]
        assert output.dtype == element.dtype
        assert output.tolist() == expected
    assert runtime.outputs(case)[0].tolist() == expected


@pytest.mark.parametrize(
    ("type_", "version", "attributes", "element"),
    [
        ("HSwish", "opset4", {}, et.boolean),  # OpenVINO does not read it
        ("LogSoftmax", "opset5", {"axis": 1}, et.boolean),  # OpenVINO runs neither this nor the next one
        ("NormalizeL2", "opset1", {"eps": 0, "eps_mode": "add"}, et.i32),
    ],
)
def test_rejected_if_the_runtime_cannot_run_it(
    type_: str, version: str, attributes: dict[str, Any], element: ElementType
) -> None:
    case = case_of(type_, version, attributes, element, [[1, 0], [1, 1]])
    with pytest.raises(irload.IRError, match="must be of a"):
        irload.read_model(*ir_of(case))
    with pytest.raises((runtime.Rejected, runtime.NoKernel)):
        runtime.outputs(case)


def test_other_axes_that_the_runtime_splits_are_rejected() -> None:
    axes = Input(np.array([0]), et.i64, True)
    case = Case("MVN", "opset6", [Input(np.array([[1, 2], [4, 8]]), et.i64), axes], MVN)
    with pytest.raises(irload.IRError, match="over axes"):
        irload.read_model(*ir_of(case))
