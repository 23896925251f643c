"""Random cases of the Fourier transforms."""

from __future__ import annotations

from functools import partial

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape


def transform(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f32, et.f16, et.bf16))
    shape = random_shape(rng, (1, 3), 2 if type == "IRDFT" else 1, 9)
    rank = len(shape)
    axes = [int(a) for a in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
    signed = [a - rank if rng.random() < 0.3 else a for a in axes]
    data = random_array(rng, shape if type == "RDFT" else (*shape, 2), element)
    real = type in ("RDFT", "IRDFT")
    inputs = [param(data, element), pick(rng, (const, param))(signed, pick(rng, INDICES))]
    sizes = [-1] * len(axes)
    if rng.random() < 0.6:
        sizes = [-1 if rng.random() < 0.4 else int(n) for n in rng.integers(1, 12, len(axes))]
        # If the sizes of several axes are unknown, OpenVINO infers too narrow shapes for RDFT and IRDFT: see the
        # deviations.
        make = const if real and len(axes) > 1 else pick(rng, (const, param))
        inputs.append(make(sizes, pick(rng, INDICES)))
    # Only the CPU plugin has kernels for RDFT and IRDFT. They read out of bounds if data are padded, and crash for
    # size −1 and for dynamic inputs.
    sound = all(i.constant for i in inputs[1:]) and (len(inputs) == 2 or _cut(sizes, axes, shape, type))
    expected = None if not real or sound else [by_definition(type, data.astype(float), axes, sizes)]
    if expected is not None:
        expected = [e.astype(element.dtype) for e in expected]
    return Case(type, version, inputs, expected=expected, rtol=1e-4, atol=1e-3 if element is et.f32 else 0.5)


def _cut(sizes: list[int], axes: list[int], shape: tuple[int, ...], type: str) -> bool:
    """True if every size is given and truncates the data to more than one element; for IRDFT only with one axis."""
    if type == "IRDFT" and len(axes) > 1:
        return False
    longest = [shape[a] for a in axes]
    if type == "IRDFT":
        longest[-1] = 2 * (longest[-1] - 1)
    return all(1 < size < most for size, most in zip(sizes, longest, strict=True))


def by_definition(type: str, data: Array, axes: list[int], sizes: list[int]) -> Array:
    """RDFT and IRDFT by matrices of exponentials, one axis at a time; −1 is the default size."""
    if type == "RDFT":
        for axis, size in zip(axes, sizes, strict=True):
            data = _multiplied(data, axis, data.shape[axis] if size == -1 else size, -1)
        halved = np.take(data, range(data.shape[axes[-1]] // 2 + 1), axes[-1])
        return np.stack([halved.real, halved.imag], axis=-1)
    values = data[..., 0] + 1j * data[..., 1]
    for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
        size = values.shape[axis] if size == -1 else size
        values = _multiplied(values, axis, size, 1) / size
    axis, size = axes[-1], 2 * (values.shape[axes[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    half = _fitted(values, axis, size // 2 + 1)
    mirror = np.take(half, range((size - 1) // 2, 0, -1), axis).conj()
    return (_multiplied(np.concatenate([half, mirror], axis), axis, size, 1) / size).real


def _multiplied(values: Array, axis: int, size: int, sign: int) -> Array:
    at = np.arange(size)
    matrix = np.exp(sign * 2j * np.pi * np.outer(at, at) / size)
    return np.moveaxis(np.tensordot(matrix, _fitted(values, axis, size), (1, axis)), 0, axis)


def _fitted(values: Array, axis: int, size: int) -> Array:
    missing = [(0, max(size - n, 0) if k == axis else 0) for k, n in enumerate(values.shape)]
    return np.take(np.pad(values, missing), range(size), axis)


for _type, _version in (("DFT", "opset7"), ("IDFT", "opset7"), ("RDFT", "opset9"), ("IRDFT", "opset9")):
    cases(_type, _version)(partial(transform, _type))
