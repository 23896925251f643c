"""Chain: layers inserted between a tensor and the layers that read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core.tensor import TensorType
from irload.edit.layers import Layers
from irload.graph import Output, Port

__all__ = ["Chain"]


class Chain:
    """Layers inserted after a tensor, named after its layer. `end` is the output of the last one.

    `close` connects the layers that read the tensor to `end`.
    """

    def __init__(self, layers: Layers, start: Output) -> None:
        self.layers = layers
        self.start = self.end = start
        self._readers = [n for n in layers.graph.nodes if start in n.inputs]

    @staticmethod
    def at_input(layers: Layers, port: Port, tensor: TensorType) -> Chain:
        """A chain after an input that gets another type and shape."""
        node = port.node
        node.op = type(node.op)(**(node.op.attributes | {"shape": tensor.shape, "element_type": tensor.element}))
        port.output.type = tensor
        return Chain(layers, port.output)

    def add(self, type: str, suffix: str, *operands: Any, opset: str = "opset1", **attributes: Any) -> None:
        """Add a layer whose other inputs are constants."""
        name = f"{self.start.node.name}/{suffix}"
        constants = [self.layers.constant(o, f"{name}/{k}") for k, o in enumerate(operands, 1)]
        self.end = self.layers.add(type, [self.end, *constants], name, opset, **attributes).outputs[0]

    def join(self, type: str, suffix: str, operand: Output) -> None:
        """Add a layer whose second input is a tensor."""
        self.end = self.layers.add(type, [self.end, operand], f"{self.start.node.name}/{suffix}").outputs[0]

    def transpose(self, order: Sequence[int]) -> None:
        """Add a Transpose, unless the order is the identity."""
        if list(order) != sorted(order):
            self.add("Transpose", "transpose", np.array(order, np.int64))

    def close(self) -> Output:
        """Connect the readers of the start to the end. Returns the end."""
        for node in self._readers:
            node.inputs = [self.end if i is self.start else i for i in node.inputs]
        return self.end
