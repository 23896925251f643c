"""MatMuls split into blocks, for a BLAS that reads small operands in place and for one that copies them."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.numpy import measured
from irload.plan.backends.numpy.kernels import packing, small_gemm, winograd
from irload.plan.backends.numpy.kernels import weight_streaming as streamed
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue, EpilogueOperand
from irload.plan.backends.numpy.kernels.packing import pack_matrix
from irload.plan.backends.numpy.kernels.small_gemm import panel_width, products, transform
from irload.plan.backends.numpy.kernels.weight_streaming import stream_weights
from irload.plan.ir.constant import Constant
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import MatMulStep
from irload.plan.threads import ThreadCalls
from tests.plan.programs import constant, random, run, value

RELU = Expression(2, (Instruction("add", (0, 1)), Instruction("relu", (2,))))


def call(parts: list[ThreadCalls]) -> None:
    """Call each function of each part."""
    for part in parts:
        for function, arguments in part:
            function(*arguments)


@pytest.fixture(params=[True, False], ids=["in place", "copied"])
def in_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Simulates a BLAS that reads small operands in place (True) or copies them (False)."""
    for module in (packing, streamed, winograd):
        monkeypatch.setattr(module, "small_kernels", lambda: request.param)
    return request.param


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [16, 24, 64, 100, 144, 256, 320, 1000, 1280])
@pytest.mark.parametrize("k", [1, 7, 64, 1000])
@pytest.mark.parametrize("rows", [1, 2, 5, 33, 49, 130])
def test_products_of_panels(rows: int, k: int, n: int, in_place: bool) -> None:
    a, w = random(rows, k), random(k, n, seed=1)
    out = np.full((rows, n), np.nan, np.float32)
    call([products(a, pack_matrix(w), out)])
    np.testing.assert_allclose(out, a.astype(np.float64) @ w, rtol=1e-4, atol=1e-4)


def test_stacks_of_products_between_strided_rows(in_place: bool) -> None:
    wide, w = random(3, 50, 40), random(3, 24, 96, seed=1)
    a = wide[:, :, 8:32]
    out = np.full((3, 50, 120), np.nan, np.float32)
    call([products(a, pack_matrix(w), out[..., 16:112])])
    np.testing.assert_allclose(out[..., 16:112], a @ w, rtol=1e-4, atol=1e-4)
    assert np.isnan(out[..., :16]).all()
    assert np.isnan(out[..., 112:]).all()


@pytest.mark.parametrize(("k", "n"), [(8, 16), (64, 64), (64, 256), (512, 512), (1024, 256), (256, 1024), (9, 4096)])
def test_panels_stay_below_the_size_that_blas_reads_in_place(k: int, n: int) -> None:
    width = panel_width(k, n)
    assert width is not None
    assert n % width == 0
    assert width % measured.LANES == 0
    assert small_gemm.block_height(100, k, width) * k * width <= measured.WORK


@pytest.mark.parametrize(("k", "n"), [(8, 24), (8, 1000), (2048, 512)])
def test_products_without_panels(k: int, n: int) -> None:
    assert panel_width(k, n) is None


@pytest.mark.parametrize("n", [1, 10, 30_000, 99_991])
def test_a_tiny_matrix_times_a_wide_one(n: int) -> None:
    matrix, x = random(4, 6), random(2, 6, n, seed=1)
    out = np.full((2, 4, n), np.nan, np.float32)
    call([[transform(matrix, x, out)]])
    np.testing.assert_allclose(out, matrix @ x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("rows", "k", "n"), [(2, 40, 30), (33, 64, 100), (49, 4608, 48), (64, 3072, 80), (160, 70, 33)]
)
def test_weight_streaming(rows: int, k: int, n: int, threads: int, in_place: bool) -> None:
    a, w, bias = random(rows, k), random(n, k, seed=1), random(n, seed=2)
    out = np.full((rows, n), np.nan, np.float32)
    for phase in stream_weights(a, w, out, Epilogue(RELU, (EpilogueOperand(bias),)), Scratch(threads)):
        call(phase)
    expected = np.maximum(a.astype(np.float64) @ w.T + bias, 0)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("rows", "k", "n"), [(1, 64, 48), (5, 600, 500), (49, 960, 320), (300, 64, 64), (200, 70, 60)])
def test_matmul_steps(rows: int, k: int, n: int, transpose_b: bool, threads: int, in_place: bool) -> None:
    a, w = random(2, rows, k), random(k, n, seed=1)
    x, out = value(2, rows, k), value(2, rows, n)
    stored = np.ascontiguousarray(w.T) if transpose_b else w
    step = MatMulStep([x, constant(stored), constant(random(n, seed=2))], [out], transpose_b=transpose_b, epilogue=RELU)
    result = run([step], {x: a}, [out], threads)[0]
    expected = np.maximum(a.astype(np.float64) @ w + random(n, seed=2), 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


class Counted:
    """An array source that counts its reads."""

    def __init__(self, array: Array) -> None:
        self.times, self._array = 0, array

    def __call__(self) -> Array:
        self.times += 1
        return self._array.copy()


def test_constants_are_recomputed_only_after_release() -> None:
    big = Counted(np.ones((300, 300), np.float32))
    one = Constant(big, (300, 300), np.dtype(np.float32))
    assert one.shape == (300, 300)
    assert not big.times, "reading the shape must not read the file"
    first = one.array
    assert one.array is first
    assert big.times == 1
    one.release()
    assert one.array is first
    assert big.times == 1, "the released array still has a reference"
    del first
    assert one.array.sum() == 90_000
    assert big.times == 2
    held = one.held_array()
    assert big.times == 3
    assert one.array is held


def test_a_derived_constant_releases_its_source() -> None:
    big = Counted(np.ones((300, 300), np.float32))
    source = Constant(big, (300, 300), np.dtype(np.float32))
    source.held_array()
    twice = source.derived("twice", (300, 300), lambda w: w * 2)
    assert twice is source.derived("twice", (300, 300), lambda w: w * 3)
    assert twice.array.sum() == 180_000
    assert big.times == 1
    twice.release()
    assert not source.held


def test_small_constants_are_kept() -> None:
    small = Counted(np.ones(10, np.float32))
    one = Constant(small, (10,), np.dtype(np.float32))
    for _ in range(3):
        one.release()
        assert one.array.sum() == 10
    assert small.times == 1
