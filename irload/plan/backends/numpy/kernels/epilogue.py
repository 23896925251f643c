"""Operands of epilogues: broadcast to the shape of the result, and flattened with it."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Part, Scratch
from irload.plan.backends.numpy.kernels.views import is_constant, merged, shaped, shaped_constant


def flattened(
    operand: Array, full: tuple[int, ...], flat: tuple[int, ...], scratch: Scratch, phases: list[list[Part]]
) -> Array:
    """`operand`, which broadcasts to the shape `full`, as one that broadcasts to `flat`.

    A view wherever memory allows. Elsewhere a constant is copied now, and a value is copied in every run: the call that
    does it is added to `phases`.
    """
    if operand.size == 1:
        return shaped(operand)
    if operand.shape[-1] == operand.size and full[-1] == flat[-1]:
        return shaped(operand, -1)
    wide = np.broadcast_to(operand, full)
    view = merged(wide, *flat)
    if view is not None:
        return view
    if is_constant(operand):
        return shaped_constant(wide, *flat)
    dense = scratch.take(full)
    phases.append([[(np.copyto, (dense, operand))]])
    return shaped(dense, *flat)
