"""What has no kernel: the operation itself computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.op import evaluate
from irload.core.tensor import Array
from irload.errors import IRError
from irload.plan.backends.numpy.selection.selector import RunCell, Selected, Selector
from irload.plan.ir.steps import Compute


def compute(step: Compute, selector: Selector) -> Selected:
    """The operation's own `compute`, its results copied to their place."""
    inputs, outputs = [selector.array(v) for v in step.inputs], [selector.array(v) for v in step.outputs]
    return "compute", [[[(_compute, (step, inputs, outputs, selector.cell))]]]


def _compute(step: Compute, inputs: Sequence[Array], outputs: Sequence[Array], cell: RunCell) -> None:
    try:
        if cell.context is not None:
            cell.context.outputs = step.types
        results = evaluate(step.op, inputs, step.types, cell.context)
    except IRError as error:
        raise error.at(step.origin[0].where(cell.file)) from error.__cause__
    for out, result in zip(outputs, results, strict=True):
        np.copyto(out, result)
