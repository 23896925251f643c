"""Draft: a private copy of a model that an edit changes and returns as a new model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from irload.core.tensor import TensorType
from irload.edit.layers import Layers, free_name
from irload.graph import Graph, Node, Output, Port, UnknownOp
from irload.model import Model, infer
from irload.write.copies import copied
from irload.write.upgrade import as_v11

__all__ = ["Draft"]


class Draft(Layers):
    """A private copy of a model, as IR v11. `model` is the copy; `finished` returns it as an independent model.

    Ports and names of the original select the corresponding ports of the copy.
    """

    def __init__(self, original: Model) -> None:
        self._original = original
        self.model = copied(as_v11(original))[0]
        for graph in self.model.walk():
            for node in graph.nodes:
                node.line = None  # of the original's file
        self.model.file = self.model.weights_file = self.model.digests = None
        self.model.ir_version = 11
        self.model.warnings, self.model.differences, self.model.compared = [], [], []
        constants = [n.op.attributes for g in self.model.walk() for n in g.nodes if _is_constant(n)]
        self._end = max((c["offset"] + c["size"] for c in constants), default=0)
        self._bodies: list[Layers] = []
        super().__init__(self.model, self.model.limits, self._after_all)

    def input(self, key: str | int | Port) -> Port:
        """An input, by a key or port of the original. Raises InputInvalid."""
        index = self._original.input(key).index
        return next(p for p in self.model.inputs if p.index == index)

    def output(self, key: str | int | Port) -> Port:
        """An output, by a key or port of the original. Raises InputInvalid."""
        index = self._original.output(key).index
        return next(p for p in self.model.outputs if p.index == index)

    def all_layers(self) -> Iterator[Layers]:
        """The layers of the outer graph, then of each body to be edited."""
        for graph in list(self.model.walk()):
            if graph is self.model:
                yield self
                continue
            self._bodies.append(Layers(graph, self.model.limits, self._after_all))
            yield self._bodies[-1]

    def parameter(self, tensor: TensorType, name: str, names: Iterable[str]) -> Node:
        """Add an input."""
        node = self.add("Parameter", (), name, shape=tensor.shape, element_type=tensor.element)
        node.outputs[0].names = frozenset(names)
        self.model.parameters.append(node)
        return node

    def result(self, source: Output, name: str) -> Node:
        """Add an output. A tensor without names gets `name`."""
        node = self.add("Result", [source], f"{name}/result")
        if not source.names:
            source.names = frozenset({self.tensor_name(name)})
        self.model.results.append(node)
        return node

    def tensor_name(self, wanted: str) -> str:
        """The name for a tensor: `wanted`, with a number if a tensor has that name."""
        names = {name for n in self.model.nodes for o in n.outputs for name in o.names}
        return free_name(wanted, names)

    def finished(self, infer_with: Callable[[Model], Model] = infer) -> Model:
        """Order the layers, remove layers that the edit has disconnected, infer, and return the model.

        Raises the error of the first layer that is invalid.
        """
        for layers in (self, *self._bodies):
            layers.tidy()
        for graph in self.model.walk():
            for node in graph.nodes:
                node.declared_inputs = []
                for output in node.outputs if not isinstance(node.op, UnknownOp) else ():
                    output.declared = None
        model = infer_with(self.model)
        for graph in model.walk():
            for _, _, body in graph.subgraphs():
                _declare_parameters(body)
        return model

    def _after_all(self, size: int) -> int:
        """Reserve bytes after all constants. Returns their offset."""
        offset, self._end = self._end, self._end + size
        return offset


def _is_constant(node: Node) -> bool:
    return node.type == "Const" and not isinstance(node.op, UnknownOp)


def _declare_parameters(body: Graph) -> None:
    """Declare the inferred shapes of the Parameters of a body where the edit has changed them."""
    for node in body.parameters:
        inferred, attributes = node.outputs[0].type.shape, node.op.attributes
        if not isinstance(node.op, UnknownOp) and not attributes["shape"].contains(inferred):
            node.op = type(node.op)(**(attributes | {"shape": inferred}))
