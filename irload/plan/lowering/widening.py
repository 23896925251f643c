"""Converts between the 16-bit floats of a graph and f32, which replaces them in programs: values, steps and arrays."""

from __future__ import annotations

import numpy as np

from irload.core import element
from irload.core.tensor import Array
from irload.ops.type.convert import Convert
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.wide import SHORT, rounded_array

_F32 = np.dtype(np.float32)


def widened(value: Value) -> Value:
    """Return the value as f32; the value itself if it is not a 16-bit float."""
    if value.dtype not in SHORT:
        return value
    source = None if value.source is None else value.source.widened()
    return Value(value.shape, _F32, source, name=value.name, used=value.used, origin=value.origin)


def converted(value: Value, to: Value) -> Step:
    """Return the step that converts a value to `to`, between f32 and a 16-bit float."""
    kind = SHORT.get(to.dtype, element.f32)
    return ComputeStep.of(Convert(destination_type=kind), [value], to, kind)


def in_own_type(array: Array, value: Value) -> Array:
    """Return an array in the type that the graph declares: unchanged, or rounded to 16 bits."""
    return array if value.origin is None else rounded_array(array, value.origin.type)
