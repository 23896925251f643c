"""SearchSorted: insertion points in sorted sequences; and the selection of the best regions of interest."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64, merge
from irload.core.op import Op
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.detection.candidates import by_score
from irload.ops.detection.ports import dim_of, require_floats, require_shape


class SearchSorted(Op, since=15):
    """The position on the last axis of `sorted` at which each of `values` can be inserted to preserve the order.

    Specification: SearchSorted-15. Of several positions the first (or, with `right_mode`, the last) is returned.
    `sorted` has the leading dims of `values`, or is one sequence for all of them. The output has the shape of `values`.
    """

    right_mode = attr.boolean(default=False)
    output_type = attr.element_type(default=i64, among=INDEX)

    def infer(self, sorted: TensorType, values: TensorType) -> TensorType:
        merge(sorted.element, values.element)
        return TensorType(self.output_type, self._shape(sorted.shape, values.shape))

    @staticmethod
    def _shape(sequence: Shape, values: Shape) -> Shape:
        if sequence.rank == 0:
            raise ShapeMismatch("sorted must have at least one axis, found a scalar")
        if sequence.rank is None or sequence.rank == 1:
            return values
        if values.rank is None:
            return sequence.with_dim(-1, ANY)
        met = Shape(*sequence[:-1]).meet(Shape(*values[:-1])) if values.rank else None
        if met is None:
            raise ShapeMismatch(f"sorted and values must agree in all dims but the last, found {sequence} and {values}")
        return Shape(*met, values[-1])

    def compute(self, sorted: Array, values: Array) -> Array:
        if sorted.ndim == 1:
            return np.searchsorted(sorted, values, "right" if self.right_mode else "left").astype(
                self.output_type.dtype
            )
        # Bisection of all sequences at once: `low` is the answer when it meets `high`.
        low = np.zeros(values.shape, np.int64)
        high = np.full(values.shape, sorted.shape[-1])
        while np.any(low < high):
            middle = (low + high) // 2
            probe = np.take_along_axis(sorted, np.minimum(middle, sorted.shape[-1] - 1), -1)
            beyond = (probe <= values) if self.right_mode else (probe < values)
            beyond &= low < high
            low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, np.minimum(high, middle))
        return low.astype(self.output_type.dtype)


class ExperimentalDetectronTopKROIs(Op, since=6):
    """The `max_rois` regions of interest of highest probability, in descending order.

    Specification: ExperimentalDetectronTopKROIs-6. Padded with rows of zeros.
    """

    max_rois = attr.integer(default=0, rule=attr.non_negative, spec_required=True)

    def infer(self, input_rois: TensorType, rois_probs: TensorType) -> TensorType:
        element = require_floats(input_rois=input_rois, rois_probs=rois_probs)
        require_shape("input_rois", input_rois, None, 4)
        require_shape("rois_probs", rois_probs, dim_of(input_rois, 0))
        return TensorType(element, Shape(self.max_rois, 4))

    def compute(self, input_rois: Array, rois_probs: Array) -> Array:
        best = input_rois[by_score(rois_probs)[: self.max_rois]]
        return np.concatenate([best, np.zeros((self.max_rois - len(best), 4), best.dtype)])
