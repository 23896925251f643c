"""The weights of a model: constant operands of products, with the axes that share a scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from irload.core import element as et
from irload.graph import Graph, Node, Output

__all__ = ["WeightConstant", "weights_of"]

FLOATS = (et.f32, et.f16, et.bf16)


@dataclass(frozen=True, slots=True, eq=False)
class WeightConstant:
    """A constant of floats that a layer multiplies by.

    `output`: the tensor that layers read: of the constant, or of the Convert that restores it from 16 bits. `axes`:
    the axes that share a scale; for a matrix product the axis of the sum. `readers`: the layers that multiply by it.
    """

    constant: Node
    output: Output
    axes: tuple[int, ...]
    readers: list[Node]

    @property
    def kinds(self) -> set[str]:
        """The types of the layers."""
        return {n.type for n in self.readers}


def _matmul(node: Node, port: int) -> tuple[int, ...]:
    """The axis of the sum."""
    rank = node.inputs[port].type.rank or 0
    turned = node.op.attributes["transpose_b" if port else "transpose_a"]
    return ((rank - 1) if turned == bool(port) else (rank - 2),)


def _all_but(*channels: int) -> Callable[[Node, int], tuple[int, ...]]:
    """All axes except output channels and groups."""

    def axes(node: Node, port: int) -> tuple[int, ...]:
        return tuple(k for k in range(node.inputs[port].type.rank or 0) if k not in channels)

    return axes


_AXES: dict[str, tuple[tuple[int, ...], Callable[[Node, int], tuple[int, ...]]]] = {
    "MatMul": ((1, 0), _matmul),
    "Gather": ((0,), _all_but(0)),
    "Convolution": ((1,), _all_but(0)),
    "GroupConvolution": ((1,), _all_but(0, 1)),
    "ConvolutionBackpropData": ((1,), _all_but(1)),
    "GroupConvolutionBackpropData": ((1,), _all_but(0, 2)),
}
"""By type of layer: the ports that may have weights, and their axes that share a scale."""


def weights_of(graph: Graph) -> list[WeightConstant]:
    """The weights of a graph in the order of the layers, each once, without compressed weights."""
    weights: dict[Output, WeightConstant] = {}
    for node in graph.nodes:
        for port, constant in _constants(node):
            output = node.inputs[port]
            if output not in weights:
                weights[output] = WeightConstant(constant, output, _AXES[node.type][1](node, port), [])
            weights[output].readers.append(node)
    return list(weights.values())


def _constants(node: Node) -> Iterator[tuple[int, Node]]:
    """The ports of a layer that have weights, with their constants."""
    for port in _AXES[node.type][0] if node.type in _AXES and node.reachable else ():
        source = node.inputs[port].node
        if source.type == "Convert":
            source = source.inputs[0].node
        output = source.outputs[0] if source.type == "Const" else None
        if output is not None and output.type.element in FLOATS and len(output.type.shape) >= 2:
            yield port, source
