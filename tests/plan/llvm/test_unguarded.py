"""Decisions that are the same for all symbolic sizes add no guard: the excluded shapes would need another plan."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.size import symbol
from irload.core.trace import Trace
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.kernels.precision import pays_in_bf16
from irload.plan.backends.llvm.storage import reordered_operands
from irload.plan.backends.llvm.target import AMX, AVX512_BF16, Target
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import MatMulStep, PoolStep
from tests.plan.programs import constant, value

BF16 = pytest.mark.parametrize("target", [AVX512_BF16, AMX], ids=lambda t: t.name)


@BF16
@pytest.mark.parametrize("rows", [2, 300])
def test_products_in_bf16(rows: int, target: Target) -> None:
    trace = Trace()
    n = symbol(trace, rows)
    step = MatMulStep([value(n, 64), constant(np.ones((64, 96), np.float32))], [value(n, 96)])
    assert pays_in_bf16(step, target)
    assert not trace.guards


@BF16
def test_results_in_channels_last_layout(target: Target) -> None:
    trace = Trace()
    h, w = symbol(trace, 12), symbol(trace, 9)
    x, y = value(1, 64, h, w), value(1, 64, h, w)
    step = PoolStep([x], [y], kind="max", kernel=(1, 1), strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0))
    assert y in LlvmBackend(target).requests(Program([step], [x], [y]), [step]).copied_results
    assert not trace.guards


@BF16
def test_rows_of_copied_operands(target: Target) -> None:
    """The rows of transposed data are not compared with rows of the result, whose number differs for most sizes."""
    trace = Trace()
    n = symbol(trace, 96)
    data, weights = value(1, n, 64), constant(np.ones((96, 64), np.float32))
    steps: list[Step] = [
        MatMulStep([data, weights], [value(1, n, 96)], transpose_b=True),
        MatMulStep([value(1, 96, n), weights], [value(1, n, 64)], transpose_a=True),
    ]
    assert list(reordered_operands(steps, {}, target)) == steps[:1]
    assert not [key for relation, key in trace.guards if relation == "=="]
