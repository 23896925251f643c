"""Resample, Interp and UpSampling as Interpolate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.errors import AttributeInvalid
from irload.read.legacy.layer import LegacyLayer, Wire, listed
from irload.read.legacy.table import rewrites

_METHODS = {
    "caffe.resampleparameter.nearest": "nearest",
    "nearest": "nearest",
    "caffe.resampleparameter.linear": "linear",
    "linear": "linear",
    "caffe.resampleparameter.cubic": "cubic",
    "cubic": "cubic",
}


@rewrites("Resample")
def resample(layer: LegacyLayer) -> Wire:
    """Interpolate to the declared dims, with half-pixel coordinates."""
    method = _METHODS.get(layer.text("type", "nearest").lower())
    if method is None:
        raise AttributeInvalid(f"attribute type is '{layer.text('type')[:40]}', expected NEAREST, LINEAR or CUBIC")
    return _interpolated(layer, method, "half_pixel")


@rewrites("UpSampling", "Upsampling")
def upsampling(layer: LegacyLayer) -> Wire:
    """Interpolate to the declared dims by nearest neighbour, with half-pixel coordinates."""
    return _interpolated(layer, "nearest", "half_pixel")


@rewrites("Interp", "Interpolate")
def interp(layer: LegacyLayer) -> Wire:
    """Interpolate to the declared dims, linear by default. `align_corners` is true by default for Interp only."""
    default = layer.type.lower() == "interp"
    coordinates = "align_corners" if layer.flag("align_corners", default) else "asymmetric"
    method = layer.text("mode", "linear").lower()
    pads = [layer.integers(name, (0,))[0] for name in ("pad_beg", "pad_end")]
    return _interpolated(layer, "linear_onnx" if method == "linear" else method, coordinates, pads)


def _interpolated(layer: LegacyLayer, method: str, coordinates: str, pads: Sequence[int] = (0, 0)) -> Wire:
    rank = len(layer.input_dims())
    begin, end = ([0, 0, *[n] * (rank - 2)] for n in pads)
    before, after = layer.input_dims()[2:], layer.output_dims()[2:]
    scales = [new / max(old + begin[-1] + end[-1], 1) for old, new in zip(before, after, strict=True)]
    inputs = [
        layer.constant("sizes", list(after)),
        layer.constant("scales", scales, np.float32),
        layer.constant("axes", list(range(2, rank))),
    ]
    data = {
        "mode": method,
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": "round_prefer_floor" if coordinates == "half_pixel" else "floor",
        "antialias": str(layer.flag("antialias", False)).lower(),
        "pads_begin": listed(begin),
        "pads_end": listed(end),
    }
    return layer.op("Interpolate", layer.input(), *inputs, data=data, opset="opset4")
