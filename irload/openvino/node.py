"""Node: an operation in a graph, with its inputs, outputs and attributes; Parameter, Constant and Result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from irload import graph
from irload.openvino import adapters, attributes, authoring
from irload.openvino.dimensions import PartialShape
from irload.openvino.errors import OpenVINOError, raising, translated
from irload.openvino.operators import Operators
from irload.openvino.ports import DescriptorTensor, Input, Output
from irload.openvino.rt_info import RTMap, plain
from irload.openvino.type_info import DiscreteTypeInfo, type_info
from irload.openvino.types import Type, element_of
from irload.openvino.vectors import Shape

__all__ = ["Node", "as_output"]

_rt_info: WeakKeyDictionary[graph.Node, dict[str, Any]] = WeakKeyDictionary()


class Node(Operators):
    """An operation of a graph. Attributes have getters and setters by name: `node.get_axis()`, `node.set_axis(1)`."""

    _node: graph.Node

    def _adopt(self, node: graph.Node) -> None:
        """Become the adapter of a node that was just created."""
        self._node = node
        adapters.remember(self)

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def friendly_name(self) -> str:
        """The name, by which scripts find the node; assign to rename it."""
        return self._node.name or self.name

    @friendly_name.setter
    def friendly_name(self, name: str) -> None:
        self._node.name = name
        adapters.edited()

    @property
    def name(self) -> str:
        """The unique name, of type and number."""
        return authoring.unique_name(self._node)

    def get_friendly_name(self) -> str:
        """`friendly_name`."""
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        """Rename the node."""
        self.friendly_name = name

    def get_name(self) -> str:
        """`name`."""
        return self.name

    def get_type_name(self) -> str:
        """The type of the operation, such as `Relu`."""
        return attributes.TYPE_NAMES.get(self._node.type, self._node.type)

    def get_instance_id(self) -> int:
        """The number in `name`."""
        return adapters.number_of(self._node)

    @property
    def type_info(self) -> DiscreteTypeInfo:
        """Type and opset of the operation."""
        return type_info(self._node.op)

    def get_type_info(self) -> DiscreteTypeInfo:
        """`type_info`."""
        return self.type_info

    # -- ports ---------------------------------------------------------------------------------------------------------

    @property
    def _count(self) -> int:
        return 1 if self._node.type == "Result" else len(self._node.outputs)

    def get_input_size(self) -> int:
        """The number of inputs."""
        return len(self._node.inputs)

    def get_output_size(self) -> int:
        """The number of outputs."""
        return self._count

    def input(self, input_index: int) -> Input:
        """An input. Raises for an index that does not exist."""
        return Input(self._node, _within(input_index, len(self._node.inputs), "input", self))

    def inputs(self) -> list[Input]:
        """All inputs."""
        return [Input(self._node, k) for k in range(len(self._node.inputs))]

    def output(self, output_index: int) -> Output:
        """An output. Raises for an index that does not exist."""
        return Output(self._node, _within(output_index, self._count, "output", self))

    def outputs(self) -> list[Output]:
        """All outputs."""
        return [Output(self._node, k) for k in range(self._count)]

    def input_value(self, index: int) -> Output:
        """The output that feeds an input."""
        return self.input(index).get_source_output()

    def input_values(self) -> list[Output]:
        """The outputs that feed the inputs."""
        return [i.get_source_output() for i in self.inputs()]

    def get_input_element_type(self, index: int) -> Type:
        """The element type of an input."""
        return self.input(index).get_element_type()

    def get_input_partial_shape(self, index: int) -> PartialShape:
        """The shape of an input, which may be dynamic."""
        return self.input(index).get_partial_shape()

    def get_input_shape(self, index: int) -> Shape:
        """The static shape of an input. Raises for a dynamic one."""
        return self.input(index).get_shape()

    def get_input_tensor(self, index: int) -> DescriptorTensor:
        """The tensor of an input."""
        return self.input(index).get_tensor()

    def get_output_element_type(self, index: int) -> Type:
        """The element type of an output."""
        return self.output(index).element_type

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """The shape of an output, which may be dynamic."""
        return self.output(index).partial_shape

    def get_output_shape(self, index: int) -> Shape:
        """The static shape of an output. Raises for a dynamic one."""
        return self.output(index).shape

    def get_output_tensor(self, index: int) -> DescriptorTensor:
        """The tensor of an output."""
        return self.output(index).tensor

    def _single(self) -> Output:
        if self._count != 1:
            raise OpenVINOError(f"{self!r} has {self._count} outputs; select one with output(index)")
        return self.output(0)

    def _graph_output(self) -> graph.Output:
        return self._single()._source  # noqa: SLF001

    def get_element_type(self) -> Type:
        """The element type of the only output."""
        return self._single().element_type

    @property
    def shape(self) -> Shape:
        """The static shape of the only output."""
        return self._single().shape

    # -- attributes and metadata ---------------------------------------------------------------------------------------

    def get_attributes(self) -> dict[str, Any]:
        """The attributes by their names in the IR."""
        return attributes.shown(self._node.op)

    @raising
    def set_attribute(self, name: str, value: Any) -> None:
        """Change an attribute. `validate_and_infer_types` updates the outputs."""
        self._node.op = attributes.with_attribute(self._node.op, name, plain(value))
        adapters.edited()

    def __getattr__(self, name: str) -> Any:
        action, _, attribute = name.partition("_")
        if action in ("get", "set") and attribute and not name.startswith("_"):
            known = self.get_attributes()
            if attribute in known:
                return (lambda: known[attribute]) if action == "get" else lambda v: self.set_attribute(attribute, v)
        raise AttributeError(f"'openvino.Node' object of {self._node.type} has no attribute '{name}'")

    @property
    def rt_info(self) -> RTMap:
        """The metadata of the node."""
        return RTMap(_rt_info.setdefault(self._node, _entries(self._node)))

    def get_rt_info(self) -> RTMap:
        """`rt_info`."""
        return self.rt_info

    def set_rt_info(self, value: Any, key: str) -> None:
        """Set an entry of the metadata."""
        self.rt_info[key] = plain(value)

    # -- editing -------------------------------------------------------------------------------------------------------

    @raising
    def validate_and_infer_types(self) -> None:
        """Infer the outputs from the inputs. Raises if they do not fit the operation."""
        authoring.infer_node(self._node)

    def constructor_validate_and_infer_types(self) -> None:
        """`validate_and_infer_types`."""
        self.validate_and_infer_types()

    def set_argument(self, index: int, value: Output) -> None:
        """Feed an input from another output."""
        adapters.relink(self._node, index, as_output(value))

    def set_arguments(self, values: Iterable[Node | Output]) -> None:
        """Replace all inputs by these outputs, and by the outputs of these nodes."""
        self._node.inputs = [o for v in values for o in ([as_output(v)] if isinstance(v, Output) else _all(v))]
        adapters.link([self._node])
        adapters.edited()

    def evaluate(self, output_values: Sequence[Any], input_values: Sequence[Any], context: Any = None) -> bool:
        """Compute the outputs for these tensors. Returns True."""
        with translated():
            arrays = [tensor._value() for tensor in input_values]  # noqa: SLF001
            results = authoring.evaluated(self._node.op, arrays, [element_of(t.element_type) for t in input_values])
            for tensor, (array, element) in zip(output_values, results, strict=True):
                tensor.copy_from(type(tensor)._from_array(array, element))  # noqa: SLF001
        return True

    def __repr__(self) -> str:
        shapes = ", ".join(str(o.partial_shape) for o in self.outputs())
        return f"<{self.get_type_name()}: '{self.friendly_name}' ({shapes})>"


def _within(index: int, count: int, kind: str, node: Node) -> int:
    if not 0 <= index < count:
        raise OpenVINOError(f"{node!r} has {count} {kind}s; there is no {kind} {index}")
    return index


def _entries(node: graph.Node) -> dict[str, Any]:
    """The metadata that the file has, by name and version as in OpenVINO."""
    entries: dict[str, Any] = {}
    for entry in node.rt_info:
        if "name" in entry:
            entries[f"{entry['name']}_{entry.get('version', 0)}"] = entry.get("value", "")
    return entries


def _all(node: Node) -> list[graph.Output]:
    return [as_output(o) for o in node.outputs()]


adapters.kinds[""] = Node


def as_output(value: Any) -> graph.Output:
    """The graph output of an Output, or of a node with a single output."""
    if not isinstance(value, Node | Output):
        raise TypeError(f"expected a Node or an Output, found {type(value).__name__}")
    return value._graph_output()  # noqa: SLF001
