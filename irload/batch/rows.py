"""What a file or row gives a model: one array an input, checked and stacked on an axis of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from irload.core.element import ElementType
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import InputInvalid
from irload.graph import Output, Port
from irload.inputs import bind

if TYPE_CHECKING:
    from irload.batch.predictor import Predictor


SHAPES = 1000
"""Shapes of inputs that are remembered as fitting."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The inputs of one item in the model's order. Axis 0 counts samples; `lone` if the item came without it."""

    arrays: tuple[Array, ...]
    lone: bool = False


def rows_of(predictor: Predictor, values: Sequence[Array]) -> Rows:
    """The rows of one item. Raises InputInvalid naming the input and what it takes."""
    ports = predictor.inputs
    if len(values) != len(ports):
        raise InputInvalid(f"the model takes {len(ports)} inputs, found {len(values)}")
    if not predictor.stacking.stacked:
        fitted = [narrowed(p.element_type, v) for p, v in zip(ports, values, strict=True)]
        return Rows(tuple(bind(ports, fitted)))
    lone = all(v.ndim + 1 == p.partial_shape.rank for p, v in zip(ports, values, strict=True))
    stacks = [v[None] if lone else v for v in values]
    stackable = predictor.stack_ports
    arrays = tuple(bind([p], [narrowed(p.element_type, v)])[0] for p, v in zip(stackable, stacks, strict=True))
    counts = {len(a) for a in arrays}
    if len(counts) > 1:
        raise InputInvalid(f"the inputs differ in their number of samples: {', '.join(map(str, sorted(counts)))}")
    if 0 in counts:
        raise InputInvalid("there is no sample in it")
    return Rows(arrays, lone)


def require_fit(predictor: Predictor, port: Port, shape: tuple[int, ...]) -> None:
    """Refuse an array by its shape, before its data are read. Raises InputInvalid."""
    if (port.index, shape) in predictor.fitting:
        return
    takes = port.partial_shape
    if predictor.stacking.stacked:
        takes = predictor.stack_ports[port.index].partial_shape
    full = (1, *shape) if predictor.stacking.stacked and len(shape) + 1 == takes.rank else shape
    if not takes.contains(Shape(*full)):
        raise InputInvalid(f"has shape {Shape(*shape)}; input '{port.any_name}' takes {takes}")
    if len(predictor.fitting) < SHAPES:
        predictor.fitting.add((port.index, shape))


def any_count(port: Port) -> Port:
    """The port as one that takes any number of samples."""
    tensor = TensorType(port.element_type, Shape(None, *port.partial_shape[1:]))
    return Port(port.node, Output(port.node, port.output.index, type=tensor), 0, port.names)


def narrowed(element: ElementType, value: Array) -> Array:
    """Values for a model that takes bf16 or f8, which files cannot hold: converted where that loses nothing."""
    if element.is_low_precision and value.dtype.kind == "f" and value.dtype.itemsize > element.dtype.itemsize:
        narrow = value.astype(np.float32).astype(element.dtype)
        if np.array_equal(narrow.astype(value.dtype), value, equal_nan=True):
            return narrow
    return value
