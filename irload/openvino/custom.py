"""Op: operations written in Python for OpenVINO's API, and their registration for files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from irload import graph
from irload.core import attribute as attr
from irload.core import op as core
from irload.core.context import RunContext
from irload.core.shape import Shape as Dims
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.openvino import adapters, authoring
from irload.openvino.attributes import as_text
from irload.openvino.dimensions import PartialShape, dims_of
from irload.openvino.errors import OpenVINOError
from irload.openvino.node import Node
from irload.openvino.remote import Extension, OpExtension
from irload.openvino.tensors import Tensor
from irload.openvino.type_info import DiscreteTypeInfo
from irload.openvino.types import Type, element_of, type_of
from irload.openvino.vectors import Shape

__all__ = ["AttributeVisitor", "Op", "register"]


class AttributeVisitor:
    """Receives the attributes of an operation, and may change them."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self.attributes: dict[str, Any] = {}
        self._texts = texts or {}

    def on_attributes(self, attributes: dict[str, Any]) -> None:
        """Record the attributes; values of a file replace them, converted to their types."""
        for name, value in attributes.items():
            if name in self._texts:
                attributes[name] = _parsed(self._texts[name], value)
            elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
                attributes[name] = value.tolist()
        self.attributes |= attributes


def _parsed(text: str, like: Any) -> Any:
    if isinstance(like, bool):
        return text.lower() in ("true", "1", "yes")
    if isinstance(like, list | tuple):
        items: Any = like
        return [_parsed(part.strip(), items[0] if items else "") for part in text.split(",")]
    return type(like)(text) if isinstance(like, int | float) else text


class _Declared(dict[str, attr.Attribute]):
    """The attributes to write: none for the class, for an instance the attributes of its Python object."""

    def __get__(self, instance: PythonOp | None, owner: type) -> Mapping[str, attr.Attribute]:
        if instance is None:
            return self
        attributes = instance._visited()  # noqa: SLF001
        for value in attributes.values():
            _require_text(value)
        return {name: _declaration(name) for name in attributes}


_DECLARED = _Declared()


class PythonOp(core.Op):
    """The operation of a node whose class is written in Python."""

    folds = False
    widens = False
    python_class: ClassVar[type[Op] | None] = None

    def __init__(self, node: Op | None = None) -> None:
        self.node = node

    @classmethod
    def parse(cls, text: Mapping[str, str], **supplied: Any) -> tuple[Any, list[str]]:
        """The operation of a layer in a file: a new instance of the Python class with these attributes."""
        assert cls.python_class is not None
        node = cls.python_class()
        node.visit_attributes(AttributeVisitor(text))
        op = cls(node)
        node._is_read = True  # noqa: SLF001
        return op, []

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the Python object, as texts."""
        return {name: as_text(value) for name, value in self._visited().items()}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.declared = _DECLARED

    def _visited(self) -> dict[str, Any]:
        visitor = AttributeVisitor()
        if self.node is not None:
            self.node.visit_attributes(visitor)
        return visitor.attributes

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        node = self._owner()
        node._input_types, node._declared = inputs, []  # noqa: SLF001
        try:
            node.validate_and_infer_types()
        finally:
            node._input_types = None  # noqa: SLF001
        return tuple(node._declared)  # noqa: SLF001

    def compute(self, *inputs: Array, context: RunContext) -> tuple[Array, ...]:
        outputs = [Tensor(type_of(t.element), [d.lo if d.is_static else 0 for d in t.shape]) for t in context.outputs]
        elements = [element_of(e) for e in self._owner()._elements]  # noqa: SLF001
        given = [Tensor._from_array(a, e) for a, e in zip(inputs, elements, strict=True)]  # noqa: SLF001
        if not self._owner().evaluate(outputs, given):
            raise ExecutionError(f"{type(self.node).__name__}.evaluate returned False")
        return tuple(t._value() for t in outputs)  # noqa: SLF001

    def _owner(self) -> Op:
        if self.node is None:
            raise ExecutionError(f"{self.type} has no Python object")
        return self.node


PythonOp.signature = core.Signature.of(PythonOp)


class Op(Node):
    """Base of operations written in Python.

    Subclasses define `validate_and_infer_types`, which calls `set_output_type`, and `evaluate(outputs, inputs)`, which
    fills the tensors of the outputs and returns True. `visit_attributes(visitor)` names the attributes.
    """

    _input_types: Sequence[TensorType] | None = None
    """The types of the inputs during inference."""
    _is_read = False
    """True if the object describes a layer of a file, until it has the node of this layer."""

    def __init__(self, py_obj: Op | None = None, inputs: Any = None) -> None:
        info = self._info()
        op_class = type(info.name, (PythonOp,), {"type": info.name, "opset": info.version_id})
        node = graph.Node(-1, "", op_class(self))
        node.id = adapters.number_of(node)
        node.name = authoring.unique_name(node)
        node.version = info.version_id
        self._declared: list[TensorType] = []
        self._elements: list[Any] = []
        self._adopt(node)
        adapters.link([node])
        if isinstance(inputs, tuple):
            inputs = cast("tuple[Any, ...]", inputs)
            inputs = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list) else list(inputs) or None
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def _info(self) -> DiscreteTypeInfo:
        info = getattr(type(self), "class_type_info", None)
        return info if isinstance(info, DiscreteTypeInfo) else DiscreteTypeInfo(type(self).__name__, "extension")

    def _belongs_to(self, node: graph.Node) -> bool:
        if self._is_read:
            self._adopt(node)
            self._is_read = False
        return self._node is node

    def get_input_size(self) -> int:
        """The number of inputs."""
        return super().get_input_size() if self._input_types is None else len(self._input_types)

    def get_type_info(self) -> DiscreteTypeInfo:
        """Type and opset of the operation."""
        return self._info()

    def get_type_name(self) -> str:
        """The type of the operation."""
        return self._info().name

    def constructor_validate_and_infer_types(self) -> None:
        """Infer the outputs."""
        authoring.infer_node(self._node)

    def get_input_element_type(self, index: int) -> Type:
        """The element type of an input."""
        return (
            super().get_input_element_type(index)
            if self._input_types is None
            else type_of(self._input_types[index].element)
        )

    def get_input_partial_shape(self, index: int) -> PartialShape:
        """The shape of an input, which may be dynamic."""
        if self._input_types is None:
            return super().get_input_partial_shape(index)
        return PartialShape._from_dims(self._input_types[index].shape)  # noqa: SLF001

    def get_input_shape(self, index: int) -> Shape:
        """The static shape of an input. Raises for a dynamic one."""
        return self.get_input_partial_shape(index).to_shape()

    def set_output_size(self, size: int) -> None:
        """Set the number of outputs."""
        while len(self._declared) < size:
            self._declared.append(TensorType(element_of(Type.dynamic), Dims.unranked()))

    def set_output_type(self, index: int, element_type: Any, shape: Any) -> None:
        """Set the type of an output."""
        self.set_output_size(index + 1)
        self._declared[index] = TensorType(element_of(element_type), dims_of(shape))
        self._elements = [type_of(t.element) for t in self._input_types or ()] or self._elements

    def visit_attributes(self, visitor: AttributeVisitor) -> bool:
        """Pass the attributes to `visitor.on_attributes`. Returns True."""
        return True

    def has_evaluate(self) -> bool:
        """True if the operation can run."""
        return type(self).evaluate is not Op.evaluate

    def evaluate(self, output_values: Sequence[Any], input_values: Sequence[Any], context: Any = None) -> bool:
        """Fill the tensors of the outputs. Raises unless the subclass defines it."""
        raise OpenVINOError(f"{type(self).__name__} does not define evaluate")

    def get_attributes(self) -> dict[str, Any]:
        """The attributes by name."""
        visitor = AttributeVisitor()
        self.visit_attributes(visitor)
        return visitor.attributes

    def _update_type_info(self) -> None:
        """Accept the call of OpenVINO's base class."""


def register(extension: Any) -> None:
    """Register an operation written in Python, so that files with it can be read. Raises RuntimeError for others."""
    if isinstance(extension, Extension) and not isinstance(extension, OpExtension):
        return  # an instance of another subclass of Extension registers nothing
    cls: Any = extension.operation if isinstance(extension, OpExtension) else extension
    if not (isinstance(cls, type) and issubclass(cls, Op)):
        raise OpenVINOError(f"Unsupported data type : '{cls}' is passed as an argument.")
    info = getattr(cls, "class_type_info", None)
    if info is not None and not isinstance(info, DiscreteTypeInfo):
        raise OpenVINOError(f"operation type_info must be an instance of DiscreteTypeInfo, but {type(info)} is passed.")
    create = cast("Callable[[], Op]", cls)
    try:
        node = create()
    except TypeError as error:
        raise OpenVINOError(str(error)) from error
    type_info = node._info()  # noqa: SLF001
    type(f"_{type_info.name}", (PythonOp,), {"python_class": cls}, type=type_info.name, opset=type_info.version_id)


def _declaration(name: str) -> attr.Attribute:
    attribute: Any = attr.text(default=None)
    attribute.__set_name__(PythonOp, name)
    return attribute


def _require_text(value: Any) -> None:
    if isinstance(value, dict | set):
        raise TypeError(f"Unsupported attribute type: {type(cast(object, value))}")
    if isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            if isinstance(item, dict | set | list):
                raise TypeError(f"Unsupported attribute type in provided list: {type(cast(object, item))}")
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biuf":
        raise TypeError(f"Unsupported NumPy array dtype: {value.dtype}")
