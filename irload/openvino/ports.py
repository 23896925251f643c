"""Output, ConstOutput and Input: the ends of edges."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from warnings import warn
from weakref import WeakKeyDictionary

from irload import graph
from irload.core.tensor import TensorType
from irload.openvino import adapters
from irload.openvino.descriptor_tensor import DescriptorTensor
from irload.openvino.dimensions import PartialShape
from irload.openvino.errors import OpenVINOError
from irload.openvino.rt_info import RTMap, plain
from irload.openvino.types import Type, type_of
from irload.openvino.vectors import Shape

if TYPE_CHECKING:
    from irload.openvino.node import Node

__all__ = ["ConstOutput", "DescriptorTensor", "Input", "Output", "keep_symbols", "source_of"]

_rt_info: WeakKeyDictionary[graph.Node, dict[tuple[str, int], dict[str, Any]]] = WeakKeyDictionary()
"""Node → (side, index of the port) → metadata set by scripts."""

_symbolic: WeakKeyDictionary[graph.Node, PartialShape] = WeakKeyDictionary()
"""The shapes of Parameters that scripts have created with symbols."""


class ConstOutput:
    """An output of a node of a compiled model, read-only."""

    # Hashable. Ports are equal if they have the same node and index.

    def __init__(self, node: graph.Node, index: int) -> None:
        self._node = node
        self._index = index

    @property
    def _source(self) -> graph.Output:
        """The output in the graph. A Result shows the tensor of its input."""
        return source_of(self._node, self._index)

    def _graph_output(self) -> graph.Output:
        return self._source

    @property
    def _type(self) -> TensorType:
        return self._source.type

    def _metadata(self) -> ChainMap[str, Any]:
        """The entries set by scripts, then the entries that are saved with the model."""
        read = {
            f"{entry['name']}_{entry.get('version', 0)}": entry.get("value", entry.get(entry["name"], ""))
            for entry in self._source.rt_info
            if "name" in entry
        }
        return ChainMap(_items(self._node, "output", self._index), read)

    # -- the tensor ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> set[str]:
        """The names of the tensor."""
        if self._node.type == "Result" and self._node.output_names is not None:
            return set(self._node.output_names)
        return set(self._source.names)

    @property
    def any_name(self) -> str:
        """One of the names, the first in sorted order. Raises if there is none."""
        names = self.names
        if not names:
            raise OpenVINOError(
                f"attempt to get a name for a tensor without names: output {self._index} of {self.node}"
            )
        return min(names)

    @property
    def element_type(self) -> Type:
        """The element type."""
        return type_of(self._type.element)

    @property
    def partial_shape(self) -> PartialShape:
        """The shape, which may be dynamic."""
        shape = PartialShape._from_dims(self._type.shape)  # noqa: SLF001
        symbolic = _symbolic.get(self._source.node) if _symbolic else None
        return PartialShape(symbolic) if symbolic is not None and symbolic == shape else shape

    @property
    def shape(self) -> Shape:
        """The static shape. Raises for a dynamic one."""
        return self.partial_shape.to_shape()

    @property
    def tensor(self) -> DescriptorTensor:
        """The tensor, for its names and bounds."""
        return DescriptorTensor(self)

    @property
    def index(self) -> int:
        """The position among the outputs of the node."""
        return self._index

    @property
    def node(self) -> Node:
        """The node."""
        return adapters.adapter(self._node)

    @property
    def target_inputs(self) -> set[Input]:
        """The inputs that this output feeds."""
        return {Input(user, k) for user, k in adapters.consumers(self._node) if user.inputs[k] is self._source}

    @property
    def rt_info(self) -> RTMap:
        """The metadata of the port, which is read only."""
        return _ReadOnly(self._metadata())

    def get_names(self) -> set[str]:
        """`names`."""
        return self.names

    def get_any_name(self) -> str:
        """`any_name`."""
        return self.any_name

    def get_element_type(self) -> Type:
        """`element_type`."""
        return self.element_type

    def get_partial_shape(self) -> PartialShape:
        """`partial_shape`."""
        return self.partial_shape

    def get_shape(self) -> Shape:
        """`shape`."""
        return self.shape

    def get_tensor(self) -> DescriptorTensor:
        """`tensor`."""
        return self.tensor

    def get_index(self) -> int:
        """`index`."""
        return self._index

    def get_node(self) -> Node:
        """`node`."""
        return self.node

    def get_target_inputs(self) -> set[Input]:
        """`target_inputs`."""
        return self.target_inputs

    def get_rt_info(self) -> RTMap:
        """`rt_info`."""
        return self.rt_info

    def _key(self) -> tuple[int, int]:
        return adapters.number_of(self._node), self._index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstOutput):
            return NotImplemented
        return self._node is other._node and self._index == other._index

    def __lt__(self, other: ConstOutput) -> bool:
        return self._key() < other._key()

    def __le__(self, other: ConstOutput) -> bool:
        return self._key() <= other._key()

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __copy__(self) -> ConstOutput:
        return type(self)(self._node, self._index)

    def __deepcopy__(self, memo: dict[int, Any]) -> ConstOutput:
        raise TypeError(f"Cannot deepcopy 'openvino.{type(self).__name__}' object.")

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.names))
        return f"<{type(self).__name__}: names[{names}] shape{self.partial_shape} type: {self._type.element.name}>"


class Output(ConstOutput):
    """An output of a node in a graph that can be edited."""

    @property
    def rt_info(self) -> RTMap:
        """The metadata of the port."""
        return RTMap(self._metadata())

    @staticmethod
    def _from_node(node: Node) -> Output:
        return node.output(0)

    def add_names(self, names: Iterable[str]) -> None:
        """Add names to the tensor."""
        self.tensor.add_names(names)

    def set_names(self, names: Iterable[str]) -> None:
        """Replace the names of the tensor."""
        self.tensor.set_names(names)

    def set_rt_info(self, value: Any, key: str) -> None:
        """Set an entry of the metadata."""
        self.rt_info[key] = plain(value)

    def remove_target_input(self, target_input: Input) -> None:
        """Disconnect an input that this output feeds."""
        raise OpenVINOError(f"{target_input} cannot be left without a source; feed it with replace_source_output")

    def replace(self, replacement: Output) -> None:
        """Feed all consumers of this output from another, which also gets the names."""
        for target in self.target_inputs:
            if target._node is not replacement._node:  # noqa: SLF001
                target.replace_source_output(replacement)
        replacement.add_names(self.names)


class Input:
    """An input of a node."""

    def __init__(self, node: graph.Node, index: int) -> None:
        self._node = node
        self._index = index

    def get_node(self) -> Node:
        """The node."""
        return adapters.adapter(self._node)

    def get_index(self) -> int:
        """The position among the inputs of the node."""
        return self._index

    def get_source_output(self) -> Output:
        """The output that feeds this input."""
        source = self._node.inputs[self._index]
        return Output(source.node, source.index)

    def replace_source_output(self, new_source_output: Output) -> None:
        """Feed the input from another output."""
        adapters.relink(self._node, self._index, new_source_output._source)  # noqa: SLF001

    def get_element_type(self) -> Type:
        """The element type."""
        return self.get_source_output().element_type

    def get_partial_shape(self) -> PartialShape:
        """The shape, which may be dynamic."""
        return self.get_source_output().partial_shape

    def get_shape(self) -> Shape:
        """The static shape. Raises for a dynamic one."""
        return self.get_source_output().shape

    def get_tensor(self) -> DescriptorTensor:
        """The tensor."""
        return self.get_source_output().tensor

    def get_rt_info(self) -> RTMap:
        """The metadata of the port."""
        return RTMap(_items(self._node, "input", self._index))

    def set_rt_info(self, value: Any, key: str) -> None:
        """Set an entry of the metadata."""
        self.get_rt_info()[key] = plain(value)

    @property
    def rt_info(self) -> RTMap:
        """The metadata of the port."""
        return self.get_rt_info()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Input):
            return NotImplemented
        return self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __repr__(self) -> str:
        return f"<Input: shape{self.get_partial_shape()} type: {self.get_element_type().type_name}>"


def keep_symbols(parameter: graph.Node, shape: Any) -> None:
    """Let the output of a Parameter show the symbols of this shape, until the Parameter has another one."""
    if isinstance(shape, PartialShape) and shape.rank.is_static and any(d.has_symbol() for d in shape):
        _symbolic[parameter] = PartialShape(shape)
    else:
        _symbolic.pop(parameter, None)


def source_of(node: graph.Node, index: int) -> graph.Output:
    """The graph's output; for a Result the output that feeds it."""
    return node.inputs[0] if node.type == "Result" else node.outputs[index]


def _items(node: graph.Node, side: str, index: int) -> dict[str, Any]:
    return _rt_info.setdefault(node, {}).setdefault((side, index), {})


class _ReadOnly(RTMap):
    """Metadata that should not be changed; as in OpenVINO, changes still work."""

    def __setitem__(self, key: str, value: Any) -> None:
        warn("Setting rt_info via ConstOutput is deprecated; set it on a Model", DeprecationWarning, stacklevel=2)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        warn("Setting rt_info via ConstOutput is deprecated; set it on a Model", DeprecationWarning, stacklevel=2)
        super().__delitem__(key)
