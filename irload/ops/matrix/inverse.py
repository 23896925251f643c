"""Inverse: the inverse of square matrices or of their adjoints."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch


class Inverse(Op, since=14):
    """The inverse of each matrix on the last two axes; with `adjoint` the inverse of its transpose, (Aᵀ)⁻¹.

    Specification: Inverse-14. The matrices must be square and invertible: a singular one raises ExecutionError.
    """

    multiplies = True

    adjoint = attr.boolean(default=False)

    def infer(self, x: TensorType) -> TensorType:
        if not (x.element.is_float or x.element.is_dynamic):
            raise TypeMismatch(f"x must be of a floating-point type, found {x.element}")
        if x.rank is not None:
            if x.rank < 2:
                raise ShapeMismatch(f"x must have rank 2 or more, found shape {x.shape}")
            rows, columns = x.shape[-2], x.shape[-1]
            if rows.is_static and columns.is_static and rows != columns:
                raise ShapeMismatch(f"the matrices must be square, found shape {x.shape}")
        return x.without_value()

    def compute(self, x: Array) -> Array:
        inverse = np.linalg.inv(x)
        return np.swapaxes(inverse, -1, -2) if self.adjoint else inverse
