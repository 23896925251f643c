"""From the graph to a program: each node becomes the step that describes it, or computes itself where none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.op import is_builtin
from irload.core.tensor import TensorType
from irload.graph import Graph, Node, Output
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Compute
from irload.plan.schedule import Plan

Lower = Callable[[Node, list[Value], list[Value]], "Step | list[Step] | None"]
"""Gives the steps for a node with these inputs and outputs, or None where it has none for them."""

_table: dict[str, Lower] = {}


def lowers(*types: str) -> Callable[[Lower], Lower]:
    """Register the lowering of operations whose values are all f32: `@lowers("ReLU")`."""

    def register(function: Lower) -> Lower:
        _table.update(dict.fromkeys(types, function))
        return function

    return register


def lower(graph: Graph, plan: Plan) -> Program:
    """The program of a graph whose every type is static, by its plain plan."""
    from irload.plan import lowering

    assert lowering
    types = plan.types
    nodes = [step.node for step in plan.steps]
    used = {i for node in (*nodes, *graph.results) for i in node.inputs}
    values = {o: _value(o, types[o]) for p in graph.parameters for o in p.outputs[:1]}
    for output, constant in plan.folded.items():
        values[output] = _value(output, types[output])
        values[output].source = constant
    steps: list[Step] = []
    for node in nodes:
        inputs = [values[i] for i in node.inputs]
        outputs = [_value(o, types[o], used=o in used) for o in node.outputs]
        values.update(zip(node.outputs, outputs, strict=True))
        made = _steps(node, inputs, outputs)
        if made is None:
            told = tuple(types[o].untold() for o in node.outputs)
            made = [Compute(inputs, outputs, op=node.op, types=told)]
        for step in made:
            step.origin = step.origin or (node,)
        steps += made
    return Program(
        steps, [values[p.outputs[0]] for p in graph.parameters], [values[r.inputs[0]] for r in graph.results]
    )


def _value(output: Output, tensor: TensorType, *, used: bool = True) -> Value:
    known = None if tensor.value is None else Constant.of(tensor.value)
    return Value(tensor.shape.static, tensor.element.dtype, known, name=output.node.name, used=used)


def _steps(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    make = _table.get(node.type)
    if make is None or node.op.namespace != "opset" or not is_builtin(node.op):
        return None
    made = make(node, inputs, outputs)
    return [made] if isinstance(made, Step) else made


def all_f32(values: Sequence[Value]) -> bool:
    """True when every value is f32: what kernels take."""
    return all(v.dtype == np.float32 for v in values)
