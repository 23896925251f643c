"""Random cases of the deformable and the binary convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import pick, random_array
from tests.ops.convolution.cases import geometry


@cases("DeformableConvolution", "opset1", "opset8")
def deformable(rng: Random, version: str) -> Case:
    attributes, kernel, sizes = geometry(rng, 2)
    group, parts, each = (int(v) for v in rng.integers(1, 3, 3))
    attributes |= {"group": group, "deformable_group": parts}
    n, inner, outer = int(rng.integers(1, 3)), parts * each, int(rng.integers(1, 3))
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    strides, dilations = attributes["strides"], attributes["dilations"]
    if attributes.get("auto_pad", "explicit").startswith("same"):
        out = [-(-s // t) for s, t in zip(sizes, strides, strict=True)]
    else:
        explicit = attributes.get("auto_pad", "explicit") == "explicit"
        padded = [
            s + (b + e if explicit else 0)
            for s, b, e in zip(sizes, attributes["pads_begin"], attributes["pads_end"], strict=True)
        ]
        out = [(p - (k - 1) * d - 1) // t + 1 for p, k, d, t in zip(padded, kernel, dilations, strides, strict=True)]
    places = parts * kernel[0] * kernel[1]
    inputs = [
        param(random_array(rng, (n, group * inner, *sizes), element), element),
        param(random_array(rng, (n, 2 * places, *out), element, -2, 2), element),
        pick(rng, (const, param))(random_array(rng, (group * outer, inner, *kernel), element), element),
    ]
    if version == "opset8":
        if rng.random() < 0.6:
            inputs.append(param(random_array(rng, (n, places, *out), element, 0, 1), element))
        if rng.random() < 0.7:
            attributes["bilinear_interpolation_pad"] = bool(rng.random() < 0.6)
    return Case("DeformableConvolution", version, inputs, attributes, rtol=1e-4, atol=1e-4)


@cases("BinaryConvolution", "opset1")
def binary(rng: Random, version: str) -> Case:
    attributes, kernel, sizes = geometry(rng, 2)
    attributes |= {"mode": "xnor-popcount", "pad_value": float(pick(rng, (0, 1, 0.5)))}
    element = pick(rng, (et.f32, et.f16, et.i32, et.u8))
    n, i, o = (int(v) for v in rng.integers(1, 4, 3))
    i = pick(rng, (i, 8))
    low = 0 if element.is_signed else 1  # an unsigned type has no negative results
    data = rng.integers(low, 2, (n, i, *sizes)).astype(element.dtype)
    filters = rng.integers(low, 2, (o, i, *kernel))
    if not element.is_signed:
        attributes["pad_value"] = 1.0
    inputs = [param(data, element), const(filters, et.u1)]
    # The CPU plugin requires data as packed bits, which Parameters of these types cannot provide.
    return Case("BinaryConvolution", version, inputs, attributes, expected=[by_agreement(data, filters, attributes)])


def by_agreement(data: Array, filters: Array, attributes: dict[str, Any]) -> Array:
    """One output element at a time: +1 for each position in which the bits agree, −1 for each in which they differ."""
    kernel, sizes, strides = filters.shape[2:], data.shape[2:], attributes["strides"]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    auto_pad = attributes.get("auto_pad", "explicit")
    pads = [(0, 0)] * 2
    if auto_pad == "explicit":
        pads = list(zip(attributes["pads_begin"], attributes["pads_end"], strict=True))
    elif auto_pad.startswith("same"):
        steps = zip(sizes, strides, spans, strict=True)
        totals = [max((math.ceil(n / s) - 1) * s + k - n, 0) for n, s, k in steps]
        pads = [(t // 2, t - t // 2) if auto_pad == "same_upper" else (t - t // 2, t // 2) for t in totals]
    out = [(n + b + e - k) // s + 1 for n, (b, e), k, s in zip(sizes, pads, spans, strides, strict=True)]
    if filters.size % 8 == 0:
        filters = np.unpackbits(np.packbits(filters), bitorder="little").reshape(filters.shape)
    result = np.zeros((len(data), len(filters), *out))
    for n, o, *at in np.ndindex(result.shape):
        for c, *tap in np.ndindex(filters.shape[1:]):
            steps = zip(at, strides, tap, attributes["dilations"], pads, strict=True)
            place = [p * s + t * d - b for p, s, t, d, (b, _) in steps]
            within = all(0 <= p < size for p, size in zip(place, sizes, strict=True))
            bit = data[(n, c, *place)] if within else data.dtype.type(attributes["pad_value"])
            result[(n, o, *at)] += 1 if bit == filters[(o, c, *tap)] else -1
    return result.astype(data.dtype)
