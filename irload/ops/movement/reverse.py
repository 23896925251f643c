"""Reverse, ReverseSequence and Roll: reordering along axes."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, boolean
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import Dim, normalize_axes, normalize_axis
from irload.core.tensor import Array, TensorType, length_of
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.ports import require_element, require_integer, require_rank


class Reverse(Op, since=1, missing_in=range(2, 18)):
    """Reverses axes: the ones listed in `axes` (mode index), or the ones that are true in it (mode mask).

    Specification: Reverse-1, in opset1 only. Negative axes, which it excludes, count from the end, with a remark:
    OpenVINO accepts them, and openvino_tokenizers writes them.
    """

    mode = attr.choice("index", "mask", default="index", spec_required=True)

    widens = False

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        require_rank("axes", axes, 1)
        if self.mode == "mask":
            require_element("axes", axes, boolean)
            if data.rank is not None and length_of(axes).meet(Dim(data.rank, data.rank)) is None:
                raise ShapeMismatch(f"axes must have one value for each of {data.rank} axes, found {axes.shape}")
        else:
            require_integer(axes=axes)
            if axes.ints is not None and data.rank is not None:
                normalize_axes(axes.ints, data.rank)
                if min(axes.ints, default=0) < 0:
                    remark(f"axes must not be negative by the specification, found {list(axes.ints)}")
        return data.without_value()

    def compute(self, data: Array, axes: Array) -> Array:
        chosen = np.flatnonzero(axes).tolist() if self.mode == "mask" else normalize_axes(axes.tolist(), data.ndim)
        return np.flip(data, tuple(set(chosen)))


class ReverseSequence(Op, since=1):
    """Reverses the first `seq_lengths[b]` elements along `seq_axis`, for each b along `batch_axis`.

    Specification: ReverseSequence-1. Lengths must be in 1..dim of the sequence axis (0, which is accepted too, is a
    no-op).
    """

    batch_axis = attr.integer(default=0)
    seq_axis = attr.integer(default=1)

    widens = False

    def infer(self, data: TensorType, seq_lengths: TensorType) -> TensorType:
        require_numeric("seq_lengths", seq_lengths.element)
        require_rank("seq_lengths", seq_lengths, 1)
        if data.rank is None:
            return data.without_value()
        if data.rank < 2:
            raise ShapeMismatch(f"data must be of rank 2 or higher, found {data.shape}")
        batch = normalize_axis(self.batch_axis, data.rank, "batch_axis")
        normalize_axis(self.seq_axis, data.rank, "seq_axis")
        if seq_lengths.rank is None:
            return data.without_value()
        met = data.shape[batch].meet(seq_lengths.shape[0])
        if met is None:
            raise ShapeMismatch(
                f"seq_lengths must have {data.shape[batch]} values, one per batch, found {seq_lengths.shape}"
            )
        return TensorType(data.element, data.shape.with_dim(batch, met))

    def compute(self, data: Array, seq_lengths: Array) -> Array:
        batch, seq = self.batch_axis % data.ndim, self.seq_axis % data.ndim
        size = data.shape[seq]
        lengths = seq_lengths.astype(np.int64)
        if np.any((lengths < 0) | (lengths > size)):
            raise ExecutionError(f"seq_lengths must be in 0..{size}, found {lengths.tolist()}")
        shape = [1] * data.ndim
        shape[batch] = -1
        lengths = lengths.reshape(shape)
        shape[batch], shape[seq] = 1, -1
        at = np.arange(size).reshape(shape)
        return np.take_along_axis(data, np.where(at < lengths, lengths - 1 - at, at), seq)


class Roll(Op, since=7):
    """Shifts elements along `axes` cyclically.

    Specification: Roll-7. One shift for all axes, or one per axis; shifts of a repeated axis add up. A scalar may be
    shifted along axis 0, as in OpenVINO.
    """

    widens = False

    def infer(self, data: TensorType, shift: TensorType, axes: TensorType) -> TensorType:
        require_element("shift", shift, *INDEX)
        require_element("axes", axes, *INDEX)
        require_rank("shift", shift, 0, 1)
        require_rank("axes", axes, 0, 1)
        if shift.rank != 0 and shift.shape.meet(axes.shape) is None:
            raise ShapeMismatch(
                f"shift must be a scalar or have one value per axis, found {shift.shape} for {axes.shape}"
            )
        if axes.ints is not None and data.rank is not None:
            normalize_axes(axes.ints, data.rank, scalar_axis=True)
        return data.without_value()

    def compute(self, data: Array, shift: Array, axes: Array) -> Array:
        along = axes.reshape(-1).tolist()
        shifts = np.broadcast_to(shift.reshape(-1), len(along)).tolist()
        return np.roll(np.atleast_1d(data), shifts, along).reshape(data.shape)
