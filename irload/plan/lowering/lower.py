"""Lowers a part of a graph to a program: each node becomes the steps of its lowering, or a Compute step."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import cast

from irload.core.op import Op, is_builtin
from irload.core.size import alike, has_sizes
from irload.core.subgraph import Subgraph
from irload.core.tensor import UNKNOWN, Array, TensorType
from irload.graph import Graph, Node, Output
from irload.ops.condition.branch import If
from irload.ops.infrastructure.iteration import Iterated
from irload.plan.cached_attention import operation_of
from irload.plan.folding import stored
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep, ReshapeStep
from irload.plan.lowering.shape_functions import ShapeFunctions
from irload.plan.lowering.table import LOWERINGS
from irload.plan.lowering.widening import converted, widened
from irload.plan.schedule import StaticPart
from irload.plan.size_limits import require_size
from irload.plan.wide import is_short, takes_its_own_types, wide_type
from irload.safety.limits import DEFAULT, Limits


def lower(
    part: StaticPart, is_supported: Callable[[Step], bool], operation: Callable[[Op], Op], limits: Limits = DEFAULT
) -> Program:
    """Return the program of a part of a graph. In the program, 16-bit floats are f32, including inputs and outputs.

    A node whose steps no back end supports becomes Compute, which calls the `compute` of the operation, or of the
    operation that `operation` returns for it. An If with a known condition becomes the steps of its branch, a loop with
    one iteration the steps of its body. Raises LimitExceeded if a tensor inside is too large.
    """
    lowering = _Lowering(part.types, is_supported, operation, limits)
    for output, constant in part.constants.items():
        lowering.constant(output, constant)
    parameters = [lowering.parameter(o) for o in part.parameters]
    steps = lowering.nodes([scheduled.node for scheduled in part.nodes], part.results)
    results = [lowering.values[o] for o in part.results]
    return Program(lowering.shape_functions.replaced(steps, results), parameters, results)


class _Lowering:
    """Lowers nodes one by one. `values`: the values of outputs of the graph and of branches."""

    def __init__(
        self,
        types: Mapping[Output, TensorType],
        is_supported: Callable[[Step], bool],
        operation: Callable[[Op], Op],
        limits: Limits,
    ) -> None:
        self._types = types
        self._is_supported = is_supported
        self._operation = operation
        self._limits = limits
        self.values: dict[Output, Value] = {}
        self.shape_functions = ShapeFunctions()
        self._short: dict[Output, Value] = {}
        """The values that exist as 16-bit floats, by output."""

    def constant(self, output: Output, constant: Constant) -> None:
        """Add a constant."""
        value = _value(output, self._types[output])
        value.source = constant
        if constant.dtype != object:  # object arrays are strings, or symbolic sizes of the inferred integer type
            value.dtype = constant.dtype
        self.values[output] = widened(value)
        if constant.dtype == self._types[output].element.dtype:  # otherwise a 16-bit float that was folded as f32
            self._short[output] = value

    def parameter(self, output: Output) -> Value:
        """Add an input of the program."""
        value = self.values[output] = widened(_value(output, self._types[output]))
        return value

    def nodes(self, nodes: Sequence[Node], results: Sequence[Output]) -> list[Step]:
        """Return the steps of nodes. `results`: the outputs that are also read elsewhere."""
        used = {*results, *(i for node in nodes for i in node.inputs)}
        steps: list[Step] = []
        for node in nodes:
            lowered = self._body(node)
            if lowered is None:
                lowered = self._node(node, used)
            for step in lowered:
                step.origin = step.origin or (node,)
            steps += lowered
        return steps

    def _node(self, node: Node, used: Container[Output]) -> list[Step]:
        types, values = self._types, self.values
        own = {o: _value(o, types[o], used=o in used) for o in node.outputs}
        wide = {o: widened(v) for o, v in own.items()}
        if takes_its_own_types(node):
            steps = self._in_own_types(node, own, wide)
        else:
            inputs, outputs = [values[i] for i in node.inputs], list(wide.values())
            steps: list[Step] | None = _steps(node, inputs, outputs)

            def compute() -> ComputeStep:
                wide_types = [wide_type(types[o]) for o in node.outputs]
                return _compute(self._operation(operation_of(node)), inputs, outputs, wide_types)

            if steps is None or not all(self._is_supported(step) for step in steps):
                steps = [compute()]
            if len(steps) == 1:
                self.shape_functions.add(steps[0], compute)
        values |= wide
        return steps

    def _in_own_types(self, node: Node, own: Mapping[Output, Value], wide: Mapping[Output, Value]) -> list[Step]:
        """Return the steps of an operation that requires the types of the graph, with conversions from and to f32."""
        types, values, short = self._types, self.values, self._short
        steps: list[Step] = []
        for i in (i for i in node.inputs if is_short(types[i])):
            if i not in short:
                short[i] = Value(values[i].shape, types[i].element.dtype, name=values[i].name)
                steps.append(converted(values[i], short[i]))
        inputs = [short[i] if is_short(types[i]) else values[i] for i in node.inputs]
        steps.append(_compute(operation_of(node), inputs, list(own.values()), [types[o] for o in node.outputs]))
        for o in (o for o in node.outputs if is_short(types[o])):
            own[o].origin = None
            short[o] = own[o]
            steps.append(converted(own[o], wide[o]))
        return steps

    def _body(self, node: Node) -> list[Step] | None:
        """Return the steps of the body that a layer runs once; None for other layers, or if a type in it is unknown."""
        inlined, types = _inlined(node, self._types), self._types
        if inlined is None:
            return None
        body = cast(Graph, inlined.body)
        inner = [n for n in body.nodes if n.reachable and n.type not in ("Parameter", "Result")]
        results = [r.inputs[0] for r in body.results]
        outputs = [*results, *(o for n in inner for o in n.outputs)]
        if body.sinks or not all(o in types and types[o].is_static for o in outputs):
            return None
        for output in outputs:
            require_size(types[output], self._limits)
        for port in inlined.inputs:
            parameter = body.parameters[port.inner].outputs[0]
            if port.purpose:
                self.constant(parameter, Constant.of(cast(Array, types[parameter].value)))
                continue
            given = node.inputs[port.outer]
            self.values[parameter] = self.values[given]
            if given in self._short:
                self._short[parameter] = self._short[given]
        unknown: list[Node] = []
        for member in inner:
            if member.type == "Const":
                self.constant(member.outputs[0], stored(member))
            elif all(_is_known_integer(types[o]) for o in member.outputs):
                for output in member.outputs:
                    self.constant(output, Constant.of(cast(Array, types[output].value)))
            else:
                unknown.append(member)
        steps = self.nodes(unknown, results)
        for step in steps:  # the layers of a body are not observed, so its values have no origin
            step.origin = (node,)
            for value in step.outputs:
                value.origin = None
        for port in inlined.outputs:
            if port.port is not None:
                output = node.outputs[port.port]
                value = self.values[output] = widened(_value(output, types[output]))
                steps.append(ReshapeStep([self.values[results[port.inner]]], [value]))
        return steps


def _inlined(node: Node, types: Mapping[Output, TensorType]) -> Subgraph | None:
    """Return the body that certainly runs, and only once: the branch of an If, or the body of a loop."""
    given = [types.get(i, UNKNOWN) for i in node.inputs]
    if isinstance(node.op, If):
        known = given[0].value
        return None if known is None or not known.size or has_sizes(known) else node.op.chosen(known)
    if not isinstance(node.op, Iterated) or not node.op.runs_once(*given):
        return None
    body = node.op.body
    for port in body.inputs:
        parameter = types.get(body.body.parameters[port.inner].outputs[0], UNKNOWN)
        if port.purpose:
            if parameter.value is None:
                return None
        elif port.port is None or not _is_like(parameter, given[port.outer]):
            return None  # a part of an input, or an input that is converted
    return body


def _is_like(a: TensorType, b: TensorType) -> bool:
    """True if two types are equal for all shapes."""
    if a.element is not b.element or not a.is_static or not b.is_static or a.rank != b.rank:
        return False
    return all(map(alike, a.shape.static, b.shape.static))


def _is_known_integer(tensor: TensorType) -> bool:
    """True for an integer tensor whose value is known and contains no symbolic sizes."""
    return tensor.value is not None and tensor.element.is_integer and not has_sizes(tensor.value)


def _compute(op: Op, inputs: list[Value], outputs: list[Value], types: Sequence[TensorType]) -> ComputeStep:
    return ComputeStep(inputs, outputs, op=op, types=tuple(t.without_value() for t in types))


def _value(output: Output, tensor: TensorType, *, used: bool = True) -> Value:
    return Value(tensor.shape.static, tensor.element.dtype, name=output.node.name, used=used, origin=output)


def _steps(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    make = LOWERINGS.get(node.type)
    if make is None or node.op.namespace != "opset" or not is_builtin(node.op) or not any(v.size for v in outputs):
        return None  # empty results need no kernel
    lowered = make(node, inputs, outputs)
    return [lowered] if isinstance(lowered, Step) else lowered
