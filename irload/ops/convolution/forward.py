"""Convolution and GroupConvolution, and the base class of forward convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.context import InferContext
from irload.core.element import ElementType, merge
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.windows import (
    NON_SPATIAL,
    Windowed,
    check_fits,
    check_spatial,
    dilated_dim,
    tail,
    window_view,
)
from irload.safety.limits import checkpoint

BLOCK = 1 << 22
"""Elements of the matrix of windows that are copied at a time: large enough for BLAS, small enough for memory."""


def convolve(
    data: Array,
    filters: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    value: float = 0,
) -> Array:
    """Convolve [N, G·I, spatial] with filters [G, O, I, kernel] to [N, G·O, spatial], padding with `value`.

    Windows become the columns of a matrix and filters its rows (im2col), so that each group is one matrix product.
    Columns are built per block of output positions, to limit their memory.
    """
    groups, out_channels, in_channels = filters.shape[:3]
    kernel = filters.shape[3:]
    batch = len(data)
    grouped = data.reshape(batch, groups, in_channels, *data.shape[NON_SPATIAL:])
    columns = window_view(grouped, kernel, strides, dilations, pads, value)  # [N, G, I, kernel, positions]
    positions = columns.shape[3 + len(kernel) :]
    length = in_channels * math.prod(kernel)
    rows = filters.reshape(groups, out_channels, length)
    result = np.empty((batch, groups, out_channels, *positions), np.result_type(data, filters))
    for sample in range(batch):
        for block in _blocks(positions, groups * length):
            checkpoint()
            some = columns[(sample, ..., *block)]
            product = rows @ some.reshape(groups, length, math.prod(some.shape[-len(positions) :]))
            result[(sample, ..., *block)] = product.reshape(groups, out_channels, *some.shape[-len(positions) :])
    return result.reshape(batch, groups * out_channels, *positions)


def _blocks(positions: Sequence[int], each: int) -> Iterator[tuple[slice, ...]]:
    """Split the output positions into blocks of whole rows. A position takes `each` elements, a block at most BLOCK.

    A single row that exceeds BLOCK is split along the next axes.
    """
    row = each * math.prod(positions[1:])
    if row > BLOCK and len(positions) > 1:
        for k in range(positions[0]):
            for rest in _blocks(positions[1:], each):
                yield slice(k, k + 1), *rest
        return
    step = max(1, BLOCK // max(1, row))
    for start in range(0, positions[0], step):
        yield slice(start, start + step), *(slice(None),) * (len(positions) - 1)


def numeric_operands(*inputs: TensorType) -> ElementType:
    """The common element type of all operands. Raises TypeMismatch unless it is numeric."""
    element = merge(*(t.element for t in inputs))
    require_numeric("data and filters", element)
    return element


def window(filters: Shape, spatial: int) -> tuple[Dim, ...]:
    """The dims of the window. Raises ShapeMismatch for an empty one."""
    dims = tail(filters, spatial)
    if any(d.hi == 0 for d in dims):
        raise ShapeMismatch(f"the window must not be empty, found filters {filters}")
    return dims


class ConvolutionBase(Windowed):
    """The attributes of convolutions, and the output sizes of forward convolutions. Empty lists mean all ones."""

    strides = attr.integers(default=(), rule=attr.positive, spec_required=True)
    dilations = attr.integers(default=(), rule=attr.positive, spec_required=True)

    leading = 2
    """Axes of the filters before the spatial axes."""
    multiplies = True

    def spatial_rank(self, data: Shape, filters: Shape) -> int | None:
        """The number of spatial axes, from the inputs, else from the attributes. Raises ShapeMismatch."""
        check_spatial("data", data)
        if filters.rank is not None:
            if filters.rank - self.leading not in (1, 2, 3):
                raise ShapeMismatch(
                    f"filters must have 1 to 3 spatial axes after {self.leading}, found shape {filters}"
                )
            if data.rank is not None and data.rank - NON_SPATIAL != filters.rank - self.leading:
                raise ShapeMismatch(f"data {data} and filters {filters} do not have the same number of spatial axes")
            return filters.rank - self.leading
        if data.rank is not None:
            return data.rank - NON_SPATIAL
        return next((len(a) for a in (self.strides, self.dilations, self.pads_begin, self.pads_end) if a), None)

    def spatial_dims(self, data: Shape, filters: Shape, spatial: int, context: InferContext | None = None) -> list[Dim]:
        """The spatial dims of a forward convolution's output. Raises ShapeMismatch if a window does not fit.

        `context`: of operations that return no outputs for a dynamic axis that is one element too short.
        """
        strides, dilations = self.per_axis("strides", spatial), self.per_axis("dilations", spatial)
        sizes, kernel, pads = tail(data, spatial), window(filters, spatial), self.explicit_pads(spatial)
        if self.pads_same:
            return [n.ceil_div(s) for n, s in zip(sizes, strides, strict=True)]
        dims: list[Dim] = []
        for axis, (begin, end) in enumerate(pads):
            padded, span = sizes[axis] + (begin + end), dilated_dim(kernel[axis], dilations[axis])
            if context is not None and strides[axis] == 1:
                count = _count_at_run(padded, span)
                if count is not None and context.at_run():
                    dims.append(count)
                    continue
            if kernel[axis].is_static:
                check_fits(span.lo, padded, axis)
            dims.append((padded - span) // strides[axis] + 1)
        return dims

    def convolved(self, data: Array, filters: Array) -> Array:
        """The forward convolution of `data` with filters [G, O, I, kernel]."""
        kernel = filters.shape[3:]
        strides, dilations = self.per_axis("strides", len(kernel)), self.per_axis("dilations", len(kernel))
        return convolve(data, filters, strides, dilations, self.pads(data.shape[NON_SPATIAL:], kernel))


def _count_at_run(padded: Dim, span: Dim) -> Dim | None:
    """The number of windows with stride 1, if the padded axis lacks or may lack one element; else None."""
    if not (padded.is_static and span.is_static):
        return padded + 1 - span
    # Of symbolic sizes, each comparison is a guard of the plan: one that windows fit serves all larger sizes.
    return Dim(0, 0) if span.lo > padded.lo and span.lo - padded.lo == 1 else None


class Convolution(ConvolutionBase, since=1):
    """Convolves data [N, I, spatial] with filters [O, I, kernel] to [N, O, spatial], over 1 to 3 spatial axes.

    Specification: Convolution-1. Each output size is floor((pb + in + pe − dilated kernel) / stride) + 1, or ceil(in /
    stride) with auto_pad same_upper or same_lower. A window that does not fit is an error, except at run time, for an
    axis of unknown size in the model with stride 1: if it lacks one element, the output is empty, as in OpenVINO.
    """

    def infer(self, data: TensorType, filters: TensorType, *, context: InferContext | None = None) -> TensorType:
        element = numeric_operands(data, filters)
        spatial = self.spatial_rank(data.shape, filters.shape)
        if spatial is None:
            return TensorType(element, Shape.unranked())
        if data.rank is not None and filters.rank is not None and data.shape[1].meet(filters.shape[1]) is None:
            raise ShapeMismatch(f"data has {data.shape[1]} channels, filters take {filters.shape[1]}")
        batch = ANY if data.rank is None else data.shape[0]
        channels = ANY if filters.rank is None else filters.shape[0]
        dims = self.spatial_dims(data.shape, filters.shape, spatial, context)
        return TensorType(element, Shape(batch, channels, *dims))

    def compute(self, data: Array, filters: Array) -> Array:
        return self.convolved(data, filters[np.newaxis])


class GroupConvolution(ConvolutionBase, since=1):
    """Convolves G groups of channels separately, with filters [G, O/G, I/G, kernel].

    Specification: GroupConvolution-1. With one channel per group it is a depthwise convolution. The output sizes
    follow the rules of Convolution.
    """

    leading = 3

    def infer(self, data: TensorType, filters: TensorType, *, context: InferContext | None = None) -> TensorType:
        element = numeric_operands(data, filters)
        spatial = self.spatial_rank(data.shape, filters.shape)
        if spatial is None:
            return TensorType(element, Shape.unranked())
        batch = ANY if data.rank is None else data.shape[0]
        channels = ANY if filters.rank is None else group_count(data.shape, filters.shape, 2) * filters.shape[1]
        dims = self.spatial_dims(data.shape, filters.shape, spatial, context)
        return TensorType(element, Shape(batch, channels, *dims))

    def compute(self, data: Array, filters: Array) -> Array:
        return self.convolved(data, filters)


def group_count(data: Shape, filters: Shape, channel_axis: int) -> Dim:
    """The number of groups: the first axis of the filters, and the data's channels divided by the channels per group.

    Raises ShapeMismatch if they differ.
    """
    groups, per_group = filters[0], filters[channel_axis]
    if data.rank is None or not per_group.is_static:
        return groups
    channels = data[1]
    common = None
    if per_group.lo:
        lo, hi = -(-channels.lo // per_group.lo), None if channels.hi is None else channels.hi // per_group.lo
        common = None if hi is not None and hi < lo else groups.meet(Dim(lo, hi))
    if common is None:
        raise ShapeMismatch(f"data has {channels} channels, filters take {groups} groups of {per_group}")
    return common
