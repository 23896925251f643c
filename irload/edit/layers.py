"""Layers: one graph of a draft, the outer one or a body, to which an edit adds layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np

from irload.core.element import ElementType, element_of_dtype
from irload.core.shape import Shape
from irload.core.tensor import Array
from irload.graph import Graph, Node, Output, constant_nodes, mark_reachable, topological
from irload.inference import Inference
from irload.ops.registry import resolve
from irload.safety.limits import Limits

__all__ = ["Layers"]


class Layers:
    """The layers of `graph`, with `limits` of their inference.

    `reserve`: returns the offset of a number of bytes after all constants of the model.
    """

    def __init__(self, graph: Graph, limits: Limits, reserve: Callable[[int], int]) -> None:
        self.graph = graph
        self._limits = limits
        self._reserve = reserve
        self._unused = {n for n in graph.nodes if not n.reachable}
        self._ids = count(1 + max((n.id for n in graph.nodes), default=0))
        self._names = {n.name for n in graph.nodes}

    @cached_property
    def constant_nodes(self) -> set[Node]:
        """The nodes of the original that depend on constants alone."""
        return constant_nodes(self.graph.nodes)

    def keep(self, nodes: Collection[Node]) -> None:
        """Remove all other layers from `graph.nodes`. The lists of inputs, outputs and Assigns are unchanged."""
        self.graph.nodes = [n for n in self.graph.nodes if n in nodes]
        self._names = {n.name for n in self.graph.nodes}

    def name(self, wanted: str) -> str:
        """The name for a new layer: `wanted`, with a number if a layer has that name."""
        name = free_name(wanted, self._names)
        self._names.add(name)
        return name

    def add(self, type: str, inputs: Sequence[Output], name: str, opset: str = "opset1", **attributes: Any) -> Node:
        """Add a layer with an inferred type. Raises the errors of its inference, at the layer."""
        node = Node(next(self._ids), self.name(name), resolve(type, opset)[0](**attributes), list(inputs))
        if type != "Result":
            types = Inference(limits=self._limits).outputs(node, [i.type for i in inputs])
            node.outputs = [Output(node, k, type=t) for k, t in enumerate(types)]
        self.graph.nodes.append(node)
        return node

    def constant(self, values: Any, name: str, element: ElementType | None = None) -> Output:
        """Add a Const. `element`: the type of the values, by default that of their dtype."""
        return self.constant_node(np.asarray(values), name, element).outputs[0]

    def constant_node(self, values: Array, name: str, element: ElementType | None = None) -> Node:
        """Add a Const, with a separate range of bytes after all other constants."""
        element = element or element_of_dtype(values.dtype)
        size = element.bytes_for(values.size)
        return self.add(
            "Const",
            (),
            name,
            element_type=element,
            shape=Shape(*values.shape),
            offset=self._reserve(size),
            size=size,
            data=partial(np.asarray, values),
        )

    def rewire(self, moved: Mapping[Output, Output], *, but: Collection[Node] = ()) -> None:
        """Connect the consumers of each output in `moved` to its replacement, except the consumers `but`."""
        for node in self.graph.nodes:
            if node not in but and any(i in moved for i in node.inputs):
                node.inputs = [moved.get(i, i) for i in node.inputs]

    def tidy(self) -> None:
        """Order the layers topologically, and remove layers that the edit has disconnected.

        ReadValues precede Assigns; otherwise the current order is kept.
        """
        graph = self.graph
        nodes = [*graph.parameters, *(n for n in graph.nodes if n.type not in ("Parameter", "Result", "Assign"))]
        graph.nodes = topological([*nodes, *graph.sinks, *graph.results])
        mark_reachable(graph)
        kept: dict[Node, None] = {}
        for node in graph.nodes:
            if (node.reachable or node in self._unused) and all(i.node in kept for i in node.inputs):
                kept[node] = None
        graph.nodes = list(kept)


def free_name(wanted: str, used: Collection[str]) -> str:
    """An unused name: `wanted`, with a number appended if it is used."""
    return next(name for k in count() if (name := f"{wanted}_{k}" if k else wanted) not in used)
