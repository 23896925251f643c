"""From the graph to a program: each node becomes the steps that describe it, or computes itself where none do."""

from __future__ import annotations

from collections.abc import Callable

from irload.core.op import is_builtin
from irload.core.tensor import TensorType
from irload.graph import Graph, Node, Output
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Compute
from irload.plan.lowering.table import LOWERINGS
from irload.plan.schedule import Schedule


def lower(graph: Graph, schedule: Schedule, is_supported: Callable[[Step], bool]) -> Program:
    """The program of a graph whose every type is static.

    Steps that no back end supports are not made: the operation's own `compute` stands in their place.
    """
    types = schedule.types
    nodes = [scheduled.node for scheduled in schedule.nodes]
    used = {i for node in (*nodes, *graph.results) for i in node.inputs}
    values = {o: _value(o, types[o]) for p in graph.parameters for o in p.outputs[:1]}
    for output, constant in schedule.folded.items():
        values[output] = _value(output, types[output])
        values[output].source = constant
    steps: list[Step] = []
    for node in nodes:
        inputs = [values[i] for i in node.inputs]
        outputs = [_value(o, types[o], used=o in used) for o in node.outputs]
        values.update(zip(node.outputs, outputs, strict=True))
        made = _steps(node, inputs, outputs)
        if made is None or not all(is_supported(step) for step in made):
            made = [Compute(inputs, outputs, op=node.op, types=tuple(types[o].without_value() for o in node.outputs))]
        for step in made:
            step.origin = step.origin or (node,)
        steps += made
    return Program(
        steps, [values[p.outputs[0]] for p in graph.parameters], [values[r.inputs[0]] for r in graph.results]
    )


def _value(output: Output, tensor: TensorType, *, used: bool = True) -> Value:
    known = None if tensor.value is None else Constant.of(tensor.value)
    return Value(tensor.shape.static, tensor.element.dtype, known, name=output.node.name, used=used, origin=output)


def _steps(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    make = LOWERINGS.get(node.type)
    if make is None or node.op.namespace != "opset" or not is_builtin(node.op):
        return None
    made = make(node, inputs, outputs)
    return [made] if isinstance(made, Step) else made
