"""Recurrent sequences."""

from __future__ import annotations

from irload.plan.backends.numpy.kernels import recurrent as kernels
from irload.plan.backends.numpy.selection.selector import Selected, Selector
from irload.plan.backends.numpy.tuning import Phases
from irload.plan.ir.steps import Recurrent


def recurrent(step: Recurrent, selector: Selector) -> Selected:
    """Each direction a part, as they do not depend on each other."""
    x, *states = (selector.array(v) for v in step.inputs[:-3])
    w, r, b = (selector.weights(v) for v in step.inputs[-3:])
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
    return "a product, then step by step", phases
