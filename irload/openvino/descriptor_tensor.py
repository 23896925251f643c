"""DescriptorTensor: the tensor of an output, with its names and the bounds of its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from irload import graph
from irload.core.tensor import TensorType
from irload.openvino import adapters
from irload.openvino.dimensions import PartialShape, Symbol
from irload.openvino.errors import OpenVINOError
from irload.openvino.rt_info import RTMap
from irload.openvino.tensors import Tensor
from irload.openvino.types import Type, type_of
from irload.openvino.vectors import Shape

if TYPE_CHECKING:
    from irload.openvino.ports import ConstOutput

__all__ = ["DescriptorTensor"]


@dataclass
class _Facts:
    """Bounds and symbols that a script has set for a tensor. They hold until the node is inferred again."""

    type: TensorType
    bounds: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    symbols: list[Symbol] = field(default_factory=list[Symbol])


_facts: WeakKeyDictionary[graph.Node, dict[int, _Facts]] = WeakKeyDictionary()


class DescriptorTensor:
    """The tensor of an output: names, type and shape, and the bounds of its values."""

    __slots__ = ("_port",)

    def __init__(self, port: ConstOutput) -> None:
        self._port = port

    @property
    def names(self) -> set[str]:
        """The names; assign to replace them."""
        return self._port.names

    @names.setter
    def names(self, names: Iterable[str]) -> None:
        self.set_names(names)

    def set_names(self, names: Iterable[str]) -> None:
        """Replace the names. The names of a Result are also names of the tensor that it returns."""
        node, source = self._port._node, self._port._source  # noqa: SLF001
        if node.type == "Result":
            source.names = (source.names - (node.output_names or frozenset())) | frozenset(names)
            node.output_names = frozenset(names)
            return
        shown = [user for user, _ in adapters.consumers(node) if user.type == "Result" and user.output_names]
        kept = (user.output_names or frozenset[str]() for user in shown if user.inputs[0] is source)
        source.names = frozenset(names).union(*kept)

    def add_names(self, names: Iterable[str]) -> None:
        """Add names to the tensor; existing names stay."""
        self.set_names({*self.names, *names})

    any_name = property(lambda self: self._port.any_name, doc="One of the names.")
    element_type = property(lambda self: self._port.element_type, doc="The element type.")
    partial_shape = property(lambda self: self._port.partial_shape, doc="The shape, which may be dynamic.")
    shape = property(lambda self: self._port.shape, doc="The static shape.")
    rt_info = property(lambda self: self._port.rt_info, doc="The metadata of the port.")

    @property
    def size(self) -> int:
        """The size in bytes. Raises for a dynamic shape."""
        count = 1
        for n in self._port.shape:
            count *= n
        return count * self._port.element_type.size

    def get_names(self) -> set[str]:
        """`names`."""
        return self.names

    def get_any_name(self) -> str:
        """`any_name`."""
        return self._port.any_name

    def get_element_type(self) -> Type:
        """`element_type`."""
        return self._port.element_type

    def get_partial_shape(self) -> PartialShape:
        """`partial_shape`."""
        return self._port.partial_shape

    def get_shape(self) -> Shape:
        """`shape`."""
        return self._port.shape

    def get_rt_info(self) -> RTMap:
        """`rt_info`."""
        return self._port.rt_info

    def get_lower_value(self) -> Tensor:
        """The lower bounds of the values, an empty tensor if they are unknown."""
        return self._bound("lower")

    def set_lower_value(self, value: Tensor) -> None:
        """Set the lower bounds of the values, for `get_lower_value` only: nothing is inferred from them."""
        self._set_bound("lower", value)

    def get_upper_value(self) -> Tensor:
        """The upper bounds of the values, an empty tensor if they are unknown."""
        return self._bound("upper")

    def set_upper_value(self, value: Tensor) -> None:
        """Set the upper bounds of the values, for `get_upper_value` only: nothing is inferred from them."""
        self._set_bound("upper", value)

    def get_value_symbol(self) -> list[Symbol]:
        """The symbols of the elements that `set_value_symbol` has set."""
        return [*self._facts().symbols]

    def set_value_symbol(self, value_symbol: Sequence[Symbol]) -> None:
        """Set a symbol for each element; an empty list removes them."""
        symbols = [*value_symbol]
        if symbols and len(symbols) != prod(self.shape):
            raise OpenVINOError(f"{self!r} takes {prod(self.shape)} symbols, found {len(symbols)}")
        self._facts().symbols = symbols

    def _bound(self, which: str) -> Tensor:
        if which in self._facts().bounds:
            return self._facts().bounds[which]
        tensor_type = self._port._type  # noqa: SLF001
        value = tensor_type.value if tensor_type.bounds is None else getattr(tensor_type.bounds, which)
        if value is None:
            return Tensor(type_of(tensor_type.element), [0])
        return Tensor._from_array(value.astype(tensor_type.element.dtype), tensor_type.element, shared=False)  # noqa: SLF001

    def _set_bound(self, which: str, value: Tensor) -> None:
        if value.element_type != self.element_type or not self.partial_shape.compatible(PartialShape(value.shape)):
            raise OpenVINOError(f"{value!r} cannot bound the values of {self!r}")
        self._facts().bounds[which] = value

    def _facts(self) -> _Facts:
        source = self._port._source  # noqa: SLF001
        of_node = _facts.setdefault(source.node, {})
        if source.index not in of_node or of_node[source.index].type is not source.type:
            of_node[source.index] = _Facts(source.type)
        return of_node[source.index]

    def __repr__(self) -> str:
        return repr(self._port).replace(type(self._port).__name__, "DescriptorTensor", 1)
