"""Compressed weights: the integers or halves that a constant is decompressed from, with their scale and zero point.

Models store them as Constant → Convert → [Subtract zero point] → [Multiply by scale] → [Reshape] → [Convert]. Reading
the array of the folded constant decompresses it; a back end that multiplies compressed weights uses `compressed`
instead.
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
    """Return the compressed form of a constant, None if it is stored uncompressed. Reads no weights."""
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
    """Return the constant before operations of these types, each at most once."""
    for type in types:
        if constant.recipe is not None and constant.recipe.op.type == type:
            constant = constant.recipe.inputs[0]
    return constant


def _operands(constant: Constant, type: str) -> tuple[Constant, Constant] | None:
    """Return the operands of the operation that computes a constant, the larger one first; None for another type."""
    if constant.recipe is None or constant.recipe.op.type != type:
        return None
    first, second = constant.recipe.inputs
    turned = type == "Multiply" and prod(second.shape) > prod(first.shape)
    return (second, first) if turned else (first, second)
