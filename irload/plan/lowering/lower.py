"""From the graph to a program: each node becomes the steps that describe it, or a Compute step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irload.core.op import Op, is_builtin
from irload.core.tensor import TensorType
from irload.graph import Node, Output
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.lowering.table import LOWERINGS
from irload.plan.lowering.widening import converted, widened
from irload.plan.schedule import StaticPart
from irload.plan.wide import is_short, takes_its_own_types, wide_type


def lower(part: StaticPart, is_supported: Callable[[Step], bool], operation: Callable[[Op], Op]) -> Program:
    """Return the program of a part of a graph. Floats of 16 bits are f32 in it, including inputs and outputs.

    A node whose steps no back end supports becomes Compute, which calls the `compute` of the operation, or of the
    operation that `operation` returns for it.
    """
    types = part.types
    nodes = [scheduled.node for scheduled in part.nodes]
    used = {*part.results, *(i for node in nodes for i in node.inputs)}
    short: dict[Output, Value] = {}
    values: dict[Output, Value] = {}
    for output, constant in part.constants.items():
        value = _value(output, types[output])
        value.source = constant
        if constant.dtype != object:  # object arrays are strings, or symbolic sizes of the inferred integer type
            value.dtype = constant.dtype
        values[output] = widened(value)
        if constant.dtype == types[output].element.dtype:  # otherwise a 16-bit float that was folded as f32
            short[output] = value
    values |= {o: widened(_value(o, types[o])) for o in part.parameters}
    steps: list[Step] = []
    for node in nodes:
        own = {o: _value(o, types[o], used=o in used) for o in node.outputs}
        wide = {o: widened(v) for o, v in own.items()}
        if takes_its_own_types(node):
            made = _in_own_types(node, types, values, short, own, wide)
        else:
            inputs, outputs = [values[i] for i in node.inputs], list(wide.values())
            made = _steps(node, inputs, outputs)
            if made is None or not all(is_supported(step) for step in made):
                wide_types = [wide_type(types[o]) for o in node.outputs]
                made = [_compute(operation(node.op), inputs, outputs, wide_types)]
        values |= wide
        for step in made:
            step.origin = step.origin or (node,)
        steps += made
    return Program(steps, [values[o] for o in part.parameters], [values[o] for o in part.results])


def _in_own_types(
    node: Node,
    types: Mapping[Output, TensorType],
    values: Mapping[Output, Value],
    short: dict[Output, Value],
    own: Mapping[Output, Value],
    wide: Mapping[Output, Value],
) -> list[Step]:
    """Return the steps of an operation that runs on 16-bit floats. `short`: the outputs that exist as 16-bit values."""
    steps: list[Step] = []
    for i in (i for i in node.inputs if is_short(types[i])):
        if i not in short:
            short[i] = Value(values[i].shape, types[i].element.dtype, name=values[i].name)
            steps.append(converted(values[i], short[i]))
    inputs = [short[i] if is_short(types[i]) else values[i] for i in node.inputs]
    steps.append(_compute(node.op, inputs, list(own.values()), [types[o] for o in node.outputs]))
    for o in (o for o in node.outputs if is_short(types[o])):
        own[o].origin = None
        short[o] = own[o]
        steps.append(converted(own[o], wide[o]))
    return steps


def _compute(op: Op, inputs: list[Value], outputs: list[Value], types: Sequence[TensorType]) -> ComputeStep:
    return ComputeStep(inputs, outputs, op=op, types=tuple(t.without_value() for t in types))


def _value(output: Output, tensor: TensorType, *, used: bool = True) -> Value:
    return Value(tensor.shape.static, tensor.element.dtype, name=output.node.name, used=used, origin=output)


def _steps(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    make = LOWERINGS.get(node.type)
    if make is None or node.op.namespace != "opset" or not is_builtin(node.op) or not any(v.size for v in outputs):
        return None  # empty results need no kernel
    made = make(node, inputs, outputs)
    return [made] if isinstance(made, Step) else made
