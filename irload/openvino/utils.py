"""`openvino.utils`: replacing nodes, and other helpers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from irload.openvino import authoring, faces
from irload.openvino.errors import OpenVINOError, UserInputError
from irload.openvino.node import Node, as_output
from irload.openvino.ports import Output

__all__ = ["NodeFactory", "deprecated", "node_factory", "numpy_to_c", "replace_node", "replace_output_update_name"]

F = TypeVar("F", bound=Callable[..., Any])


def replace_node(target: Node, replacement: Node | Sequence[Output], order: Sequence[int] | None = None) -> None:
    """Feed the consumers of a node from the outputs of another, or from these outputs; the name is not changed."""
    if isinstance(replacement, Node):
        numbers = range(replacement.get_output_size()) if order is None else order
        outputs = [replacement.output(k) for k in numbers]
    else:
        outputs = [*replacement]
    if len(outputs) != target.get_output_size():
        raise OpenVINOError(f"{target!r} has {target.get_output_size()} outputs, the replacement {len(outputs)}")
    for old, new in zip(target.outputs(), outputs, strict=True):
        old.replace(new)


def replace_output_update_name(output: Output, replacement: Output) -> bool:
    """Feed the consumers of an output from another, whose node gets the name. Returns True."""
    node = output.node
    if any(i.get_node().get_type_name() == "Result" for i in output.target_inputs):
        replacement.node.friendly_name = node.friendly_name
        if replacement.node.get_output_size() > 1:
            return False
    output.replace(replacement)
    replacement.node.friendly_name = node.friendly_name
    faces.edited()
    return True


def numpy_to_c(array: Any) -> int:
    """The address of the memory of an array."""
    return array.ctypes.data


def deprecated(*_: Any, **__: Any) -> Callable[[F], F]:
    """A decorator that returns the function unchanged."""
    return lambda function: function


class NodeFactory:
    """Creates nodes by type: `NodeFactory("opset13").create("Relu", [output], {})`."""

    def __init__(self, opset_version: str = "opset13") -> None:
        self._opset = opset_version

    def create(
        self,
        op_type_name: str,
        arguments: Sequence[Node | Output] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        """A node of an operation, with inputs and attributes by their names in the IR."""
        if arguments is None:
            raise UserInputError(f'Error: cannot create "{op_type_name}" op without arguments.')
        inputs = [o for a in arguments for o in ([a] if isinstance(a, Output) else a.outputs())]
        sources = [as_output(o) for o in inputs]
        return faces.adapter(authoring.create(op_type_name, self._opset, sources, attributes))


def node_factory(number: int) -> NodeFactory:
    """The factory of an opset."""
    return NodeFactory(f"opset{number}")
