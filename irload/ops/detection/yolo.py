"""The last layers of YOLO: RegionYolo and ReorgYolo."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import Dim, Shape, normalize_axis
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.detection.ports import require_floats, require_shape


class RegionYolo(Op, since=1):
    """Activations of a YOLO head: sigmoid of x, y and objectness, and sigmoid or softmax of the classes.

    Specification: RegionYolo-1. `data` is [batches, regions · (coords + 1 + classes), height, width]. With `do_softmax`
    (YOLO v2) there are `num` regions, the classes use softmax, and the axes `axis`..`end_axis` are flattened; without
    it (v3) there is one region per value of `mask`, and the classes use sigmoid. `anchors` has no effect.

    More channels violate the specification. As in OpenVINO, the regions of all batches are then the first elements of
    `data`, with a remark; YOLO v2 copies the elements behind them, v3 omits them.
    """

    anchors = attr.numbers(default=())
    axis = attr.integer(default=0, spec_required=True)
    coords = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    classes = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    end_axis = attr.integer(default=0, spec_required=True)
    num = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    do_softmax = attr.boolean(default=False)
    mask = attr.integers(default=())

    @property
    def regions(self) -> int:
        """The boxes per cell."""
        return self.num if self.do_softmax else len(self.mask)

    def infer(self, data: TensorType) -> TensorType:
        require_floats(data=data)
        require_shape("data", data, None, None, None, None)
        if data.rank is None:
            return data.without_value()
        channels, found = self.regions * (self.coords + 1 + self.classes), data.shape[1]
        if not found.contains(channels):
            wrong = (
                f"data must have {channels} channels, {self.regions} regions of {self.coords} coordinates, "
                f"1 objectness and {self.classes} classes, found {data.shape}"
            )
            if found.lo < channels:
                raise ShapeMismatch(wrong)
            remark(f"{wrong}; OpenVINO reads the regions of all batches one after another")
        if not self.do_softmax:
            return TensorType(data.element, data.shape.with_dim(1, channels))
        axis, end = normalize_axis(self.axis, 4), normalize_axis(self.end_axis, 4, "end_axis")
        merged = data.shape[axis]
        for dim in data.shape[axis + 1 : end + 1]:
            merged = merged * dim
        return TensorType(data.element, Shape(*data.shape[:axis], merged, *data.shape[max(axis, end) + 1 :]))

    def compute(self, data: Array) -> Array:
        batches, _, height, width = data.shape
        shape = (batches, self.regions, self.coords + 1 + self.classes, height, width)
        elements = data.flatten()
        result = elements[: prod(shape)].reshape(shape)
        positions, scores = result[:, :, :2], result[:, :, self.coords :]
        if self.do_softmax:
            scores, classes = scores[:, :, :1], scores[:, :, 1:]
            if classes.size:
                exponents = np.exp(classes - classes.max(2, keepdims=True))
                classes[...] = exponents / exponents.sum(2, keepdims=True)
        for part in (positions, scores):
            part[...] = 1 / (1 + np.exp(-part))
        if not self.do_softmax:
            return result.reshape(batches, -1, height, width)
        axis, end = normalize_axis(self.axis, 4), normalize_axis(self.end_axis, 4)
        return elements.reshape(*data.shape[:axis], -1, *data.shape[max(axis, end) + 1 :])


class ReorgYolo(Op, since=2, also_in=(1,)):
    """Moves blocks of `stride` × `stride` cells into the channels: [n, c, h, w] to [n, c·s², h/s, w/s].

    Specification: ReorgYolo-1, in the order of the original YOLO v2: the input is read as [n, c/s², h·s, w·s], so `c`
    must be a multiple of s², and `h` and `w` of s.
    """

    stride = attr.integers(rule=attr.positive)

    widens = False

    def validate(self) -> None:
        if len(self.stride) != 1:
            raise AttributeInvalid(f"attribute stride must be one value, found {len(self.stride)}")

    def infer(self, data: TensorType) -> TensorType:
        require_shape("data", data, None, None, None, None)
        if data.rank is None:
            return data.without_value()
        stride = self.stride[0]
        batches, channels, height, width = data.shape
        if channels.is_static and (channels.lo < stride**2 or channels.lo % stride**2):
            raise ShapeMismatch(f"data must have a multiple of {stride**2} channels, found {data.shape}")
        sizes = [self._shrunk(dim, data.shape) for dim in (height, width)]
        return TensorType(data.element, Shape(batches, channels * Dim.of(stride**2), *sizes))

    def _shrunk(self, dim: Dim, shape: Shape) -> Dim:
        stride = self.stride[0]
        low, high = -(-dim.lo // stride), None if dim.hi is None else dim.hi // stride
        if high is not None and high < low:
            raise ShapeMismatch(f"height and width of data must be multiples of {stride}, found {shape}")
        return Dim(low, high)

    def compute(self, data: Array) -> Array:
        n, c, h, w = data.shape
        s = self.stride[0]
        blocks = data.reshape(n, c // s**2, h, s, w, s).transpose(0, 3, 5, 1, 2, 4)
        return blocks.reshape(n, c * s**2, h // s, w // s)
