"""Checks AMX once: compares a product by tiles with NumPy's, before the first plan that uses tiles."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.base import Options
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import MatMulStep
from irload.plan.memory.memory import Memory

_ROWS, _LENGTH, _COLUMNS = 41, 100, 70
"""A size with tails along each axis, for which tiles are selected."""


def tiles_multiply(target: Target) -> bool:
    """True if a matmul of small integers, which are exact in bf16 and f32, is computed exactly."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((_ROWS, _LENGTH), (_LENGTH, _COLUMNS)))
    x, y = Value(a.shape, a.dtype), Value((_ROWS, _COLUMNS), a.dtype)
    step = MatMulStep([x, Value.of(b)], [y])
    memory = Memory(Program([step], [x], [y]))
    executable = LlvmExecutable([step], memory, target, Options(precision="bf16"))
    memory.array(x)[...] = a
    memory.array(y).fill(np.nan)
    executable.run(None)
    return executable.kernels[0].name == "TileProduct" and np.array_equal(memory.array(y), a @ b)
