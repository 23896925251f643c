"""The graph: nodes, their ports and edges, and bodies. It depends only on the base class of operations."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irload.core.element import ElementType
from irload.core.legacy import Shown, as_it_is
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.subgraph import Subgraph
from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import ReadError, Where
from irload.record import record
from irload.wording import printable

__all__ = [
    "Declared",
    "Graph",
    "Node",
    "Output",
    "Port",
    "UnknownOp",
    "ancestors",
    "constant_nodes",
    "mark_reachable",
    "position",
    "positions",
    "topological",
]


@dataclass(frozen=True, slots=True)
class Declared:
    """The type and dims that a port of the file declares. `dims` has −1 for any size; None if the port lists no dims.

    `port` is the port's id in the file.
    """

    element: ElementType | None
    dims: tuple[int, ...] | None
    line: int | None = None
    port: int | None = None

    @property
    def shape(self) -> Shape:
        """The declared shape; unranked for a port without dims, which declares a scalar or a dynamic rank."""
        return Shape.unranked() if self.dims is None else Shape(*self.dims)

    def __str__(self) -> str:
        return f"{self.element or '?'}{self.shape}"


class UnknownOp(Op):
    """Represents a layer whose type is not registered. Its outputs are inferred as declared; it cannot run."""

    folds = False

    def __init__(self, type: str, opset: str, text: Mapping[str, str], bodies: Iterable[str] = ()) -> None:
        super().__init__()
        self.type = type  # pyrefly: ignore[read-only]
        self.opset = opset  # pyrefly: ignore[read-only]
        self.text = dict(text)
        self.bodies = tuple(bodies)
        """The tags of the bodies of the layer, which are not read."""


@dataclass(slots=True, eq=False)
class Output:
    """One output of a node: its tensor names, its declaration in the file, and its inferred type."""

    node: Node
    index: int
    names: frozenset[str] = frozenset()
    declared: Declared | None = None
    type: TensorType = UNKNOWN
    rt_info: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __repr__(self) -> str:
        return printable(f"<{self.node.name}:{self.index} {self.type}>")


@dataclass(slots=True, eq=False, weakref_slot=True)
class Node:
    """A layer of the file with its operation. `inputs` are the outputs that feed it, in port order."""

    id: int
    name: str
    op: Op
    inputs: list[Output] = field(default_factory=list[Output])
    outputs: list[Output] = field(default_factory=list[Output])
    line: int | None = None
    version: str = ""
    text: dict[str, str] = field(default_factory=dict[str, str])
    declared_inputs: list[Declared] = field(default_factory=list[Declared])
    output_names: frozenset[str] | None = None
    rt_info: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    reachable: bool = True

    @property
    def type(self) -> str:
        """The operation's type, spelled as in XML."""
        return self.op.type

    def where(self, file: str | None = None) -> Where:
        """The location of this node, for errors."""
        return Where(file, self.line, self.id, self.name, self.type)

    def __repr__(self) -> str:
        return printable(f"<{self.type} '{self.name}' (id {self.id})>")


@record(frozen=False, eq=False)
class Graph:
    """Nodes in topological order, with the Parameters, Results and Assigns among them in file order."""

    nodes: list[Node]
    parameters: list[Node]
    results: list[Node]
    sinks: list[Node]
    file: str | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.nodes)} layers>"

    def subgraphs(self) -> Iterator[tuple[Node, str, Graph]]:
        """Each body directly inside this graph: (node, attribute name, body)."""
        for node in self.nodes:
            for name in node.op.supplied:
                body = getattr(getattr(node.op, name), "body", None)
                if isinstance(body, Graph):
                    yield node, name, body

    def walk(self) -> Iterator[Graph]:
        """This graph and every body inside it, outermost first. Iterative."""
        pending = [self]
        while pending:
            graph = pending.pop()
            yield graph
            pending += [body for _, _, body in graph.subgraphs()]


@record(eq=False)
class Port:
    """An input or output of a model, with the attributes of OpenVINO's ports.

    `shown` maps the type in the graph to the type that users see, which differs for some in IR v10.
    """

    node: Node
    output: Output
    index: int
    names: frozenset[str]
    shown: Shown = as_it_is

    @property
    def any_name(self) -> str:
        """One of the names: the first in sorted order; without names the layer's name; if that is empty, `result_2`."""
        return min(self.names, default=self.node.name) or self.place_name

    @property
    def place_name(self) -> str:
        """A name by type and position, `parameter_0` or `result_2`, which also selects the port."""
        return f"{self.node.type.lower()}_{self.index}"

    @property
    def element_type(self) -> ElementType:
        """The element type of the arrays passed in or returned; `.dtype` is NumPy's."""
        return self.shown(self.output.type.element)

    @property
    def type(self) -> TensorType:
        """Element type and shape, as users see them."""
        return TensorType(self.element_type, self.output.type.shape)

    @property
    def partial_shape(self) -> Shape:
        """The shape, an iterable of Dims with `lo`, `hi` (None: unbounded) and `is_static`."""
        return self.output.type.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The static shape. Raises ShapeMismatch if it is dynamic."""
        return self.partial_shape.static

    def __repr__(self) -> str:
        return printable(f"<{self.any_name} {self.type}>")


def positions(ports: Sequence[Port]) -> dict[Node | str, int]:
    """The position of each port by its node, tensor names and layer name. A shared name refers to the first port.

    Computed in a single pass, as there may be very many ports.
    """
    by_key: dict[Node | str, int] = {}
    for k, port in enumerate(ports):
        for key in (port.node, *port.names, port.node.name):
            by_key.setdefault(key, k)
    for k, port in enumerate(ports):
        by_key.setdefault(port.place_name, k)
    return by_key


def position(known: Mapping[Node | str, int], key: Port | str) -> int | None:
    """The position of a port or name in `known`. A port of another Model of the same file is matched by name."""
    if isinstance(key, Port):
        return known.get(key.node, known.get(key.any_name))
    return known.get(key)


def with_printable_names(graph: Graph, text: str) -> str:
    """Return the text with unprintable characters in layer names escaped."""
    for inner in graph.walk():
        for node in inner.nodes:
            if not node.name.isprintable():
                text = text.replace(node.name, printable(node.name))
    return text


def subgraphs(node: Node) -> dict[str, Subgraph]:
    """Return the bodies of a layer by attribute name; empty for an unknown operation."""
    if isinstance(node.op, UnknownOp):
        return {}
    return {name: value for name, value in node.op.attributes.items() if isinstance(value, Subgraph)}


def constant_nodes(nodes: Iterable[Node]) -> set[Node]:
    """Return the constants, and nodes that depend on constants alone. `nodes` must be in topological order."""
    constants: set[Node] = set()
    for node in nodes:
        if node.type == "Const" or (node.inputs and node.op.folds and all(i.node in constants for i in node.inputs)):
            constants.add(node)
    return constants


def ancestors(nodes: Iterable[Node], barriers: Container[Node] = ()) -> list[Node]:
    """Return nodes and all nodes on which they depend, up to `barriers`, which are excluded. Iterative."""
    seen = dict.fromkeys(node for node in nodes if node not in barriers)
    pending = list(seen)
    while pending:
        before = [i.node for i in pending.pop().inputs if i.node not in seen and i.node not in barriers]
        seen.update(dict.fromkeys(before))
        pending += before
    return list(seen)


def mark_reachable(graph: Graph) -> None:
    """Set `reachable` of all nodes: True for Parameters, and for nodes on which a Result or an Assign depends.

    OpenVINO does not create other nodes.
    """
    for node in graph.nodes:
        node.reachable = node.type == "Parameter"
    for node in ancestors([*graph.results, *graph.sinks]):
        node.reachable = True


def topological(nodes: Iterable[Node], file: str | None = None) -> list[Node]:
    """The nodes in topological order; independent nodes keep their order in the file. Iterative.

    Raises ReadError naming a layer of a cycle.
    """
    ordered: list[Node] = []
    state: dict[Node, int] = {}  # absent: unseen, 1: being visited, 2: placed
    for root in nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            if state.get(node, 0) == 0:
                state[node] = 1
                for source in reversed(node.inputs):
                    seen = state.get(source.node, 0)
                    if seen == 1:
                        raise ReadError(f"is on a cycle: it feeds {node}, which feeds it", source.node.where(file))
                    if seen == 0:
                        stack.append(source.node)
            else:
                stack.pop()
                if state[node] == 1:
                    state[node] = 2
                    ordered.append(node)
    return ordered
