"""Random cases of the convolution family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array

ELEMENTS = (et.f32, et.f32, et.f32, et.f16, et.f64, et.i32, et.i64, et.i8, et.u8)


def geometry(rng: Random, spatial: int) -> tuple[dict[str, Any], list[int], list[int]]:
    """Attributes of a window, its kernel, and the sizes of an input that it fits into."""
    ints = lambda low, high: [int(v) for v in rng.integers(low, high + 1, spatial)]  # noqa: E731
    kernel, strides, dilations = ints(1, 3), ints(1, 3), ints(1, 2)
    begin, end = ints(0, 2), ints(0, 2)
    auto_pad = pick(rng, ["explicit", "explicit", "same_upper", "same_lower", "valid"])
    sizes = [(k - 1) * d + 1 + int(rng.integers(0, 5)) for k, d in zip(kernel, dilations, strict=True)]
    attributes: dict[str, Any] = {"strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations}
    if auto_pad != "explicit" or rng.random() < 0.5:
        attributes["auto_pad"] = auto_pad
    return attributes, kernel, sizes


def elements_for(kernel: list[int], attributes: dict[str, Any]) -> list[ElementType]:
    """The element types that the CPU plugin convolves correctly.

    Its results are wrong for i8 with three spatial axes. For 8-bit types it crashes if a window may be all padding.
    """
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    blind = any(p >= n for side in ("pads_begin", "pads_end") for p, n in zip(attributes[side], reach, strict=True))
    return [e for e in ELEMENTS if e.bits > 8 or not (blind or (e is et.i8 and len(kernel) == 3))]


@cases("Convolution", "opset1")
def convolution(rng: Random, version: str) -> Case:
    attributes, kernel, sizes = geometry(rng, int(rng.integers(1, 4)))
    element = pick(rng, elements_for(kernel, attributes))
    n, i, o = (int(v) for v in rng.integers(1, 4, 3))
    data = param(small_array(rng, (n, i, *sizes), element), element)
    filters = pick(rng, (const, param))(small_array(rng, (o, i, *kernel), element), element)
    return Case("Convolution", version, [data, filters], attributes, rtol=1e-4, atol=1e-4)


@cases("GroupConvolution", "opset1")
def group_convolution(rng: Random, version: str) -> Case:
    attributes, kernel, sizes = geometry(rng, int(rng.integers(1, 4)))
    # Without AVX-512 the CPU plugin's group convolutions of i8 are wrong.
    element = pick(rng, [e for e in elements_for(kernel, attributes) if e is not et.i8])
    n, g, i, o = (int(v) for v in rng.integers(1, 4, 4))
    data = param(small_array(rng, (n, g * i, *sizes), element), element)
    filters = pick(rng, (const, param))(small_array(rng, (g, o, i, *kernel), element), element)
    return Case("GroupConvolution", version, [data, filters], attributes, rtol=1e-4, atol=1e-4)


@cases("ConvolutionBackpropData", "opset1")
def transposed(rng: Random, version: str) -> Case:
    n, i, o = (int(v) for v in rng.integers(1, 4, 3))
    return _transposed(rng, "ConvolutionBackpropData", version, n, i, (i, o))


@cases("GroupConvolutionBackpropData", "opset1")
def group_transposed(rng: Random, version: str) -> Case:
    n, g, i, o = (int(v) for v in rng.integers(1, 4, 4))
    return _transposed(rng, "GroupConvolutionBackpropData", version, n, g * i, (g, i, o))


def _transposed(rng: Random, type: str, version: str, batch: int, channels: int, leading: tuple[int, ...]) -> Case:
    spatial = int(rng.integers(1, 4))
    attributes, kernel, _ = geometry(rng, spatial)
    strides, dilations = attributes["strides"], attributes["dilations"]
    sizes = [int(v) for v in rng.integers(3, 6, spatial)]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]
    attributes["pads_begin"] = [min(p, f - 1) // 2 for p, f in zip(attributes["pads_begin"], full, strict=True)]
    attributes["pads_end"] = [min(p, f - 1) // 2 for p, f in zip(attributes["pads_end"], full, strict=True)]
    if rng.random() < 0.6:
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    element = pick(rng, ELEMENTS)
    data, filters = small_array(rng, (batch, channels, *sizes), element), small_array(rng, (*leading, *kernel), element)
    inputs = [param(data, element), pick(rng, (const, param))(filters, element)]
    if rng.random() < 0.5:
        asked = [max(1, f + int(rng.integers(-2, 2))) for f in full]
        if attributes.get("auto_pad", "explicit") == "explicit":  # the CPU plugin misplaces elements outside
            asked = [min(n, f - b) for n, f, b in zip(asked, full, attributes["pads_begin"], strict=True)]
        # Rigid, because OpenVINO infers rank 2 for an output shape of unknown length.
        inputs.append(replace(pick(rng, (const, const, param))(asked, pick(rng, INDICES)), static_shape=True))
    # The CPU plugin has no kernel for one group, nor for an output shape that is a runtime input.
    expected = None
    if leading[0] == 1 or not inputs[-1].constant:
        expected = [transposed_by_scatter(inputs, attributes, grouped=len(leading) == 3)]
    return Case(type, version, inputs, attributes, oracle="cpu", rtol=1e-4, atol=1e-4, expected=expected)


def transposed_by_scatter(inputs: list[Input], attributes: dict[str, Any], grouped: bool) -> Array:
    """The transposed convolution element by element: every input element adds its filter at its position."""
    wide = np.float64 if inputs[0].element.is_float else np.int64
    data, filters = (i.value.astype(wide) for i in inputs[:2])
    filters = filters if grouped else filters[None]
    strides, dilations, sizes = attributes["strides"], attributes["dilations"], data.shape[2:]
    extra = attributes.get("output_padding", [0] * len(strides))
    kernel = filters.shape[3:]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]
    auto_pad = attributes.get("auto_pad", "explicit")
    explicit = auto_pad == "explicit"
    begin = list(attributes["pads_begin"]) if explicit else [0] * len(full)
    end = list(attributes["pads_end"]) if explicit else [0] * len(full)
    wanted = [f + x - b - e for f, x, b, e in zip(full, extra, begin, end, strict=True)]
    if len(inputs) == 3:
        wanted = [int(n) for n in inputs[2].value]
        if auto_pad.startswith("same"):
            total = [max(f + x - n, 0) for f, x, n in zip(full, extra, wanted, strict=True)]
            begin = [t - t // 2 if auto_pad == "same_upper" else t // 2 for t in total]
    groups, inner, outer = filters.shape[:3]
    result = np.zeros((len(data), groups * outer, *wanted), wide)
    for at in np.ndindex(data.shape):
        group, channel = divmod(at[1], inner)
        for tap in np.ndindex(kernel):
            place = [p * s + t * d - b for p, s, t, d, b in zip(at[2:], strides, tap, dilations, begin, strict=True)]
            if all(0 <= p < n for p, n in zip(place, wanted, strict=True)):
                weights = filters[(group, channel, slice(None), *tap)]
                result[(at[0], slice(group * outer, (group + 1) * outer), *place)] += data[at] * weights
    return result.astype(inputs[0].element.dtype)


def small_array(rng: Random, shape: Sequence[int], element: ElementType) -> Array:
    """Values whose products do not overflow 8 bits: on overflow OpenVINO saturates and irload wraps."""
    return random_array(rng, shape, element, -1, 1) if element in (et.i8, et.u8) else random_array(rng, shape, element)
