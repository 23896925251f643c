"""Threads share a step exactly if its work reaches the threshold."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.copying import copy
from irload.plan.backends.numpy.measured import SHARED_TILE, TILE
from models import ir
from tests.plan.exact import Choice, Exact, plan_of, tables

pytestmark = pytest.mark.numpy_kernels

PADS = {"pads_begin": "1,1", "pads_end": "1,1"}
THREADS = 3


def matmul(net: Exact, rows: int, k: int, n: int) -> ir.Ref:
    return net.op("MatMul", net.input(rows, k), net.weights(k, n), transpose_a=False, transpose_b=False)


def mvn(net: Exact, *shape: int) -> ir.Ref:
    return net.op(
        "MVN", net.input(*shape), net.constant([-1]), version="opset6", eps=1e-5, eps_mode="inside_sqrt",
        normalize_variance=True,
    )  # fmt: skip


def reduced(net: Exact, type: str, *shape: int) -> ir.Ref:
    return net.op(type, net.input(*shape), net.constant([1]), keep_dims=True)


def rotated(net: Exact) -> ir.Ref:
    x = net.input(9, 6, 8)
    first, second = net.ops("Split", x, net.constant(-1), outputs=2, num_splits=2)
    turned = net.concat(net.op("Negative", second), first, axis=2)
    return net.op("Add", net.op("Multiply", x, net.weights(6, 8)), net.op("Multiply", turned, net.weights(6, 8)))


def attention(net: Exact) -> ir.Ref:
    return net.op(
        "ScaledDotProductAttention", *(net.input(9, s, 4) for s in (30, 5, 5)), version="opset13", causal=False
    )


SHARES: dict[str, tuple[Callable[[Exact], ir.Ref], str, str, int]] = {
    "elementwise": (lambda net: net.op("Tanh", net.input(9, 11, 5)), "tiles", "ELEMENTS", 9 * 11 * 5),
    "softmax": (lambda net: net.op("SoftMax", net.input(9, 11), axis=1), "rows", "ELEMENTS", 99),
    "softmax across": (lambda net: net.op("SoftMax", net.input(9, 11, 32), axis=1), "columns", "ELEMENTS", 99 * 32),
    "normalisation": (lambda net: mvn(net, 9, 11), "rows", "ELEMENTS", 99),
    "sum": (lambda net: reduced(net, "ReduceSum", 9, 11), "sum of rows", "ELEMENTS", 99),
    "sums": (lambda net: reduced(net, "ReduceSum", 9, 11, 3), "sum of rows", "ELEMENTS", 297),
    "maximum": (lambda net: reduced(net, "ReduceMax", 9, 11), "max of rows", "ELEMENTS", 99),
    "rotation": (rotated, "halves", "ELEMENTS", 9 * 6 * 8),
    "rows": (lambda net: matmul(net, 50, 7, 9), "matmul by rows", "PRODUCTS", 50 * 7 * 9),
    "columns": (lambda net: matmul(net, 9, 7, 10), "matmul by columns", "PRODUCTS", 9 * 7 * 10),
    "columns of few rows": (lambda net: matmul(net, 5, 7, 10), "matmul by columns", "PRODUCTS", 8 * 7 * 10),
    "weight streaming": (lambda net: matmul(net, 33, 7, 100), "weight streaming", "PRODUCTS", 33 * 7 * 100),
    "stacks": (
        lambda net: net.op("MatMul", net.input(5, 2, 3), net.input(5, 3, 4), transpose_a=False, transpose_b=False),
        "batched matmul", "PRODUCTS", 5 * 2 * 3 * 4,
    ),
    "attention": (attention, "head by head", "PRODUCTS", 9 * 30 * 5 * 4),
    "im2col": (lambda net: net.conv(net.input(2, 3, 6, 7), 3, 4, 3, **PADS), "im2col", "PRODUCTS", 2 * 4 * 42 * 27),
    "depthwise": (lambda net: net.depthwise(net.input(2, 3, 6, 7), 3, 3, **PADS), "depthwise", "TAPS", 2 * 3 * 42 * 9),
    "winograd": (
        lambda net: net.conv(net.input(2, 3, 12, 13), 3, 4, 3, **PADS), "winograd", "PRODUCTS", 2 * 12 * 13 * 4 * 3
    ),
}  # fmt: skip


def parts(build: Callable[[Exact], ir.Ref], kernel: str) -> int:
    """The parts of a kernel's largest phase."""
    net = Exact()
    model = net.model(build(net))
    for k in range(4):
        for name, phases in tables(plan_of(model, net.shapes, THREADS, Choice(k))):
            if name == kernel:
                return max(map(len, phases))
    raise AssertionError(f"no kernel {kernel}")


@pytest.mark.parametrize("name", SHARES)
def test_threads_share_steps_above_the_threshold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, kernel, threshold, work = SHARES[name]
    for least, expected in ((work, THREADS), (work + 1, 1)):
        for module in [m for n, m in sys.modules.items() if n.startswith("irload.plan.backends.numpy.")]:
            for constant, value in ((threshold, least), ("TILE", 48), ("SHARED_TILE", 96)):
                if constant in vars(module):
                    monkeypatch.setattr(module, constant, value)
        assert parts(build, kernel) == expected, f"{work} of {least}"


@pytest.mark.parametrize(
    ("build", "kernel"),
    [
        (lambda net, n: net.op("MaxPool", net.input(1, n, 32, 32), kernel="1,1", strides="1,1", pads_begin="0,0",
                               pads_end="0,0"), "separable"),
        (lambda net, n: net.op("ConvolutionBackpropData", net.input(1, 2, 16, 16), net.weights(2, n, 2, 2),
                               strides="2,2", dilations="1,1", pads_begin="0,0", pads_end="0,0"), "matmul, then taps"),
        (lambda net, n: net.op("GroupNormalization", net.input(4, n, 256), net.weights(n), net.weights(n),
                               version="opset12", num_groups=1, epsilon=1e-3), "groups"),
        (lambda net, n: net.op(
            "Interpolate", net.input(1, n, 16, 32), net.constant([32]), net.constant([2]), version="opset11",
            mode="nearest", shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric",
            nearest_mode="floor", antialias=False, pads_begin="0,0,0,0", pads_end="0,0,0,0", cube_coeff=-0.75,
        ), "by index"),
        (lambda net, n: net.reshape(net.transpose(net.op("Abs", net.input(32, 32 * n)), 1, 0), -1), "copy"),
    ],
    ids=["pooling", "transposed", "groups", "resampling", "copy"],
)  # fmt: skip
def test_threads_share_large_results(build: Callable[[Exact, int], ir.Ref], kernel: str) -> None:
    """Results of at least 2¹⁴ elements are shared."""
    assert parts(lambda net: build(net, 16), kernel) == THREADS
    assert parts(lambda net: build(net, 15), kernel) == 1


@pytest.mark.parametrize("shape", [(2, 10000), (3, 10000), (10000, 2), (1, 2, 20000)])
def test_a_copy_is_cut_along_the_first_axis_that_is_long_enough(shape: tuple[int, ...]) -> None:
    out, source = np.zeros(shape, np.float32), np.arange(prod(shape), dtype=np.float32).reshape(shape)
    (phase,) = copy(out, source, 3)
    axis = next(k for k, n in enumerate(shape) if n >= 3)
    assert [calls[0][1][0].shape[axis] for calls in phase] == [
        b - a for a, b in zip(*(lambda e: (e[:-1], e[1:]))([shape[axis] * k // 3 for k in range(4)]), strict=True)
    ]
    for ((function, arguments),) in phase:
        function(*arguments)
    np.testing.assert_array_equal(out, source)


def test_tiles_are_larger_where_threads_share_a_step() -> None:
    for threads, work, shared in ((3, 10, 3), (3, 9, 1), (1, 10, 1), (2, 10, 2)):
        scratch = Scratch(threads)
        assert scratch.share(work, 10) == shared
        assert scratch.tile == (SHARED_TILE if shared > 1 else TILE)
    scratch.reset()
    assert scratch.tile == TILE


def test_scratch_is_acquired_and_released() -> None:
    scratch = Scratch()
    first, second = scratch.take((3, 5)), scratch.take((7,), np.int64)
    assert (first.shape, first.dtype.name, second.dtype.name) == ((3, 5), "float32", "int64")
    assert not np.shares_memory(first, second)
    assert all(a.ctypes.data % 64 == 0 for a in (first, second, scratch.take((1,))))
    assert scratch.peak == 1 << 20
    large = scratch.take((1 << 19,))
    assert scratch.peak == 3 << 20
    assert not any(np.shares_memory(large, a) for a in (first, second))
    scratch.reset()
    again = scratch.take((3, 5))
    assert again.ctypes.data == first.ctypes.data
    rest = scratch.take(((1 << 18) - 16,))
    assert rest.ctypes.data == first.ctypes.data + 64, "it fits exactly"
    assert scratch.peak == 3 << 20
    assert scratch.take((1,)).ctypes.data == large.ctypes.data
