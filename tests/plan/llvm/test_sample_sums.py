"""Compiled weighted sums of samples against the bilinear samples of GridSample and DeformableConvolution."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.core.tensor import Array
from irload.ops.convolution.deformable import DeformableConvolution8
from irload.ops.detection.sampling import bilinear, cells
from irload.plan.backends.llvm import available
from irload.plan.ir.program import Value
from irload.plan.ir.steps import SampleSumStep
from irload.plan.lowering import sampling
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS, channels_last, run_step
from tests.plan.llvm.strides import strided
from tests.plan.programs import value

F = np.float32
ODD = np.array([-1, 0, 4, 5, 6, 1e9, -1e9, np.inf, -np.inf, np.nan], F)


def plain(step: SampleSumStep, data: Array, points: Array, factors: Array, images: Array) -> Array:
    """Return the sums in f64."""
    height, width = data.shape[2:]
    result = np.zeros(step.output.shape)
    factors = np.broadcast_to(factors, points.shape[:3])
    for line, image in enumerate(images.tolist()):
        y, x = points[line, ..., 0], points[line, ..., 1]
        if step.bounds == "margin":
            inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
            samples = bilinear(cells(data[image]), np.where(inside, y, 0), np.where(inside, x, 0), (height, width))
            samples = np.where(inside, samples, 0)
        else:
            op = DeformableConvolution8(bilinear_interpolation_pad=step.padding == "zeros")
            samples = op._bilinear(data[image][None, None], y[None, None], x[None, None])[0, 0]
        result[line] = (samples.astype(np.float64) * factors[line]).sum(-1)
    return result


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("padding", "bounds"), [("zeros", "border"), ("border", "image"), ("border", "margin")])
@pytest.mark.parametrize("seed", range(16))
def test_random_points(seed: int, padding: str, bounds: str) -> None:
    rng = np.random.default_rng([seed, len(padding), len(bounds)])
    n, channels = int(rng.integers(1, 4)), int(rng.choice([1, 3, 8, 16, 21, 40]))
    lines, count, samples = (int(rng.choice(sizes)) for sizes in ([1, 3, 5], [1, 7, 16, 37], [1, 1, 4, 5]))
    x = rng.standard_normal((n, channels, 5, 6)).astype(F)
    points = rng.uniform(-2.5, 8, (lines, count, samples, 2)).astype(F)
    if seed % 3 == 0:
        points = np.round(points * 4) / 4
    if seed % 3 == 1:
        odd = rng.random(points.shape) < 0.3
        points[odd] = rng.choice(ODD, int(odd.sum()))
    x.flat[rng.integers(x.size, size=seed % 4)] = np.nan  # not read by samples beside it
    images = rng.integers(0, n, lines)
    factors = rng.standard_normal([(1, 1, 1), (lines, count, samples), (1, 1, samples)][seed % 3]).astype(F)
    inputs = [value(*x.shape), value(*points.shape), value(*factors.shape), Value((lines,), np.dtype(np.int64))]
    step = SampleSumStep(inputs, [value(lines, channels, count)], padding=padding, bounds=bounds)
    laid = [None, channels_last, channels_last, strided(rng)][int(rng.integers(4))]
    with np.errstate(invalid="ignore"):
        wanted = plain(step, x, points, factors, images)
    arrays, target = [x, points, factors, images], TARGETS[seed % len(TARGETS)]
    (output,) = run_step(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(seed % 2), laid=laid)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("most", [1 << 22, 100])
def test_a_deformable_convolution_in_blocks(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: TARGETS[0])
    monkeypatch.setattr(sampling, "SAMPLES", most)
    net, rng = Net(), np.random.default_rng(2)
    x, offsets, mask = net.conv(net.input(2, 3, 9, 8), 3, 16), net.input(2, 36, 7, 6), net.input(2, 18, 7, 6)
    op = net.op(
        "DeformableConvolution", x, offsets, net.weights(8, 16, 3, 3), mask, version="opset8", deformable_group=2,
        strides="1,1", pads_begin="0,0", pads_end="0,0", dilations="1,1", bilinear_interpolation_pad=True,
    )  # fmt: skip
    model = net.model(net.op("ReLU", op))
    inputs = [rng.standard_normal(p.shape.static).astype(F) for p in (i.type for i in model.inputs)]
    compiled = irload.compile_model(model, jit=True)
    wanted = irload.compile_model(model, optimize=False)(inputs)[0]
    np.testing.assert_allclose(compiled(inputs)[0], wanted, rtol=1e-4, atol=1e-5)
    kernels = [step.kernel for step in compiled.profile(inputs)]
    assert kernels.count("GridSampling") == (1 if most > 100 else 32)


def test_a_region_of_a_missing_image() -> None:
    net = Net()
    images = net.integers(2)
    attributes = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "avg"}
    model = net.model(
        net.op("ROIAlign", net.input(1, 8, 4, 4), net.input(2, 4), images, version="opset3", **attributes)
    )
    inputs = [np.array([0, 1]), np.zeros((1, 8, 4, 4), F), np.zeros((2, 4), F)]
    for optimize in (True, False):
        with pytest.raises(irload.IRError, match="batch element 1, found 1 elements"):
            irload.compile_model(model, optimize=optimize)(inputs)
