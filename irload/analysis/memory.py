"""Memory of a model: its constants, and its activations by their lifetimes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irload.core.tensor import TensorType
from irload.graph import Graph, Node, Output, UnknownOp, constant_nodes

__all__ = ["VIEWS", "Lifetimes", "MemoryEstimate", "constant_bytes", "memory"]


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes of the constants as packed in the file, and of the activations at their peak.

    `activations` is the sum of all activations. `at` is the layer that runs at the peak. Tensors of unknown size are
    excluded; `unknown` counts them.
    """

    constants: int
    activations: int
    peak: int
    at: Node | None
    unknown: int


VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Result", "Assign"})
"""Operations whose outputs share the memory of an input."""


def memory(graph: Graph) -> MemoryEstimate:
    """Estimates the memory for running a model, layer by layer in the order of the file.

    A tensor is alive from the layer that produces it to its last consumer; inputs and outputs of the model are alive
    until its end. Layers that depend on constants alone count as folded. Real plans share more memory (in-place
    operations) and need more (scratch buffers of kernels), so use the estimate to compare models and to locate the
    layer at the peak.
    """
    lifetimes = Lifetimes(graph, lambda output: output.type)
    return MemoryEstimate(constant_bytes(graph), lifetimes.sum, lifetimes.peak, lifetimes.at, lifetimes.unknown)


def constant_bytes(graph: Graph) -> int:
    """The bytes of the constants as packed in the file; shared bytes count once."""
    spans = {
        (n.op.attributes["offset"], n.op.attributes["size"])
        for g in graph.walk()
        for n in g.nodes
        if n.type == "Const" and not isinstance(n.op, UnknownOp) and n.op.attributes["shape"].size.lo
    }
    return sum(size for _, size in spans)


class Lifetimes:
    """Bytes by lifetimes in one graph; a body counts at the layer that runs it. `type` gives the type of an output.

    `peak` is the highest sum, at the layer `at`; `series` has the bytes alive while each layer runs; `sum` is the total
    over all tensors; `unknown` counts tensors of unknown size.
    """

    def __init__(self, graph: Graph, type: Callable[[Output], TensorType]) -> None:
        self.sum = self.peak = self.unknown = 0
        self.at: Node | None = None
        self.series: list[tuple[Node, int]] = []
        nodes = [n for n in graph.nodes if n.reachable]
        constant = constant_nodes(nodes)
        owner: dict[Output, Output] = {}
        last: dict[Output, int] = {}
        for k, node in enumerate(nodes):
            for source in node.inputs:
                last[owner.get(source, source)] = k
            for output in node.outputs:
                root = node.inputs[0] if node.type in VIEWS and node.inputs else output
                owner[output] = owner.get(root, root)
                last.setdefault(owner[output], k)
        for ends in (graph.parameters, graph.results):
            for node in ends:
                for output in node.inputs or node.outputs:
                    last[owner.get(output, output)] = len(nodes)
        bodies: dict[Node, list[Lifetimes]] = {}
        for node, _, body in graph.subgraphs():
            bodies.setdefault(node, []).append(Lifetimes(body, type))
        freed: dict[int, int] = {}
        alive = 0
        for k, node in enumerate(nodes):
            for output in node.outputs:
                if owner[output] is output and node not in constant:
                    size = self._size(type(output))
                    alive += size
                    freed[last[output]] = freed.get(last[output], 0) + size
            inside = bodies.get(node, [])
            self.sum += sum(b.sum for b in inside)
            self.unknown += sum(b.unknown for b in inside)
            now = alive + max((b.peak for b in inside), default=0)
            self.series.append((node, now))
            if now > self.peak:
                self.peak, self.at = now, node
            alive -= freed.get(k, 0)

    def _size(self, tensor: TensorType) -> int:
        size = tensor.nbytes
        if size is None:
            self.unknown += 1
            return 0
        self.sum += size
        return size
