"""Factories without a row in the table: Parameter, Constant, Result, ReadValue and Assign."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from irload.openvino import authoring
from irload.openvino.adapters import adapter
from irload.openvino.bodies import if_op, loop, tensor_iterator
from irload.openvino.dimensions import dims_of
from irload.openvino.errors import raising
from irload.openvino.node import Node, as_output
from irload.openvino.nodes import Constant, Parameter, Result
from irload.openvino.ports import Output
from irload.openvino.tensors import Tensor
from irload.openvino.types import element_for, type_of
from irload.openvino.variables import Variable

__all__ = ["function", "names"]


@raising
def parameter(shape: Any, dtype: Any = np.float32, name: str | None = None) -> Parameter:
    """An input of a model."""
    node = Parameter(type_of(element_for(dtype)), shape)
    if name:
        node.friendly_name = name
    return node


@raising
def constant(
    value: Any = None,
    dtype: Any = None,
    name: str | None = None,
    *,
    shared_memory: bool = False,
    tensor: Tensor | None = None,
) -> Constant:
    """A constant of numbers or strings, an array or a Tensor, converted to `dtype` if it is given."""
    value = value if tensor is None else tensor
    if value is None:
        raise ValueError("Cannot create an empty Constant. Please provide valid data.")
    if isinstance(value, Tensor):
        node = Constant(value, shared_memory=shared_memory)
    elif value is None:
        raise ValueError("Cannot create an empty Constant; give numbers, strings, an array or a Tensor")
    else:
        array = np.asarray(value)
        if dtype is None:
            node = Constant(array, shared_memory=shared_memory)
        else:
            node = Constant(type_of(element_for(dtype)), array.shape, array)
    if name:
        node.friendly_name = name
    return node


@raising
def result(data: Any, name: str | None = None) -> Result:
    """An output of a model: of a node, an output, or numbers."""
    source = authoring.as_input(data, name or "")
    node = Result(Output(source.node, source.index))
    if name:
        node.friendly_name = name
    return node


@raising
def read_value(*given: Any, **named: Any) -> Node:
    """The value of a variable: `read_value(init_value, variable_id)` or with its type and shape, or a Variable."""
    rest = [*given]
    init = rest.pop(0) if rest and not isinstance(rest[0], str | Variable) else named.get("init_value")
    key: Any = rest.pop(0) if rest else named.get("variable_id", named.get("variable", named.get("ov_variable")))
    element: Any = rest.pop(0) if rest else named.get("variable_type")
    shape: Any = rest.pop(0) if rest else named.get("variable_shape")
    if isinstance(key, Variable):
        element, shape, key = key.info.data_type, key.info.data_shape, key.info.variable_id
    attributes: dict[str, Any] = {"variable_id": key}
    if element is not None and shape is None:
        raise TypeError("The necessary overload for read_value was not found: a type needs a shape")
    if element is not None:
        attributes |= {"variable_type": element, "variable_shape": str(dims_of(shape)).strip("[]")}
    node = authoring.create("ReadValue", "opset6", [] if init is None else [authoring.as_input(init)], attributes)
    node.name = str(named.get("name") or (rest[0] if rest else node.name))
    return adapter(node)


@raising
def assign(new_value: Any = None, variable: Any = None, name: str = "", *, variable_id: str | None = None) -> Node:
    """The assignment of a variable, by its id or a Variable. Without arguments it is wired later."""
    if new_value is None:
        return adapter(authoring.unwired("Assign", "opset6", {"variable_id": ""}))
    key = variable_id if variable is None else variable
    key = key.info.variable_id if isinstance(key, Variable) else key
    node = authoring.create("Assign", "opset6", [as_output(new_value)], {"variable_id": key})
    node.name = name or node.name
    return adapter(node)


@raising
def roi_pooling(
    input: Any,
    coords: Any,
    output_roi: Any = None,
    spatial_scale: Any = None,
    method: str = "max",
    name: str | None = None,
    *,
    output_size: Any = None,
) -> Node:
    """Pools each region to `output_roi`, also named `output_size`, a height and a width."""
    sizes = output_roi if output_roi is not None else output_size
    if sizes is None:
        raise AttributeError("One of the following arguments must be defined: `output_roi`, `output_size`!")
    if spatial_scale is None:
        raise AttributeError("The following arguments must be defined: `spatial_scale`!")
    if output_size is not None:
        warnings.warn("`output_size` is deprecated and will be removed in future", DeprecationWarning, stacklevel=3)
    attributes = {"pooled_h": sizes[0], "pooled_w": sizes[1], "spatial_scale": float(spatial_scale), "method": method}
    attributes |= {"output_size": sizes, "output_roi": sizes}
    node = authoring.create("ROIPooling", "opset2", [authoring.as_input(i) for i in (input, coords)], attributes)
    node.name = name or node.name
    pooling = adapter(node)
    if output_size is not None:  # OpenVINO replaces these methods as well
        setattr(pooling, "get_output_size", lambda: pooling.get_output_roi())  # noqa: B010 - not declared with this type
        setattr(pooling, "set_output_size", lambda size: pooling.set_output_roi(size))  # noqa: B010
    return pooling


_SINCE: dict[str, tuple[int, Callable[..., Any]]] = {
    "Constant": (1, Constant),
    "Parameter": (1, Parameter),
    "Result": (1, Result),
    "constant": (1, constant),
    "if_op": (8, if_op),
    "loop": (5, loop),
    "roi_pooling": (2, roi_pooling),
    "tensor_iterator": (1, tensor_iterator),
    "parameter": (1, parameter),
    "result": (1, result),
    "assign": (6, assign),
    "read_value": (6, read_value),
}


def names() -> Collection[str]:
    """The names of these factories in any opset."""
    return _SINCE.keys()


def function(number: int, name: str) -> Callable[..., Any] | None:
    """The factory of an opset, None for another name."""
    since, factory = _SINCE.get(name, (0, None))
    return factory if factory is not None and since <= number else None
