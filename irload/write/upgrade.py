"""Converts a model of IR v10 to IR v11: Converts in the graph replace the types that v10 shows at its ports."""

from __future__ import annotations

from irload.core.element import ElementType
from irload.core.tensor import TensorType
from irload.graph import Node, Output, Port, topological
from irload.model import Model, require_model
from irload.ops.registry import resolve
from irload.write.copies import copied

__all__ = ["as_v11"]


def as_v11(model: Model) -> Model:
    """The model with Converts at ports whose type differs from the graph's; the model itself if no port differs.

    The given model is unchanged. Raises TypeError for anything but a Model.
    """
    require_model(model)
    ports = [p for p in (*model.inputs, *model.outputs) if p.element_type is not p.output.type.element]
    if not ports:
        return model
    copy, nodes, outputs = copied(model)
    copy.ir_version = 11
    added: dict[Output, Node] = {}
    for port in ports:
        node, output = nodes[port.node], outputs[port.output]
        if port.node in model.parameters:
            added[output] = _after_input(copy, node, port)
        else:
            if output not in added:
                added[output] = _before_output(output, port.element_type)
            node.inputs = [added[output].outputs[0]]
    copy.nodes = topological([*copy.nodes, *added.values()])
    return copy


def _convert(source: Output, name: str, element: ElementType) -> Node:
    node = Node(-1, name, resolve("Convert", "opset1")[0](destination_type=element), [source])
    node.outputs = [Output(node, 0, type=TensorType(element, source.type.shape))]
    return node


def _after_input(model: Model, parameter: Node, port: Port) -> Node:
    """Give the Parameter the type that its port shows, and convert it back to the graph's type for its consumers."""
    output = parameter.outputs[0]
    users = [n for n in model.nodes if output in n.inputs]
    node = _convert(output, f"{parameter.name}/to_graph", output.type.element)
    parameter.op = type(parameter.op)(**{**parameter.op.attributes, "element_type": port.element_type})
    output.type = TensorType(port.element_type, output.type.shape)
    for user in users:
        user.inputs = [node.outputs[0] if i is output else i for i in user.inputs]
    return node


def _before_output(source: Output, element: ElementType) -> Node:
    """The Convert before a Result. The tensor names of the output move to it."""
    node = _convert(source, f"{source.node.name}/from_graph", element)
    if source.node.type != "Parameter":
        node.outputs[0].names, source.names = source.names, frozenset()
    return node
