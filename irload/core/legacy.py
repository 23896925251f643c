"""The element types of the inputs and outputs of IR v10 models, where they differ from the graph.

Scripts for IR v10 pass f32 and expect f32 or i32, so OpenVINO converts inputs and outputs, and so does irload. Ports
show f16 inputs as f32, outputs of 32-bit or 64-bit integers as i32, and all other outputs as f32.
"""

from __future__ import annotations

from collections.abc import Callable

from irload.core import element as et
from irload.core.element import ElementType

Shown = Callable[[ElementType], ElementType]


def as_it_is(element: ElementType) -> ElementType:
    """IR v11: a port has the type of the graph."""
    return element


def v10_input(element: ElementType) -> ElementType:
    """The type of an input in IR v10."""
    return et.f32 if element is et.f16 else element


def v10_output(element: ElementType) -> ElementType:
    """The type of an output in IR v10. Strings are not converted."""
    if element in (et.i64, et.u64, et.i32, et.u32):
        return et.i32
    return element if element in (et.string, et.dynamic) else et.f32
