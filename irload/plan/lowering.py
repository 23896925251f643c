"""From the graph to a program: each node becomes the step that describes it, or computes itself where none does.

Constants are folded on the way: a node of which every input is known is computed now, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.op import evaluate
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.graph import Graph, Node, Output
from irload.plan.program import Program, Step, Value
from irload.plan.steps import Compute

Lower = Callable[[Node, list[Value], list[Value]], "Step | list[Step] | None"]
"""Gives the steps for a node with these inputs and outputs, or None where it has none for them."""

FOLD_LIMIT = 1 << 26
FOLD_GROWTH = 8
"""Constants may grow by this factor when they are folded, as 4-bit weights do; beyond FOLD_LIMIT bytes by no more."""

_table: dict[str, Lower] = {}


def lowers(*types: str) -> Callable[[Lower], Lower]:
    """Register the lowering of operations whose values are all f32: `@lowers("ReLU")`."""

    def register(function: Lower) -> Lower:
        _table.update(dict.fromkeys(types, function))
        return function

    return register


def lower(graph: Graph, types: Mapping[Output, TensorType], constants: dict[Output, Array]) -> Program:
    """The program of a graph whose every type is static. `constants` keeps what is folded, for the next plan."""
    from irload.plan import lowered  # fills the table

    assert lowered
    used = {i for node in graph.nodes for i in node.inputs if node.reachable}
    values: dict[Output, Value] = {}
    steps: list[Step] = []
    for node in graph.nodes:
        if not node.reachable or node.type == "Result":
            continue
        inputs = [values[i] for i in node.inputs]
        outputs = [_value(o, types[o], used=o in used) for o in node.outputs]
        values.update(zip(node.outputs, outputs, strict=True))
        if node in graph.parameters or _fold(node, inputs, outputs, types, constants):
            continue
        made = _steps(node, inputs, outputs)
        if made is None:
            known = tuple(types[o].untold() for o in node.outputs)
            made = [Compute(inputs, outputs, op=node.op, types=known)]
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


def _fold(
    node: Node,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    types: Mapping[Output, TensorType],
    constants: dict[Output, Array],
) -> bool:
    """Make the outputs constants where the inputs are. True when it was done."""
    if all(v.constant is not None for v in outputs):
        return True
    if not node.op.folds or node.op.signature.compute_context or any(v.constant is None for v in inputs):
        return False
    if inputs and sum(v.nbytes for v in outputs) > max(FOLD_LIMIT, FOLD_GROWTH * sum(v.nbytes for v in inputs)):
        return False
    # Shapes may differ from plan to plan, and with them what depends on them; weights do not.
    if not all(o in constants and constants[o].shape == v.shape for o, v in zip(node.outputs, outputs, strict=True)):
        arrays: list[Any] = [v.constant for v in inputs]
        try:
            results = evaluate(node.op, arrays, [types[o] for o in node.outputs])
        except ExecutionError:
            return False  # it fails when it runs, with its place in the message
        _remember(node, results, constants, shared=_from_weights(node, constants))
        for value, result in zip(outputs, results, strict=True):
            value.constant = result
        return True
    for output, value in zip(node.outputs, outputs, strict=True):
        value.constant = constants[output]
    return True


def _from_weights(node: Node, constants: Mapping[Output, Array]) -> bool:
    """True when nothing but constants of the file stands behind a node."""
    return all(i in constants or i.node.type == "Const" for i in node.inputs)


def _remember(node: Node, results: Sequence[Array], constants: dict[Output, Array], *, shared: bool) -> None:
    if shared:
        constants.update(zip(node.outputs, results, strict=True))


def all_f32(values: Sequence[Value]) -> bool:
    """True when every value is f32: what kernels take."""
    return all(v.dtype == np.float32 for v in values)
