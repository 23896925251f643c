"""Steps without a kernel, which run the `compute` of their operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.op import Op, computes_directly, evaluate, is_builtin
from irload.core.tensor import Array
from irload.errors import IRError
from irload.ops.movement.scatter import Replacing
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.selection.selector import NumpySelector, RunCell, Selected
from irload.plan.ir.program import Step
from irload.plan.ir.steps import ComputeStep, CumulativeSumStep, ExpertOrderStep, SampleStep, ScatterStep, TopKStep


def compute(step: ComputeStep, selector: NumpySelector) -> Selected:
    """Call `compute` of the operation and copy its results to their buffers."""
    inputs, outputs = [selector.array(v) for v in step.inputs], [selector.array(v) for v in step.outputs]
    return computed(step, inputs, outputs, selector, is_plain=is_plain(step))


def computed(
    step: ComputeStep, inputs: Sequence[Array], outputs: Sequence[Array], selector: NumpySelector, *, is_plain: bool
) -> Selected:
    """Return the call for these arrays. There is none if all outputs are empty, which `evaluate` does not compute."""
    if outputs and not any(a.size for a in outputs) and is_builtin(step.op) and not step.op.signature.compute_context:
        return "compute", []
    run = _compute_alone if is_plain else _compute
    return "compute", [[[(run, (step, inputs, outputs, selector.cell))]]]


def sample(step: SampleStep, selector: NumpySelector) -> Selected:
    """Run the `compute` of GridSample."""
    from irload.ops.image.grid_sample import GridSample  # rarely used, so imported on demand

    op = GridSample(align_corners=step.align_corners, mode=step.mode, padding_mode=step.padding)
    return _by_operation(op, step, selector)


def cumulative_sum(step: CumulativeSumStep, selector: NumpySelector) -> Selected:
    """Run the `compute` of CumSum."""
    from irload.ops.arithmetic.cumsum import CumSum  # rarely used, so imported on demand

    return _by_operation(CumSum(exclusive=step.exclusive, reverse=step.reverse), step, selector, step.axis)


def top_k(step: TopKStep, selector: NumpySelector) -> Selected:
    """Run the `compute` of TopK."""
    from irload.ops.sort.topk import TopK  # rarely used, so imported on demand

    mode, sort = "max" if step.largest else "min", "index" if step.by_position else "value"
    op = TopK(axis=step.axis, mode=mode, sort=sort)
    return _by_operation(op, step, selector, step.outputs[0].shape[step.axis])


def expert_order(step: ExpertOrderStep, selector: NumpySelector) -> Selected:
    """Run the `compute` of ExpertOrder."""
    from irload.plan.experts.operations import ExpertOrder  # rarely used, so imported on demand

    return _by_operation(ExpertOrder(experts=step.outputs[2].size), step, selector)


def _by_operation(op: Op, step: Step, selector: NumpySelector, *numbers: int) -> Selected:
    """Return the call of an operation that computes a step. `numbers`: its last inputs."""
    inputs = [*map(selector.array, step.inputs), *(frozen(np.array(n)) for n in numbers)]
    return "compute", [[[(_run, (op, inputs, [*map(selector.array, step.outputs)]))]]]


def _run(op: Op, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    if isinstance(op, Replacing) and op.replaces:  # without another copy of the data
        np.copyto(outputs[0], inputs[0])
        op.replace(outputs[0], *inputs[1:])
        return
    result = op.compute(*inputs)
    for out, array in zip(outputs, result if isinstance(result, tuple) else (result,), strict=True):
        np.copyto(out, array)


def scatter(step: ScatterStep, selector: NumpySelector) -> Selected:
    """Replace elements of a copy."""
    out, arrays = selector.array(step.output), [selector.array(v) for v in step.inputs]
    return "compute", [[[(_scatter, (out, step.axis, *arrays))]]]


def _scatter(out: Array, axis: int, data: Array, positions: Array, updates: Array) -> None:
    np.copyto(out, data)
    np.put_along_axis(out, positions, updates, axis)


def is_plain(step: ComputeStep) -> bool:
    """True if `compute` needs no conversion, check or context."""
    tensors = (*step.inputs, *step.outputs)
    return any(v.size for v in step.outputs) and computes_directly(step.op, [v.dtype for v in tensors])


def _compute_alone(step: ComputeStep, inputs: Sequence[Array], outputs: Sequence[Array], cell: RunCell) -> None:
    """Like `_compute`, in a third of the time for small arrays."""
    try:
        _run(step.op, inputs, outputs)
    except Exception:
        _compute(step, inputs, outputs, cell)  # reports the error with its layer


def _compute(step: ComputeStep, inputs: Sequence[Array], outputs: Sequence[Array], cell: RunCell) -> None:
    try:
        if cell.context is not None:
            cell.context.outputs = step.types
        results = evaluate(step.op, inputs, step.types, cell.context)
    except IRError as error:
        raise error.at(step.origin[0].where(cell.file)) from error.__cause__
    for out, result in zip(outputs, results, strict=True):
        np.copyto(out, result)
