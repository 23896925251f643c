"""Squeeze and Unsqueeze: axes of length 1, dropped and inserted."""

from __future__ import annotations

from collections.abc import Sequence

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.op import Op
from irload.core.shape import Dim, Shape, normalize_axes
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import ShapeMismatch
from irload.ops.ports import require_integer, require_rank

ONE = Dim(1, 1)


class Squeeze(Op, since=1):
    """Drops the axes in `axes`, by default all axes of length 1.

    Specification: Squeeze-1. Axes may be negative and repeat. As in OpenVINO, an axis of another length is kept, and a
    scalar may be squeezed along axis 0.
    """

    widens = False

    @property
    def skips(self) -> bool:
        """True if the specification keeps listed axes of other lengths, so that the rank depends on the dims."""
        return self.attributes.get("allow_axis_skip", False)

    def infer(self, data: TensorType, axes: TensorType | None = None) -> TensorType:
        if axes is not None:
            require_integer(axes=axes)
            require_rank("axes", axes, 0, 1)
        return TensorType(data.element, self._squeezed(data.shape, axes))

    def _squeezed(self, shape: Shape, axes: TensorType | None) -> Shape:
        if shape.rank is None:
            return shape
        if axes is not None and axes.ints is None:
            one_axis = axes.shape.is_static and axes.shape.size.size == 1
            return self.squeezed_somewhere(shape) if one_axis and shape.rank else Shape.unranked()
        named = set(normalize_axes(() if axes is None else axes.ints or (), shape.rank, scalar_axis=True))
        unsure = any(not d.is_static and d.contains(1) for k, d in enumerate(shape) if k in named or not named)
        if unsure and (self.skips or not named):
            return Shape.unranked()
        return Shape(*(d for k, d in enumerate(shape) if not d.contains(1) or (named and k not in named)))

    def squeezed_somewhere(self, shape: Shape) -> Shape:
        """The shape after squeezing one unknown axis."""
        return Shape.any(len(shape) - 1) if any(d.contains(1) for d in shape) else shape

    def compute(self, data: Array, axes: Array | None = None) -> Array:
        named = set(normalize_axes(() if axes is None else axes.ravel().tolist(), data.ndim, scalar_axis=True))
        drop = tuple(k for k, n in enumerate(data.shape) if n == 1 and (k in named or not named))
        return data.squeeze(drop)

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)


class Squeeze15(Squeeze, type="Squeeze", since=15):
    """Squeeze with an option to keep listed axes of other lengths (Squeeze-15)."""

    allow_axis_skip = attr.boolean(default=False)

    def squeezed_somewhere(self, shape: Shape) -> Shape:
        return Shape.unranked() if any(d.contains(1) for d in shape) else shape


class Unsqueeze(Op, since=1):
    """Inserts axes of length 1 at the positions `axes` of the output.

    Specification: Unsqueeze-1. Negative axes count from the end of the output.
    """

    widens = False

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        require_integer(axes=axes)
        require_rank("axes", axes, 0, 1)
        if axes.ints is None or data.rank is None:
            one_axis = axes.shape == Shape(1) and data.rank is not None
            return TensorType(data.element, Shape.any(data.rank + 1 if one_axis and data.rank is not None else None))
        dims = list(data.shape)
        for axis in self.inserted_axes(axes.ints, data.rank):
            dims.insert(axis, ONE)
        return TensorType(data.element, Shape(*dims))

    @staticmethod
    def inserted_axes(axes: Sequence[int], rank: int) -> list[int]:
        """The positions of the inserted axes, in ascending order. Raises ShapeMismatch."""
        if not axes:
            raise ShapeMismatch("axes must name at least one axis")
        unique = sorted(set(axes))
        return sorted(set(normalize_axes(unique, rank + len(unique))))

    def compute(self, data: Array, axes: Array) -> Array:
        shape = list(data.shape)
        for axis in self.inserted_axes(axes.ravel().tolist(), data.ndim):
            shape.insert(axis, 1)
        return data.reshape(shape)

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)
