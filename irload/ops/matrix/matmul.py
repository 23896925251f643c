"""MatMul: products of matrices, batched by NumPy's broadcasting."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import boolean, merge
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.elementwise import require_numeric


class MatMul(Op, since=1):
    """The matrix product of a and b on the last two axes; preceding axes are batch axes and broadcast.

    A 1-D `a` is one row and a 1-D `b` one column; the transposes do not apply to them, and their added axis is dropped
    from the result, so that two 1-D operands give a scalar. Integer products wrap.

    Specification: MatMul-1. A sum of products of booleans, which it excludes, is true if any product is, with a remark:
    OpenVINO computes it, and PyTorch's outer exports it.
    """

    multiplies = True

    transpose_a = attr.boolean(default=False)
    transpose_b = attr.boolean(default=False)

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element = merge(a.element, b.element)
        if element == boolean:
            remark(
                "a and b must be of a numeric type by the specification, found boolean; sums are true if any product is"
            )
        else:
            require_numeric("a and b", element)
        for name, tensor in (("a", a), ("b", b)):
            if tensor.rank == 0:
                raise ShapeMismatch(f"{name} must have at least one axis, found a scalar")
        if a.rank is None or b.rank is None:
            return TensorType(element, Shape.unranked())
        return TensorType(element, self._product(a.shape, b.shape))

    def _product(self, a: Shape, b: Shape) -> Shape:
        left, right = list(a.dims), list(b.dims)
        if len(left) > 1 and self.transpose_a:
            left[-2:] = left[:-3:-1]
        if len(right) > 1 and self.transpose_b:
            right[-2:] = right[:-3:-1]
        inner, outer = left[-1], right[-2 if len(right) > 1 else -1]
        if inner.is_static and outer.is_static and inner != outer:
            raise ShapeMismatch(f"a of shape {a} has rows of {inner} elements, b of shape {b} columns of {outer}")
        dims = batches(Shape(*left[:-2]), Shape(*right[:-2]))
        dims += left[-2:-1] if len(left) > 1 else []
        dims += right[-1:] if len(right) > 1 else []
        return Shape(*dims)

    def compute(self, a: Array, b: Array) -> Array:
        if self.transpose_a and a.ndim > 1:
            a = a.swapaxes(-1, -2)
        if self.transpose_b and b.ndim > 1:
            b = b.swapaxes(-1, -2)
        return np.asarray(np.matmul(a, b))


def batches(a: Shape, b: Shape) -> list[Dim]:
    """The broadcast of the batch axes. Disjoint intervals pass, as in OpenVINO."""
    rank = max(len(a), len(b))
    ones = (Dim(1, 1),) * rank
    dims: list[Dim] = []
    for k in range(rank):
        x, y = (ones + a.dims)[k - rank], (ones + b.dims)[k - rank]
        dim = x.broadcast(y)
        if dim is None and x.is_static and y.is_static:
            raise ShapeMismatch(f"the batch axes {a} and {b} cannot broadcast: {x} against {y}")
        dims.append(dim or Dim())
    return dims
