"""Attributes of operations in the form in which OpenVINO's Python API returns and accepts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from irload.core.attribute import Attribute
from irload.core.element import ElementType
from irload.core.op import Op
from irload.core.shape import Shape as Dims
from irload.graph import UnknownOp
from irload.openvino.dimensions import Dimension, PartialShape
from irload.openvino.types import Type, element_for, type_of
from irload.openvino.vectors import Shape

__all__ = ["TYPE_NAMES", "XML_NAMES", "as_text", "shown", "with_attribute"]

TYPE_NAMES = {"Const": "Constant", "PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}
"""Types of operations whose name in the API differs from that in the IR."""
XML_NAMES = {name: xml for xml, name in TYPE_NAMES.items()}

_HIDDEN = {"Const": ("offset", "size")}


def shown(op: Op) -> dict[str, Any]:
    """The attributes by their names in the IR: numbers, texts, booleans, and lists of these."""
    if isinstance(op, UnknownOp):
        return dict(op.text)
    hidden = _HIDDEN.get(op.type, ())
    return {
        declaration.xml_name: _plain(op.attributes[name])
        for name, declaration in op.declared.items()
        if not declaration.supplied
        and name not in hidden
        and op.attributes[name] is not None
        and ("." not in declaration.xml_name or op.attributes[name] != declaration.default)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, ElementType):
        return value.name
    if isinstance(value, Dims):
        if value.rank is None:
            return "[...]"
        return [d.lo if d.is_static else -1 for d in value]
    return list(cast("Iterable[Any]", value)) if isinstance(value, tuple) else value


def with_attribute(op: Op, name: str, value: Any) -> Op:
    """The operation with another value of one attribute, given as text or as the API takes it."""
    declaration = next((a for n, a in op.declared.items() if name in (n, a.xml_name)), None)
    if declaration is None:
        raise AttributeError(f"{op.type} has no attribute {name}")
    changed = {declaration.name: declaration.read(as_text(value), [])}
    if op.type == "ROIPooling" and name in ("output_roi", "output_size"):  # the same two numbers under other names
        sizes = changed[name]
        changed |= {"output_roi": sizes, "output_size": sizes, "pooled_h": sizes[0], "pooled_w": sizes[1]}
    return type(op)(**op.attributes | changed)


def as_text(value: Any) -> str:
    """The text of an attribute in the IR."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return repr(float(value))
    if isinstance(value, Dimension | PartialShape | Shape):
        return str(value).strip("[]") if len(str(value)) > len("[...]") or "..." not in str(value) else "..."
    if isinstance(value, Type | type | np.dtype):
        return type_of(element_for(value)).type_name
    if isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist()
    if isinstance(value, Iterable):
        return ",".join(map(as_text, cast("Iterable[Any]", value)))
    return str(int(value)) if hasattr(value, "__index__") else str(value)


def named(cls: type[Op], attributes: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the attributes that an operation declares, by their names in the IR."""
    declared: dict[str, Attribute] = {
        key: a for a in cls.declared.values() if not a.supplied for key in (a.name, a.xml_name)
    }
    unknown = sorted(attributes.keys() - declared.keys())
    if unknown:
        raise AttributeError(f"{cls.type} has no attribute {', '.join(unknown)}")
    return {declared[name].xml_name: as_text(value) for name, value in attributes.items() if value is not None}
