"""Steps and arrays rounded to bf16, and random convolutions: for tests of bf16 products."""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConvStep, ConvTransposeStep, MatMulStep
from tests.plan.llvm.convolutions import convolution
from tests.plan.programs import constant, value

SIZES = [1, 2, 5, 15, 16, 17, 33, 64, 130]
"""Sizes of matrices: around the sizes of tiles and their parts."""


def narrowed(array: Array) -> Array:
    """The nearest bf16 numbers, in f32."""
    return array.astype(bfloat16).astype(np.float32)


def rounded(step: ConvStep | ConvTransposeStep | MatMulStep) -> Step:
    """The same step with constant data and weights rounded."""
    inputs = [_narrow(v) if k < 2 else v for k, v in enumerate(step.inputs)]
    outputs = [value(*step.output.shape)]
    if isinstance(step, MatMulStep):
        return MatMulStep(
            inputs, outputs, transpose_a=step.transpose_a, transpose_b=step.transpose_b, epilogue=step.epilogue
        )
    if isinstance(step, ConvTransposeStep):
        numbers = {"strides": step.strides, "dilations": step.dilations, "begin": step.begin}
        return ConvTransposeStep(inputs, outputs, **numbers, epilogue=step.epilogue)
    return ConvStep(
        inputs,
        outputs,
        strides=step.strides,
        dilations=step.dilations,
        pads_begin=step.pads_begin,
        pads_end=step.pads_end,
        epilogue=step.epilogue,
    )


def _narrow(value: Value) -> Value:
    return value if value.source is None else constant(narrowed(value.source.array))


def random_convolution(rng: np.random.Generator) -> tuple[ConvStep, list[Array]]:
    """A convolution of one to three dimensions, and its data."""
    depth = int(rng.choice([2, 3, 16, 31, 32, 33, 48, 70]))
    kernel = tuple(int(rng.choice([1, 1, 2, 3, 5])) for _ in range(int(rng.choice([1, 2, 2, 2, 3]))))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    return some_convolution(rng, depth, kernel, groups, tuple(int(rng.choice([1, 1, 2])) for _ in kernel))


def some_convolution(
    rng: np.random.Generator,
    depth: int,
    kernel: tuple[int, ...],
    groups: int = 1,
    dilations: tuple[int, ...] = (),
    channels: int = 0,
) -> tuple[ConvStep, list[Array]]:
    """A 2-D convolution, otherwise random, and its data."""
    dimensions = len(kernel)
    dilations = dilations or (1,) * dimensions
    channels = channels or int(rng.choice([16, 31, 32, 33, 48]))
    batch = int(rng.choice([1, 1, 2, 3]))
    strides = [int(rng.choice([1, 1, 2, 3])) for _ in kernel]
    reaches = [k * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [(int(rng.integers(0, n)), int(rng.integers(0, n))) for n in reaches]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    most = {1: 70, 2: 20, 3: 6}[dimensions]
    sizes = [int(max(span - sum(p), 1) + rng.integers(0, most)) for span, p in zip(spans, pads, strict=True)]
    weights = (groups, channels, depth, *kernel)
    return convolution(rng, sizes, weights, batch=batch, strides=strides, dilations=dilations, pads=pads)


def random_transposed(rng: np.random.Generator) -> tuple[ConvTransposeStep, list[Array]]:
    """A transposed convolution whose outputs all have taps, and its data."""
    strides = tuple(int(rng.choice([1, 2, 2, 3])) for _ in range(int(rng.choice([1, 2, 2, 3]))))
    kernel = tuple(s + int(rng.choice([0, 0, 1, 2, 3])) for s in strides)
    begin = tuple(int(rng.integers(0, k)) for k in kernel)
    most = {1: 40, 2: 12, 3: 5}[len(kernel)]
    sizes = [int(rng.integers(2, most)) for _ in kernel]
    axes = zip(sizes, strides, kernel, begin, strict=True)
    out = [max(1, (n - 1) * s + k - b - int(rng.integers(-1, 3))) for n, s, k, b in axes]
    groups, depth, channels = (int(rng.choice(sizes)) for sizes in ((1, 1, 2, 6), (3, 16, 32, 45), (3, 16, 33)))
    weights = constant(rng.standard_normal((groups, depth, channels, *kernel)).astype(np.float32))
    x, y = value(2, groups * depth, *sizes), value(2, groups * channels, *out)
    step = ConvTransposeStep([x, weights], [y], strides=strides, dilations=(1,) * len(kernel), begin=begin)
    return step, [rng.standard_normal(x.shape).astype(np.float32)]
