"""The steps of pre- and postprocessing: each method adds one to the list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from irload.core import element as et
from irload.openvino import authoring
from irload.openvino.errors import OpenVINOError
from irload.openvino.layouts import Layout
from irload.openvino.ports import Output
from irload.openvino.preprocess import colors
from irload.openvino.preprocess.axes import axis_of
from irload.openvino.preprocess.formats import ColorFormat, PaddingMode, ResizeAlgorithm
from irload.openvino.preprocess.state import State, Step, constant, operation
from irload.openvino.preprocess.trace import color_name, numbers
from irload.openvino.types import Type, element_of

__all__ = ["PostProcessSteps", "PreProcessSteps"]

_FILLED = {
    PaddingMode.REFLECT: "reflected from tensor",
    PaddingMode.SYMMETRIC: "symmetrically added from tensor",
}
"""How padding is described."""


class _Steps:
    """Steps that both sides have."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Step]] = []
        self.layouts: list[Layout | list[int]] = []
        """Layouts and permutations of steps `convert_layout`. An empty layout stands for that of the other side."""

    @property
    def orders(self) -> list[list[int]]:
        """The permutations of steps `convert_layout(dims)`."""
        return [order for order in self.layouts if not isinstance(order, Layout)]

    def _add(self, text: str, step: Step) -> Self:
        self.steps.append((text, step))
        return self

    def convert_element_type(self, type: Type = Type.dynamic) -> Self:
        """Convert to an element type, by default the type of the other side."""
        element = element_of(type)
        return self._add(
            f"convert type ({type.type_name})",
            lambda state: state.convert(state.target_element if element is et.dynamic else element),
        )

    def convert_layout(self, dst_layout: Layout | Sequence[int] | str = "...") -> Self:
        """Transpose to a layout, by default the layout of the other side, or by a permutation of axes."""
        if isinstance(dst_layout, Layout | str):
            layout = Layout(dst_layout)
            self.layouts.append(layout)
            return self._add(
                f"convert layout {layout}",
                lambda state: state.convert_layout(state.target_layout if layout.empty else layout),
            )
        order = [int(k) for k in dst_layout]
        if sorted(order) != list(range(len(order))):
            raise OpenVINOError(f"{order} is not a permutation of axes")
        self.layouts.append(order)
        return self._add(f"convert layout ({numbers(order)})", lambda state: state.transpose(order))

    def custom(self, operation: Callable[[Output], Any]) -> Self:
        """Add the operations that a function from an Output to a node creates."""

        def step(state: State) -> None:
            node = operation(Output(state.output.node, state.output.index))
            state.output = authoring.as_input(node)

        return self._add("custom", step)


class PostProcessSteps(_Steps):
    """Steps between the output of the model and the tensor of the user."""


class PreProcessSteps(_Steps):
    """Steps between the tensor of the user and the input of the model."""

    def mean(self, values: float | Sequence[float]) -> Self:
        """Subtract a number, or one per channel."""
        return self._add(f"mean ({numbers(values)})", lambda state: _with_numbers(state, "Subtract", values))

    def scale(self, values: float | Sequence[float]) -> Self:
        """Divide by a number, or by one per channel: like OpenVINO, multiply by the reciprocals in f32."""
        with np.errstate(divide="ignore"):
            factors = (1 / np.asarray(values, np.float32)).tolist()
        return self._add(f"scale ({numbers(values)})", lambda state: _with_numbers(state, "Multiply", factors))

    def resize(self, alg: ResizeAlgorithm, dst_height: int | None = None, dst_width: int | None = None) -> Self:
        """Resize height and width, by default to the sizes that the model takes."""
        sizes = None if dst_height is None or dst_width is None else (int(dst_height), int(dst_width))
        return self._add(f"resize to {sizes or 'model width/height'}", lambda state: _resize(state, alg, sizes))

    def reverse_channels(self) -> Self:
        """Reverse the order of the channels."""
        return self._add("reverse channels", colors.reverse_channels)

    def convert_color(self, dst_format: ColorFormat) -> Self:
        """Convert the colours."""
        return self._add(
            f"convert color ({color_name(dst_format)})", lambda state: colors.convert_color(state, dst_format)
        )

    def crop(self, begin: Sequence[int], end: Sequence[int]) -> Self:
        """Take the part from `begin` to `end`, one number per axis; negative ones count from the end."""
        ranges = ",".join(f"[ {', '.join(map(str, values))} ]" for values in (begin, end))
        return self._add(f"Crop ({ranges})", lambda state: _crop(state, begin, end))

    def pad(
        self, pads_begin: Sequence[int], pads_end: Sequence[int], value: float | Sequence[float], mode: PaddingMode
    ) -> Self:
        """Pad by numbers of elements per axis."""
        filled = f"with ({numbers(value)})" if mode is PaddingMode.CONSTANT else _FILLED[mode]
        text = f"pad(begin ({numbers(pads_begin)}), end ({numbers(pads_end)}), {filled})"
        return self._add(text, lambda state: _pad(state, pads_begin, pads_end, value, mode))


def _with_numbers(state: State, type: str, values: float | Sequence[float]) -> None:
    element = state.output.type.element
    word = "Mean" if type == "Subtract" else "Scale"
    if not element.is_float:
        raise OpenVINOError(
            f"{word} preprocessing can be applied to 'float' inputs. Consider using of 'convert_element_type' before. "
            f"Current type is: {element}"
        )
    numbers = [float(v) for v in (values if isinstance(values, Iterable) else [values])]
    if len(numbers) == 1:
        state.output = operation(type, 1, [state.output, constant(numbers, element)])
        return
    axis = state.axis("C", "channels")
    channels = state.shape[axis]
    if not channels.contains(len(numbers)):
        raise OpenVINOError(f"{word} has {len(numbers)} values for {channels} channels")
    sizes = [1] * len(state.shape)
    sizes[axis] = len(numbers)
    state.output = operation(type, 1, [state.output, constant(np.reshape(numbers, sizes), element)])


def _resize(state: State, alg: ResizeAlgorithm, sizes: tuple[int, int] | None) -> None:
    axes = [state.axis("H", "height"), state.axis("W", "width")]
    if sizes is None:
        layout, shape = state.target_layout, state.target_shape
        dims = [shape[axis_of(layout, name, shape, label)] for name, label in (("H", "height"), ("W", "width"))]
        if not all(d.is_static for d in dims):
            raise OpenVINOError(f"resizing to the sizes of the model needs static ones, found {shape}; give them")
        sizes = dims[0].lo, dims[1].lo
    none = [0] * len(state.shape)
    pillow = alg is ResizeAlgorithm.RESIZE_BICUBIC_PILLOW
    state.output = operation(
        "Interpolate",
        11,
        [state.output, constant(sizes, et.i64), constant(axes, et.i64)],
        mode=alg.name.removeprefix("RESIZE_").lower(),
        shape_calculation_mode="sizes",
        pads_begin=none,
        pads_end=none,
        cube_coeff=-0.5 if pillow else -0.75,  # in Pillow's modes, the CPU plugin always uses -0.5
    )


def _crop(state: State, begin: Sequence[int], end: Sequence[int]) -> None:
    rank = state.shape.rank
    if len(begin) != len(end) or rank not in (None, len(begin)):
        raise OpenVINOError(
            f"crop takes one begin and end per axis of {state.shape}, found {len(begin)} and {len(end)}"
        )
    count = len(begin)
    numbers = [constant(values, et.i32) for values in (begin, end, [1] * count, range(count))]
    state.output = operation("Slice", 8, [state.output, *numbers])


def _pad(
    state: State,
    begin: Sequence[int],
    end: Sequence[int],
    value: float | Sequence[float],
    mode: PaddingMode,
) -> None:
    rank = state.shape.rank
    for port, values in (("pads_begin", begin), ("pads_end", end)):
        if rank not in (None, len(values)):
            raise OpenVINOError(f"length of {port} mismatches with rank of input, expect {rank}, but got {len(values)}")
    numbers = [constant(list(values), et.i64) for values in (begin, end)]
    fill = value if not isinstance(value, Iterable) else [*value]
    if isinstance(fill, list):
        if len(fill) != 1:
            raise OpenVINOError(f"padding has one value, found {fill}")
        fill = fill[0]
    filler = constant(np.array(fill), state.output.type.element)
    opset = 12 if any(n < 0 for n in (*begin, *end)) else 1
    state.output = operation("Pad", opset, [state.output, *numbers, filler], pad_mode=mode.name.lower())
