"""Base of AvgPool and MaxPool: output sizes and their rounding."""

from __future__ import annotations

from collections.abc import Sequence

from irload.core import attribute as attr
from irload.core.shape import ANY, Dim, Shape
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.sliding import WindowAxis
from irload.ops.windows import NON_SPATIAL, Windowed, check_fits, check_spatial, dilated


class Pool(Windowed):
    """Reduces every window of `kernel` elements over the 1 to 3 spatial axes.

    Output sizes are (in + pads − dilated kernel) / stride + 1 with rounding_type floor or ceil; ceil_torch, in later
    versions, drops a last window that would start beyond the input and its first pad. With auto_pad same_upper and
    same_lower they are ceil(in / stride), unless the stride exceeds the window.
    """

    kernel = attr.integers(rule=attr.positive)
    strides = attr.integers(rule=attr.positive)
    rounding_type = attr.choice("floor", "ceil", default="floor")

    def validate(self) -> None:
        if not 1 <= len(self.kernel) <= 3 or len(self.strides) != len(self.kernel):
            raise AttributeInvalid(
                "kernel and strides must have one value for each of 1 to 3 spatial axes, "
                f"found {len(self.kernel)} and {len(self.strides)}"
            )

    def pooled(self, data: Shape) -> Shape:
        """The shape of the output. Raises ShapeMismatch or AttributeInvalid."""
        check_spatial("data", data)
        spatial = len(self.kernel)
        for name in ("dilations", "pads_begin", "pads_end"):
            self.per_axis(name, spatial)
        if data.rank is None:
            return Shape.any(NON_SPATIAL + spatial)
        if data.rank != NON_SPATIAL + spatial:
            raise ShapeMismatch(f"kernel has {spatial} values, data {data} has {data.rank - NON_SPATIAL} spatial axes")
        for name, dim in (("batch", data[0]), ("channels", data[1])):
            if dim.hi == 0:
                raise ShapeMismatch(f"the {name} of data must not be zero, found {data}")
        return Shape(data[0], data[1], *(self._dim(data[NON_SPATIAL + k], k, spatial) for k in range(spatial)))

    def _dim(self, size: Dim, axis: int, spatial: int) -> Dim:
        if self.pads_same and not size.is_static:
            return ANY
        span = dilated(self.kernel[axis], self.per_axis("dilations", spatial)[axis])
        if size.is_static:
            begin, end = self._pads_of(size.lo, axis, spatial)
            check_fits(span, size + (begin + end), axis)
            self.check_window(span, begin, end, axis)
        else:
            begin, end = self.explicit_pads(spatial)[axis]
        return Dim(
            self._count(size.lo, span, begin, end, axis),
            None if size.hi is None else self._count(size.hi, span, begin, end, axis),
        )

    def _pads_of(self, size: int, axis: int, spatial: int) -> tuple[int, int]:
        sizes = [size if k == axis else 1 for k in range(spatial)]
        return self.pads(sizes, self.kernel)[axis]

    def _count(self, size: int, span: int, begin: int, end: int, axis: int) -> int:
        """The number of windows along one axis."""
        stride, room = self.strides[axis], max(size + begin + end - span, 0)
        count = (room // stride if self.rounding_type == "floor" else -(-room // stride)) + 1
        if self.rounding_type == "ceil_torch" and count > 1 and (count - 1) * stride >= size + begin:
            count -= 1
        return count

    def check_window(self, span: int, begin: int, end: int, axis: int) -> None:
        """Raise ShapeMismatch if a window may be all padding, for operations that forbid it."""

    def axes(self, sizes: Sequence[int]) -> list[WindowAxis]:
        """The windows along each spatial axis, for an input of these spatial sizes."""
        spatial = len(sizes)
        dilations, pads = self.per_axis("dilations", spatial), self.pads(sizes, self.kernel)
        return [
            WindowAxis(
                size,
                self._count(size, dilated(self.kernel[k], dilations[k]), *pads[k], k),
                self.kernel[k],
                self.strides[k],
                dilations[k],
                pads[k][0],
            )
            for k, size in enumerate(sizes)
        ]
