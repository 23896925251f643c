"""Products by compiled kernels: convolutions and matmuls of random shapes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Conv, MatMul
from tests.plan.llvm.harness import TARGETS, channels_last, run_step
from tests.plan.programs import constant, run, value

BIAS_AND_RELU = Expression(2, (Instruction("add", (0, 1)), Instruction("relu", (2,))))


def agree(step: Step, arrays: list[Array], target: object, threads: int, **how: object) -> None:
    found = run_step(step, arrays, target, threads, **how)  # type: ignore[arg-type]
    given = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    for a, b in zip(found, run([step], given, step.outputs, passes=False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(float(np.abs(b).max()), 1e-30))


def convolution(rng: np.random.Generator) -> tuple[Conv, list[Array]]:
    """A random convolution of one to three dimensions and its data."""
    dimensions = int(rng.choice([1, 2, 2, 2, 3]))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    depth, channels = (int(n) for n in rng.integers(1, 20, 2))
    batch = int(rng.choice([1, 1, 2, 3]))
    kernel = [int(rng.choice([1, 1, 2, 3, 5])) for _ in range(dimensions)]
    strides = [int(rng.choice([1, 1, 2, 3])) for _ in range(dimensions)]
    dilations = [int(rng.choice([1, 1, 2])) for _ in range(dimensions)]
    pads = [tuple(int(n) for n in rng.integers(0, k * d + 1, 2)) for k, d in zip(kernel, dilations, strict=True)]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [int(max(span - sum(p), 1) + rng.integers(0, 18)) for span, p in zip(spans, pads, strict=True)]
    out = [(n + sum(p) - span) // s + 1 for n, p, span, s in zip(sizes, pads, spans, strides, strict=True)]
    x = value(batch, groups * depth, *sizes)
    weights = constant(rng.standard_normal((groups, channels, depth, *kernel)).astype(np.float32))
    y = value(batch, groups * channels, *out)
    bias = constant(rng.standard_normal((1, groups * channels, *(1,) * dimensions)).astype(np.float32))
    other = value(*y.shape)
    expression = Expression(
        3,
        (
            *BIAS_AND_RELU.instructions[:0],
            Instruction("add", (0, 1)),
            Instruction("add", (3, 2)),
            Instruction("relu", (4,)),
        ),
    )
    step = Conv(
        [x, weights, bias, other],
        [y],
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads_begin=tuple(p[0] for p in pads),
        pads_end=tuple(p[1] for p in pads),
        epilogue=expression,
    )
    return step, [rng.standard_normal(v.shape).astype(np.float32) for v in (x, other)]


@pytest.mark.parametrize("seed", range(40))
def test_random_convolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = convolution(rng)
    for target in TARGETS:
        laid = channels_last if rng.integers(3) else None
        agree(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)


@pytest.mark.parametrize("seed", range(40))
def test_random_matmuls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = (int(rng.choice([1, 2, 5, 7, 16, 33, 64, 130])) for _ in range(3))
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
    step = MatMul(
        [a, b, bias],
        [value(*lead, m, n)],
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        epilogue=BIAS_AND_RELU,
    )
    arrays = [rng.standard_normal(a.shape).astype(np.float32), *([] if fixed else [weights])]
    for target in TARGETS:
        agree(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)))
