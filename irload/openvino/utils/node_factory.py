"""`openvino.utils.node_factory`: nodes by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irload.openvino import adapters, authoring
from irload.openvino.dimensions import PartialShape
from irload.openvino.errors import UserInputError
from irload.openvino.node import Node, as_output
from irload.openvino.nodes import Parameter
from irload.openvino.ports import Output
from irload.openvino.types import Type

__all__ = ["NodeFactory", "_get_node_factory"]

DEFAULT_OPSET = "opset13"


class NodeFactory:
    """Creates nodes by type: `NodeFactory("opset13").create("Relu", [output], {})`."""

    def __init__(self, opset_version: str = DEFAULT_OPSET) -> None:
        self._opset = opset_version

    def create(
        self,
        op_type_name: str,
        arguments: Sequence[Node | Output] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        """A node of an operation, with inputs and attributes by their names in the IR.

        Without both, the node gets them by `set_arguments` and `set_attribute`, if it has no required attribute.
        """
        if arguments is None and attributes is None:
            return adapters.adapter(authoring.unwired(op_type_name, self._opset, {}))
        if arguments is None:
            raise UserInputError(f'Error: cannot create "{op_type_name}" op without arguments.')
        if op_type_name == "Parameter" and not attributes:
            return Parameter(Type.dynamic, PartialShape([]))  # without inputs; type and shape are set later
        sources = [as_output(o) for o in self._arguments_as_outputs(arguments)]
        return adapters.adapter(authoring.create(op_type_name, self._opset, sources, attributes))

    @staticmethod
    def _arguments_as_outputs(arguments: Sequence[Node | Output]) -> list[Output]:
        """The outputs, and the outputs of nodes."""
        return [o for a in arguments for o in ([a] if isinstance(a, Output) else a.outputs())]

    def add_extension(self, extension: Any) -> None:
        """Load operations, as `Core.add_extension` does."""
        from irload.openvino.core import Core

        Core().add_extension(extension)


def _get_node_factory(opset_version: str | None = None) -> NodeFactory:
    """The factory of an opset, as generated code of OpenVINO requests it."""
    return NodeFactory(opset_version or DEFAULT_OPSET)
