"""Operands of epilogues that have one element, or one per line, for all channels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS
from tests.plan.programs import constant


@pytest.mark.parametrize("varies", [(), (2,), (3,)], ids=["nowhere", "H", "W"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_operands_without_channels(kernel, varies):
    rng = np.random.default_rng(kernel)
    pad = kernel // 2
    step, (x, other) = convolution(rng, (7, 5), (1, 19, 8, kernel, kernel), batch=2, pads=((pad, pad),) * 2)
    shape = tuple(n if k in varies else 1 for k, n in enumerate(step.output.shape))
    operand = constant(rng.standard_normal(shape).astype(np.float32))
    step.inputs = [*step.inputs[:2], operand, step.inputs[3]]
    check_step(step, [x, other], TARGETS[0])
