"""Pooling, and the poolings of regions."""

from __future__ import annotations

from collections.abc import Callable

from irload.errors import AttributeInvalid
from irload.read.legacy.layer import LegacyLayer, Wire, listed
from irload.read.legacy.table import rewrites
from irload.read.legacy.windows import Windows


@rewrites("Pooling")
def pooling(layer: LegacyLayer) -> Wire:
    """MaxPool or AvgPool with the declared dims. If both roundings of the window count fit, `rounding_type` decides.

    Averages exclude padding unless `exclude-pad` is false and there are pads, as in the legacy CPU plugin.
    """
    method = layer.text("pool-method", "max").lower()
    if method not in ("max", "avg"):
        raise AttributeInvalid(f"attribute pool-method must be max or avg, found '{method[:40]}'")
    dims, outputs, windows = layer.input_dims()[2:], layer.output_dims()[2:], Windows.of(layer)
    begin, end = windows.convolved_pads(dims, outputs)
    rounding = "floor"
    rounds_up = tuple(end) != windows.pads_end or layer.text("rounding_type", "floor").lower() == "ceil"
    if windows.auto_pad == "explicit" and rounds_up and _counts(windows, dims) == outputs:
        end, rounding = windows.pads_end, "ceil"
    data = {
        "kernel": listed(windows.kernel),
        "strides": listed(windows.strides),
        "pads_begin": listed(begin),
        "pads_end": listed([max(n, 0) for n in end]),
        "rounding_type": rounding,
        "auto_pad": "explicit",
    }
    if method == "max":
        return layer.op("MaxPool", layer.input(), data=data)
    counts_padding = not layer.flag("exclude-pad", False) and any((*begin, *windows.pads_end))
    return layer.op("AvgPool", layer.input(), data=data | {"exclude-pad": str(not counts_padding).lower()})


def _counts(windows: Windows, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of windows, rounded up."""
    axes = zip(dims, windows.kernel, windows.strides, windows.pads_begin, windows.pads_end, strict=True)
    return tuple(-((k - n - begin - end) // s) + 1 for n, k, s, begin, end in axes)


def _regions(type: str, *names: str) -> Callable[[LegacyLayer], Wire]:
    def rewrite(layer: LegacyLayer) -> Wire:
        data = layer.copied(*names)
        if "method" in data:
            data["method"] = data["method"].lower()
        return layer.op(type, *layer.inputs, data=data)

    return rewrite


rewrites("ROIPooling")(_regions("ROIPooling", "pooled_h", "pooled_w", "spatial_scale", "method"))
_POSITION_SENSITIVE = ("output_dim", "group_size", "spatial_scale", "mode", "spatial_bins_x", "spatial_bins_y")
rewrites("PSROIPooling")(_regions("PSROIPooling", *_POSITION_SENSITIVE))
rewrites("DeformablePSROIPooling")(_regions("DeformablePSROIPooling", *_POSITION_SENSITIVE, "trans_std", "part_size"))
