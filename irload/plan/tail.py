"""Tails of a graph: groups of layers after NonZero and other layers whose output shapes depend on values.

When these shapes are known, a tail is planned as a separate graph, whose Parameters are the values that it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain

from irload.core.element import ElementType, dynamic, element_of_dtype, f32
from irload.core.shape import Shape, shape_of
from irload.core.size import is_size
from irload.core.tensor import UNKNOWN, Array, TensorType
from irload.graph import Graph, Node, Output, UnknownOp, ancestors, constant_nodes
from irload.record import record

FEW = 8
"""Minimum number of layers of symbolic shapes that are planned; fewer run one by one, unless they multiply matrices."""
FEW_STATIC = 3
"""The same for known shapes, which need no binding: a plan takes 12 µs beside its kernels, a layer alone 8 to 10 µs."""
SCATTERS = frozenset({"ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate"})
"""Operations that return their data if there are no indices, their second input."""
DEEPEST = 32
"""Maximum nesting of tails: a tail inside another one runs while the outer one runs."""


@record(frozen=False, eq=False)
class Tail(Graph):
    """The layers of a tail.

    `elements`: the element types of its Parameters. `valued`: whether the value of a Parameter depends only on shapes.
    `declared`: for each Parameter, its shape as far as it is known; if `valued`, a shape with one dim per element of
    the value, which is 0 if the element is a number and unknown if it is a symbolic size.
    """

    elements: Sequence[ElementType] = ()
    declared: Sequence[Shape] = ()
    valued: Sequence[bool] = ()
    depth: int = 1
    plans: object = field(default=None, repr=False)
    """The traced plans, shared by tails with equal keys."""

    @property
    def key(self) -> Hashable:
        """Equal for tails with the same layers, and the same known shapes and values of their inputs."""
        ends = *(p.outputs[0] for p in self.parameters), *(r.inputs[0] for r in self.results)
        return tuple(self.nodes), ends, tuple(self.declared), tuple(self.valued)

    def forms(self, arrays: Sequence[Array]) -> list[Hashable]:
        """Return the properties of these arrays on which plans depend: dtypes, shapes, and the contents if `valued`."""
        pairs = zip(arrays, self.valued, strict=True)
        return [(array.dtype, array.shape, array.tobytes() if valued else None) for array, valued in pairs]

    def types(self, arrays: Sequence[Array]) -> list[TensorType]:
        """Return the types of the Parameters for these arrays. Floats of 16 bits may be f32."""
        return [
            TensorType(
                element_of_dtype(array.dtype) if element is dynamic else element,
                shape_of(array.shape),
                array if valued else None,
            )
            for array, element, valued in zip(arrays, self.elements, self.valued, strict=True)
        ]


def tail_of(
    graph: Graph, nodes: Sequence[Node], results: Sequence[Output], types: Mapping[Output, TensorType]
) -> Tail | None:
    """Return the tail of a graph that consists of these nodes and of the constants that they read.

    `nodes`: in order, none of them constant. `results`: the outputs that are read elsewhere. Returns None if there are
    fewer than FEW nodes, if tails are nested too deep, or if the graph is this tail.
    """
    depth = graph.depth + 1 if isinstance(graph, Tail) else 1
    if len(nodes) < FEW or depth > DEEPEST:
        return None
    members, constant = set(nodes), constant_nodes(graph.nodes)
    if isinstance(graph, Tail) and members.issuperset(n for n in graph.nodes if n not in constant):
        return None  # the graph is this tail: its first layer depends on constants alone, but is not folded
    read = [i for i in dict.fromkeys(i for node in nodes for i in node.inputs) if i.node not in members]
    members.update(ancestors(i.node for i in read if i.node in constant))
    inputs = [i for i in read if i.node not in constant]
    known = [types.get(i, UNKNOWN) for i in inputs]
    valued = [t.value is not None and t.element.is_integer for t in known]
    return Tail(
        [node for node in graph.nodes if node in members],
        [_parameter(output) for output in inputs],
        [_result(output) for output in results],
        [sink for sink in graph.sinks if sink in members],
        graph.file,
        elements=[t.element for t in known],
        declared=[_elements(t) if v else _dims(t.shape) for t, v in zip(known, valued, strict=True)],
        valued=valued,
        depth=depth,
    )


def fewest_planned(types: Iterable[TensorType]) -> int:
    """Return the minimum number of layers that are planned, for outputs of these types, whose shapes are static."""
    return FEW if any(map(is_size, chain.from_iterable(t.shape.static for t in types))) else FEW_STATIC


def passed_through(tail: Tail, types: Mapping[Output, TensorType]) -> tuple[int, ...] | None:
    """Return the position of the Parameter that equals each result of a tail, or None if it calculates any result.

    A result equals a Parameter if all scatters between them have no indices, as for an expert without rows.
    """
    numbers = {p.outputs[0]: k for k, p in enumerate(tail.parameters)}
    passed: list[int] = []
    for result in tail.results:
        output = result.inputs[0]
        while output not in numbers:
            node = output.node
            if node.type not in SCATTERS or not _is_empty(types.get(node.inputs[1], UNKNOWN)):
                return None
            output = node.inputs[0]
        if types[output].element is not f32:
            return None
        passed.append(numbers[output])
    return tuple(passed)


def _is_empty(tensor: TensorType) -> bool:
    """True if a dim is 0 for all shapes that a plan serves."""
    return tensor.rank is not None and any(not is_size(dim.hi) and dim.hi == 0 for dim in tensor.shape.dims)


def _parameter(output: Output) -> Node:
    """Return a Parameter of a tail, which stands for an output of another layer."""
    return Node(output.node.id, output.node.name, UnknownOp("Parameter", "opset1", {}), outputs=[output])


def _result(output: Output) -> Node:
    """Return a Result of a tail."""
    return Node(output.node.id, output.node.name, UnknownOp("Result", "opset1", {}), inputs=[output])


def _elements(tensor: TensorType) -> Shape:
    """Return a dim for each element of a value: 0 for a number, unknown for a size."""
    assert tensor.value is not None
    return Shape(*(None if is_size(element) else 0 for element in tensor.value.flat))


def _dims(shape: Shape) -> Shape:
    """Return the shape; dims that depend on symbols are unknown."""
    if shape.rank is None:
        return shape
    return Shape(*(None if is_size(dim.lo) or is_size(dim.hi) else dim for dim in shape.dims))
