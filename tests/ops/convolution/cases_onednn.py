"""Random cases of oneDNN Graph's Convolution. No available runtime executes it: expected results are computed here."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness import runtime
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import pick, random_array
from tests.ops.convolution.cases import geometry


@cases("Convolution", "onednn")
def onednn_convolution(rng: Random, version: str) -> Case:
    attributes, kernel, sizes = geometry(rng, int(rng.integers(1, 4)))
    attributes["auto_pad"] = pick(rng, ("none", "none", "same_upper", "same_lower", "valid"))
    attributes["data_format"], attributes["filter_format"] = pick(rng, ("NXC", "NCX")), pick(rng, ("XIO", "OIX"))
    groups, inner, outer = (int(v) for v in rng.integers(1, 4, 3))
    attributes["groups"] = groups
    attributes = {k: v for k, v in attributes.items() if DEFAULTS.get(k) != v or rng.random() < 0.5}
    element = pick(rng, (et.f32, et.f16, et.bf16))
    data = random_array(rng, (int(rng.integers(1, 4)), groups * inner, *sizes), element)
    filters = random_array(rng, (groups * outer, inner, *kernel), element)
    bias = random_array(rng, (groups * outer,), element) if rng.random() < 0.5 else None
    expect = by_position if rng.random() < 0.5 else by_the_runtime
    expected = expect(data, filters, bias, {**DEFAULTS, **attributes})
    inputs = [
        param(to_nxc(data) if attributes.get("data_format", "NXC") == "NXC" else data, element),
        pick(rng, (const, param))(
            to_xio(filters) if attributes.get("filter_format", "XIO") == "XIO" else filters, element
        ),
    ]
    if bias is not None:
        inputs.append(pick(rng, (const, param))(bias, element))
    return Case("Convolution", version, inputs, attributes, oracle="none", rtol=1e-4, atol=1e-4, expected=[expected])


DEFAULTS: dict[str, Any] = {"auto_pad": "none", "data_format": "NXC", "filter_format": "XIO", "groups": 1}


def to_nxc(ncx: Array) -> Array:
    return np.moveaxis(ncx, 1, -1)


def to_xio(oix: Array) -> Array:
    return np.moveaxis(oix, (0, 1), (-1, -2))


def pads_of(kernel: tuple[int, ...], attributes: dict[str, Any]) -> tuple[list[int], list[int]]:
    """The padding before and after each axis, as the specification defines it."""
    if attributes["auto_pad"] == "none":
        return list(attributes["pads_begin"]), list(attributes["pads_end"])
    if attributes["auto_pad"] == "valid":
        return [0] * len(kernel), [0] * len(kernel)
    total = [(k - 1) * d for k, d in zip(kernel, attributes["dilations"], strict=True)]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return (less, more) if attributes["auto_pad"] == "same_upper" else (more, less)


def by_position(data: Array, filters: Array, bias: Array | None, attributes: dict[str, Any]) -> Array:
    """The convolution by its definition, one output element at a time."""
    wide, kernel = np.asarray(data, np.float64), filters.shape[2:]
    begin, end = pads_of(kernel, attributes)
    strides, dilations, groups = attributes["strides"], attributes["dilations"], attributes["groups"]
    sizes = [
        (b + e + n - d * (k - 1) - 1) // s + 1
        for b, e, n, d, k, s in zip(begin, end, data.shape[2:], dilations, kernel, strides, strict=True)
    ]
    inner, outer = filters.shape[1], filters.shape[0] // groups
    result = np.zeros((len(data), len(filters), *sizes))
    for n, o, *at in np.ndindex(result.shape):
        first = (o // outer) * inner
        for tap in np.ndindex(kernel):
            place = [p * s + t * d - b for p, s, t, d, b in zip(at, strides, tap, dilations, begin, strict=True)]
            if all(0 <= p < size for p, size in zip(place, data.shape[2:], strict=True)):
                channels = wide[(n, slice(first, first + inner), *place)]
                result[(n, o, *at)] += channels @ np.asarray(filters[(o, slice(None), *tap)], np.float64)
    if bias is not None:
        result += np.asarray(bias, np.float64).reshape(-1, *(1,) * len(kernel))
    result = result.astype(data.dtype)
    return to_nxc(result) if attributes["data_format"] == "NXC" else result


def by_the_runtime(data: Array, filters: Array, bias: Array | None, attributes: dict[str, Any]) -> Array:
    """The convolution by OpenVINO's GroupConvolution in f32 with the same pads, for any layout."""
    groups, kernel = attributes["groups"], filters.shape[2:]
    begin, end = pads_of(kernel, attributes)
    common = {"strides": attributes["strides"], "dilations": attributes["dilations"]}
    grouped = filters.reshape(groups, len(filters) // groups, *filters.shape[1:]).astype(np.float32)
    inputs: list[Input] = [param(data.astype(np.float32), et.f32), const(grouped, et.f32)]
    case = Case("GroupConvolution", "opset1", inputs, {**common, "pads_begin": begin, "pads_end": end}, oracle="cpu")
    result = runtime.outputs(case)[0]
    if bias is not None:
        result = result + bias.astype(np.float32).reshape(-1, *(1,) * len(kernel))
    result = result.astype(data.dtype)
    return to_nxc(result) if attributes["data_format"] == "NXC" else result
