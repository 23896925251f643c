"""What a model needs of memory: its constants, and its tensors by their lifetimes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irload.core.tensor import TensorType
from irload.graph import Graph, Node, Output, UnknownOp

__all__ = ["VIEWS", "Lifetimes", "Memory", "constant_bytes", "memory"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: of the constants as the file packs them, and of the activations when most of them are alive at once.

    `activations` is what all of them take together. `at` is the layer that runs at the peak. Tensors of unknown size
    are left out; `unknown` counts them.
    """

    constants: int
    activations: int
    peak: int
    at: Node | None
    unknown: int


VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Result", "Assign"})
"""What needs no memory of its own."""


def memory(graph: Graph) -> Memory:
    """An estimate of the memory that running a model takes, layer after layer in the order of the file.

    A tensor lives from the layer that gives it to the last that takes it; inputs and outputs of the model live until
    its end. What depends on constants alone counts as computed before. Real plans share more (in-place operations) and
    need more (scratch space of kernels), so this compares models and finds the layer where memory peaks.
    """
    found = Lifetimes(graph, lambda output: output.type)
    return Memory(constant_bytes(graph), found.sum, found.peak, found.at, found.unknown)


def constant_bytes(graph: Graph) -> int:
    """The bytes of the constants as the file packs them; those that several share are counted once."""
    spans = {
        (n.op.attributes["offset"], n.op.attributes["size"])
        for g in graph.walk()
        for n in g.nodes
        if n.type == "Const" and not isinstance(n.op, UnknownOp) and n.op.attributes["shape"].size.lo
    }
    return sum(size for _, size in spans)


class Lifetimes:
    """Bytes by lifetimes in one graph; bodies are counted at the layer that runs them. `type` gives that of an output.

    `peak` is the most at once, at the layer `at`; `series` what is alive while each layer runs; `sum` all together;
    `unknown` counts tensors without a known size.
    """

    def __init__(self, graph: Graph, type: Callable[[Output], TensorType]) -> None:
        self.sum = self.peak = self.unknown = 0
        self.at: Node | None = None
        self.series: list[tuple[Node, int]] = []
        nodes = [n for n in graph.nodes if n.reachable]
        constant = _constant_nodes(nodes)
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


def _constant_nodes(nodes: list[Node]) -> set[Node]:
    """Constants and what is computed from nothing else."""
    found: set[Node] = set()
    for node in nodes:
        if node.type == "Const" or (node.inputs and node.op.folds and all(i.node in found for i in node.inputs)):
            found.add(node)
    return found
