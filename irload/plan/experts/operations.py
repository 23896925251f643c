"""Operations on the rows of experts. They exist only in plans."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import i32
from irload.core.op import Op, Signature
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType


class ExpertOrder(Op):
    """Pairs of a row and an expert, sorted by expert, from the experts [rows, k] of each row.

    Outputs, in i32: the row and the expert of each pair in this order [rows · k], the number of pairs of each expert
    [experts], and the position of each pair in this order [rows, k].
    """

    type = "ExpertOrder"
    namespace = "opset"
    folds = False

    experts = attr.integer()

    def infer(self, chosen: TensorType) -> tuple[TensorType, ...]:
        rows, k = chosen.shape.dims
        shapes = Shape(rows * k), Shape(rows * k), Shape(self.experts), chosen.shape
        return tuple(TensorType(i32, shape) for shape in shapes)

    def compute(self, chosen: Array) -> tuple[Array, ...]:
        order = np.argsort(chosen, axis=None, kind="stable")
        positions = np.empty(chosen.shape, np.int32)
        positions[np.unravel_index(order, chosen.shape)] = np.arange(order.size)
        expert = chosen.reshape(-1)[order]
        counts = np.bincount(expert, minlength=self.experts)
        return (order // chosen.shape[1]).astype(np.int32), expert.astype(np.int32), counts.astype(np.int32), positions


class ExpertMatMul(Op):
    """The rows of the data, sorted by expert, times the weights of each expert."""

    type = "ExpertMatMul"
    namespace = "opset"
    folds = False
    multiplies = True

    transpose = attr.boolean(default=False)

    def infer(self, data: TensorType, counts: TensorType, *weights: TensorType) -> TensorType:
        return TensorType(data.element, Shape(data.shape.dims[0], weights[0].shape.dims[0 if self.transpose else 1]))

    def compute(self, data: Array, counts: Array, *weights: Array) -> Array:
        parts = np.split(data, np.cumsum(counts)[:-1])
        return np.concatenate([x @ (w.T if self.transpose else w) for x, w in zip(parts, weights, strict=True)])


class ExpertSum(Op):
    """The sum of the results of each row's experts, times their weights.

    Inputs: results [rows · k, columns], sorted by expert; the position of each pair [rows, k]; the weight of each
    pair, in any shape of rows · k elements.
    """

    type = "ExpertSum"
    namespace = "opset"
    folds = False

    def infer(self, results: TensorType, positions: TensorType, weights: TensorType) -> TensorType:
        return TensorType(results.element, Shape(positions.shape.dims[0], results.shape.dims[1]))

    def compute(self, results: Array, positions: Array, weights: Array) -> Array:
        return (results[positions] * weights.reshape(*positions.shape, 1)).sum(axis=1)


ExpertOrder.signature = Signature.of(ExpertOrder)
ExpertMatMul.signature = Signature.of(ExpertMatMul)
ExpertSum.signature = Signature.of(ExpertSum)
