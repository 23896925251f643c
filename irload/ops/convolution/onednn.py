"""Convolution of oneDNN Graph: groups, two layouts of data and filters, a bias, and same padding before striding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.element import bf16, dynamic, f16, f32, merge
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch
from irload.ops.convolution.forward import ConvolutionBase
from irload.ops.windows import dilated, halves


class OneDNNConvolution(ConvolutionBase, type="Convolution", opset="onednn"):
    """Convolution over 1 to 3 spatial axes, of data in NXC or NCX and filters in XIO or OIX, and an optional bias.

    Specification: Convolution-1 of oneDNN Graph. Each output size is ⌊(pb + pe + in − dilated kernel) / stride⌋ + 1.
    auto_pad same_upper and same_lower pad by dilated kernel − 1 elements, which preserves the size *before* striding;
    OpenVINO pads for ceil(in / stride) windows, so for strides above 1 the windows differ. The in-channels of the
    filters are per group; the bias has one value per out-channel, or a single value.
    """

    strides = attr.integers(rule=attr.positive)
    pads_begin = attr.integers(rule=attr.non_negative)
    pads_end = attr.integers(rule=attr.non_negative)
    dilations = attr.integers(rule=attr.positive)
    auto_pad = attr.choice("none", "same_upper", "same_lower", "valid", default="none")
    groups = attr.integer(default=1, rule=attr.positive)
    data_format = attr.choice("NXC", "NCX", default="NXC")
    filter_format = attr.choice("XIO", "OIX", default="XIO")

    def validate(self) -> None:
        names = ("strides", "dilations", *(("pads_begin", "pads_end") if self.auto_pad == "none" else ()))
        lengths = {name: len(getattr(self, name)) for name in names}
        if len(set(lengths.values())) != 1 or not 1 <= lengths["strides"] <= 3:
            shown = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise AttributeInvalid(f"lists must have one value for each of 1 to 3 spatial axes, found lengths {shown}")

    def explicit_pads(self, spatial: int) -> list[tuple[int, int]]:
        if self.auto_pad != "none":
            return [(0, 0)] * spatial
        return list(zip(self.per_axis("pads_begin", spatial), self.per_axis("pads_end", spatial), strict=True))

    def pads(self, sizes: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
        if not self.pads_same:
            return self.explicit_pads(len(kernel))
        return [halves(dilated(k, d) - 1, self.auto_pad) for k, d in zip(kernel, self.dilations, strict=True)]

    def infer(self, input: TensorType, filter: TensorType, bias: TensorType | None = None) -> TensorType:
        element = merge(*(t.element for t in (input, filter, bias) if t is not None))
        if element not in (f32, f16, bf16, dynamic):
            raise TypeMismatch(f"input, filter and bias must be of type f32, f16 or bf16, found {element}")
        data, filters = self._ncx(input.shape), self._oix(filter.shape)
        spatial = self.spatial_rank(data, filters) or len(self.strides)
        self._check_channels(data, filters, None if bias is None else bias.shape)
        batch = ANY if data.rank is None else data[0]
        channels = ANY if filters.rank is None else filters[0]
        dims = self.spatial_dims(data, filters, spatial)
        return TensorType(
            element, Shape(batch, *dims, channels) if self.data_format == "NXC" else Shape(batch, channels, *dims)
        )

    def _check_channels(self, data: Shape, filters: Shape, bias: Shape | None) -> None:
        for name, dim in (
            ("in-channels", None if data.rank is None else data[1]),
            ("out-channels", None if filters.rank is None else filters[0]),
        ):
            if dim is not None and dim.is_static and dim.lo % self.groups:
                raise ShapeMismatch(f"the {name} must be divisible by groups {self.groups}, found {dim}")
        if data.rank is not None and filters.rank is not None and data[1].meet(filters[1] * self.groups) is None:
            raise ShapeMismatch(f"input has {data[1]} channels, the filter takes {self.groups} groups of {filters[1]}")
        if bias is None or bias.rank is None:
            return
        out_channels = ANY if filters.rank is None else filters[0]
        if bias.rank != 1 or (out_channels.meet(bias[0]) is None and not bias[0].contains(1)):
            raise ShapeMismatch(f"bias must have one value for each of {out_channels} out-channels, found shape {bias}")

    def _ncx(self, shape: Shape) -> Shape:
        if shape.rank is None or shape.rank < 3 or self.data_format == "NCX":
            return shape
        return Shape(shape[0], shape[-1], *shape[1:-1])

    def _oix(self, shape: Shape) -> Shape:
        if shape.rank is None or shape.rank < 3 or self.filter_format == "OIX":
            return shape
        return Shape(shape[-1], shape[-2], *shape[:-2])

    def compute(self, input: Array, filter: Array, bias: Array | None = None) -> Array:
        data = np.moveaxis(input, -1, 1) if self.data_format == "NXC" else input
        oix = np.moveaxis(filter, (-1, -2), (0, 1)) if self.filter_format == "XIO" else filter
        filters = oix.reshape(self.groups, oix.shape[0] // self.groups, *oix.shape[1:])
        result = self.convolved(data, filters)
        if bias is not None:
            result += bias.reshape(-1, *(1,) * (result.ndim - 2))
        return np.moveaxis(result, 1, -1) if self.data_format == "NXC" else result
