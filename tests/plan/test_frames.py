"""Frames: a 1×1 convolution writes into the padded buffer of a depthwise one, if it is the only reader."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.numpy.kernels import packing
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ConvStep, ElementwiseStep
from irload.plan.passes.pipeline import optimize
from tests.plan.programs import constant, random, run, value


def window(x: Value, weights: Array, out: Value, stride: int = 1, pads: tuple[int, ...] = (0, 0, 0, 0)) -> ConvStep:
    """A convolution; `pads` begin above, left, below, right."""
    return ConvStep(
        [x, constant(weights)],
        [out],
        strides=(stride, stride),
        dilations=(1, 1),
        pads_begin=pads[:2],
        pads_end=pads[2:],
    )


def convolved(x: Array, weights: Array, stride: int = 1, pads: tuple[int, ...] = (0, 0, 0, 0)) -> Array:
    """The convolution, computed as a sum over taps."""
    groups, per_group, _, kh, kw = weights.shape
    wide = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]).astype(np.float64)
    oh, ow = ((n - k) // stride + 1 for n, k in zip(wide.shape[2:], (kh, kw), strict=True))
    total = np.zeros((len(x), groups * per_group, oh, ow))
    for i, j in np.ndindex(kh, kw):
        taps = wide[:, :, i : i + oh * stride : stride, j : j + ow * stride : stride][:, :, :oh, :ow]
        grouped = taps.reshape(len(x), groups, -1, oh, ow)
        total += np.einsum("ngchw,goc->ngohw", grouped, weights[..., i, j]).reshape(total.shape)
    return total


CASES = [
    ((1, 16, 20, 20), 48, 3, 1, (1, 1, 1, 1)),
    ((2, 8, 21, 15), 24, 3, 2, (0, 0, 1, 1)),
    ((1, 24, 30, 14), 100, 5, 1, (2, 2, 2, 2)),
    ((3, 16, 18, 18), 272, 3, 2, (1, 0, 0, 1)),
]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(("shape", "channels", "kernel", "stride", "pads"), CASES)
def test_framed(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    channels: int,
    kernel: int,
    stride: int,
    pads: tuple[int, ...],
    in_place: bool,
    threads: int,
) -> None:
    monkeypatch.setattr(packing, "small_kernels", lambda: in_place)
    one, many = random(1, channels, shape[1], 1, 1), random(channels, 1, 1, kernel, kernel, seed=1)
    x = random(*shape, seed=2)
    middle = np.maximum(convolved(x, one), 0)
    expected = convolved(middle, many, stride, pads)
    a, frame_value, kept, out = value(*shape), value(*middle.shape), value(*middle.shape), value(*expected.shape)
    relu = ElementwiseStep([frame_value], [kept], expression=Expression(1, (Instruction("relu", (0,)),)))
    steps: list[Step] = [window(a, one, frame_value), relu, window(kept, many, out, stride, pads)]
    result = run(steps, {a: x}, [out], threads)[0]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def frames(steps: list[Step], a: Value, outputs: list[Value]) -> list[Value]:
    """The values that are stored in a frame."""
    plan = Executor(optimize(Program(steps, [a], outputs)), Options(1))
    return [v for s in plan.program.steps for v in s.outputs if plan.memory.layout(v).border]


@pytest.mark.numpy_kernels
def test_only_values_read_by_one_depthwise_convolution() -> None:
    one, many, pads = random(1, 16, 16, 1, 1), random(16, 1, 1, 3, 3), (1, 1, 1, 1)

    def build() -> tuple[Value, Value, Value]:
        return value(1, 16, 20, 20), value(1, 16, 20, 20), value(1, 16, 20, 20)

    a, middle, out = build()
    assert frames([window(a, one, middle), window(middle, many, out, 1, pads)], a, [out]) == [middle]
    a, middle, out = build()
    assert not frames([window(a, one, middle), window(middle, many, out, 1, pads)], a, [out, middle])
    a, middle, out = build()
    other = value(1, 16, 20, 20)
    twice: list[Step] = [
        window(a, one, middle),
        window(middle, many, out, 1, pads),
        window(middle, many, other, 1, pads),
    ]
    assert not frames(twice, a, [out, other])
    a, middle, _ = build()
    out = value(1, 16, 18, 18)
    assert not frames([window(a, one, middle), window(middle, many, out)], a, [out]), "no padding, no frame"
    a, middle, out = build()
    dense = random(1, 16, 16, 3, 3)
    assert not frames([window(a, one, middle), window(middle, dense, out, 1, pads)], a, [out])
    small, middle, out = value(1, 16, 7, 7), value(1, 16, 7, 7), value(1, 16, 7, 7)
    assert not frames([window(small, one, middle), window(middle, many, out, 1, pads)], small, [out])
