"""Random matmuls for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import MatMulStep
from tests.plan.programs import constant, value

BIAS_AND_RELU = Expression(2, (Instruction("add", (0, 1)), Instruction("relu", (2,))))


def random_matmul(rng: np.random.Generator, sizes: Sequence[int]) -> tuple[MatMulStep, list[Array]]:
    """A matmul with rows, columns and sums drawn from `sizes` and leading axes that broadcast, and its inputs."""
    m, n, k = (int(rng.choice(sizes)) for _ in range(3))
    batch = tuple(int(b) for b in rng.integers(1, 4, rng.integers(0, 3)))
    transpose_a, transpose_b, fixed = (bool(rng.integers(2)) for _ in range(3))

    def some(*matrix: int) -> tuple[int, ...]:
        lead = tuple(1 if rng.integers(3) == 0 else b for b in batch)
        return (*lead[int(rng.integers(len(batch) + 1)) :], *matrix)

    a = value(*some(*((k, m) if transpose_a else (m, k))))
    shape = some(*((n, k) if transpose_b else (k, n)))
    lead = np.broadcast_shapes(a.shape[:-2], shape[:-2])
    weights = rng.standard_normal(shape).astype(np.float32)
    b: Value = constant(weights) if fixed else value(*shape)
    bias = constant(rng.standard_normal(n).astype(np.float32))
    step = MatMulStep(
        [a, b, bias],
        [value(*lead, m, n)],
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        epilogue=BIAS_AND_RELU,
    )
    return step, [rng.standard_normal(a.shape).astype(np.float32), *([] if fixed else [weights])]
