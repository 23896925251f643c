"""Floats of 16 bits as f32: a plan rounds them only where its results leave it.

An operation by itself rounds each of its outputs to f16 or bf16. OpenVINO's CPU plugin computes such models in f32
throughout, and so does a plan, which has kernels for f32 alone. Operations with bodies or state, and those of
extensions, get the types that the graph gives them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ml_dtypes import bfloat16

from irload.core import element
from irload.core.op import is_builtin
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.graph import Node
from irload.ops.type.convert import Convert
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Compute

_F32 = np.dtype(np.float32)
_SHORT = {np.dtype(np.float16): element.f16, np.dtype(bfloat16): element.bf16}


def is_short(tensor: TensorType) -> bool:
    """True for floats of 16 bits."""
    return tensor.element.dtype in _SHORT


def takes_its_own_types(node: Node) -> bool:
    """True for operations that get floats of 16 bits as such."""
    return not is_builtin(node.op) or node.op.signature.compute_context


def wide_type(tensor: TensorType) -> TensorType:
    """The type in which a plan has a tensor."""
    return replace(tensor, element=element.f32) if is_short(tensor) else tensor


def widened(value: Value) -> Value:
    """The same value as f32; itself where it is no float of 16 bits."""
    if value.dtype not in _SHORT:
        return value
    source = None if value.source is None else value.source.widened()
    return Value(value.shape, _F32, source, name=value.name, used=value.used, origin=value.origin)


def converted(value: Value, to: Value) -> Step:
    """The step that makes `to`, f32 or a float of 16 bits, of a value of the other type."""
    kind = _SHORT.get(to.dtype, element.f32)
    return Compute([value], [to], op=Convert(destination_type=kind), types=(TensorType(kind, Shape(*to.shape)),))


def in_own_type(array: Array, value: Value) -> Array:
    """An array of a value in the type that the graph gives it: itself, or rounded to 16 bits."""
    own = array.dtype if value.origin is None else value.origin.type.element.dtype
    if own not in _SHORT or own == array.dtype:
        return array
    with np.errstate(all="ignore"):
        return array.astype(own)
