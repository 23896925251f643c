"""Long sums, which products split into parts, and blocks of tiles that share weights."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.dot import FMA
from irload.plan.backends.llvm.kernels.contraction.build import in_parts
from irload.plan.backends.llvm.kernels.contraction.nest import Access
from irload.plan.backends.llvm.kernels.contraction.product import Product
from irload.plan.backends.llvm.tile import SumLevel
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import MatMulStep
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS, channels_last
from tests.plan.programs import constant, value

RELU = Expression(2, (Instruction("add", (0, 1)), Instruction("relu", (2,))))
SLOW = Expression(2, (Instruction("add", (0, 1)), Instruction("tanh", (2,))))
"""A slow epilogue, which is applied to the sums after they are stored."""


def matmul(
    rows: int, channels: int, length: int, epilogue: Expression, *, turned: bool
) -> tuple[MatMulStep, list[Array]]:
    """A matmul with a bias whose sums are about 1."""
    rng = np.random.default_rng(length)
    data = value(length, rows) if turned else value(rows, length)
    weights = (rng.standard_normal((length, channels)) / length**0.5).astype(np.float32)
    bias = constant(rng.standard_normal(channels).astype(np.float32))
    step = MatMulStep([data, constant(weights), bias], [value(rows, channels)], transpose_a=turned, epilogue=epilogue)
    return step, [rng.standard_normal(data.shape).astype(np.float32)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("epilogue", [RELU, SLOW], ids=["relu", "tanh"])
@pytest.mark.parametrize("shape", [(33, 70, 2048), (64, 20, 3072), (29, 33, 1544), (30, 40, 1541), (5, 40, 2048)])
def test_matmuls(shape: tuple[int, int, int], epilogue: Expression, turned: bool, threads: int) -> None:
    step, arrays = matmul(*shape, epilogue, turned=turned)
    for target in TARGETS:
        check_step(step, arrays, target, threads, at_end=turned)


@pytest.mark.parametrize("shape", [(300, 40, 64), (200, 200, 400), (280, 65, 1600)])
def test_several_blocks(shape: tuple[int, int, int]) -> None:
    step, arrays = matmul(*shape, RELU, turned=False)
    for target in TARGETS:
        check_step(step, arrays, target, 2)


@pytest.mark.parametrize(
    ("kernel", "depth", "stride", "pads"),
    [
        ((3, 3), 192, 2, [(1, 1), (1, 1)]),
        ((3, 3), 192, 3, [(0, 0), (0, 0)]),
        ((3, 2), 260, 2, [(5, 4), (0, 1)]),
        ((1, 1), 2048, 2, [(0, 0), (0, 0)]),
        ((1, 3), 600, 1, [(0, 0), (1, 1)]),
        ((3,), 600, 1, [(0, 0)]),
        ((3,), 600, 1, [(1, 1)]),
    ],
)
def test_convolutions(kernel: tuple[int, ...], depth: int, stride: int, pads: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(0)
    sizes = [9, 11][: len(kernel)] if len(kernel) > 1 else [40]
    strides = [stride] * len(kernel)
    step, arrays = convolution(rng, sizes, (1, 37, depth, *kernel), strides=strides, pads=pads)
    for k, target in enumerate(TARGETS):
        check_step(step, arrays, target, 1 + k % 2, laid=channels_last)
        check_step(step, arrays, target, 2)


@pytest.mark.parametrize(
    ("rows", "levels", "parts"),
    [
        (64, (SumLevel(3072, 4),), 3),
        (64, (SumLevel(11008, 4),), 16),
        (64, (SumLevel(1024, 4),), 1),
        (64, (SumLevel(2050, 4),), 1),
        (14, (SumLevel(3072, 4),), 1),
        (49, (SumLevel(3, 400, 0, 1), SumLevel(3, 40, 1, 1), SumLevel(512, 4)), 3),
        (49, (SumLevel(3, 40, 0, 1), SumLevel(2048, 4)), 3),
        (49, (SumLevel(2048, 4), SumLevel(3, 400, None, 1)), 1),
    ],
)
def test_long_sums_have_parts(rows: int, levels: tuple[SumLevel, ...], parts: int) -> None:
    length = np.prod([level.count for level in levels])
    own = Access((), 4 * int(length), 4)
    sums = in_parts(Product(FMA, (), rows, 256, own, own, (), Expression(1), (), 14, levels, 16, 2, 2))
    assert sums.split == (parts > 1)
    assert not sums.split or sums.levels[0].count == parts
    assert np.prod([level.count for level in sums.levels]) == length
