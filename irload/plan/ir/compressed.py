"""Compressed weights: the integers or halves that a constant is decompressed from, with their scale and zero point.

Models store them as Constant → Convert → [Subtract zero point] → [Multiply by scale] → [Reshape] → [Convert]. Folding
computes that when the array is asked for; a back end that multiplies compressed weights asks here instead.
"""

from __future__ import annotations

from math import prod

from irload.plan.ir.constant import Constant
from irload.record import record


@record()
class Compressed:
    """Weights (stored − zero_point) · scale in the shape of `stored`, then in `shape`. All three broadcast."""

    stored: Constant
    scale: Constant | None
    zero_point: Constant | None
    shape: tuple[int, ...]


def compressed(constant: Constant) -> Compressed | None:
    """What a constant is decompressed from, None for those that are stored as they are used. Reads no weights."""
    at = _source(constant, "Convert", "Reshape")
    scale: Constant | None = None
    zero_point: Constant | None = None
    if (product := _operands(at, "Multiply")) is not None:
        at, scale = product
    if (difference := _operands(at, "Subtract")) is not None:
        at, zero_point = difference[0], _source(difference[1], "Convert")
    stored = _source(at, "Convert")
    if stored is constant or stored.dtype.itemsize >= constant.dtype.itemsize:
        return None
    if scale is None and zero_point is None and stored.dtype.kind in "iub":
        return None  # integers that are converted, as tables are
    return Compressed(stored, scale, zero_point, constant.shape)


def _source(constant: Constant, *types: str) -> Constant:
    """What a constant comes from through operations of these types, each at most once."""
    for type in types:
        if constant.recipe is not None and constant.recipe.op.type == type:
            constant = constant.recipe.inputs[0]
    return constant


def _operands(constant: Constant, type: str) -> tuple[Constant, Constant] | None:
    """The operands of the operation that gives a constant, the larger one first; None where it is another one."""
    if constant.recipe is None or constant.recipe.op.type != type:
        return None
    first, second = constant.recipe.inputs
    turned = type == "Multiply" and prod(second.shape) > prod(first.shape)
    return (second, first) if turned else (first, second)
