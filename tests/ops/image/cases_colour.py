"""Random cases of the colour conversions and of GridSample."""

from __future__ import annotations

from functools import partial

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Case, Input, Random, cases, param
from tests.harness.material import pick, random_array, random_shape

ELEMENTS = (et.u8, et.u8, et.f32, et.f16, et.bf16, et.f64)


def _plane(rng: Random, shape: tuple[int, ...], element: ElementType) -> Input:
    return param(random_array(rng, shape, element, 0, 255), element)


def from_planes(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, ELEMENTS)
    n, h, w = (int(k) for k in rng.integers(1, 4, 3))
    if rng.random() < 0.5:
        inputs = [_plane(rng, (n, 3 * h, 2 * w, 1), element)]
    else:
        chroma = [2] if type.startswith("NV12") else [1, 1]
        inputs = [_plane(rng, (n, 2 * h, 2 * w, 1), element), *(_plane(rng, (n, h, w, c), element) for c in chroma)]
    return Case(type, version, inputs, rtol=1e-4, atol=1e-4)


def to_planes(type: str, rng: Random, version: str) -> Case:
    """Conversion to NV12 or I420. OpenVINO has no kernel for it, so the expected planes are computed here."""
    element = pick(rng, ELEMENTS)
    n, h, w = (int(k) for k in rng.integers(1, 4, 3))
    single = bool(rng.random() < 0.5)
    attributes = {} if single and rng.random() < 0.5 else {"single_plane": single}
    image = _plane(rng, (n, 2 * h, 2 * w, 3), element)
    planes = _planes(image.value.astype(float)[..., :: -1 if type[0] == "B" else 1], single)
    if any((np.abs(p % 1 - 0.5) < 1e-3).any() for p in planes):
        return to_planes(type, rng, version)  # near .5, f32 rounding may differ from f64
    expected = [(p.round() if element is et.u8 else p).astype(element.dtype) for p in planes]
    return Case(type, version, [image], attributes, outputs=2 - single, expected=expected, rtol=1e-4, atol=1e-2)


def _planes(image: Array, single: bool) -> list[Array]:
    n, height, width, _ = image.shape
    y, uv = np.zeros((n, height, width, 1)), np.zeros((n, height // 2, width // 2, 2))
    for b, row, column in np.ndindex(n, height, width):
        red, green, blue = image[b, row, column]
        y[b, row, column, 0] = 0.257 * red + 0.504 * green + 0.098 * blue + 16
        u = -0.148 * red - 0.291 * green + 0.439 * blue + 128
        v = 0.439 * red - 0.368 * green - 0.071 * blue + 128
        uv[b, row // 2, column // 2] += u / 4, v / 4
    return [np.concatenate([y, uv.reshape(n, height // 2, width, 1)], axis=1)] if single else [y, uv]


for _type in ("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR"):
    cases(_type, "opset8")(partial(from_planes, _type))
for _type in ("RGBtoNV12", "BGRtoNV12"):
    cases(_type, "opset17")(partial(to_planes, _type))


@cases("GridSample", "opset9")
def grid_sample(rng: Random, version: str) -> Case:
    mode = pick(rng, ["bilinear", "bicubic", "nearest"])
    attributes = {"align_corners": bool(rng.random() < 0.5), "mode": mode}
    attributes |= {"padding_mode": pick(rng, ["zeros", "border", "reflection"])}
    floats = (et.f32, et.f32, et.f16, et.bf16, et.f64)
    # In the other modes, integer results depend on the order in which OpenVINO adds in f32.
    element = pick(rng, (*floats, et.i32, et.i64, et.u8) if mode == "nearest" else floats)
    shape = random_shape(rng, 4, 1, 5)
    grid = rng.uniform(-2.5, 2.5, (shape[0], *random_shape(rng, 2, 1, 5), 2))
    data = param(random_array(rng, shape, element, 0, 100), element)
    return Case("GridSample", version, [data, param(grid, et.f32)], attributes, rtol=1e-4, atol=1e-3)
