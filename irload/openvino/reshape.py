"""The shapes that `Model.reshape` takes, by input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import irload.model
from irload import graph
from irload.core.shape import Shape
from irload.openvino.dimensions import PartialShape, dims_of
from irload.openvino.errors import OpenVINOError
from irload.openvino.ports import ConstOutput
from irload.openvino.vectors import Shape as StaticShape

__all__ = ["input_of", "shape_value", "shapes_by_parameter"]


def shapes_by_parameter(model: irload.model.Model, given: Any) -> dict[graph.Node, Shape]:
    """The new shape of each Parameter. `given`: one shape, or a dict from name, index or port to shape."""
    if not isinstance(given, Mapping):
        shape_value(given)
        if len(model.parameters) != 1:
            raise OpenVINOError(
                f"one shape was given for a model of {len(model.parameters)} inputs; give a dict by name or index"
            )
        given = {0: given}
    return {input_of(model, key): shape_value(value) for key, value in cast("Mapping[Any, Any]", given).items()}


def input_of(model: irload.model.Model, key: Any) -> graph.Node:
    """The Parameter by index, tensor name or port. Raises IndexError for an index, RuntimeError for a name."""
    if isinstance(key, ConstOutput):
        node = key._node  # noqa: SLF001
        if node in model.parameters:
            return node
        raise OpenVINOError(f"{key} is not an input of the model")
    if isinstance(key, int):
        if not 0 <= key < len(model.parameters):
            raise IndexError(f"there is no input {key}; the model has {len(model.parameters)}")
        return model.parameters[key]
    if not isinstance(key, str):
        raise TypeError(
            f"Incorrect key type {type(key)} to reshape a model, expected keys as openvino.Output, int or str."
        )
    for node in model.parameters:
        if key in node.outputs[0].names:
            return node
    raise OpenVINOError(f"Input for tensor name '{key}' is not found.")


def shape_value(value: Any) -> Shape:
    """The dims of a shape in one of the forms that `reshape` takes. Raises TypeError."""
    if not isinstance(value, PartialShape | StaticShape | str | list | tuple):
        raise TypeError(
            f"Incorrect value type {type(value)} to reshape a model, "
            "expected values as openvino.PartialShape, str, list or tuple."
        )
    return dims_of(value)
