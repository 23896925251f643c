"""Conversion of colours: planes of brightness and colours to RGB, order of channels, grey."""

from __future__ import annotations

import numpy as np

from irload import graph
from irload.core import element as et
from irload.openvino.errors import OpenVINOError
from irload.openvino.layouts import Layout
from irload.openvino.preprocess.formats import PLANES, ColorFormat
from irload.openvino.preprocess.state import State, constant, convert, operation

__all__ = ["convert_color", "reverse_channels"]

RED, GREEN, BLUE = 0.299, 0.587, 0.114
"""The weights of the channels in grey."""
_FOUR = {ColorFormat.RGBX: ColorFormat.RGB, ColorFormat.BGRX: ColorFormat.BGR}
_THREE = (ColorFormat.RGB, ColorFormat.BGR)


def convert_color(state: State, target: ColorFormat) -> None:
    """Convert the image to RGB, BGR or grey. Raises for pairs of formats without a conversion."""
    source = state.color
    if source is target:
        return
    if source in PLANES and target in (*_THREE, ColorFormat.GRAY):
        _from_planes(state, target)
    elif source in _FOUR and target in _THREE:
        axis = state.axis("C", "channels")
        state.output = _slice(state.output, axis, 0, -1)
        if _FOUR[source] is not target:
            reverse_channels(state)
    elif source in _THREE and target in _THREE:
        reverse_channels(state)
    elif source in _THREE and target is ColorFormat.GRAY:
        _to_grey(state)
    else:
        raise OpenVINOError(f"Source color format '{source.name}' is not convertible to '{target.name}'")
    state.color = target


def _from_planes(state: State, target: ColorFormat) -> None:
    if target is ColorFormat.GRAY:
        first = state.planes[0]
        height = first.type.shape[1]
        if PLANES[state.color].whole:
            if not height.is_static:
                raise OpenVINOError(f"converting {state.color.name} to GRAY needs a static height, found {height}")
            first = _slice(first, 1, 0, height.lo * 2 // 3)
        state.output = first
    else:
        family = state.color.name.partition("_")[0]
        state.output = operation(f"{family}to{target.name}", 8, state.planes)
    state.layout = Layout("NHWC")


def _slice(source: graph.Output, axis: int, start: int, stop: int) -> graph.Output:
    numbers = [constant([n], et.i32) for n in (start, stop, 1, axis)]
    return operation("Slice", 8, [source, *numbers])


def reverse_channels(state: State) -> None:
    """Reverse the order of the channels."""
    axis = state.axis("C", "channels")
    channels = state.shape[axis]
    order = constant(np.arange(channels.lo)[::-1], et.i32) if channels.is_static else _descending(state.output, axis)
    state.output = operation("Gather", 8, [state.output, order, constant([axis], et.i32)])


def _descending(image: graph.Output, axis: int) -> graph.Output:
    """The indices of an axis of unknown size, from the last to 0."""
    sizes = operation("ShapeOf", 3, [image], output_type="i32")
    size = operation("Gather", 8, [sizes, constant(axis, et.i32), constant(0, et.i32)])
    before = constant(-1, et.i32)
    last = operation("Add", 1, [size, before])
    return operation("Range", 4, [last, before, before], output_type="i32")


def _to_grey(state: State) -> None:
    """A weighted sum of the channels, by a convolution on NCHW; integers are rounded."""
    layout, element = state.layout, state.output.type.element
    if element.is_integer:
        state.convert(et.f32)
    nchw = Layout("NCHW")
    state.convert_layout(nchw)
    weights = [RED, GREEN, BLUE] if state.color is ColorFormat.RGB else [BLUE, GREEN, RED]
    kernel = convert(
        constant(np.array(weights).reshape(1, 3, 1, 1), state.output.type.element), state.output.type.element
    )
    ones, zeros = [1, 1], [0, 0]
    state.output = operation(
        "Convolution", 1, [state.output, kernel], strides=ones, dilations=ones, pads_begin=zeros, pads_end=zeros
    )
    if element.is_integer:
        state.output = operation("Round", 5, [state.output], mode="half_to_even")
        state.convert(element)
    state.convert_layout(layout)
