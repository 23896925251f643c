"""Kernels for recurrent sequences."""

from __future__ import annotations

from irload.plan.backends.numpy.kernels import recurrent as kernels
from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import RecurrentStep


def recurrent(step: RecurrentStep, selector: NumpySelector) -> Selected:
    """Select the kernel of a recurrent step, with one part per direction because directions are independent."""
    x, *states = (selector.array(v) for v in (step.inputs[0], *step.states))
    w, r, b = (selector.weights(v) for v in step.weights)
    inner = b.array
    y, *last = (selector.array(v) for v in step.outputs)
    parts = [
        kernels.recurrent(
            kernels.Direction(
                cell=step.cell,
                backwards=backwards,
                x=x,
                states=tuple(s[:, k] for s in states),
                w=w.packed(f"{step.cell} {k}", lambda w, k=k: kernels.packed(step.cell, w[k])),
                r=r.packed(f"{step.cell} {k}", lambda r, k=k: kernels.packed(step.cell, r[k])),
                b=b.packed(
                    f"{step.cell} {k}",
                    lambda b, k=k: kernels.packed(step.cell, b[k][: y.shape[-1] * kernels.GATES[step.cell]]),
                ),
                inner=inner[k][-y.shape[-1] :],
                y=y[:, k],
                last=tuple(s[:, k] for s in last),
            ),
            selector.scratch,
        )
        for k, backwards in enumerate(step.backwards)
    ]
    phases: Phases = [parts] if len(parts) <= selector.threads else [[part] for part in parts]
    return "a matmul, then step by step", phases
