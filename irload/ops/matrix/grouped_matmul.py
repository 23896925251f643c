"""GroupedMatMul: one matrix product per group, as in mixtures of experts."""

from __future__ import annotations

import numpy as np

from irload.core.element import INDEX, merge
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.ports import require_element, require_rank


class GroupedMatMul(Op, since=17):
    """Multiplies each group's rows of `a` by the transposed matrix of its group in `b`.

    - a [G, M, K] and b [G, N, K] give [G, M, N]: every group has M rows, without `offsets`.
    - a [T, K], b [G, N, K] and offsets [G] give [T, N]: group g has the rows offsets[g − 1] to offsets[g], the first
      group the rows from 0. Rows after the last offset are in no group and give 0.
    """

    multiplies = True

    def infer(self, a: TensorType, b: TensorType, offsets: TensorType | None = None) -> TensorType:
        element = merge(a.element, b.element)
        require_numeric("a and b", element)
        if offsets is not None:
            require_element("offsets", offsets, *INDEX)
            require_rank("offsets", offsets, 1)
        if a.rank is None or b.rank is None:
            return TensorType(element, Shape.unranked())
        require_rank("a", a, 2, 3)
        require_rank("b", b, 3)
        groups, columns, inner = b.shape
        _equal("the inner axes", a.shape[-1], inner)
        if a.rank == 3:
            return TensorType(element, Shape(_equal("the groups", a.shape[0], groups), a.shape[1], columns))
        if offsets is None:
            raise ShapeMismatch(f"a of shape {a.shape} needs offsets, which assign its rows to groups")
        if offsets.rank is not None:
            _equal("the groups of b and offsets", groups, offsets.shape[0])
        return TensorType(element, Shape(a.shape[0], columns))

    def compute(self, a: Array, b: Array, offsets: Array | None = None) -> Array:
        if a.ndim == 3 or offsets is None:
            return np.matmul(a, b.swapaxes(-1, -2))
        ends = offsets.astype(np.int64)
        starts = np.append(0, ends[:-1])
        if np.any(starts > ends) or np.any(ends > len(a)):
            raise ExecutionError(f"offsets must rise from 0 to at most {len(a)}, found {offsets[:8].tolist()}")
        result = np.zeros((len(a), b.shape[1]), a.dtype)
        for start, end, matrix in zip(starts.tolist(), ends.tolist(), b, strict=True):
            result[start:end] = a[start:end] @ matrix.T
        return result


def _equal(subject: str, a: Dim, b: Dim) -> Dim:
    met = a.meet(b)
    if met is None:
        raise ShapeMismatch(f"{subject} must have equal lengths, found {a} and {b}")
    return met
