"""Inference of element types and shapes over a whole graph, on intervals and on known values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from irload.core.bounds import bounds_of
from irload.core.context import RunContext
from irload.core.element import f32, f64
from irload.core.op import Op, evaluate, infer_outputs
from irload.core.ratio import ratios
from irload.core.remarks import collecting
from irload.core.shape import Shape
from irload.core.size import array_of, has_sizes, is_size
from irload.core.size_arithmetic import compute_ratios, infer_sizes, truncate_ratios
from irload.core.subgraph import Body
from irload.core.tensor import UNKNOWN, VALUE_LIMIT, Array, Bounds, TensorType
from irload.errors import ExecutionError, IRError, ShapeMismatch
from irload.experts import expert_product
from irload.graph import Graph, Node, Output, UnknownOp, subgraphs
from irload.record import record
from irload.safety.limits import DEFAULT, Deadline, Limits

__all__ = ["Inference", "Inferred", "OnError", "ShapeLike", "as_shape", "raise_error"]

LONGEST = 12
"""Maximum number of float layers between integer sizes and the integers computed from them."""

Types = dict[Output, TensorType]
ShapeLike = Shape | Sequence[int | tuple[int | None, int | None] | None] | str
OnError = Callable[[Node, IRError], None]


def raise_error(node: Node, error: IRError) -> None:
    """The strict `on_error`, which raises the first error."""
    raise error


@record(eq=False)
class Inferred:
    """The result of an inference without errors, reused by plans as long as the graph does not change.

    `types` and `counts` are as in Inference; `seen` maps each node to its operation and its inputs. `depends_on_runs`:
    True if operations have other types at run time, so that only the constants may be reused.
    """

    types: Types
    counts: Mapping[Node, int]
    seen: Mapping[Node, tuple[Op, tuple[Output, ...]]]
    depends_on_runs: bool = False

    def holds_for(self, graph: Graph, given: Sequence[TensorType]) -> bool:
        """True if the graph is unchanged and has no bodies, and `given` are the input types of this inference."""
        inferred = [self.types.get(o) for p in graph.parameters for o in p.outputs]
        return (
            not self.depends_on_runs
            and len(inferred) == len(given)
            and all(a is b for a, b in zip(inferred, given, strict=True))
            and self.seen == {node: (node.op, tuple(node.inputs)) for node in graph.nodes}
            and next(graph.subgraphs(), None) is None
        )

    def constants(self, graph: Graph) -> Iterator[tuple[Node, tuple[TensorType, ...]]]:
        """Yield each unchanged constant of the graph and its types, which do not depend on inputs."""
        for node in graph.nodes:
            if node.type == "Const" and self.seen.get(node) == (node.op, ()) and node.outputs[0] in self.types:
                yield node, tuple(self.types[output] for output in node.outputs)


class Inference:
    """One run of inference. `types` has the type of every output, `counts` the number of outputs of each node.

    `remarks` has violations of the specification that OpenVINO accepts, by node, in order of detection.

    An error of a node is passed to `on_error` with its location; if that returns, the node's outputs get their declared
    types and inference continues. `known`: an earlier inference, whose constants are not inferred again. `runs`: True
    for the shapes of a run, False for the shapes of the model.
    """

    def __init__(
        self,
        file: str | None = None,
        on_error: OnError = raise_error,
        limits: Limits = DEFAULT,
        known: Inferred | None = None,
        *,
        runs: bool = False,
    ) -> None:
        self.limits = limits
        self._known = known
        self._runs = runs
        self._depends_on_runs = False
        self.deadline = Deadline(limits)
        self.types: Types = {}
        self.counts: dict[Node, int] = {}
        self.file = file
        self.on_error = on_error
        self.variables: dict[str, TensorType] = {}
        self.remarks: dict[tuple[Node, str], None] = {}
        self._body_passes = 0
        self._reported: set[tuple[Node, str]] = set()

    def graph(
        self,
        graph: Graph,
        given: Sequence[TensorType] | None = None,
        state: Mapping[Node, TensorType | None] | None = None,
    ) -> tuple[TensorType, ...]:
        """Infer every node. Returns the types of the Results.

        `given` replaces the declarations of the Parameters. `state`: the type of the value that each ReadValue will
        read, None for its initial value.
        """
        if given is not None:
            for parameter, tensor in zip(graph.parameters, given, strict=True):
                self.types[parameter.outputs[0]] = tensor
        skip = set(graph.parameters) if given is not None else set[Node]()
        for node, types in self._known.constants(graph) if self._known is not None else ():
            self._record(node, types)
            skip.add(node)
        for node in graph.nodes:
            if node not in skip:
                self.node(node)
            if state is not None and node in state:
                self._record(node, [state[node] or self._initial(node)])
        return tuple(self.types.get(r.inputs[0], UNKNOWN) if r.inputs else UNKNOWN for r in graph.results)

    def _initial(self, node: Node) -> TensorType:
        """Return the type of the initial value of a ReadValue; the inferred type if that is unknown."""
        declared = self.types[node.outputs[0]]
        if not node.inputs:
            return declared
        initial = self.types.get(node.inputs[0], UNKNOWN).without_value()
        return initial if initial.element is declared.element else declared

    def result(self, graph: Graph) -> Inferred | None:
        """Return the result for the graph, None if a node failed."""
        seen = {node: (node.op, tuple(node.inputs)) for node in graph.nodes}
        return None if self._reported else Inferred(self.types, self.counts, seen, self._depends_on_runs)

    def node(self, node: Node) -> None:
        """Infer one node from the types of its inputs."""
        inputs = [self.types.get(source, UNKNOWN) for source in node.inputs]
        self.deadline.check()
        try:
            self._require_sources(node)
            with collecting() as remarks:
                outputs = _declared(node) if isinstance(node.op, UnknownOp) else self.outputs(node, inputs)
            self.check_output_ports(node, len(outputs))
            self.remarks.update(((node, remark), None) for remark in remarks)
        except IRError as error:
            # Bodies are inferred until their types are stable, so the same error may occur again.
            if (node, error.message) not in self._reported:
                self._reported.add((node, error.message))
                self.on_error(node, error.at(node.where(self.file)))
            outputs = _declared(node)
        self._record(node, outputs)

    def _record(self, node: Node, outputs: Sequence[TensorType]) -> None:
        self.counts[node] = len(outputs)
        for output, tensor in zip(node.outputs, outputs, strict=False):
            self.types[output] = tensor

    def check_output_ports(self, node: Node, count: int) -> None:
        """Raise ShapeMismatch if the layer lists more output ports than its operation has, as OpenVINO does."""
        # Without bodies, a count of 0 means that the number of outputs depends on values.
        if len(node.outputs) > count and (count or has_body(node)):
            raise ShapeMismatch(f"lists {len(node.outputs)} output ports; {node.type} has {count}")

    def _require_sources(self, node: Node) -> None:
        """Raise ShapeMismatch for an input connected to an output that the source operation does not have."""
        for k, source in enumerate(node.inputs):
            count = self.counts.get(source.node)
            # Without bodies, a count of 0 means that it depends on values. With bodies, the port map determines it.
            if count is not None and source.index >= count and (count or has_body(source.node)):
                raise ShapeMismatch(
                    f"input {k} comes from output {source.index} of {source.node.type} '{source.node.name}', "
                    f"which has {count}"
                )

    def outputs(self, node: Node, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Return the output types of one node, with the values or bounds that follow from its inputs."""
        outputs = infer_outputs(node.op, inputs, self)
        if node.type == "Concat":
            outputs = self._of_experts(node, outputs)
        if not node.op.folds or not inputs or any(t.value is not None for t in outputs):
            return outputs
        known = self._by_ratios(node, inputs, outputs[0]) if node.type in ("Convert", "Range") else None
        if node.type == "Gather" and node.inputs and node.inputs[0].node.type == "Range":
            known = self._of_range(node, inputs, outputs[0])
        if known is not None:
            return (known,)
        if all(t.value is not None for t in inputs):
            return self.fold(node, inputs, outputs)
        known_inputs = [t.value is not None or t.bounds is not None for t in inputs]
        partly = node.type in ("Concat", "Select")  # a shape with some known dims, a branch that the condition excludes
        if all(known_inputs) or (partly and any(known_inputs)):
            bounds = _bounds(node.op, inputs)
            if bounds is not None:
                return tuple(_bounded(t, b) for t, b in zip(outputs, bounds, strict=True))
        return outputs

    def _of_experts(self, concat: Node, outputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Add the number of rows if a Concat joins the products of all experts, whose shapes depend on values."""
        product = None if outputs[0].shape.rank is None or outputs[0].is_static else expert_product(concat, self.types)
        if product is None:
            return outputs
        rows = self.types[product.data].shape.dims[0]
        return (replace(outputs[0], shape=Shape(rows, *outputs[0].shape.dims[1:])),)

    @staticmethod
    def fold(node: Node, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Compute the outputs of a node from known inputs, if they are small."""
        arrays = [t.value for t in inputs]
        sizes = [t.shape.size.hi for t in outputs]
        small = all(n is not None and not is_size(n) and n <= VALUE_LIMIT for n in sizes) and all(
            t.element.dtype != object for t in outputs
        )
        if not small:
            return tuple(outputs)
        if any(a is not None and has_sizes(a) for a in arrays):
            return infer_sizes(node.op, [a for a in arrays if a is not None], outputs)
        try:
            context = cast(RunContext, SimpleNamespace(outputs=outputs))
            values = evaluate(node.op, [a for a in arrays if a is not None], outputs, context)
        except ExecutionError:
            return tuple(outputs)
        return tuple(TensorType(t.element, Shape(*v.shape), v) for t, v in zip(outputs, values, strict=True))

    def _by_ratios(self, node: Node, inputs: Sequence[TensorType], tensor: TensorType) -> TensorType | None:
        """Return the type of a Convert to integers with its value, or of a Range of floats with its length.

        None if the value or the length cannot be computed from ratios of sizes.
        """
        try:
            if node.type == "Convert" and tensor.element.is_integer and inputs[0].element.is_float:
                if inputs[0].value is not None:
                    return None
                return truncate_ratios(self._ratios(node.inputs[0], LONGEST), tensor)
            if node.type == "Range" and tensor.element in (f32, f64) and not tensor.shape.is_static:
                start, stop, step = (self._ratios(i, LONGEST).reshape(())[()] for i in node.inputs)
                count = math.trunc(math.ceil((stop - start) / step))
                return replace(tensor, shape=Shape(count)) if count >= 0 else None
        except (ArithmeticError, IRError, LookupError, TypeError, ValueError):
            pass
        return None

    def _of_range(self, gather: Node, inputs: Sequence[TensorType], tensor: TensorType) -> TensorType | None:
        """Return the type of a Gather from a Range of integers with its value, which is one number of the range.

        None if the start, the step, the length or the index is unknown, or if the index is out of range.
        """
        start, _, step = (self.types.get(i, UNKNOWN) for i in gather.inputs[0].node.inputs)
        data, index = inputs[:2]
        are_integers = all(t.element.is_integer for t in (start, step, index, tensor))
        if not (are_integers and data.is_static and tensor.is_static):
            return None
        if start.ints is None or step.ints is None or index.ints is None or len(index.ints) != 1:
            return None
        (first,), (each,), (at,), length = start.ints, step.ints, index.ints, data.shape[0].lo
        at = at + length if at < 0 else at
        if at < 0 or at >= length:
            return None
        try:
            value = array_of([first + at * each], tensor.element.dtype)
        except OverflowError:
            return None
        return replace(tensor, value=value.reshape(tensor.shape.static))

    def _ratios(self, output: Output, depth: int) -> Array:
        """Return a float output as ratios of sizes. Raises TypeError for other floats, or beyond `depth` layers."""
        tensor = self.types.get(output, UNKNOWN)
        if tensor.value is not None:
            return ratios(tensor.value)
        if not depth:
            raise TypeError("too many layers")
        return compute_ratios(output.node.op, [self._operand(i, depth - 1) for i in output.node.inputs], tensor)

    def _operand(self, output: Output, depth: int) -> Array:
        tensor = self.types.get(output, UNKNOWN)
        if tensor.element.is_float:
            return self._ratios(output, depth)
        if tensor.value is None:
            raise TypeError("the integers are unknown")
        return tensor.value

    # -- the InferContext of control flow and state --------------------------------------------------------------------

    def at_run(self) -> bool:
        """Return True for the shapes of a run, and record that the result depends on it."""
        self._depends_on_runs = True
        return self._runs

    def infer_body(self, body: Body, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Return the types of a body's results for one type per parameter."""
        self._body_passes += 1 + len(cast(Graph, body).nodes) // 1000  # one more per thousand nodes
        if self._body_passes > self.limits.body_passes:
            raise self.limits.exceeded(
                "body_passes", f"the types of nested bodies are not stable after {self.limits.body_passes} passes"
            )
        return self.graph(cast(Graph, body), inputs)

    def variable(self, name: str) -> TensorType | None:
        """Return the type of a variable, None before its ReadValue is inferred."""
        return self.variables.get(name)

    def declare_variable(self, name: str, tensor: TensorType) -> None:
        """Record the type of a variable."""
        self.variables[name] = tensor


def _bounds(op: Op, inputs: Sequence[TensorType]) -> Sequence[Bounds | None] | None:
    """Return the bounds of the outputs; None if they are unknown or the operation cannot compute with sizes."""
    try:
        return op.bounds(*inputs)
    except TypeError:
        known = (bounds_of(t) for t in inputs)
        if any(b is not None and (has_sizes(b.lower) or has_sizes(b.upper)) for b in known):
            return None
        raise


def as_shape(shape: ShapeLike) -> Shape:
    """Return a Shape from any form that `Model.reshape` accepts."""
    if isinstance(shape, str):
        return Shape.parse(shape)
    if not isinstance(shape, Iterable):
        raise TypeError(f"a shape is a Shape, a sequence of sizes or its text, found {shape!r}")
    return shape if isinstance(shape, Shape) else Shape(*shape)


def has_body(node: Node) -> bool:
    """True for a layer that runs bodies."""
    return bool(subgraphs(node))


def _bounded(tensor: TensorType, bounds: Bounds | None) -> TensorType:
    """Return the type with these bounds, or with a value if the bounds are exact."""
    if bounds is None or not bounds.is_exact:
        return replace(tensor, bounds=bounds)
    value = bounds.lower if has_sizes(bounds.lower) else bounds.lower.astype(tensor.element.dtype)
    return replace(tensor, value=value)


def _declared(node: Node) -> tuple[TensorType, ...]:
    """Return the declared types of the outputs, for nodes that cannot be inferred. A Const states its type itself."""
    if node.type == "Const" and not isinstance(node.op, UnknownOp):
        return (TensorType(node.op.attributes["element_type"], node.op.attributes["shape"]),) * len(node.outputs)
    return tuple(
        UNKNOWN if o.declared is None else TensorType(o.declared.element or UNKNOWN.element, o.declared.shape)
        for o in node.outputs
    )
