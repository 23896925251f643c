"""Matmuls with the weights of experts, which differ, for tests of mixtures of experts."""

from __future__ import annotations

from typing import Any

from irload.core import element as et
from models import ir
from tests.plan.compressed_weights import Weights
from tests.plan.graphs import Net

RANKED: dict[str, Any] = {"mode": "max", "sort": "value", "index_element_type": "i64", "stable": False}
"""The attributes of a TopK that chooses experts."""


class ExpertWeights:
    """The weights of the experts of a network: of an element type, or "computed" from the data.

    `lead`: the leading axis of weights of all experts together.
    """

    def __init__(self, net: Net, data: ir.Ref, element: str, *, transpose: bool, lead: tuple[int, ...] = ()) -> None:
        self._net, self._data, self._element = net, data, element
        self._transpose, self._lead, self._count = transpose, lead, 0

    def product(self, x: ir.Ref, depth: int, columns: int) -> ir.Ref:
        """Rows times new weights."""
        net, transpose = self._net, self._transpose
        self._count += 1
        shape = (*self._lead, *((columns, depth) if transpose else (depth, columns)))
        if self._element == "f32":
            weights = net.weights(*shape)
        elif self._element == "computed":
            weights = net.op("Add", net.weights(*shape), net.op("ReduceMean", self._data, net.constant([0, 1])))
        else:
            element = et.element(self._element)
            groups = 0 if element is et.f16 else 1
            form = Weights(element, columns, depth, groups, scale="f32", transposed=transpose, lead=self._lead)
            weights = form.of(net, self._count)
        return net.op("MatMul", x, weights, transpose_a=False, transpose_b=transpose)
