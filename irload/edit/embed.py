"""Adds preprocessing to a model, as layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.element import ElementType
from irload.core.element import element as element_named
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.edit.chain import Chain
from irload.edit.draft import Draft
from irload.edit.layouts import layout_of, order_of, set_layout
from irload.errors import InputInvalid, TypeMismatch
from irload.graph import Port
from irload.model import Model
from irload.wording import counted

__all__ = ["RESIZES", "embed"]

RESIZES = ("nearest", "linear", "cubic", "bilinear_pillow", "bicubic_pillow")
"""The ways to resize: modes of Interpolate."""
LAST_AXES_ONLY = ("bilinear_pillow", "bicubic_pillow")
"""Modes in which OpenVINO's CPU plugin resizes the last two axes only, so that transposes precede them."""
CUBE = {"bicubic_pillow": -0.5}
"""The cubic coefficients that differ from the default −0.75: for bicubic_pillow, the plugin always uses Pillow's."""
USUAL = {2: "NC", 3: "CHW", 4: "NCHW", 5: "NCDHW"}
"""The layouts of inputs without a layout in rt_info, by rank."""


def embed(
    model: Model,
    input: str | int | Port = 0,
    *,
    element: ElementType | str | None = None,
    layout: str | None = None,
    resize: str | None = None,
    swap_channels: bool = False,
    mean: float | Sequence[float] | None = None,
    scale: float | Sequence[float] | None = None,
) -> Model:
    """The model with preprocessing before an input, so that it takes images as files and cameras deliver them.

    `input`: its name or index. The steps, in this order:
    - `element`: the type of the new input, such as "u8", which is converted to the current type.
    - `resize`: accept images of any size, and resize them to the current size in this mode of Interpolate: nearest,
      linear, cubic, or antialiased as in Pillow: bilinear_pillow, bicubic_pillow.
    - `swap_channels`: reverse the order of the channels, from RGB to BGR or back.
    - `mean`, `scale`: subtract the mean, then divide by the scale. Each is a number, or one number per channel in the
      order after swapping.
    - `layout`: the axes of the new input, such as "NHWC". They are transposed to the current layout, which rt_info
      states, else NCHW.

    The input keeps its names. Raises InputInvalid for an unknown input, and for steps that do not fit it.
    """
    draft = Draft(model)
    port = draft.input(input)
    shape, target = port.partial_shape, port.output.type.element
    present = layout_of(port) or USUAL.get(shape.rank or 0, "")
    wanted = layout.upper() if layout else present
    kind = _element(element) if isinstance(element, str) else element or target
    order = order_of(port, present, wanted) if wanted else range(len(shape))
    if resize is not None:
        _check_resize(port, resize, [shape[present.index(axis)] for axis in "HW" if axis in present])
    free = "HW" if resize is not None else ""
    entry = Shape(*(ANY if present[k : k + 1] in [*free] else shape[k] for k in order))
    chain = Chain.at_input(draft, port, TensorType(kind, entry))
    if kind is not target:
        chain.add("Convert", "to_model", destination_type=target)
    early = resize in LAST_AXES_ONLY and wanted != present
    if early:
        chain.transpose(order_of(port, wanted, present))
    axes = present if early else wanted
    dims = [shape[present.index(axis)] for axis in axes] if axes else list(shape)
    channel = axes.find("C")
    if resize is not None:
        spatial = np.array([axes.index(axis) for axis in "HW"], np.int64)
        sizes = np.array([dims[k].size for k in spatial], np.int64)
        settings = {"mode": resize, "shape_calculation_mode": "sizes", "cube_coeff": CUBE.get(resize, -0.75)}
        chain.add("Interpolate", "resize", sizes, spatial, opset="opset11", **settings)
    if swap_channels:
        indices = np.arange(_channels(port, dims, channel))[::-1].astype(np.int64)
        chain.add("Gather", "swap_channels", indices, np.array(channel, np.int64), opset="opset8")
    for type, name, values in (("Subtract", "mean", mean), ("Divide", "scale", scale)):
        if values is not None:
            _require_float(port, target)
            _check_numbers(name, values)
            chain.add(type, name, _per_channel(port, name, values, dims, channel).astype(target.dtype))
    if wanted != present and not early:
        chain.transpose(order_of(port, wanted, present))
    if chain.end is chain.start:
        raise InputInvalid("there is nothing to embed; name at least one step, such as mean=127.5")
    chain.close()
    if wanted:
        set_layout(port, wanted)
    return draft.finished()


def _element(name: str) -> ElementType:
    try:
        return element_named(name)
    except TypeMismatch as error:
        raise InputInvalid(error.message) from None


def _check_resize(port: Port, resize: str, sizes: Sequence[Dim]) -> None:
    if resize not in RESIZES:
        raise InputInvalid(f"resize must be one of {', '.join(RESIZES)}, found '{resize}'")
    if len(sizes) != 2 or not all(d.is_static for d in sizes):
        fact = f"input '{port.any_name}' has shape {port.partial_shape}, which does not state a height and a width"
        raise InputInvalid(f"{fact}; reshape the model before resize is embedded")


def _channels(port: Port, dims: Sequence[Dim], channel: int) -> int:
    """The number of channels. Raises InputInvalid if it is unknown."""
    if channel < 0 or not dims[channel].is_static:
        raise InputInvalid(f"input '{port.any_name}' has shape {port.partial_shape}, whose channels are unknown")
    return dims[channel].size


def _require_float(port: Port, element: ElementType) -> None:
    if not element.is_float:
        raise InputInvalid(f"input '{port.any_name}' is of type {element}; mean and scale require a float input")


def _check_numbers(name: str, values: float | Sequence[float]) -> None:
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all() or (name == "scale" and not array.all()):
        kind = "nonzero and finite" if name == "scale" else "finite"
        raise InputInvalid(f"{name} must be {kind}, found {', '.join(f'{x:g}' for x in array.flat)}")


def _per_channel(port: Port, name: str, values: float | Sequence[float], dims: Sequence[Dim], channel: int) -> Array:
    """The numbers as a tensor that broadcasts to the input."""
    array = np.asarray(values, np.float64)
    if array.ndim == 0 or array.size == 1:
        return array.reshape((1,) * len(dims))
    count = _channels(port, dims, channel)
    if array.shape != (count,):
        fact = f"{name} has {counted(array.size, 'number')}, input '{port.any_name}' has {counted(count, 'channel')}"
        raise InputInvalid(fact)
    return array.reshape([count if k == channel else 1 for k in range(len(dims))])
