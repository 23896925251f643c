"""Row kernels read sizes and strides when they run: another batch, length or image size compiles nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.ops.image.grid_sample import GridSample
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.library import Library
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import (
    AttentionStep,
    ConcatStep,
    ElementwiseStep,
    GatherStep,
    GroupNormalizeStep,
    MatMulStep,
    NormalizeStep,
    PoolStep,
    ReduceStep,
    RelayoutStep,
    SampleStep,
    SoftmaxStep,
    TransposeStep,
)
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import TARGETS, channels_last, run_step
from tests.plan.programs import constant, run, value

ADD = Expression(2, (Instruction("add", (0, 1)),))
Case = tuple[Step, list[Array], Array]
"""A step, its inputs, the expected output."""


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def normalized(x: Array, axes: tuple[int, ...]) -> Array:
    centered = x - x.mean(axes, keepdims=True)
    return centered / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def bias(n: int, c: int, h: int, w: int) -> Case:
    x, b = numbers(n, c, h, w), numbers(n, c, 1, 1)
    return ElementwiseStep([value(*x.shape), value(*b.shape)], [value(*x.shape)], expression=ADD), [x, b], x + b


def contiguous(n: int, c: int, h: int, w: int) -> Case:
    x = numbers(n, c, h, w)
    return ElementwiseStep([value(*x.shape)] * 2, [value(*x.shape)], expression=ADD), [x], x + x


def mean(n: int, c: int, h: int, w: int) -> Case:
    x = numbers(n, c, h, w)
    return ReduceStep([value(*x.shape)], [value(n, c)], kind="mean", axes=(2, 3)), [x], x.mean((2, 3))


def maximum(n: int, s: int) -> Case:
    x = numbers(n, s, 24)
    return ReduceStep([value(*x.shape)], [value(n, 24)], kind="max", axes=(1,)), [x], x.max(1)


def total(n: int, s: int) -> Case:
    x = numbers(n, s)
    return ReduceStep([value(*x.shape)], [value(n)], kind="sum", axes=(1,)), [x], x.sum(1)


def layers(n: int, s: int) -> Case:
    x = numbers(n, s, 160)
    return NormalizeStep([value(*x.shape)], [value(*x.shape)], axes=(2,), eps=1e-5), [x], normalized(x, (2,))


def groups(n: int, c: int, h: int, w: int) -> Case:
    x = numbers(n, c, h, w)
    wanted = normalized(x.reshape(n, c // 4, 4, h, w), (2, 3, 4)).reshape(x.shape)
    inputs = [value(*x.shape), constant(np.ones(c, np.float32)), constant(np.zeros(c, np.float32))]
    return GroupNormalizeStep(inputs, [value(*x.shape)], groups=c // 4, eps=1e-5), [x], wanted


def scores(n: int, s: int) -> Case:
    x = numbers(n, 3, s)
    return SoftmaxStep([value(*x.shape)], [value(*x.shape)], axis=2), [x], softmax(x, 2)


def classes(n: int, c: int, h: int, w: int) -> Case:
    x = numbers(n, c, h, w)
    return SoftmaxStep([value(*x.shape)], [value(*x.shape)], axis=2), [x], softmax(x, 2)


def heads(n: int, s: int) -> Case:
    x = numbers(n, s, 2, 16)
    wanted = x.transpose(0, 2, 1, 3)
    return TransposeStep([value(*x.shape)], [value(*wanted.shape)], order=(0, 2, 1, 3)), [x], wanted


def enlarged(n: int, h: int, w: int) -> Case:
    x = numbers(n, h, w, 5, 2, 2)
    order = (0, 1, 4, 2, 5, 3)
    wanted = x.transpose(order)
    return TransposeStep([value(*x.shape)], [value(*wanted.shape)], order=order), [x], wanted


def planar(n: int, c: int, h: int, w: int) -> Case:
    x = numbers(n, c, h, w)
    return RelayoutStep([value(*x.shape)], [value(*x.shape)]), [x], x


def joined(n: int, s: int) -> Case:
    x, y = numbers(n, s), numbers(n, s + 9)
    wanted = np.concatenate([x, y], 1)
    return ConcatStep([value(*x.shape), value(*y.shape)], [value(*wanted.shape)], axis=1), [x, y], wanted


def words(n: int, s: int) -> Case:
    table, ids = numbers(9, 40), np.arange(n * s).reshape(n, s) % 9
    step = GatherStep([value(9, 40), Value(ids.shape, ids.dtype)], [value(n, s, 40)], axis=0)
    return step, [table, ids], table[ids]


def sampled(n: int, c: int, h: int, w: int) -> Case:
    x, grid = numbers(n, c, h, w), numbers(n, h + 3, w - 4, 2)
    wanted = GridSample(mode="bicubic", padding_mode="reflection").compute(x, grid)
    inputs = [value(*x.shape), value(*grid.shape)]
    step = SampleStep(inputs, [value(*wanted.shape)], mode="bicubic", padding="reflection", align_corners=False)
    return step, [x, grid], wanted


def by_numpy(step: Step, arrays: list[Array]) -> Case:
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    (wanted,) = run([step], values, step.outputs, passes=False)
    return step, arrays, wanted


def convolved(n: int, c: int, h: int, w: int) -> Case:
    rng = np.random.default_rng(0)
    return by_numpy(*convolution(rng, [h, w], (1, 24, c, 3, 3), batch=n, strides=[2, 2], pads=[(1, 1), (1, 1)]))


def depthwise(n: int, c: int, h: int, w: int) -> Case:
    rng = np.random.default_rng(0)
    return by_numpy(*convolution(rng, [h, w], (c, 1, 1, 3, 3), batch=n, strides=[2, 1], pads=[(1, 1), (1, 1)]))


def pooled(n: int, c: int, h: int, w: int) -> Case:
    x, y = value(n, c, h, w), value(n, c, (h + 1) // 2, w)
    windows: Any = {"kernel": (2, 3), "strides": (2, 1), "dilations": (1, 1), "pads_begin": (0, 1)}
    return by_numpy(PoolStep([x], [y], kind="mean", divisor="real", **windows), [numbers(*x.shape)])


def multiplied(rows: int, depth: int, columns: int) -> Case:
    step = MatMulStep([value(rows, depth), constant(numbers(depth, columns) / depth)], [value(rows, columns)])
    return by_numpy(step, [numbers(rows, depth)])


def attended(n: int, h: int, s: int, width: int) -> Case:
    x = [numbers(n, h, s, width) + k for k in range(3)]
    return by_numpy(AttentionStep([value(*a.shape) for a in x], [value(n, h, s, width)], scale=0.3), x)


def heads_last(of: Value, array: Array) -> Array:
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


IMAGES = [(1, 32, 20, 24), (2, 32, 20, 24), (3, 32, 17, 33)]
TEXTS = [(1, 150), (3, 150), (2, 167), (1, 193)]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        *((make, IMAGES) for make in (bias, contiguous, mean, groups, classes, planar, sampled)),
        (convolved, [(1, 32, 20, 82), (1, 32, 17, 91), (1, 32, 30, 82)]),
        (convolved, [(1, 32, 16, 28), (1, 32, 28, 28), (1, 32, 56, 28)]),  # whole tiles of 4 or 14 rows
        (depthwise, [(1, 40, 20, 24), (2, 40, 5, 3), (1, 40, 1, 2)]),
        (pooled, [(1, 40, 21, 24), (2, 40, 5, 3), (1, 40, 1, 1)]),
        (enlarged, [(1, 9, 13), (2, 3, 80), (3, 40, 9)]),
        (multiplied, [(901, 68, 70), (901, 1000, 390), (1000, 1400, 710)]),
        (attended, [(2, 2, 30, 16), (2, 5, 41, 16), (2, 8, 60, 16)]),
        *((make, TEXTS) for make in (maximum, total, layers, scores, heads, joined, words)),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_sizes_are_read(
    make: Callable[..., Case], shapes: Sequence[tuple[int, ...]], target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels: set[Kernel] = set()
    code = Library.code

    def recorded(self: Library, kernel: Kernel, target: Any) -> Any:
        kernels.add(kernel)
        return code(self, kernel, target)

    monkeypatch.setattr(Library, "code", recorded)
    known = 0
    for shape in shapes:
        step, arrays, wanted = make(*shape)
        turned = step.inputs[0] if make is planar else None
        lay = None if len(shape) < 4 else heads_last if make is attended else channels_last

        def laid(of: Value, array: Array, turned: Value | None = turned, lay: Any = lay) -> Array:
            return lay(of, array) if lay and turned in (None, of) and array.ndim == 4 else array

        (output,) = run_step(step, arrays, target, 2, laid=laid)
        np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-5)
        known = known or len(kernels)
        assert len(kernels) == known > 0, f"{shape} runs other code: {kernels}"
