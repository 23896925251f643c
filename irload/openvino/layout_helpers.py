"""Axes of a layout by their meaning, and the layouts of ports."""

from __future__ import annotations

from irload.openvino.layouts import Layout
from irload.openvino.nodes import layout_of, set_layout_of
from irload.openvino.ports import ConstOutput

__all__ = [
    "batch_idx",
    "channels_idx",
    "depth_idx",
    "get_layout",
    "has_batch",
    "has_channels",
    "has_depth",
    "has_height",
    "has_width",
    "height_idx",
    "set_layout",
    "width_idx",
]


def has_batch(layout: Layout) -> bool:
    """True if an axis is N."""
    return layout.has_name("N")


def batch_idx(layout: Layout) -> int:
    """The position of N."""
    return layout.get_index_by_name("N")


def has_channels(layout: Layout) -> bool:
    """True if an axis is C."""
    return layout.has_name("C")


def channels_idx(layout: Layout) -> int:
    """The position of C."""
    return layout.get_index_by_name("C")


def has_depth(layout: Layout) -> bool:
    """True if an axis is D."""
    return layout.has_name("D")


def depth_idx(layout: Layout) -> int:
    """The position of D."""
    return layout.get_index_by_name("D")


def has_height(layout: Layout) -> bool:
    """True if an axis is H."""
    return layout.has_name("H")


def height_idx(layout: Layout) -> int:
    """The position of H."""
    return layout.get_index_by_name("H")


def has_width(layout: Layout) -> bool:
    """True if an axis is W."""
    return layout.has_name("W")


def width_idx(layout: Layout) -> int:
    """The position of W."""
    return layout.get_index_by_name("W")


def get_layout(port: ConstOutput) -> Layout:
    """The layout of a port."""
    return layout_of(port._source)  # noqa: SLF001


def set_layout(port: ConstOutput, layout: Layout | str) -> None:
    """Set the layout of a port."""
    set_layout_of(port._source, layout)  # noqa: SLF001
