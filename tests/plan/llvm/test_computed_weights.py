"""Convolutions with computed weights by compiled kernels, against the same convolutions with constant weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.ir.steps import ConvStep, ConvTransposeStep
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import BF16, TARGETS, channels_last, run_step
from tests.plan.llvm.roundings import narrowed, rounded, some_convolution
from tests.plan.programs import constant, random, run, value

AnyConv = ConvStep | ConvTransposeStep


def computed(step: AnyConv) -> tuple[AnyConv, Array]:
    """The step with its weights as an input, and the weights."""
    data, weights, *operands = step.inputs
    assert weights.source is not None
    inputs = [data, value(*weights.shape), *operands]
    return replace(step, inputs=inputs, outputs=[value(*step.output.shape)]), weights.source.array


def compare(step: AnyConv, arrays: list[Array], target: Target, threads: int, precision: str = "f32") -> None:
    known = rounded(step) if precision == "bf16" else step
    values = [narrowed(a) if precision == "bf16" and k == 0 else a for k, a in enumerate(arrays)]
    inputs = dict(zip((v for v in known.inputs if not v.is_constant), values, strict=True))
    (wanted,) = run([known], inputs, [known.output])
    twin, weights = computed(step)
    data = [arrays[0], weights, *arrays[1:]]
    laid = channels_last if threads == 1 else None
    (result,) = run_step(twin, data, target, threads, laid=laid, precision=precision)
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(12))
def test_random(seed: int, target: Target) -> None:
    rng = np.random.default_rng(seed)
    kernel = tuple(int(rng.integers(1, 5)) for _ in range(1 + seed % 3))
    groups, channels, depth = [(1, 20, 9), (3, 5, 7), (21, 1, 1), (19, 2, 2)][int(rng.integers(4))]
    geometry = {
        "strides": rng.integers(1, 3, len(kernel)).tolist(),
        "dilations": rng.integers(1, 3, len(kernel)).tolist(),
        "pads": rng.integers(0, 2, (len(kernel), 2)).tolist(),
    }
    sizes = rng.integers(8, 14, len(kernel)).tolist()
    step, arrays = convolution(rng, sizes, (groups, channels, depth, *kernel), batch=2, **geometry)
    compare(step, arrays, target, 1 + seed % 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("groups", "depth", "channels"), [(1, 5, 20), (3, 4, 2), (17, 1, 1)])
def test_transposed(groups: int, depth: int, channels: int, target: Target) -> None:
    """Each phase packs its taps, in reverse order."""
    for kernel, strides, dilations in (((4, 3), (2, 2), (1, 1)), ((3, 5), (1, 3), (2, 1)), ((1, 2), (3, 2), (1, 1))):
        x, weights = random(2, groups * depth, 6, 7), constant(random(groups, depth, channels, *kernel, seed=1))
        axes = zip(x.shape[2:], kernel, strides, dilations, strict=True)
        out = [(n - 1) * s + (k - 1) * d for n, k, s, d in axes]
        inputs, output = [value(*x.shape), weights], value(2, groups * channels, *out)
        step = ConvTransposeStep(inputs, [output], strides=strides, dilations=dilations, begin=(1, 0))
        for threads in (1, 2):
            compare(step, [x], target, threads)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize(("depth", "groups"), [(2, 1), (16, 3), (32, 1), (96, 1), (64, 2), (33, 1), (48, 1)])
def test_bf16(depth: int, groups: int, target: Target) -> None:
    """Weights are packed as bf16 in whole words and chunks, else as f32, by vectors and not by tiles."""
    step, arrays = some_convolution(np.random.default_rng(depth), depth, (3, 3), groups)
    whole = depth % 32 == 0 or (depth < 32 and depth % 2 == 0)
    compare(step, arrays, target, 1, "bf16" if whole and not target.tiles else "f32")


def test_only_compiled_kernels_run_them() -> None:
    step, _ = some_convolution(np.random.default_rng(0), 8, (3, 3))
    twin, _ = computed(step)
    assert NumpyBackend().supports(step)
    assert not NumpyBackend().supports(twin)
    assert LlvmBackend(TARGETS[0]).supports(twin)
