"""Broadcast and Tile: repetition of tensors along axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, Bounds, TensorType, length_of
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.ports import require_integer, require_rank


class Broadcast(Op, since=3):
    """Broadcasts `data` to `target_shape`.

    Specification: Broadcast-3. Mode `numpy` aligns the axes at the end and repeats dims of 1; `explicit` maps axis k of
    the data to `axes_mapping[k]`, which must be increasing; `bidirectional` also broadcasts the target to the data.
    """

    mode = attr.choice("numpy", "explicit", "bidirectional", default="numpy")

    widens = False

    def infer(self, data: TensorType, target_shape: TensorType, axes_mapping: TensorType | None = None) -> TensorType:
        require_integer(target_shape=target_shape)
        require_rank("target_shape", target_shape, 1)
        if target_shape.ints is not None and any(n < 0 for n in target_shape.ints):
            raise ShapeMismatch(f"target_shape must not be negative, found {list(target_shape.ints)}")
        target = self._target(target_shape)
        if self.is_explicit(axes_mapping):
            return TensorType(data.element, self._explicit(data.shape, target, axes_mapping))
        self.check_mapping_absent(axes_mapping)
        if self.mode == "bidirectional":
            return TensorType(data.element, target.broadcast(data.shape))
        if data.rank is not None and target.rank is not None:
            self._check_numpy(data.shape, target)
        return TensorType(data.element, target)

    def is_explicit(self, axes_mapping: object | None) -> bool:
        """True if axes_mapping applies."""
        return self.mode == "explicit"

    def check_mapping_absent(self, axes_mapping: TensorType | None) -> None:
        """Raise ShapeMismatch for an axes_mapping that the mode does not use."""
        if axes_mapping is not None:
            raise ShapeMismatch(f"axes_mapping is for mode explicit; the mode is {self.mode}")

    @staticmethod
    def _target(target_shape: TensorType) -> Shape:
        if target_shape.dims is not None:
            return Shape(*target_shape.dims)
        length = length_of(target_shape)
        return Shape.any(length.size) if length.is_static else Shape.unranked()

    @staticmethod
    def _check_numpy(data: Shape, target: Shape) -> None:
        if len(data) > len(target):
            raise ShapeMismatch(f"target_shape {target} has fewer axes than data {data}")
        for k, (dim, other) in enumerate(zip(data, target[len(target) - len(data) :], strict=True)):
            if dim.is_static and other.is_static and dim not in (Dim(1, 1), other):
                raise ShapeMismatch(f"data {data} does not broadcast to {target}: {dim} to {other} on axis {k} of data")

    def _explicit(self, data: Shape, target: Shape, axes_mapping: TensorType | None) -> Shape:
        if axes_mapping is None:
            raise ShapeMismatch("mode explicit requires the input axes_mapping")
        require_integer(axes_mapping=axes_mapping)
        require_rank("axes_mapping", axes_mapping, 1)
        count, mapping = length_of(axes_mapping), axes_mapping.ints
        if (
            data.rank is not None
            and count.meet(Dim(data.rank, data.rank)) is None
            and (data.rank or count != Dim(1, 1))
        ):
            raise ShapeMismatch(f"axes_mapping must have one value for each axis of data {data}, found {count}")
        if mapping is None or target.rank is None:
            return target
        if list(mapping) != sorted(set(mapping)) or any(not 0 <= axis < target.rank for axis in mapping):
            raise ShapeMismatch(f"axes_mapping must be increasing within 0..{target.rank - 1}, found {list(mapping)}")
        for axis, dim in zip(mapping, data if data.rank else (), strict=False):
            if not dim.contains(1) and dim.meet(target[axis]) is None:
                raise ShapeMismatch(
                    f"data {data} does not fit {target} at axes {list(mapping)}: {dim} to {target[axis]}"
                )
        return target

    def compute(self, data: Array, target_shape: Array, axes_mapping: Array | None = None) -> Array:
        target = tuple(target_shape.tolist())
        if self.is_explicit(axes_mapping) and axes_mapping is not None and data.ndim:
            aligned = [1] * len(target)
            for axis, size in zip(axes_mapping.tolist(), data.shape, strict=True):
                aligned[axis] = size
            data = data.reshape(aligned)
        if self.mode == "bidirectional":
            target = np.broadcast_shapes(target, data.shape)
        return np.broadcast_to(data, target)

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)


class Broadcast1(Broadcast, type="Broadcast", since=1):
    """Broadcast without the mode bidirectional (Broadcast-1). An axes_mapping that the mode does not use is ignored.

    Without the attribute, the mode is `numpy` by the specification; in OpenVINO and irload it is `explicit` if there
    is an axes_mapping.

    Mode `pdpd`, an extension of OpenVINO, aligns data with the target at axis `mode.auto_broadcast_axis` (−1: at the
    end); all following axes must fit, and a target dim of 1 keeps the size of the data.
    """

    # OpenVINO writes "none" if the attribute is missing.
    mode = attr.choice("numpy", "explicit", "none", "pdpd", default="none")
    first_axis = attr.integer(default=0, rule=attr.advised(attr.at_least(-1)), name="mode.auto_broadcast_axis")

    def validate(self) -> None:
        if self.mode == "pdpd" and self.first_axis < -1:
            raise AttributeInvalid(f"attribute mode.auto_broadcast_axis must be at least -1, found {self.first_axis}")

    def is_explicit(self, axes_mapping: object | None) -> bool:
        return self.mode == "explicit" or (self.mode == "none" and axes_mapping is not None)

    def check_mapping_absent(self, axes_mapping: TensorType | None) -> None:
        return

    def infer(self, data: TensorType, target_shape: TensorType, axes_mapping: TensorType | None = None) -> TensorType:
        if self.mode != "pdpd":
            return super().infer(data, target_shape, axes_mapping)
        if axes_mapping is None:
            raise ShapeMismatch("mode pdpd requires the input axes_mapping, although it has no effect")
        require_integer(target_shape=target_shape)
        require_rank("target_shape", target_shape, 1)
        target = self._target(target_shape)
        if data.rank is None or target_shape.dims is None:
            return TensorType(data.element, Shape.any(target.rank))
        first = len(target) - data.rank if self.first_axis < 0 else self.first_axis
        if first < 0 or first + data.rank != len(target):
            raise ShapeMismatch(f"data {data.shape} does not fill target_shape {target} from axis {first} on")
        return TensorType(data.element, target.broadcast(data.shape))

    def compute(self, data: Array, target_shape: Array, axes_mapping: Array | None = None) -> Array:
        if self.mode != "pdpd":
            return super().compute(data, target_shape, axes_mapping)
        return np.broadcast_to(data, np.broadcast_shapes(tuple(target_shape.tolist()), data.shape))


class Tile(Op, since=1):
    """Repeats `data` `repeats[k]` times along axis k; the shorter of shape and repeats is extended with leading ones.

    Specification: Tile-1.
    """

    widens = False

    def infer(self, data: TensorType, repeats: TensorType) -> TensorType:
        require_integer(repeats=repeats)
        require_rank("repeats", repeats, 1)
        if data.rank is None:
            return TensorType(data.element, Shape.unranked())
        times = repeats.dims
        if times is None:
            count = length_of(repeats)
            rank = max(data.rank, count.size) if count.is_static else None
            return TensorType(data.element, Shape.any(rank))
        ones = (Dim(1, 1),) * abs(data.rank - len(times))
        dims = data.shape.dims if data.rank >= len(times) else ones + data.shape.dims
        times = times if len(times) >= data.rank else ones + times
        return TensorType(data.element, Shape(*(d * n for d, n in zip(dims, times, strict=True))))

    def compute(self, data: Array, repeats: Array) -> Array:
        return np.tile(data, np.maximum(repeats, 0).tolist())

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)
