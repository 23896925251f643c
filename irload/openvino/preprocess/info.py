"""The declarations of PrePostProcessor: the tensors of the user, the ports of the model, and the steps between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from irload.core.element import ElementType
from irload.core.shape import Shape
from irload.openvino.dimensions import dims_of
from irload.openvino.errors import OpenVINOError, translated
from irload.openvino.layouts import Layout
from irload.openvino.preprocess.formats import PLANES, ColorFormat
from irload.openvino.preprocess.steps import PostProcessSteps, PreProcessSteps
from irload.openvino.tensors import Tensor
from irload.openvino.types import Type, element_of

__all__ = [
    "InputInfo",
    "InputModelInfo",
    "InputTensorInfo",
    "OutputInfo",
    "OutputModelInfo",
    "OutputTensorInfo",
]


class _Declared:
    """Base of declarations with an optional layout."""

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self.element: ElementType | None = None

    def set_layout(self, layout: Layout | str) -> Self:
        """Set the names of the axes."""
        self.layout = Layout(layout)
        return self


class InputModelInfo(_Declared):
    """The input of the model."""


class OutputModelInfo(_Declared):
    """The output of the model."""


class OutputTensorInfo(_Declared):
    """The tensor of an output."""

    def set_element_type(self, type: Type) -> Self:
        """Set the element type."""
        self.element = element_of(type)
        return self


class InputTensorInfo(OutputTensorInfo):
    """The tensor of an input."""

    def __init__(self) -> None:
        super().__init__()
        self.shape: Shape | None = None
        self.spatial: tuple[int | None, int | None] | None = None
        """Height and width, None for dynamic ones."""
        self.color = ColorFormat.UNDEFINED
        self.sub_names: list[str] = []
        self.memory_type: str | None = None

    def set_shape(self, shape: Any) -> Self:
        """Set the shape."""
        with translated():
            self.shape = dims_of(shape)
        return self

    def set_spatial_static_shape(self, height: int, width: int) -> Self:
        """Set height and width."""
        self.spatial = int(height), int(width)
        return self

    def set_spatial_dynamic_shape(self) -> Self:
        """Let height and width be dynamic."""
        self.spatial = None, None
        return self

    def set_color_format(self, format: ColorFormat, sub_names: Sequence[str] = ()) -> Self:
        """Set the colour format, and the names of its planes."""
        planes = max(len(PLANES[format].planes) if format in PLANES else 1, 1)
        if sub_names and len(sub_names) != planes:
            raise OpenVINOError(
                f"Number of sub-names ({len(sub_names)}) shall match with number of planes for '{format.name}' "
                f"color format ({planes})"
            )
        self.color, self.sub_names = format, [*sub_names]
        return self

    def set_memory_type(self, memory_type: str) -> Self:
        """Set the metadata `memory_type` of the input, which has no effect on the CPU."""
        self.memory_type = memory_type
        return self

    def set_from(self, tensor: Any) -> Self:
        """Set element type and shape as in a tensor or an array."""
        if not isinstance(tensor, Tensor):
            tensor = Tensor(np.asarray(tensor))
        return self.set_element_type(tensor.element_type).set_shape(tensor.shape)


class InputInfo:
    """One input: `tensor()` of the user, `preprocess()`, `model()`."""

    def __init__(self) -> None:
        self._tensor, self._steps, self._model = InputTensorInfo(), PreProcessSteps(), InputModelInfo()

    def tensor(self) -> InputTensorInfo:
        """The tensor of the user."""
        return self._tensor

    def preprocess(self) -> PreProcessSteps:
        """The steps from the tensor of the user to the input of the model."""
        return self._steps

    def model(self) -> InputModelInfo:
        """The input of the model."""
        return self._model


class OutputInfo:
    """One output: `model()`, `postprocess()`, `tensor()` of the user."""

    def __init__(self) -> None:
        self._tensor, self._steps, self._model = OutputTensorInfo(), PostProcessSteps(), OutputModelInfo()

    def tensor(self) -> OutputTensorInfo:
        """The tensor of the user."""
        return self._tensor

    def postprocess(self) -> PostProcessSteps:
        """The steps from the output of the model to the tensor of the user."""
        return self._steps

    def model(self) -> OutputModelInfo:
        """The output of the model."""
        return self._model
