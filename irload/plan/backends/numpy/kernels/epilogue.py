"""Operands and epilogues: what an expression takes beside the result that a kernel has just made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.elementwise import tiled_calls
from irload.plan.backends.numpy.kernels.tiles import collapse
from irload.plan.backends.numpy.kernels.views import leading, merged, shaped, shaped_constant
from irload.plan.ir.expression import Expression
from irload.plan.threads import Part
from irload.record import record


@record()
class Operand:
    """What an epilogue takes beside the result. What is constant may be read, and copied, when calls are made."""

    array: Array
    is_constant: bool = False


@record()
class Epilogue:
    """An expression over a result (its operand 0) and `operands`, which broadcast to the result's shape."""

    expression: Expression
    operands: tuple[Operand, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.expression.instructions)

    def __getitem__(self, index: Any) -> Epilogue:
        """The same for a part of the result; all operands have its shape already."""
        return replace(self, operands=tuple(replace(o, array=o.array[index]) for o in self.operands))

    def arrays(self) -> list[Array]:
        """The operands' arrays."""
        return [operand.array for operand in self.operands]

    def broadcast(self, shape: Sequence[int]) -> Epilogue:
        """With all operands in the shape of the result."""
        wide = (replace(o, array=np.broadcast_to(o.array, tuple(shape))) for o in self.operands)
        return replace(self, operands=tuple(wide))

    def channels_last(self, rank: int, *, plane: bool = False) -> Epilogue:
        """For a result [N,X…,C] instead of [N,C,X…] of this rank; `plane`: for [N,1,X,C] instead of [N,C,X]."""

        def turned(array: Array) -> Array:
            full = leading(array, rank)
            return np.moveaxis(full[:, :, None] if plane else full, 1, -1)

        return replace(self, operands=tuple(replace(o, array=turned(o.array)) for o in self.operands))

    def flattened(
        self, full: tuple[int, ...], flat: tuple[int, ...], scratch: Scratch, phases: list[list[Part]]
    ) -> Epilogue:
        """For a result in the shape `flat` instead of `full`. The calls that copy for it are added to `phases`."""
        return replace(self, operands=tuple(_flattened(o, full, flat, scratch, phases) for o in self.operands))

    def calls(self, out: Array, scratch: Scratch) -> Part:
        """The calls that change a result, whose shape all operands have."""
        if not self:
            return []
        flat, *operands = collapse([out, *self.arrays()])
        return tiled_calls(self.expression, [flat, *operands], flat, 0, len(flat), scratch)


def _flattened(
    operand: Operand, full: tuple[int, ...], flat: tuple[int, ...], scratch: Scratch, phases: list[list[Part]]
) -> Operand:
    """`operand`, which broadcasts to the shape `full`, as one that broadcasts to `flat`.

    A view wherever memory allows. Elsewhere a constant is copied now, and a value is copied in every run: the call that
    does it is added to `phases`.
    """
    array = operand.array
    if array.size == 1:
        return replace(operand, array=shaped(array))
    if array.shape[-1] == array.size and full[-1] == flat[-1]:
        return replace(operand, array=shaped(array, -1))
    wide = np.broadcast_to(array, full)
    view = merged(wide, *flat)
    if view is not None:
        return replace(operand, array=view)
    if operand.is_constant:
        return replace(operand, array=shaped_constant(wide, *flat))
    dense = scratch.take(full)
    phases.append([[(np.copyto, (dense, array))]])
    return Operand(shaped(dense, *flat))
