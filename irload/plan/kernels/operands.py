"""Operands of epilogues: broadcast to the shape of the result, and flattened with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part, Scratch


def flattened(
    operand: Array, full: tuple[int, ...], flat: tuple[int, ...], scratch: Scratch, phases: list[list[Part]]
) -> Array:
    """`operand`, which broadcasts to the shape `full`, as one that broadcasts to `flat`.

    A view wherever memory allows. Elsewhere a constant is copied now, and a value is copied in every run: the call that
    does it is added to `phases`. NumPy's own reshape would copy a value once, and silently keep that.
    """
    if operand.size == 1:
        return operand.reshape(())
    if operand.shape[-1] == operand.size and full[-1] == flat[-1]:
        return operand.reshape(-1)
    wide = np.broadcast_to(operand, full)
    try:
        return np.reshape(wide, flat, copy=False)
    except ValueError:
        if is_constant(operand):
            return wide.reshape(flat)
    dense = scratch.take(full)
    phases.append([[(np.copyto, (dense, operand))]])
    return dense.reshape(flat)


def is_constant(array: Array) -> bool:
    """True for views of arrays that nobody may write to: weights and what was folded from them."""
    owner: Any = array
    while getattr(owner, "base", None) is not None:  # the views that as_strided makes hang on an object of its own
        owner = owner.base
    return isinstance(owner, bytes) or (isinstance(owner, np.ndarray) and not owner.flags.writeable)
