"""16-bit floats computed as f32: planned runs round only the results of the graph to 16 bits.

The reference `compute` of an operation rounds its outputs to f16 or bf16. OpenVINO's CPU plugin computes 16-bit models
in f32 throughout. Operations with bodies or state, and operations of extensions, get the types of the graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ml_dtypes import bfloat16

from irload.core import element
from irload.core.op import is_builtin, widen
from irload.core.tensor import Array, TensorType
from irload.graph import Node

SHORT = {np.dtype(np.float16): element.f16, np.dtype(bfloat16): element.bf16}
"""The 16-bit float types by NumPy dtype."""


def is_short(tensor: TensorType) -> bool:
    """True for 16-bit floats."""
    return tensor.element.dtype in SHORT


def takes_its_own_types(node: Node) -> bool:
    """True for nodes that must run on the types of the graph: operations with bodies or state, and extensions."""
    return not is_builtin(node.op) or node.op.signature.compute_context


def wide_type(tensor: TensorType) -> TensorType:
    """Return the type in which a tensor is computed: f32 for 16-bit floats, otherwise unchanged."""
    return replace(tensor, element=element.f32) if is_short(tensor) else tensor


def widened_array(array: Array) -> Array:
    """Convert 16-bit floats to f32; other arrays are returned unchanged."""
    return widen(array) if array.dtype in SHORT else array


def rounded_array(array: Array, tensor: TensorType) -> Array:
    """Return an array in the type of the graph: unchanged, or rounded to 16 bits."""
    if not is_short(tensor) or array.dtype != np.float32:
        return array
    with np.errstate(all="ignore"):
        return array.astype(tensor.element.dtype)
