"""The element types that a model of IR v10 shows at its inputs and outputs, whatever its graph computes with.

Scripts of that time fed f32 and read f32 or i32; the runtime converts at the border, and so does irload. Inputs of f16
are shown as f32. Outputs are shown as i32 where they are 32-bit or 64-bit integers, and as f32 otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from irload.core import element as et
from irload.core.element import ElementType

Shown = Callable[[ElementType], ElementType]


def as_it_is(element: ElementType) -> ElementType:
    """IR v11: a port shows the type that the graph has there."""
    return element


def v10_input(element: ElementType) -> ElementType:
    """What an input of IR v10 takes."""
    return et.f32 if element is et.f16 else element


def v10_output(element: ElementType) -> ElementType:
    """What an output of IR v10 gives. Text, which nothing converts, stays text."""
    if element in (et.i64, et.u64, et.i32, et.u32):
        return et.i32
    return element if element in (et.string, et.dynamic) else et.f32
