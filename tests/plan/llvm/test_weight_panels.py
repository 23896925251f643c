"""Weights packed by compiled code are those that NumPy packs, bit for bit."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernels import weight_panels as module
from irload.plan.backends.llvm.kernels.weight_panels import weight_panels
from irload.plan.backends.llvm.pack import BLOCK, aligned_f32, panels
from irload.plan.backends.llvm.target import Target
from tests.plan.llvm.harness import TARGETS

SHAPES = {
    "taps last in memory": ((1, 100, 64, 3, 3), (0, 1, 3, 4, 2)),
    "taps first": ((1, 100, 64, 3, 3), (0, 1, 2, 3, 4)),
    "groups": ((2, 50, 195), (0, 1, 2)),
    "columns in a row": ((1, 117, 160), (0, 2, 1)),
    "an axis between": ((1, 40, 40, 17), (0, 2, 3, 1)),
    "no taps": ((1, 513, 64, 1, 1), (0, 1, 3, 4, 2)),
    "few elements": ((1, 30, 5), (0, 1, 2)),
    "short sums": ((1, 9000, 2), (0, 1, 2)),
}


def expected(weights: Array, lanes: int, panel: int) -> Array:
    groups, channels, *sums = weights.shape
    return panels(weights.astype(np.float32).reshape(groups, channels, prod(sums)), lanes, panel)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("name", SHAPES)
def test_panels_are_those_of_numpy(name: str, target: Target) -> None:
    shape, order = SHAPES[name]
    rng = np.random.default_rng(0)
    for dtype in (np.float16, np.float32):
        weights = rng.standard_normal(shape).astype(dtype).transpose(order)
        for panel, threads in ((1, 1), (2, 2), (3, 3)):
            found = weight_panels(weights, target, panel, threads)
            np.testing.assert_array_equal(found, expected(weights, target.lanes, panel), strict=True)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_f16_is_widened_exactly(target: Target) -> None:
    weights = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(1, 128, 512)
    np.testing.assert_array_equal(weight_panels(weights, target, 2, 1), expected(weights, target.lanes, 2))


def test_reversed_taps_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    weights = np.random.default_rng(0).standard_normal((1, 20, 24, 4)).astype(np.float32)[..., ::-2]
    np.testing.assert_array_equal(weight_panels(weights, TARGETS[0], 2, 1), expected(weights, TARGETS[0].lanes, 2))


def test_arrays_of_a_block_do_not_overlap() -> None:
    arrays = [aligned_f32((n,)) for n in (7, 1 << 20, 5, 3 * BLOCK // 8, BLOCK, 9)]
    for k, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0
        array.fill(k)
    for k, array in enumerate(arrays):
        assert (array == k).all()
