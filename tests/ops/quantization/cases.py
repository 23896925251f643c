"""Random cases of the quantization family."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import pick, random_shape


def thinned(rng: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`: a scalar, one axis only, or ones at random."""
    roll = rng.random()
    if not shape:
        return ()
    if roll < 0.3:
        return pick(rng, [(), (1,)])
    if roll < 0.6:
        axis = int(rng.integers(len(shape)))
        return tuple(n if k == axis else 1 for k, n in enumerate(shape))
    return tuple(1 if rng.random() < 0.4 else n for n in shape)


@cases("FakeQuantize", "opset1")
def fake_quantize(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16))
    levels = pick(rng, (2, 3, 16) if element is et.f16 else (2, 3, 16, 255, 256, 65536))
    shape = random_shape(rng, (0, 4), 1, 5)
    inputs_shape, outputs_shape = thinned(rng, shape), thinned(rng, shape)
    low, out_low = (rng.uniform(-3, -1, s) for s in (inputs_shape, outputs_shape))
    width, out_width = (rng.uniform(1, 4, s) for s in (inputs_shape, outputs_shape))
    if rng.random() < 0.15:
        low, width = low + width, -width
    ends = [np.asarray(v).astype(element.dtype) for v in (low, low + width, out_low, out_low + out_width)]
    x = between_levels(rng, shape, ends[0], ends[1], levels)
    make = pick(rng, (const, const, param))
    bounds = [make(e, element) for e in ends]
    inputs: list[Input] = [param(x.astype(element.dtype), element), *bounds]
    attributes: dict[str, object] = {"levels": levels}
    if rng.random() < 0.1 and shape:
        inputs[1:] = [make(np.ascontiguousarray(np.broadcast_to(e, shape)), element) for e in ends]
        attributes["auto_broadcast"] = "none"
    if element is et.f16:
        expected = np.array([quantized(levels, *map(float, v)) for v in zip(*flat(inputs, shape), strict=True)])
        return Case("FakeQuantize", version, inputs, attributes, atol=2e-2, expected=[expected.reshape(shape)])
    return Case("FakeQuantize", version, inputs, attributes)


def flat(inputs: list[Input], shape: tuple[int, ...]) -> list[Array]:
    """The values of each input at every element of `shape`."""
    return [np.broadcast_to(i.value.astype(np.float64), shape).ravel() for i in inputs]


def quantized(levels: int, x: float, low: float, high: float, out_low: float, out_high: float) -> float:
    """One element of FakeQuantize by the specification's formula."""
    if x <= min(low, high):
        return out_low
    if x > max(low, high):
        return out_high
    return round((x - low) / (high - low) * (levels - 1)) / (levels - 1) * (out_high - out_low) + out_low


def between_levels(rng: Random, shape: tuple[int, ...], low: Array, high: Array, levels: int) -> Array:
    """Values inside and outside of low..high, far from the borders of levels, where rounding errors decide."""
    step = rng.integers(-levels // 4 - 1, levels + levels // 4 + 1, shape) + rng.uniform(-0.3, 0.3, shape)
    low, high = low.astype(np.float64), high.astype(np.float64)
    return low + (high - low) * step / (levels - 1)


@cases("FakeConvert", "opset13")
def fake_convert(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    shape = random_shape(rng, (0, 4), 1, 4)
    scale_shape = thinned(rng, shape)
    # Both implementations of OpenVINO round to f16 first, so data · scale − shift must fit its eleven bits.
    shifted = rng.random() < 0.5
    fraction = np.full(shape, -6) if shifted else rng.integers(-12, 2, shape)
    x = rng.integers(-1024, 1025, shape) * 2.0**fraction
    inputs = [
        param(x.astype(np.float16).astype(element.dtype), element),
        const(rng.choice([0.25, 0.5, 1, 2], scale_shape).astype(element.dtype), element),
    ]
    if shifted:
        inputs.append(const(rng.choice([-1, 0, 0.5, 2], scale_shape).astype(element.dtype), element))
    attributes = {"destination_type": pick(rng, ("f8e4m3", "f8e5m2"))}
    return Case("FakeConvert", version, inputs, attributes, oracle="cpu")
