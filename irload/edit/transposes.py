"""Moves a Transpose through layers that do not depend on the order of axes, until other Transposes absorb it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from irload.core.tensor import Array
from irload.edit.draft import Draft
from irload.errors import InputInvalid
from irload.graph import Node, Output
from irload.ops.elementwise import AutoBroadcast, FloatUnary, Unary

__all__ = ["absorb_after", "absorb_before"]

Order = tuple[int, ...]
"""The second input of a Transpose."""


def absorb_after(draft: Draft, start: Output, order: Order) -> None:
    """Merge a Transpose of this order, which the readers of `start` require, into later Transposes.

    Elementwise layers between `start` and these Transposes compute in the axis order of `start`. Raises InputInvalid
    for any other layer between them, as it depends on the order of axes.
    """
    turned = {start}
    removed: dict[Output, Output] = {}
    for node in list(draft.model.nodes):
        carried = [i in turned for i in node.inputs]
        if not any(carried):
            continue
        if node.type == "Transpose" and node.inputs[1].type.ints is not None:
            removed |= _merged(draft, node, order, _order(node))
        elif _is_elementwise(node):
            inverse = tuple(np.argsort(order).tolist())
            node.inputs = [i if i in turned else _operand(draft, node, i, inverse) for i in node.inputs]
            turned.add(node.outputs[0])
        else:
            raise _blocked(node)
    draft.rewire(removed)  # after the loop, which would visit the readers of a removed Transpose as readers of `start`


def absorb_before(draft: Draft, result: Node, order: Order) -> None:
    """Transpose the tensor of a Result, changing a Transpose and elementwise layers before it. Raises InputInvalid."""
    reader, (output,) = result, result.inputs
    while True:
        node = output.node
        others = [n for n in draft.model.nodes if output in n.inputs and n is not reader]
        if others:
            raise InputInvalid(f"{others[0].type} '{others[0].name}' reads '{node.name}' in its current layout")
        if node.type == "Transpose" and node.inputs[1].type.ints is not None:
            draft.rewire(_merged(draft, node, _order(node), order))
            return
        variable = [i for i in node.inputs if i.node not in draft.constant_nodes]
        if not _is_elementwise(node) or len(variable) != 1:
            raise _blocked(node)
        node.inputs = [i if i in variable else _operand(draft, node, i, order) for i in node.inputs]
        reader, output = node, variable[0]


def _is_elementwise(node: Node) -> bool:
    """True for a layer that computes each element from the elements at the same position of its inputs."""
    if isinstance(node.op, AutoBroadcast):
        return node.op.auto_broadcast == "numpy"
    return isinstance(node.op, Unary | FloatUnary) or node.type == "Convert"


def _operand(draft: Draft, node: Node, operand: Output, order: Order) -> Output:
    """A constant operand of an elementwise layer, transposed to an order. Raises InputInvalid for other operands."""
    shape = operand.type.shape
    if shape.is_static and shape.size.lo == 1:
        return operand
    if operand.node.type != "Const" or len(shape) > len(order):
        raise _blocked(node)
    values = cast(Array, operand.node.op.compute()).reshape((1,) * (len(order) - len(shape)) + shape.static)
    return draft.constant(values.transpose(order), operand.node.name, operand.type.element)


def _order(node: Node) -> Order:
    """The order of a Transpose, whose second input is known."""
    order = node.inputs[1].type.ints or ()
    return order or tuple(reversed(range(node.outputs[0].type.rank or 0)))


def _merged(draft: Draft, node: Node, first: Sequence[int], second: Sequence[int]) -> dict[Output, Output]:
    """Change the order of a Transpose to the composition of two orders.

    If the two orders cancel, returns a map from its output to its input, which must be read instead.
    """
    both = [first[k] for k in second]
    if both != sorted(both):
        node.inputs = [node.inputs[0], draft.constant(np.array(both, np.int64), f"{node.name}/order")]
        return {}
    for reader in draft.model.nodes:
        if reader.type == "Result" and node.outputs[0] in reader.inputs and reader.output_names is None:
            reader.output_names = node.outputs[0].names
    return {node.outputs[0]: node.inputs[0]}


def _blocked(node: Node) -> InputInvalid:
    fact = f"{node.type} '{node.name}' depends on the current layout"
    return InputInvalid(f"{fact}; transposes=True (irrun edit --layout) inserts a Transpose instead")
