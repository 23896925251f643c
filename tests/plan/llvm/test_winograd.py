"""Winograd's algorithm against the direct convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.plan.backends.llvm.kernels import convolution as selection
from irload.plan.backends.llvm.kernels.winograd_transforms import WEIGHTS, A, B, transform_weights
from irload.plan.backends.llvm.target import Target
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import TARGETS, channels_last, run_step

pytest.importorskip("llvmlite")

GEOMETRIES = [
    ((14, 14), 32, 32, ((1, 1), (1, 1))),
    ((12, 13), 35, 50, ((0, 0), (0, 0))),
    ((10, 11), 64, 33, ((2, 1), (0, 4))),
    ((25, 17), 32, 70, ((1, 1), (1, 1))),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "depth", "channels", "pads"), GEOMETRIES)
def test_winograd(
    sizes: tuple[int, ...],
    depth: int,
    channels: int,
    pads: tuple[tuple[int, int], ...],
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    step, arrays = convolution(rng, sizes, (1, channels, depth, 3, 3), batch=2, pads=pads)
    used: list[Any] = []
    select = selection.select_winograd
    monkeypatch.setattr(selection, "select_winograd", lambda *args: used.append(select(*args)) or used[-1])  # pyright: ignore
    (direct,) = run_step(step, arrays, target, precise=True, laid=channels_last)
    assert not used
    for threads, at_end in ((1, True), (1, False), (3, True)):
        (found,) = run_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)
        assert np.abs(found - direct).max() < 3e-5 * direct.std()
    assert len(used) == 3


def test_transformed_weights() -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((70, 3, 3, 3)).astype(np.float32)
    found = transform_weights(w).reshape(6, 6, 70, 3)
    np.testing.assert_array_equal(found[5, 5], w[:, :, 2, 2])
    np.testing.assert_allclose(found[0, 5], w[:, :, 0, 2] / (A * B) ** 2, rtol=1e-6)
    np.testing.assert_allclose(found[1, 3], np.einsum("i,j,ocij->oc", WEIGHTS[1], WEIGHTS[3], w), rtol=1e-5, atol=1e-6)
