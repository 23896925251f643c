"""Compressed weights: stored integers or narrow floats, with scales and zero points, from which f32 is computed.

Models store them as Constant → Convert → [Subtract zero point] → [Multiply by scale] → [Reshape] → [Convert]. Reading
the array of the folded constant decompresses all of it; back ends that multiply compressed weights use `compressed`
instead.
"""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.element import ElementType
from irload.core.op import is_builtin
from irload.core.tensor import Array
from irload.plan.ir.constant import Constant, Recipe
from irload.plan.wide import widened_array
from irload.record import record

MOVES = ("Reshape", "Squeeze", "Unsqueeze")
"""Operations that may follow the multiplication by the scale."""


@record()
class Compressed:
    """Weights (stored − zero_point) · scale, computed in the shape of `stored`, then reshaped to `shape`.

    `scale` and `zero_point` broadcast to the shape of `stored`.
    """

    stored: Constant
    scale: Constant | None
    zero_point: Constant | None
    shape: tuple[int, ...]

    @property
    def element(self) -> ElementType:
        """The element type of the stored values."""
        assert self.stored.element is not None
        return self.stored.element

    @property
    def is_short(self) -> bool:
        """True for floats of 16 bits, without scales and zero points."""
        return self.scale is None and self.zero_point is None and self.element.bits == 16

    @property
    def nbytes(self) -> int:
        """The bytes of the stored values, scales and zero points."""
        factors = sum(c.nbytes for c in (self.scale, self.zero_point) if c is not None)
        return self.element.bytes_for(prod(self.stored.shape)) + factors

    def groups(self, axis: int) -> int | None:
        """The number of quantization groups along an axis of `shape`. Groups have equal sizes.

        The elements of a group share one scale and zero point. None if `shape` splits axes of `stored`.
        """
        parts = self._parts()
        if parts is None:
            return None
        axes, kept = parts[axis], 0
        for factor in (self.scale, self.zero_point):
            if factor is not None:
                sizes = _wide(factor.shape, len(self.stored.shape))
                kept = max([kept, *(k + 1 for k, at in enumerate(axes) if sizes[at] != 1)])
        return prod(self.stored.shape[at] for at in axes[:kept])

    def per_group(self, factor: Constant, axis: int) -> Array:
        """Return scales or zero points in f32: the axes of `shape` with `axis` removed, then one element per group."""
        parts, count = self._parts(), self.groups(axis)
        if parts is None or count is None:
            raise ValueError("the shape splits axes of the stored weights")
        axes = parts.pop(axis)
        sizes = list(self.stored.shape)
        for k, at in enumerate(axes):
            if prod(self.stored.shape[n] for n in axes[:k]) >= count:
                sizes[at] = 1
        array = np.asarray(widened_array(factor.array), np.float32)
        array = np.broadcast_to(array.reshape(_wide(array.shape, len(sizes))), sizes)
        outer = [prod(self.stored.shape[at] for at in part) for part in parts]
        return array.transpose([at for part in (*parts, axes) for at in part]).reshape(*outer, count)

    def _parts(self) -> list[list[int]] | None:
        """The axes of `stored` that form each axis of `shape`, or None if one of them is split."""
        stored = self.stored.shape
        parts: list[list[int]] = []
        at = 0
        for size in self.shape:
            axes: list[int] = []
            while at < len(stored) and prod(stored[n] for n in axes) < size:
                axes.append(at)
                at += 1
            if prod(stored[n] for n in axes) != size:
                return None
            parts.append(axes)
        rest = range(at, len(stored))
        if any(stored[n] != 1 for n in rest) or (rest and not parts):
            return None
        if rest:
            parts[-1] += rest
        return parts


def compressed(constant: Constant | None) -> Compressed | None:
    """Return the compressed form of a constant. Reads no weights.

    None if it is stored uncompressed, and for no constant: the source of a computed value.
    """
    if constant is None:
        return None
    at = _before(constant)
    scale: Constant | None = None
    zero_point: Constant | None = None
    if (product := _operands(at, "Multiply")) is not None:
        at, scale = product[0], _unconverted(product[1])
    if (difference := _operands(at, "Subtract")) is not None:
        at, zero_point = difference[0], _unconverted(difference[1])
    stored = _unconverted(at)
    if stored is constant or stored.element is None or constant.dtype != np.float32:
        return None
    if stored.element.bits >= 8 * constant.dtype.itemsize:
        return None
    if scale is None and zero_point is None and stored.element.kind != "float":
        return None  # a conversion of integers, such as a table of indices, is not compression
    return Compressed(stored, scale, zero_point, constant.shape)


def _before(constant: Constant) -> Constant:
    """Return the constant from which operations of MOVES and conversions to f32 compute this one."""
    while (recipe := _recipe(constant)) is not None:
        if recipe.op.type not in MOVES and not (recipe.op.type == "Convert" and _is_widening(recipe)):
            break
        constant = recipe.inputs[0]
    return constant


def _is_widening(recipe: Recipe) -> bool:
    """True for the conversion to f32 of a computed f16 or bf16 constant, whose array is f32 already."""
    (source,), destination = recipe.inputs, recipe.op.attributes["destination_type"]
    return destination.name == "f32" and source.dtype == np.float32 and source.element is None


def _unconverted(constant: Constant) -> Constant:
    """Return the constant that a Convert to f32 reads; the constant itself if no Convert computes it.

    Also return the constant itself if the Convert is between f16 and bf16, because it rounds.
    """
    recipe = _recipe(constant)
    if recipe is None or recipe.op.type != "Convert" or constant.dtype != np.float32:
        return constant
    (source,), to = recipe.inputs, recipe.op.attributes["destination_type"]
    rounds = source.element is not None and source.element.bits == to.bits == 16 and source.element is not to
    return constant if rounds else source


def _recipe(constant: Constant) -> Recipe | None:
    """Return the recipe of a constant that a built-in operation computes, None for any other constant."""
    return constant.recipe if constant.recipe is not None and is_builtin(constant.recipe.op) else None


def _operands(constant: Constant, type: str) -> tuple[Constant, Constant] | None:
    """Return the operands of the operation that computes a constant; None unless it is of this type.

    The larger operand of a Multiply is first.
    """
    recipe = _recipe(constant)
    if recipe is None or recipe.op.type != type or recipe.op.attributes["auto_broadcast"] == "pdpd":
        return None
    first, second = recipe.inputs
    turned = type == "Multiply" and prod(second.shape) > prod(first.shape)
    return (second, first) if turned else (first, second)


def _wide(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return the shape with leading axes of length 1, so that it has `rank` axes."""
    return (*(1,) * (rank - len(shape)), *shape)
