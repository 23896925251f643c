"""Random cases of the short-time Fourier transforms."""

from __future__ import annotations

from irload.core import element as et
from tests.harness.case import Case, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array


@cases("STFT", "opset15")
def stft(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16))
    length = int(rng.integers(4, 24))
    size = int(rng.integers(1, length + 1))
    shape = (length,) if rng.random() < 0.4 else (int(rng.integers(1, 4)), length)
    signal = param(random_array(rng, shape, element), element)
    window = param(random_array(rng, (int(rng.integers(1, size + 1)),), element, 0.1, 1), element)
    make = pick(rng, (const, const, param))
    numbers = [make(size, pick(rng, INDICES)), make(int(rng.integers(1, 9)), pick(rng, INDICES))]
    attributes = {"transpose_frames": bool(rng.random() < 0.5)}
    return Case("STFT", version, [signal, window, *numbers], attributes, rtol=1e-3, atol=1e-2)


@cases("ISTFT", "opset16")
def istft(rng: Random, version: str) -> Case:
    size, frames = int(rng.integers(2, 12)), int(rng.integers(2, 7))
    step = int(rng.integers(1, size + 1))
    batch = () if rng.random() < 0.4 else (int(rng.integers(1, 3)),)
    data = param(random_array(rng, (*batch, size // 2 + 1, frames, 2), et.f32))
    window = param(random_array(rng, (int(rng.integers(1, size + 1)),), et.f32, 0.3, 1))
    make = pick(rng, (const, const, param))
    inputs = [data, window, make(size, pick(rng, INDICES)), make(step, pick(rng, INDICES))]
    center = bool(rng.random() < 0.5)
    if rng.random() < 0.4:
        length = int(rng.integers(1, frames * step + size + 4))
        inputs.append(make(length if rng.random() < 0.5 else [length], pick(rng, INDICES)))
    attributes = {"center": center, "normalized": bool(rng.random() < 0.5)}
    return Case("ISTFT", version, inputs, attributes, rtol=1e-3, atol=1e-3)
