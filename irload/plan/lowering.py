"""From the graph to a program: each node becomes the step that describes it, or computes itself where none does.

Constants are folded on the way: a node of which every input is known is computed now, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irload.core.tensor import TensorType
from irload.graph import Graph, Node, Output
from irload.plan.folding import Folding
from irload.plan.program import Program, Step, Value
from irload.plan.steps import Compute

Lower = Callable[[Node, list[Value], list[Value]], "Step | list[Step] | None"]
"""Gives the steps for a node with these inputs and outputs, or None where it has none for them."""

_table: dict[str, Lower] = {}


def lowers(*types: str) -> Callable[[Lower], Lower]:
    """Register the lowering of operations whose values are all f32: `@lowers("ReLU")`."""

    def register(function: Lower) -> Lower:
        _table.update(dict.fromkeys(types, function))
        return function

    return register


def lower(graph: Graph, types: Mapping[Output, TensorType], folding: Folding) -> Program:
    """The program of a graph whose every type is static."""
    from irload.plan import lowered  # fills the table

    assert lowered
    used = {i for node in graph.nodes for i in node.inputs if node.reachable}
    parameters = set(graph.parameters)
    values: dict[Output, Value] = {}
    steps: list[Step] = []
    for node in graph.nodes:
        if not node.reachable or node.type == "Result":
            continue
        inputs = [values[i] for i in node.inputs]
        outputs = [_value(o, types[o], used=o in used) for o in node.outputs]
        values.update(zip(node.outputs, outputs, strict=True))
        if node in parameters:
            continue
        known = folding.fold(node, [v.constant for v in inputs], types)
        if known is not None:
            for value, array in zip(outputs, known, strict=True):
                value.constant = array
            continue
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


def _value(output: Output, tensor: TensorType, *, used: bool) -> Value:
    return Value(tensor.shape.static, tensor.element.dtype, tensor.value, name=output.node.name, used=used)


def _steps(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    make = _table.get(node.type)
    if make is None or node.op.namespace != "opset":
        return None
    made = make(node, inputs, outputs)
    return [made] if isinstance(made, Step) else made


def all_f32(values: Sequence[Value]) -> bool:
    """True when every value is f32: what kernels take."""
    return all(v.dtype == np.float32 for v in values)
