"""Replaces the products of experts, whose sizes depend on values, by single nodes of known shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op, Signature
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.experts import ExpertProduct, expert_product
from irload.graph import Node, Output


class ExpertMatMul(Op):
    """The rows of the data, sorted by expert, times the weights of each expert. It exists only in plans."""

    type = "ExpertMatMul"
    namespace = "opset"
    folds = False

    transpose = attr.boolean(default=False)

    def infer(self, data: TensorType, counts: TensorType, *weights: TensorType) -> TensorType:
        return TensorType(data.element, Shape(data.shape.dims[0], weights[0].shape.dims[0 if self.transpose else 1]))

    def compute(self, data: Array, counts: Array, *weights: Array) -> Array:
        parts = np.split(data, np.cumsum(counts)[:-1])
        return np.concatenate([x @ (w.T if self.transpose else w) for x, w in zip(parts, weights, strict=True)])


ExpertMatMul.signature = Signature.of(ExpertMatMul)


def with_experts(
    nodes: Sequence[Node], results: Iterable[Output], types: Mapping[Output, TensorType], known: dict[Node, Node]
) -> Sequence[Node]:
    """Return the nodes with each expert product as one node. The same sequence if there is none.

    `results`: values that are read elsewhere. `known`: the new nodes by the Concat that they replace, reused and added
    to, because schedules with the same nodes share plans.
    """
    products = {n: p for n in nodes if n.type == "Concat" and (p := expert_product(n, types)) is not None}
    if not products:
        return nodes
    merged = [_node(n, products[n], known) if n in products else n for n in nodes]
    uses = Counter(i for node in merged for i in node.inputs)
    uses.update(results)
    kept: list[Node] = []
    for node in reversed(merged):  # the operands of products may become unused, too
        if node.type == "Assign" or any(uses[o] for o in node.outputs):
            kept.append(node)
        else:
            uses.subtract(node.inputs)
    return kept[::-1]


def _node(concat: Node, product: ExpertProduct, known: dict[Node, Node]) -> Node:
    """Return the node that replaces a Concat. It has the same outputs."""
    inputs = [product.data, product.counts, *product.weights]
    node = known.get(concat)
    if node is None or node.inputs != inputs:
        op = ExpertMatMul(transpose=product.transpose)
        node = known[concat] = Node(concat.id, concat.name, op, inputs, list(concat.outputs), concat.line)
    return node
