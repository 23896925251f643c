"""ConvolutionBackpropData and its grouped form: the transposed convolution, also known as deconvolution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from irload.core import attribute as attr
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.convolution.forward import ConvolutionBase, group_count, numeric_operands, window
from irload.ops.windows import NON_SPATIAL, dilated, dilated_dim, halves, meeting, tail


def scattered(
    data: Array,
    filters: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    begins: Sequence[int],
    sizes: Sequence[int],
) -> Array:
    """Adds the filter [G, I, O, kernel] scaled by each element of [N, G·I, spatial] to the output [N, G·O, sizes].

    The first `begins` elements of each axis are cropped. One matrix product per element of the kernel.
    """
    groups, in_channels, out_channels = filters.shape[:3]
    kernel, positions = filters.shape[3:], data.shape[NON_SPATIAL:]
    batch = len(data)
    grouped = data.reshape(batch, groups, in_channels, *positions)
    result = np.zeros((batch, groups, out_channels, *sizes), np.result_type(data, filters))
    for tap in product(*map(range, kernel)):
        pairs = [meeting(*axis) for axis in zip(tap, strides, dilations, begins, positions, sizes, strict=True)]
        some = grouped[(..., *(source for source, _ in pairs))]
        if not some.size:
            continue
        # [G, O, I], copied because BLAS needs contiguous matrices
        weights = np.ascontiguousarray(filters[(..., *tap)].swapaxes(1, 2))
        columns = some.reshape(batch, groups, in_channels, -1)
        products = (weights @ columns).reshape(batch, groups, out_channels, *some.shape[3:])
        result[(..., *(target for _, target in pairs))] += products
    return result.reshape(batch, groups * out_channels, *sizes)


def full_sizes(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """The spatial sizes of the output before padding is cropped."""
    steps = zip(sizes, kernel, strides, dilations, strict=True)
    return [max(n - 1, 0) * s + dilated(k, d) for n, k, s, d in steps]


class BackpropBase(ConvolutionBase):
    """Base of both transposed convolutions: computes the size of the output, or takes it from `output_shape`."""

    output_padding = attr.integers(default=(), rule=attr.non_negative)

    def spatial_dims_back(
        self, data: Shape, filters: Shape, output_shape: TensorType | None, spatial: int
    ) -> Sequence[Dim]:
        """The spatial dims of the output. Raises ShapeMismatch."""
        strides, dilations = self.per_axis("strides", spatial), self.per_axis("dilations", spatial)
        extra = self.per_axis("output_padding", spatial)
        pads = self.explicit_pads(spatial)
        kernel = window(filters, spatial)
        if output_shape is not None:
            return self._output_dims(output_shape, spatial)
        dims: list[Dim] = []
        for axis, (n, k) in enumerate(zip(tail(data, spatial), kernel, strict=True)):
            full = (n - 1) * strides[axis] + dilated_dim(k, dilations[axis])
            change = extra[axis] - sum(pads[axis])
            if full.is_static and full.lo + change < 0:
                raise ShapeMismatch(f"pads {pads[axis]} on spatial axis {axis} crop more than the output's {full}")
            dims.append(full + change)
        return dims

    @staticmethod
    def _output_dims(output_shape: TensorType, spatial: int) -> Sequence[Dim]:
        if output_shape.ints is not None and min(output_shape.ints, default=0) < 0:
            raise ShapeMismatch(f"output_shape must not be negative, found {list(output_shape.ints)}")
        known = output_shape.dims
        if known is None:
            return (ANY,) * spatial
        if len(known) != spatial:
            raise ShapeMismatch(
                f"output_shape must have one value for each of {spatial} spatial axes, found {len(known)}"
            )
        return known

    def spatial_rank_back(self, data: Shape, filters: Shape, output_shape: TensorType | None) -> int | None:
        """As `spatial_rank`, also using the length of output_shape. Raises ShapeMismatch or TypeMismatch."""
        if output_shape is not None:
            if not (output_shape.element.is_integer or output_shape.element.is_dynamic):
                raise TypeMismatch(f"output_shape must be of an integer type, found {output_shape.element}")
            if output_shape.rank not in (None, 1):
                raise ShapeMismatch(f"output_shape must have rank 1, found shape {output_shape.shape}")
        if data.rank is None and filters.rank is None and output_shape is not None and output_shape.rank is not None:
            length = output_shape.shape[0]
            if length.is_static and length.lo:
                return length.lo
        spatial = self.spatial_rank(data, filters)
        if output_shape is not None and output_shape.rank is not None and spatial is not None:
            length = output_shape.shape[0]
            if not length.contains(spatial):
                raise ShapeMismatch(f"output_shape must have {spatial} values, found shape {output_shape.shape}")
        return spatial

    def transposed(self, data: Array, filters: Array, output_shape: Array | None) -> Array:
        """The transposed convolution of `data` with filters [G, I, O, kernel]."""
        kernel, sizes = filters.shape[3:], data.shape[NON_SPATIAL:]
        strides, dilations = self.per_axis("strides", len(kernel)), self.per_axis("dilations", len(kernel))
        extra = self.per_axis("output_padding", len(kernel))
        begins = self.begins(sizes, kernel, None if output_shape is None else output_shape.tolist())
        if output_shape is None:
            full, pads = full_sizes(sizes, kernel, strides, dilations), self.explicit_pads(len(kernel))
            output = [f + e - b - p for f, e, (b, p) in zip(full, extra, pads, strict=True)]
        else:
            output = [int(n) for n in output_shape]
        return scattered(data, filters, strides, dilations, begins, output)

    def begins(self, sizes: Sequence[int], kernel: Sequence[int], output: Sequence[int] | None) -> tuple[int, ...]:
        """The elements to crop at the begin of each spatial axis. `output`: the sizes in output_shape, if given."""
        spatial = len(kernel)
        if output is None or not self.pads_same:
            return tuple(b for b, _ in self.explicit_pads(spatial))
        full = full_sizes(sizes, kernel, self.per_axis("strides", spatial), self.per_axis("dilations", spatial))
        extra = self.per_axis("output_padding", spatial)
        return tuple(self._lost_ends(max(f + e - n, 0))[0] for f, e, n in zip(full, extra, output, strict=True))

    def _lost_ends(self, total: int) -> tuple[int, int]:
        """The (begin, end) crop for a given output size; the odd element first with same_upper, unlike forward."""
        end, begin = halves(total, self.auto_pad)
        return begin, end


class ConvolutionBackpropData(BackpropBase, since=1):
    """Transposed convolution of data [N, I, spatial] with filters [I, O, kernel] to [N, O, spatial].

    Specification: ConvolutionBackpropData-1. Each output size is stride·(in − 1) + dilated kernel − pb − pe +
    output_padding, unless `output_shape` gives it. Then auto_pad same_upper and same_lower crop both sides; with
    explicit and valid the pads apply, as in OpenVINO, and the end is cropped or filled with zeros.
    """

    def infer(self, data: TensorType, filters: TensorType, output_shape: TensorType | None = None) -> TensorType:
        element = numeric_operands(data, filters)
        spatial = self.spatial_rank_back(data.shape, filters.shape, output_shape)
        if spatial is None:
            return TensorType(element, Shape.unranked())
        if data.rank is not None and filters.rank is not None and data.shape[1].meet(filters.shape[0]) is None:
            raise ShapeMismatch(f"data has {data.shape[1]} channels, filters take {filters.shape[0]}")
        batch = ANY if data.rank is None else data.shape[0]
        channels = ANY if filters.rank is None else filters.shape[1]
        dims = self.spatial_dims_back(data.shape, filters.shape, output_shape, spatial)
        return TensorType(element, Shape(batch, channels, *dims))

    def compute(self, data: Array, filters: Array, output_shape: Array | None = None) -> Array:
        return self.transposed(data, filters[np.newaxis], output_shape)


class GroupConvolutionBackpropData(BackpropBase, since=1):
    """Transposed convolution in G groups of channels, with filters [G, I/G, O/G, kernel].

    Specification: GroupConvolutionBackpropData-1.
    """

    leading = 3

    def infer(self, data: TensorType, filters: TensorType, output_shape: TensorType | None = None) -> TensorType:
        element = numeric_operands(data, filters)
        spatial = self.spatial_rank_back(data.shape, filters.shape, output_shape)
        if spatial is None:
            return TensorType(element, Shape.unranked())
        batch = ANY if data.rank is None else data.shape[0]
        channels = ANY if filters.rank is None else group_count(data.shape, filters.shape, 1) * filters.shape[2]
        dims = self.spatial_dims_back(data.shape, filters.shape, output_shape, spatial)
        return TensorType(element, Shape(batch, channels, *dims))

    def compute(self, data: Array, filters: Array, output_shape: Array | None = None) -> Array:
        return self.transposed(data, filters, output_shape)
