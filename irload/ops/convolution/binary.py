"""BinaryConvolution: convolution of bits, by counting the positions where they agree."""

from __future__ import annotations

import math

import numpy as np

from irload.core import attribute as attr
from irload.core.element import u1
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.convolution.forward import ConvolutionBase, convolve
from irload.ops.elementwise import require_numeric
from irload.ops.windows import NON_SPATIAL


class BinaryConvolution(ConvolutionBase, since=1):
    """The elements where data [N, C, H, W] and filters [O, C, kh, kw] agree, minus the elements where they differ.

    Specification: BinaryConvolution-1, mode xnor-popcount. Data and filters have values 0 and 1, which represent −1 and
    +1. The padding has the value pad_value; if that is neither 0 nor 1, it agrees with neither.

    Filters are stored from the low bit of each byte to the high one, as Model Optimizer writes them and the CPU plugin
    reads them; other constants of type u1 start with the high bit.
    """

    mode = attr.choice("xnor-popcount", default="xnor-popcount", spec_required=True)
    pad_value = attr.number(default=0.0, spec_required=True)

    def infer(self, data: TensorType, filters: TensorType) -> TensorType:
        require_numeric("data", data.element)
        if filters.element is not u1 and not filters.element.is_dynamic:
            raise TypeMismatch(f"filters must be of type u1, found {filters.element}")
        for name, tensor in (("data", data), ("filters", filters)):
            if tensor.rank not in (None, 4):
                raise ShapeMismatch(f"{name} must have rank 4, found shape {tensor.shape}")
        spatial = self.spatial_rank(data.shape, filters.shape)
        if spatial is None:
            return TensorType(data.element, Shape.unranked())
        if data.rank is not None and filters.rank is not None and data.shape[1].meet(filters.shape[1]) is None:
            raise ShapeMismatch(f"data has {data.shape[1]} channels, filters take {filters.shape[1]}")
        batch = ANY if data.rank is None else data.shape[0]
        channels = ANY if filters.rank is None else filters.shape[0]
        return TensorType(data.element, Shape(batch, channels, *self.spatial_dims(data.shape, filters.shape, spatial)))

    def compute(self, data: Array, filters: Array) -> Array:
        filters = from_low_bits(filters)
        kernel = filters.shape[2:]
        pads = self.pads(data.shape[NON_SPATIAL:], kernel)
        steps = self.per_axis("strides", len(kernel)), self.per_axis("dilations", len(kernel))
        zeros, ones = (
            convolve(
                (data == bit).astype(np.float32),
                (filters == bit)[np.newaxis].astype(np.float32),
                *steps,
                pads,
                data.dtype.type(self.pad_value) == bit,
            )
            for bit in (0, 1)
        )
        return (2 * (zeros + ones) - math.prod(filters.shape[1:])).astype(data.dtype)


def from_low_bits(bits: Array) -> Array:
    """The bits in the opposite order within each byte; unchanged unless they fill whole bytes."""
    return bits if bits.size % 8 else bits.reshape(-1, 8)[:, ::-1].reshape(bits.shape)
