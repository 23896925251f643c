"""The state of one input or output between steps, and the operations that steps add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irload import graph
from irload.core import element as et
from irload.core.element import ElementType
from irload.core.shape import UNRANKED, Shape
from irload.openvino import authoring
from irload.openvino.errors import OpenVINOError
from irload.openvino.layouts import Layout
from irload.openvino.preprocess.axes import axis_of, missing_axes, permutation, permuted
from irload.openvino.preprocess.formats import ColorFormat

__all__ = ["State", "Step", "constant", "convert", "operation"]


@dataclass(slots=True)
class State:
    """Planes, layout and colours of an image, and the layout, type and shape of the model's input."""

    planes: list[graph.Output]
    layout: Layout
    color: ColorFormat = ColorFormat.UNDEFINED
    target_layout: Layout = field(default_factory=Layout)
    target_element: ElementType = et.dynamic
    target_shape: Shape = UNRANKED

    @property
    def output(self) -> graph.Output:
        """The only plane. Raises if there are several."""
        if len(self.planes) != 1:
            raise OpenVINOError(
                "a step on an image of several planes; convert it to RGB or BGR with convert_color first"
            )
        return self.planes[0]

    @output.setter
    def output(self, output: graph.Output) -> None:
        self.planes = [output]

    @property
    def shape(self) -> Shape:
        """The shape of the only plane."""
        return self.output.type.shape

    def axis(self, name: str, label: str) -> int:
        """The position of an axis of the image."""
        return axis_of(self.layout, name, self.shape, label)

    def convert(self, element: ElementType) -> None:
        """Convert the element type."""
        self.planes = [convert(plane, element) for plane in self.planes]

    def convert_layout(self, layout: Layout) -> None:
        """Transpose to another layout, with axes of size 1 in front if the image lacks axes."""
        if layout.empty:
            return
        added = missing_axes(self.layout, layout)
        if added:
            axes = constant(np.arange(added), et.i64)
            self.output = operation("Unsqueeze", 1, [self.output, axes])
            present = set(self.layout.names)
            extra = [name for name in layout.names if name not in present][:added]
            self.layout = Layout(f"[{','.join([*extra, *self.layout.names])}]")
        order = permutation(self.layout, layout, self.shape.rank)
        if order:
            self.transpose(order)
        self.layout = layout

    def transpose(self, order: Sequence[int]) -> None:
        """Transpose by a permutation of axes."""
        rank = self.shape.rank
        if sorted(order) != list(range(len(order))) or rank not in (None, len(order)):
            raise OpenVINOError(f"{list(order)} is not a permutation of the axes of {self.shape}")
        self.output = operation("Transpose", 1, [self.output, constant(np.array(order), et.i64)])
        self.layout = permuted(self.layout, list(order))


Step = Callable[[State], None]


def operation(
    type: str,
    opset: int,
    inputs: Sequence[graph.Output],
    **attributes: Any,
) -> graph.Output:
    """The first output of a new operation."""
    return authoring.create(type, f"opset{opset}", inputs, attributes).outputs[0]


def constant(values: Any, element: ElementType) -> graph.Output:
    """A new constant."""
    return authoring.constant(np.asarray(values).astype(element.dtype), element).outputs[0]


def convert(source: graph.Output, element: ElementType) -> graph.Output:
    """The output in another element type."""
    if source.type.element is element:
        return source
    return operation("Convert", 1, [source], destination_type=element.name)
