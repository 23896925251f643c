"""Layouts: the axes of inputs and outputs, as rt_info names them."""

from __future__ import annotations

from irload.graph import Port

__all__ = ["batch_axis", "layout_of"]


def layout_of(port: Port) -> str:
    """The layout of an input or output as letters, `NCHW`; empty unless rt_info has one with a letter per axis."""
    for entry in (*port.output.rt_info, *port.node.rt_info):
        if entry.get("name") == "layout":
            text = "".join(str(entry.get("layout", "")).strip("[] ").replace(",", "").split()).upper()
            if len(text) == port.partial_shape.rank and text.isalpha():
                return text
    return ""


def batch_axis(port: Port) -> int | None:
    """The axis of the batch of an input: N of its layout, else axis 0 of at least two; None if there is none."""
    layout = layout_of(port)
    if layout:
        return layout.find("N") if "N" in layout else None
    return 0 if (port.partial_shape.rank or 0) > 1 else None
