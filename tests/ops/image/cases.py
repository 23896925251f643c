"""Random cases of Interpolate."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from irload.ops.image.interpolate import COORDINATES, MODES, NEAREST
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import pick, random_array, random_shape

ELEMENTS = (et.f32, et.f32, et.f32, et.f16, et.bf16, et.u8, et.i8)
"""The types that the reference resizes."""


@cases("Interpolate", "opset4", "opset11")
def interpolate(rng: Random, version: str) -> Case:
    modes = (*MODES, "bilinear_pillow", "bicubic_pillow") if version == "opset11" else MODES
    mode = pick(rng, modes)
    ranks = (2, 5) if mode == "linear_onnx" else (2, 4) if "pillow" in mode else (1, 4)
    shape = random_shape(rng, ranks, 1, 6)
    axes = _axes(rng, mode, len(shape))
    by_scale = bool(rng.random() < 0.5)
    attributes: dict[str, Any] = {
        "mode": mode,
        "shape_calculation_mode": "scales" if by_scale else "sizes",
        "coordinate_transformation_mode": pick(rng, COORDINATES),
        "nearest_mode": pick(rng, NEAREST),
        "antialias": bool(rng.random() < 0.3),
        "cube_coeff": pick(rng, [-0.75, -0.5, -0.6]),
    }
    pads = np.zeros((2, len(shape)), int)
    if rng.random() < 0.4:
        pads = rng.integers(0, 3, (2, len(shape)))
        if mode == "linear_onnx":
            pads[:, : -2 if len(shape) > 3 else 0] = 0
        attributes["pads_begin"], attributes["pads_end"] = pads[0].tolist(), pads[1].tolist()
    sizes = np.array([int(rng.integers(1, 12)) for _ in axes])
    scales = np.array([_scale(rng) for _ in axes], np.float32)
    for k, a in enumerate(axes):
        scales[k] = max(scales[k], np.float32(1.01 / (shape[a] + pads[:, a].sum())))  # for at least one element
        if mode == "linear_onnx" and len(shape) >= 4 and a < 2:  # batch and channels keep their size
            sizes[k], scales[k] = shape[a], 1
    make = pick(rng, (const, const, param))
    index, real = pick(rng, (et.i64, et.i32)), pick(rng, (et.f32, et.f32, et.f16))
    scales = np.maximum(scales, np.float32(0.17)) if real is et.f16 else scales
    targets = [make(sizes, index), make(scales, real)]
    chosen = targets if version == "opset4" else [targets[by_scale]]
    # The reference resizes wrong axes of volumes whose depth is unchanged: see the deviations.
    flat = (mode == "linear_onnx" and len(shape) == 5 and len(axes) == 3) or ("pillow" in mode and len(axes) == 1)
    element = et.f32 if flat else pick(rng, ELEMENTS)
    if "pillow" in mode:
        attributes["cube_coeff"] = -0.5  # the CPU plugin and irload use this coefficient, the reference the attribute
    if element.is_integer and attributes["cube_coeff"] == -0.6:
        # the f32 rounding of 0.6 changes the result even along axes that keep their size: see the deviations
        attributes["cube_coeff"] = -0.75
    element = et.i8 if element is et.u8 and mode == "cubic" else element  # overshoots are clamped: see the deviations
    high = 20 if element is et.i8 else 50
    inputs = [param(random_array(rng, shape, element, -high if element.is_signed else 0, high), element), *chosen]
    if len(axes) < len(shape) or axes != list(range(len(shape))) or rng.random() < 0.5:
        inputs.append(const(axes, pick(rng, (et.i64, et.i32))))
    tolerance = 1e-4 if element is et.f32 else 1e-5
    return Case(
        "Interpolate", version, inputs, attributes, oracle="cpu" if flat else "both", rtol=tolerance, atol=tolerance
    )


def _axes(rng: Random, mode: str, rank: int) -> list[int]:
    if "pillow" in mode:
        if rng.random() < 0.2:  # one axis: only the CPU plugin has a kernel, for the last two axes
            return [rank - 1 - int(rng.integers(2))]
        return [int(a) for a in np.sort(rng.permutation(rank)[:2])]
    if mode == "linear_onnx":  # the reference supports all axes or the spatial axes
        return list(range(2 if rank >= 4 and rng.random() < 0.7 else 0, rank))
    axes = [int(a) for a in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
    return axes if mode == "nearest" or len(axes) < 4 else axes[:3]


def _scale(rng: Random) -> float:
    return pick(rng, [0.5, 1.0, 2.0, 3.0, 1 / 3, float(rng.uniform(0.3, 3.0))])


@cases("Interpolate", "opset1")
def interpolate_1(rng: Random, version: str) -> Case:
    mode = pick(rng, ["nearest", "linear", "cubic"])
    shape = random_shape(rng, 4 if mode == "cubic" else (4, 5), 1, 6)
    axes = list(range(2, len(shape)))  # only the CPU plugin has a kernel, and only for these axes
    if mode != "linear" and rng.random() < 0.3:
        axes = [pick(rng, axes)]
    attributes: dict[str, Any] = {"axes": axes, "mode": mode, "antialias": False}
    if rng.random() < 0.7:
        attributes["align_corners"] = bool(rng.random() < 0.5)
    plain = axes == [2, 3]  # for other axes the CPU plugin confuses pads and run-time sizes: see the deviations
    if plain and rng.random() < 0.5:
        pads = rng.integers(0, 3, (2, len(shape)))
        pads[:, :2] = 0
        attributes["pads_begin"], attributes["pads_end"] = pads[0].tolist(), pads[1].tolist()
    make = pick(rng, (const, param)) if plain else const
    sizes = make(rng.integers(1, 12, len(axes)), pick(rng, (et.i64, et.i32)))
    inputs = [param(random_array(rng, shape, et.f32), et.f32), sizes]
    return Case("Interpolate", version, inputs, attributes, rtol=1e-4, atol=1e-4)


@cases("Interpolate", "opset1")
def area(rng: Random, version: str) -> Case:
    shape = random_shape(rng, 4, 1, 6)
    sizes = [int(n) for n in rng.integers(1, 9, 2)]
    data = random_array(rng, shape, et.f32)
    return Case(
        *("Interpolate", version, [param(data), const(sizes)], {"axes": [2, 3], "mode": "area"}),
        oracle="none",
        expected=[_mean_over_fine_grid(data, sizes)],
        rtol=1e-4,
        atol=1e-4,
    )


def _mean_over_fine_grid(data: Array, sizes: list[int]) -> Array:
    """Area interpolation by another algorithm.

    Repeats each element so that the size of each axis is a multiple of both sizes, then computes means of blocks.
    """
    fine = data.astype(np.float64).repeat(sizes[0], 2).repeat(sizes[1], 3)
    blocks = fine.reshape(*data.shape[:2], sizes[0], data.shape[2], sizes[1], data.shape[3])
    return blocks.mean(axis=(3, 5)).astype(np.float32)
