"""Epilogues: an expression over the result of a kernel and further operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.elementwise import elementwise_parts, tiled_calls
from irload.plan.backends.numpy.kernels.tiles import collapse
from irload.plan.backends.numpy.kernels.views import leading, merged, shaped, shaped_constant
from irload.plan.ir.expression import Expression
from irload.plan.threads import ThreadCalls
from irload.record import record


@record()
class EpilogueOperand:
    """An operand of an epilogue. Constants may be read and copied at compile time."""

    array: Array
    is_constant: bool = False


@record()
class Epilogue:
    """An expression over a result (its operand 0) and `operands`, which broadcast to the result's shape."""

    expression: Expression
    operands: tuple[EpilogueOperand, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.expression.instructions)

    def __getitem__(self, index: Any) -> Epilogue:
        """Return the epilogue of a part of the result; all operands must have the shape of the result."""
        return replace(self, operands=tuple(replace(o, array=o.array[index]) for o in self.operands))

    def arrays(self) -> list[Array]:
        """Return the operands' arrays."""
        return [operand.array for operand in self.operands]

    def broadcast(self, shape: Sequence[int]) -> Epilogue:
        """Return the epilogue with operands broadcast to the shape of the result."""
        wide = (replace(o, array=np.broadcast_to(o.array, tuple(shape))) for o in self.operands)
        return replace(self, operands=tuple(wide))

    def channels_last(self, rank: int, *, plane: bool = False) -> Epilogue:
        """Return the epilogue for [N,X…,C] instead of [N,C,X…]; `plane`: for [N,1,X,C] instead of [N,C,X]."""

        def turned(array: Array) -> Array:
            full = leading(array, rank)
            return np.moveaxis(full[:, :, None] if plane else full, 1, -1)

        return replace(self, operands=tuple(replace(o, array=turned(o.array)) for o in self.operands))

    def flattened(self, full: tuple[int, ...], flat: tuple[int, ...], scratch: Scratch, phases: Phases) -> Epilogue:
        """Return the epilogue for the shape `flat` instead of `full`. The required copies are appended to `phases`."""
        return replace(self, operands=tuple(_flattened(o, full, flat, scratch, phases) for o in self.operands))

    def calls(self, out: Array, scratch: Scratch) -> ThreadCalls:
        """Return the calls that apply the epilogue to a result; all operands must have its shape."""
        if not self:
            return []
        flat, *operands = collapse([out, *self.arrays()])
        return tiled_calls(self.expression, [flat, *operands], flat, 0, len(flat), scratch)

    def phases(self, out: Array, scratch: Scratch) -> Phases:
        """Return the phase that applies the epilogue to the entire result; no phase for the identity."""
        if not self:
            return []
        return [elementwise_parts(self.expression, [out, *self.arrays()], out, scratch)]


def _flattened(
    operand: EpilogueOperand, full: tuple[int, ...], flat: tuple[int, ...], scratch: Scratch, phases: Phases
) -> EpilogueOperand:
    """Return an operand that broadcasts to `flat`, from one that broadcasts to `full`.

    It is a view if memory allows. Otherwise a constant is copied now; for any other value, a copy in each run is
    appended to `phases`.
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
    return EpilogueOperand(shaped(dense, *flat))
