"""Convolutions for tests, and their comparison with the NumPy back end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConvStep
from tests.plan.llvm.harness import run_step
from tests.plan.programs import constant, run, value

EPILOGUE = Expression(3, (Instruction("add", (0, 1)), Instruction("add", (3, 2)), Instruction("relu", (4,))))
"""A bias per channel, another map of the same shape, relu."""


def convolution(
    rng: np.random.Generator,
    sizes: Sequence[int],
    weights: Sequence[int],
    *,
    batch: int = 1,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[tuple[int, int]] = (),
) -> tuple[ConvStep, list[Array]]:
    """A convolution of maps of `sizes` by weights [G,O/G,C/G,K…], and arrays for its inputs."""
    groups, channels, depth, *kernel = weights
    one = (1,) * len(sizes)
    strides, dilations, pads = strides or one, dilations or one, pads or ((0, 0),) * len(sizes)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    out = [(n + sum(p) - span) // s + 1 for n, p, span, s in zip(sizes, pads, spans, strides, strict=True)]
    x, y = value(batch, groups * depth, *sizes), value(batch, groups * channels, *out)
    w = constant(rng.standard_normal(weights).astype(np.float32))
    bias = constant(rng.standard_normal((1, y.shape[1], *one)).astype(np.float32))
    other = value(*y.shape)
    step = ConvStep(
        [x, w, bias, other],
        [y],
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads_begin=tuple(p[0] for p in pads),
        pads_end=tuple(p[1] for p in pads),
        epilogue=EPILOGUE,
    )
    return step, [rng.standard_normal(v.shape).astype(np.float32) for v in (x, other)]


def check_step(
    step: Step,
    arrays: list[Array],
    target: Target,
    threads: int = 1,
    *,
    error: float = 1e-5,
    at_end: bool = True,
    resized: bool = False,
    laid: Callable[[Value, Array], Array] | None = None,
) -> None:
    """Compare a step with the NumPy back end: `error` is relative to the largest number of the result."""
    outputs = run_step(step, arrays, target, threads, at_end=at_end, resized=resized, laid=laid)
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    for a, b in zip(outputs, run([step], values, step.outputs, passes=False), strict=True):
        np.testing.assert_allclose(a, b, rtol=error, atol=error * max(float(np.abs(b[np.isfinite(b)]).max()), 1e-30))
