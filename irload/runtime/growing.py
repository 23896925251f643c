"""The memory of variables that grow, before an inference that appends to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.ops.movement.gather import Gather
from irload.plan.interpreter import InterpreterRun
from irload.plan.variables import GrownRows

if TYPE_CHECKING:
    from irload.plan.traced.growth import Growth


def extended(growth: Growth, sizes: Sequence[int], arrays: Sequence[Array], run: InterpreterRun) -> GrownRows:
    """The variables with room for the rows that this inference appends: in place if nothing else was appended.

    `arrays`: all inputs of the plan. Raises LimitExceeded.
    """
    forms, (length, more, size) = growth.forms(sizes), growth.rows(sizes)
    order = None if growth.order is None else _reordering(arrays[growth.order], size)
    held = run.variables.rows
    if held is not None and order is None and held.length == length:
        found = held.extended(forms, more)
        if found is not None:
            return found
    past = [arrays[growing.input] for growing in growth.growing]
    if order is not None:
        axis = np.array(growth.batch)
        past = [Gather().compute(array, order, axis) for array in past]
    limits = run.limits
    rows = GrownRows.copied(forms, past, more, lambda nbytes: limits.peak_bytes is None or nbytes <= limits.peak_bytes)
    limits.require("peak_bytes", rows.room.nbytes(forms, rows.room.capacity), "the variables are too large")
    return rows


def _reordering(order: Array, size: int) -> Array | None:
    """The indices of a Gather; None if they select the whole axis in order."""
    return None if order.tolist() == list(range(size)) else order
