"""Functions of the top-level module: the batch size of models, tensors from files."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.openvino.dimensions import Dimension, PartialShape
from irload.openvino.errors import OpenVINOError, raising
from irload.openvino.layouts import Layout
from irload.openvino.model import Model
from irload.openvino.nodes import layout_of
from irload.openvino.tensors import Tensor

__all__ = ["get_batch", "set_batch", "shutdown", "tensor_from_file"]


def _batch_axes(model: Model) -> list[tuple[Any, int]]:
    """The inputs whose layout has N, with its position."""
    axes: list[tuple[Any, int]] = []
    for port in model.inputs:
        layout = layout_of(port._source)  # noqa: SLF001
        if layout.has_name("N"):
            axes.append((port, layout.get_index_by_name("N")))
    if not axes:
        listed = "; ".join(f"{p.any_name} {p.partial_shape} {Layout()}" for p in model.inputs)
        raise OpenVINOError(
            f"Get original batch size fails due to batch is not set in any layout for any input ({listed}). "
            "Set it, for example by model.parameters[0].layout = 'NCHW'"
        )
    return axes


def get_batch(model: Model) -> Dimension:
    """The batch size, the axis N of the layouts of the inputs. Raises if there is none or if they differ."""
    batches = [port.partial_shape[axis] for port, axis in _batch_axes(model)]
    if any(not b.compatible(batches[0]) for b in batches):
        raise OpenVINOError(f"the batch sizes of the inputs differ: {', '.join(map(str, batches))}")
    return batches[0]


@raising
def set_batch(model: Model, dimension: Any = -1) -> None:
    """Reshape the model for a batch size, the axis N of the layouts of its inputs."""
    shapes: dict[Any, PartialShape] = {}
    for port, axis in _batch_axes(model):
        shape = port.partial_shape
        shape[axis] = Dimension(dimension)
        shapes[port] = shape
    model.reshape(shapes)


def shutdown() -> None:
    """Accept the call that shuts OpenVINO down: irload releases its memory with its objects."""


def tensor_from_file(path: Any) -> Tensor:
    """The bytes of a file as a tensor of u8."""
    return Tensor(np.fromfile(path, np.uint8))
