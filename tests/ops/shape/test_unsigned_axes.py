"""Negative axes stored as u64, as OpenVINO's Paddle frontend stores them: 2^64 − 1 is the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from tests.harness import runtime
from tests.harness.case import Case, const, param
from tests.harness.ir import ir_of

DATA = param(np.arange(24, dtype=np.float32).reshape(2, 3, 4, 1))
ONE, TWO, FOUR = const([1]), const([2]), const([1, 2, 1])
CASES: dict[str, tuple[str, list[Any], dict[str, str], int]] = {
    "Squeeze": ("opset1", [DATA, -1], {}, 1),
    "Unsqueeze": ("opset1", [DATA, [-1, -3]], {}, 1),
    "Reshape": ("opset1", [DATA, [6, -1]], {"special_zero": "false"}, 1),
    "ReduceSum": ("opset1", [DATA, [-2, -3]], {"keep_dims": "false"}, 1),
    "Gather": ("opset8", [DATA, const([2, 0]), -3], {"batch_dims": "0"}, 1),
    "Slice": ("opset8", [DATA, ONE, TWO, ONE, [-3]], {}, 1),
    "ScatterUpdate": ("opset3", [DATA, ONE, param(np.ones((2, 1, 4, 1), np.float32)), -3], {}, 1),
    "Split": ("opset1", [DATA, -3], {"num_splits": "3"}, 3),
    "VariadicSplit": ("opset1", [DATA, -2, FOUR], {}, 3),
}


def case_of(type: str, element: et.ElementType) -> Case:
    version, inputs, attributes, count = CASES[type]
    axes = [np.array(i, np.int64).view(element.dtype) for i in inputs if isinstance(i, int | list)]
    stored = [const(axes[0], element) if isinstance(i, int | list) else i for i in inputs]
    return Case(type, version, stored, attributes, outputs=count)


def computed(case: Case, *, optimize: bool) -> list[Any]:
    compiled = irload.compile_model(irload.read_model(*ir_of(case)), optimize=optimize)
    return [v.tolist() for v in compiled([i.value for i in case.inputs if not i.constant]).values()]


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("type", CASES)
def test_negative_axes_stored_as_u64_equal_those_of_i64(type: str, optimize: bool) -> None:
    unsigned = case_of(type, et.u64)
    assert computed(unsigned, optimize=optimize) == computed(case_of(type, et.i64), optimize=optimize)
    model = irload.read_model(*ir_of(unsigned))
    assert [(o.element_type.name, o.partial_shape) for o in model.outputs] == runtime.inferred(runtime.read(unsigned))
