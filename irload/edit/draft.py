"""Draft: a private copy of a model that an edit changes and returns as a new model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np

from irload.core.element import ElementType, element_of_dtype
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.graph import Graph, Node, Output, Port, UnknownOp, constant_nodes, mark_reachable, topological
from irload.inference import Inference
from irload.model import Model, infer
from irload.ops.registry import resolve
from irload.write.copies import copied
from irload.write.upgrade import as_v11

__all__ = ["Draft"]


class Draft:
    """A private copy of a model, as IR v11. `model` is the copy; `finished` returns it as an independent model.

    Ports and names of the original select the same ports here.
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
        self._unused = {n for n in self.model.nodes if not n.reachable}
        self._ids = count(1 + max((n.id for n in self.model.nodes), default=0))
        self._names = {n.name for n in self.model.nodes}
        constants = [n.op.attributes for g in self.model.walk() for n in g.nodes if _is_constant(n)]
        self._end = max((c["offset"] + c["size"] for c in constants), default=0)

    def input(self, key: str | int | Port) -> Port:
        """An input, by a key or port of the original. Raises InputInvalid."""
        index = self._original.input(key).index
        return next(p for p in self.model.inputs if p.index == index)

    def output(self, key: str | int | Port) -> Port:
        """An output, by a key or port of the original. Raises InputInvalid."""
        index = self._original.output(key).index
        return next(p for p in self.model.outputs if p.index == index)

    @cached_property
    def constant_nodes(self) -> set[Node]:
        """The nodes of the original that depend on constants alone."""
        return constant_nodes(self.model.nodes)

    def keep(self, nodes: Collection[Node]) -> None:
        """Remove all layers but these, except from the lists of inputs, outputs and Assigns."""
        self.model.nodes = [n for n in self.model.nodes if n in nodes]
        self._names = {n.name for n in self.model.nodes}

    def name(self, wanted: str) -> str:
        """The name for a new layer: `wanted`, with a number if a layer has that name."""
        name = _free(wanted, self._names)
        self._names.add(name)
        return name

    def add(self, type: str, inputs: Sequence[Output], name: str, opset: str = "opset1", **attributes: Any) -> Node:
        """Add a layer with an inferred type. Raises the errors of its inference, at the layer."""
        node = Node(next(self._ids), self.name(name), resolve(type, opset)[0](**attributes), list(inputs))
        if type != "Result":
            types = Inference(limits=self.model.limits).outputs(node, [i.type for i in inputs])
            node.outputs = [Output(node, k, type=t) for k, t in enumerate(types)]
        self.model.nodes.append(node)
        return node

    def constant(self, values: Any, name: str, element: ElementType | None = None) -> Output:
        """Add a Const. `element`: the type of the values if it is not that of their dtype."""
        return self.constant_node(np.asarray(values), name, element).outputs[0]

    def constant_node(self, values: Array, name: str, element: ElementType | None = None) -> Node:
        """Add a Const, with a separate range of bytes after all other constants."""
        element = element or element_of_dtype(values.dtype)
        size = element.bytes_for(values.size)
        offset, self._end = self._end, self._end + size
        return self.add(
            "Const",
            (),
            name,
            element_type=element,
            shape=Shape(*values.shape),
            offset=offset,
            size=size,
            data=partial(np.asarray, values),
        )

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
        taken = {name for n in self.model.nodes for o in n.outputs for name in o.names}
        return _free(wanted, taken)

    def rewire(self, moved: Mapping[Output, Output], *, graph: Graph | None = None, but: Collection[Node] = ()) -> None:
        """Connect the consumers of outputs to others, except for the nodes `but`."""
        for node in (graph or self.model).nodes:
            if node not in but and any(i in moved for i in node.inputs):
                node.inputs = [moved.get(i, i) for i in node.inputs]

    def finished(self, infer_with: Callable[[Model], Model] = infer) -> Model:
        """Order the layers, remove layers that the edit has disconnected, infer, and return the model.

        Raises the error of the first layer that is invalid.
        """
        model = self.model
        _sort(model)
        kept: dict[Node, None] = {}
        for node in model.nodes:
            if (node.reachable or node in self._unused) and all(i.node in kept for i in node.inputs):
                kept[node] = None
        model.nodes = list(kept)
        for graph in model.walk():
            for node in graph.nodes:
                node.declared_inputs = []
                for output in node.outputs if not isinstance(node.op, UnknownOp) else ():
                    output.declared = None
        model = infer_with(model)
        for graph in model.walk():
            for _, _, body in graph.subgraphs():
                _declare_parameters(body)
        return model


def _free(wanted: str, taken: Collection[str]) -> str:
    """A name that is not taken: `wanted`, else with a number."""
    return next(name for k in count() if (name := f"{wanted}_{k}" if k else wanted) not in taken)


def _is_constant(node: Node) -> bool:
    return node.type == "Const" and not isinstance(node.op, UnknownOp)


def _declare_parameters(body: Graph) -> None:
    """Declare the inferred shapes of the Parameters of a body where the edit has changed them."""
    for node in body.parameters:
        inferred, attributes = node.outputs[0].type.shape, node.op.attributes
        if not isinstance(node.op, UnknownOp) and not attributes["shape"].contains(inferred):
            node.op = type(node.op)(**(attributes | {"shape": inferred}))


def _sort(model: Model) -> None:
    """Order the layers topologically: ReadValues before Assigns, otherwise in the present order."""
    nodes = [*model.parameters, *(n for n in model.nodes if n.type not in ("Parameter", "Result", "Assign"))]
    model.nodes = topological([*nodes, *model.sinks, *model.results])
    mark_reachable(model)
