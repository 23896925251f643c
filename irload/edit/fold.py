"""Constant folding: layers whose outputs are known become constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from irload.core.op import evaluate
from irload.core.tensor import Array, TensorType
from irload.edit.draft import Draft
from irload.edit.layers import Layers
from irload.errors import ExecutionError
from irload.graph import Node, Output, UnknownOp
from irload.model import Model

__all__ = ["fold"]

SMALL = 1 << 16
"""Maximum number of bytes by which a folded constant may exceed the constants from which it is computed."""


def fold(model: Model) -> Model:
    """The model with constants in place of layers whose outputs do not depend on its inputs, also in bodies.

    Shape computations fold if the shapes that they read are static, so `fold` is most effective after `reshape`.
    Compressed and quantized weights are not folded: a Convert from fewer bits, a FakeQuantize of a constant, and the
    layers after them. Neither are results that exceed the constants from which they are computed by more than 64 KB.
    Raises the errors of reading weights.
    """
    draft = Draft(model)
    for layers in draft.all_layers():
        folding = _Folding(layers)
        for node in list(layers.graph.nodes):
            folding.visit(node)
        layers.rewire(folding.replaced)
    return draft.finished()


class _Folding:
    """`replaced`: output → its constant; `stored`: the layers that decompress or quantize weights."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.replaced: dict[Output, Output] = {}
        self.stored: set[Node] = set()

    def visit(self, node: Node) -> None:
        """Replace the outputs of a node if they are known. The nodes before it have been visited."""
        if node.type == "Const" or isinstance(node.op, UnknownOp) or not node.op.folds or not node.outputs:
            return
        if node in self.layers.constant_nodes and (_restores(node) or any(i.node in self.stored for i in node.inputs)):
            self.stored.add(node)
            return
        values = self._values(node)
        if values is None or not node.reachable:
            return
        for output, value in zip(node.outputs, values, strict=True):
            constant = self.layers.constant_node(value, node.name, output.type.element)
            constant.name = node.name if len(node.outputs) == 1 else f"{node.name}.{output.index}"
            constant.outputs[0].names, output.names = output.names, frozenset()
            self.replaced[output] = constant.outputs[0]

    def _values(self, node: Node) -> Sequence[Array] | None:
        """The outputs of a node: by inference, otherwise computed from constants; None if they are unknown."""
        types = [o.type for o in node.outputs]
        if not all(t.is_static for t in types):
            return None
        inferred = [t.value for t in types if t.value is not None]
        if len(inferred) == len(types):
            return inferred
        if node not in self.layers.constant_nodes or node.op.signature.compute_context:
            return None
        sources = [self.replaced.get(i, i) for i in node.inputs]
        room = sum(_bytes(i.type) for i in sources) + SMALL
        if any(i.node.type != "Const" for i in sources) or sum(map(_bytes, types)) > room:
            return None
        try:
            return evaluate(node.op, [cast(Array, i.node.op.compute()) for i in sources], types)
        except ExecutionError:
            return None  # it fails at run time as well, if it is evaluated


def _restores(node: Node) -> bool:
    """True for a layer that restores weights from fewer bits, or quantizes them."""
    if node.type == "Convert":
        return node.outputs[0].type.element.bits > node.inputs[0].type.element.bits
    return node.type in ("FakeQuantize", "FakeConvert")


def _bytes(tensor: TensorType) -> int:
    return tensor.element.bytes_for(tensor.shape.size.lo)
