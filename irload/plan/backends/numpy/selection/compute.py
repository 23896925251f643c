"""What has no kernel: the operation itself computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.op import evaluate
from irload.core.tensor import Array
from irload.errors import IRError
from irload.plan.backends.numpy.selection.selector import Binder, Phases, RunCell, binds
from irload.plan.ir.steps import Compute


@binds(Compute)
def compute(step: Compute, binder: Binder) -> tuple[str, Phases]:
    """The operation's own `compute`, its results copied to their place."""
    inputs, outputs = [binder.view(v) for v in step.inputs], [binder.view(v) for v in step.outputs]
    return "compute", [[[(_compute, (step, inputs, outputs, binder.run))]]]


def _compute(step: Compute, inputs: Sequence[Array], outputs: Sequence[Array], run: RunCell) -> None:
    try:
        if run.context is not None:
            run.context.outputs = step.types
        results = evaluate(step.op, inputs, step.types, run.context)
    except IRError as error:
        raise error.at(step.origin[0].where(run.file)) from error.__cause__
    for out, result in zip(outputs, results, strict=True):
        np.copyto(out, result)
