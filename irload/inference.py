"""Inference of element types and shapes over a whole graph, on intervals and on values where they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from irload.core.context import RunContext
from irload.core.op import Op, evaluate, infer_outputs
from irload.core.remarks import collecting
from irload.core.shape import Shape
from irload.core.subgraph import Body, Subgraph
from irload.core.tensor import UNKNOWN, VALUE_LIMIT, Bounds, TensorType
from irload.errors import ExecutionError, IRError, ShapeMismatch
from irload.graph import Graph, Node, Output, UnknownOp
from irload.record import record
from irload.safety import DEFAULT, Deadline, Limits

__all__ = ["Inference", "Inferred", "OnError", "ShapeLike", "as_shape", "raise_error"]

Types = dict[Output, TensorType]
ShapeLike = Shape | Sequence[int | tuple[int | None, int | None] | None] | str
OnError = Callable[[Node, IRError], None]


def raise_error(node: Node, error: IRError) -> None:
    """The strict `on_error`: the first fault ends the inference."""
    raise error


@record(eq=False)
class Inferred:
    """What an inference without faults found of a graph, for plans to go by while the graph stays as it was.

    `types` and `counts` are those of Inference; `seen` has each node with its operation and what fed it.
    """

    types: Types
    counts: Mapping[Node, int]
    seen: Mapping[Node, tuple[Op, tuple[Output, ...]]]

    def holds_for(self, graph: Graph, given: Sequence[TensorType]) -> bool:
        """True where the graph is the same, has no bodies, and its Parameters get the very types that were inferred."""
        own = [self.types.get(o) for p in graph.parameters for o in p.outputs[:1]]
        return (
            len(own) == len(given)
            and all(a is b for a, b in zip(own, given, strict=True))
            and self.seen == {node: (node.op, tuple(node.inputs)) for node in graph.nodes}
            and next(graph.subgraphs(), None) is None
        )


class Inference:
    """One run of inference. `types` has what was found of every output, `counts` how many outputs each node has.

    `remarks` has what is against the specification and yet taken, by node, in the order in which it was met.

    A node that fails is handed to `on_error`, with its place attached; if that returns, its outputs become what the
    file declares and inference goes on.
    """

    def __init__(self, file: str | None = None, on_error: OnError = raise_error, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self.deadline = Deadline(limits)
        self.types: Types = {}
        self.counts: dict[Node, int] = {}
        self.file = file
        self.on_error = on_error
        self.variables: dict[str, TensorType] = {}
        self.remarks: dict[tuple[Node, str], None] = {}
        self._body_passes = 0
        self._reported: set[tuple[Node, str]] = set()

    def graph(self, graph: Graph, given: Sequence[TensorType] | None = None) -> tuple[TensorType, ...]:
        """Infer every node; `given` replaces what the Parameters say. Returns the types that the Results take."""
        if given is not None:
            for parameter, tensor in zip(graph.parameters, given, strict=True):
                self.types[parameter.outputs[0]] = tensor
        skip = set(graph.parameters) if given is not None else set[Node]()
        for node in graph.nodes:
            if node not in skip:
                self.node(node)
        return tuple(self.types.get(r.inputs[0], UNKNOWN) if r.inputs else UNKNOWN for r in graph.results)

    def found(self, graph: Graph) -> Inferred | None:
        """What was found of the graph, None where a node failed."""
        seen = {node: (node.op, tuple(node.inputs)) for node in graph.nodes}
        return None if self._reported else Inferred(self.types, self.counts, seen)

    def node(self, node: Node) -> None:
        """Infer one node from the types already found."""
        inputs = [self.types.get(source, UNKNOWN) for source in node.inputs]
        self.deadline.check()
        try:
            self._require_sources(node)
            with collecting() as remarks:
                outputs = _declared(node) if isinstance(node.op, UnknownOp) else self.outputs(node, inputs)
            self.remarks.update(((node, remark), None) for remark in remarks)
        except IRError as error:
            # Bodies are inferred until their types settle, so the same fault may be met again.
            if (node, error.message) not in self._reported:
                self._reported.add((node, error.message))
                self.on_error(node, error.at(node.where(self.file)))
            outputs = _declared(node)
        self.counts[node] = len(outputs)
        for output, tensor in zip(node.outputs, outputs, strict=False):
            self.types[output] = tensor

    def _require_sources(self, node: Node) -> None:
        """Raise ShapeMismatch for an input that comes from an output which its operation does not have."""
        for k, source in enumerate(node.inputs):
            count = self.counts.get(source.node)
            # None where it depends on values; a layer with bodies has as many as its port map gives.
            if count is not None and source.index >= count and (count or has_body(source.node)):
                raise ShapeMismatch(
                    f"input {k} comes from output {source.index} of {source.node.type} '{source.node.name}', "
                    f"which has {count}"
                )

    def outputs(self, node: Node, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The outputs of one node, with the values or bounds that follow from its inputs."""
        outputs = infer_outputs(node.op, inputs, self)
        if not node.op.folds or not inputs or any(t.value is not None for t in outputs):
            return outputs
        if all(t.value is not None for t in inputs):
            return self.fold(node, inputs, outputs)
        if all(t.value is not None or t.bounds is not None for t in inputs):
            bounds = node.op.bounds(*inputs)
            if bounds is not None:
                return tuple(_bounded(t, b) for t, b in zip(outputs, bounds, strict=True))
        return outputs

    @staticmethod
    def fold(node: Node, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Compute the outputs of a node whose inputs are all known, when they are small."""
        arrays = [t.value for t in inputs]
        sizes = [t.shape.size.hi for t in outputs]
        small = all(n is not None and n <= VALUE_LIMIT for n in sizes) and all(
            t.element.dtype != object for t in outputs
        )
        if not small:
            return tuple(outputs)
        try:
            context = cast(RunContext, SimpleNamespace(outputs=outputs))
            values = evaluate(node.op, [a for a in arrays if a is not None], outputs, context)
        except ExecutionError:
            return tuple(outputs)
        return tuple(TensorType(t.element, Shape(*v.shape), v) for t, v in zip(outputs, values, strict=True))

    # -- the InferContext that control flow and state ask for --------------------------------------------------------

    def infer_body(self, body: Body, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of a body's results, given one type for each of its parameters."""
        self._body_passes += 1 + len(cast(Graph, body).nodes) // 1000  # a very long body counts for several
        if self._body_passes > self.limits.body_passes:
            raise self.limits.exceeded(
                "body_passes", f"the types of nested bodies have not settled after {self.limits.body_passes} passes"
            )
        return self.graph(cast(Graph, body), inputs)

    def variable(self, name: str) -> TensorType | None:
        """The type of a variable, None before its ReadValue was met."""
        return self.variables.get(name)

    def declare_variable(self, name: str, tensor: TensorType) -> None:
        """Record the type of a variable."""
        self.variables[name] = tensor


def as_shape(shape: ShapeLike) -> Shape:
    """A Shape from any of the forms that `Model.reshape` takes."""
    if isinstance(shape, str):
        return Shape.parse(shape)
    return shape if isinstance(shape, Shape) else Shape(*shape)


def has_body(node: Node) -> bool:
    """True for a layer that runs bodies."""
    return any(isinstance(value, Subgraph) for value in node.op.attributes.values())


def _bounded(tensor: TensorType, bounds: Bounds | None) -> TensorType:
    """The type with these bounds; where they leave no choice, with a value."""
    if bounds is None or not bounds.is_exact:
        return replace(tensor, bounds=bounds)
    return replace(tensor, value=bounds.lower.astype(tensor.element.dtype))


def _declared(node: Node) -> tuple[TensorType, ...]:
    """What the file says of the outputs, for want of something better."""
    return tuple(
        UNKNOWN if o.declared is None else TensorType(o.declared.element or UNKNOWN.element, o.declared.shape)
        for o in node.outputs
    )
