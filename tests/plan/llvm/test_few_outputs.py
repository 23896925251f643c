"""Compiled convolutions with few output channels against the NumPy back end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.plan.backends.llvm.kernels import convolution as selection
from irload.plan.backends.llvm.target import Target
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS, channels_last

pytest.importorskip("llvmlite")

GEOMETRIES = [
    ((7, 7), (3, 3), {"pads": ((1, 1), (1, 1))}),
    ((5, 40), (3, 3), {"pads": ((1, 1), (1, 1))}),
    ((9, 67), (5, 5), {"pads": ((2, 2), (2, 2)), "strides": (2, 2)}),
    ((4, 41), (9, 9), {"pads": ((4, 4), (4, 4))}),
    ((3, 33), (1, 1), {}),
    ((70,), (7,), {"pads": ((3, 3),)}),
    ((6, 6), (3, 3), {"pads": ((9, 9), (7, 7))}),
    ((9, 38), (3, 2), {"pads": ((0, 4), (3, 0)), "dilations": (2, 3), "strides": (1, 2)}),
    ((4, 5, 20), (3, 2, 3), {"pads": ((1, 1), (0, 1), (1, 1))}),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "kernel", "numbers"), GEOMETRIES)
@pytest.mark.parametrize(("outputs", "channels"), [(1, 32), (2, 43), (3, 48), (5, 96)])
def test_few_outputs(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    numbers: dict[str, Any],
    outputs: int,
    channels: int,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    used: list[Any] = []
    select = selection.select_few_outputs
    monkeypatch.setattr(selection, "select_few_outputs", lambda *args: used.append(select(*args)) or used[-1])  # pyright: ignore
    step, arrays = convolution(rng, sizes, (1, outputs, channels, *kernel), batch=2, **numbers)
    for threads, at_end in ((1, False), (1, True), (3, True)):
        check_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)
    assert len(used) == 3


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_what_has_lanes_enough(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    monkeypatch.setattr(selection, "select_few_outputs", None)
    for outputs, channels, groups in ((16, 16, 1), (3, 1, 1), (2, 16, 2)):
        step, arrays = convolution(rng, (6, 20), (groups, outputs, channels, 3, 3), pads=((1, 1), (1, 1)))
        check_step(step, arrays, target, laid=channels_last)
