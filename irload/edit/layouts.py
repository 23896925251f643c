"""Layouts: the axes of inputs and outputs, as rt_info names them."""

from __future__ import annotations

from typing import Any

from irload.errors import InputInvalid
from irload.graph import Port

__all__ = ["batch_axis", "layout_of", "order_of", "set_layout"]


def layout_of(port: Port) -> str:
    """The layout of an input or output as letters, `NCHW`; empty unless rt_info has one with a letter per axis."""
    for entry in (*port.output.rt_info, *port.node.rt_info):
        if entry.get("name") == "layout":
            text = "".join(str(entry.get("layout", "")).strip("[] ").replace(",", "").split()).upper()
            if len(text) == port.partial_shape.rank and text.isalpha():
                return text
    return ""


def set_layout(port: Port, layout: str) -> None:
    """Write the layout of an input or output to the rt_info of its tensor."""
    entry: dict[str, Any] = {"name": "layout", "version": "0", "layout": f"[{','.join(layout)}]"}
    port.node.rt_info = [e for e in port.node.rt_info if e.get("name") != "layout"]
    port.output.rt_info = [*(e for e in port.output.rt_info if e.get("name") != "layout"), entry]


def order_of(port: Port, old: str, new: str) -> tuple[int, ...]:
    """The axes of `old` in the order of `new`: a Transpose with this order leads from `old` to `new`.

    Raises InputInvalid unless both name the axes of the port.
    """
    rank = port.partial_shape.rank
    if rank is None or rank != len(old):
        raise InputInvalid(f"'{port.any_name}' has shape {port.partial_shape}; the layout {old} has {len(old)} axes")
    if len(set(new)) != len(new) or sorted(new) != sorted(old):
        raise InputInvalid(f"the layout {new} of '{port.any_name}' must consist of the axes of {old}, each once")
    return tuple(old.index(axis) for axis in new)


def batch_axis(port: Port) -> int | None:
    """The batch axis of an input: N of its layout; without a layout, axis 0 of at least two axes. Otherwise None."""
    layout = layout_of(port)
    if layout:
        return layout.find("N") if "N" in layout else None
    return 0 if (port.partial_shape.rank or 0) > 1 else None
