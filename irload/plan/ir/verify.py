"""What holds of every program, after lowering and after each pass. Tests verify; a run does not pay for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NoReturn

import numpy as np

from irload.plan.ir.expression import Expression
from irload.plan.ir.program import PlanInvalid, Program, Step, Value
from irload.plan.ir.steps import (
    INDICES,
    Attention,
    Broadcast,
    Compute,
    Concat,
    Conv,
    ConvTranspose,
    Elementwise,
    Gather,
    GroupNormalize,
    MatMul,
    Normalize,
    Pool,
    Recurrent,
    Reduce,
    Relayout,
    Resample,
    Reshape,
    RotaryEmbedding,
    Sample,
    Slice,
    Softmax,
    Transpose,
    ViewOp,
)
from irload.plan.ir.strides import Strided


def verify(program: Program, after: str = "lowering") -> None:
    """Check the order of the steps, one producer for each value, all outputs, and each step's shapes and dtypes.

    Raises PlanInvalid, which says what is wrong with which step, and after which pass.
    """
    made: dict[Value, object] = dict.fromkeys(program.inputs, "the caller")
    for k, step in enumerate(program.steps):
        where = f"after {after}: step {k}, {type(step).__name__} ({step.title})"
        for value in step.inputs:
            if not value.is_constant and value not in made:
                _fail(where, f"takes {value}, which no earlier step makes")
        for value in step.outputs:
            if value.is_constant:
                _fail(where, f"makes {value}, which is a constant")
            if value in made:
                _fail(where, f"makes {value}, which {made[value]} makes already")
            made[value] = f"step {k}"
        try:
            RULES[type(step)](step)
        except (PlanInvalid, ValueError) as error:
            _fail(where, f"{error}; inputs {step.inputs}, outputs {step.outputs}")
    for value in program.outputs:
        if not value.is_constant and value not in made:
            _fail(f"after {after}", f"no step makes the output {value}")


def _fail(where: str, what: str) -> NoReturn:
    raise PlanInvalid(f"{where}: {what}")


def _equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise PlanInvalid(f"{what} is {found}, expected {expected}")


def _counts(step: Step, inputs: int, outputs: int = 1) -> None:
    _equal("the number of inputs", len(step.inputs), inputs)
    _equal("the number of outputs", len(step.outputs), outputs)


def _f32(*values: Value) -> None:
    for value in values:
        _equal(f"the dtype of {value}", value.dtype, np.dtype(np.float32))


def _broadcasts(value: Value, shape: tuple[int, ...]) -> None:
    _equal(f"the shape that {value} and the output have together", np.broadcast_shapes(value.shape, shape), shape)


def _expression(
    expression: Expression, first: Sequence[Value], rest: Sequence[Value], outputs: Sequence[Value]
) -> None:
    """Instructions that exist, operands that broadcast to the outputs, and results of their types."""
    _equal("the number of operands of the expression", expression.operands, len(first) + len(rest))
    _equal("the number of results", len(expression.result_registers), len(outputs))
    if len(expression.results) == 1:
        raise PlanInvalid(f"results are {expression.results}, expected none: a sole result is the last register")
    types = expression.types([v.dtype for v in (*first, *rest)])
    for register, output in zip(expression.result_registers, outputs, strict=True):
        _equal("the shape", output.shape, outputs[0].shape)
        _equal("the dtype", output.dtype, types[register])
    for value in rest:
        _broadcasts(value, outputs[0].shape)


def _compute(step: Compute) -> None:
    _equal("the number of types", len(step.types), len(step.outputs))
    for value, tensor in zip(step.outputs, step.types, strict=True):
        _equal("the shape", value.shape, tensor.shape.static)
        _equal("the dtype", value.dtype, tensor.element.dtype)


def _view(step: ViewOp) -> None:
    _counts(step, 1)
    (source,) = step.inputs
    _equal("the dtype", step.output.dtype, source.dtype)
    view = step.view
    if view.kind == "reshape":
        _equal("the number of elements", step.output.size, source.size)
    if view.kind == "broadcast":
        _broadcasts(source, step.output.shape)
    if isinstance(step, Transpose):
        _equal("the sorted order", sorted(step.order), list(range(len(source.shape))))
    seen = view.of(Strided.dense(source.shape))
    _equal("the shape", step.output.shape, None if seen is None else seen.shape)


def _elementwise(step: Elementwise) -> None:
    _expression(step.expression, [], step.inputs, step.outputs)


def _conv(step: Conv) -> None:
    x, w, *extra = step.inputs
    _f32(x, w, step.output)
    groups, per_group, depth, *kernel = w.shape
    if not w.is_constant:
        raise PlanInvalid("the weights are no constant")
    _equal("the channels of the data", x.shape[1], groups * depth)
    geometry = zip(x.shape[2:], kernel, step.strides, step.dilations, step.pads_begin, step.pads_end, strict=True)
    sizes = [(n + b + e - (k - 1) * d - 1) // s + 1 for n, k, s, d, b, e in geometry]
    # Where there is but one element, any stride will do, and the step has 1.
    sizes = [1 if n == 1 and size > 1 else size for n, size in zip(step.output.shape[2:], sizes, strict=True)]
    _equal("the shape", step.output.shape, (x.shape[0], groups * per_group, *sizes))
    _expression(step.epilogue, [step.output], extra, step.outputs)


def _conv_transpose(step: ConvTranspose) -> None:
    _counts(step, 2)
    x, w = step.inputs
    _f32(x, w, step.output)
    groups, depth, per_group, *kernel = w.shape
    if not w.is_constant:
        raise PlanInvalid("the weights are no constant")
    _equal("the channels of the data", x.shape[1], groups * depth)
    _equal("batch and channels", step.output.shape[:2], (x.shape[0], groups * per_group))
    for name in ("strides", "dilations", "begin"):
        _equal(f"the number of {name}", len(getattr(step, name)), len(kernel))
    _equal("the rank", len(step.output.shape), len(x.shape))


def _matmul(step: MatMul) -> None:
    a, b, *extra = step.inputs
    _f32(a, b, step.output)
    left = (*a.shape[:-2], a.shape[-1], a.shape[-2]) if step.transpose_a else a.shape
    right = (*b.shape[:-2], b.shape[-1], b.shape[-2]) if step.transpose_b else b.shape
    _equal("the length of the sums", left[-1], right[-2])
    lead = np.broadcast_shapes(left[:-2], right[:-2])
    _equal("the shape", step.output.shape, (*lead, left[-2], right[-1]))
    _expression(step.epilogue, [step.output], extra, step.outputs)


def _pool(step: Pool) -> None:
    _counts(step, 1)
    (x,) = step.inputs
    _f32(x, step.output)
    _equal("batch and channels", step.output.shape[:2], x.shape[:2])
    for name in ("kernel", "strides", "dilations", "pads_begin"):
        _equal(f"the number of {name}", len(getattr(step, name)), len(x.shape) - 2)
    _equal("the rank", len(step.output.shape), len(x.shape))


def _resample(step: Resample) -> None:
    _counts(step, 1)
    (x,) = step.inputs
    _f32(x, step.output)
    _equal("the weights", step.weight.shape, step.index.shape)
    _equal("the shape", step.output.shape, (*x.shape[: step.axis], len(step.index), *x.shape[step.axis + 1 :]))
    if step.index.min() < 0 or step.index.max() >= x.shape[step.axis]:
        raise PlanInvalid(f"taps lie outside the {x.shape[step.axis]} elements of axis {step.axis}")


def _reduce(step: Reduce) -> None:
    _counts(step, 1)
    shape = step.inputs[0].shape
    _f32(step.inputs[0], step.output)
    if (
        not step.axes
        or not all(a < b for a, b in pairwise(step.axes))
        or not 0 <= step.axes[0] <= step.axes[-1] < len(shape)
    ):
        raise PlanInvalid(f"axes {step.axes} are not in order, or out of range")
    kept = tuple(1 if k in step.axes else n for k, n in enumerate(shape))
    dropped = tuple(n for k, n in enumerate(shape) if k not in step.axes)
    if step.output.shape not in (kept, dropped):
        raise PlanInvalid(f"the shape is {step.output.shape}, expected {kept} or {dropped}")


def _same(step: Softmax | Normalize | GroupNormalize | RotaryEmbedding) -> None:
    _f32(step.inputs[0], step.output)
    _equal("the shape", step.output.shape, step.inputs[0].shape)


def _softmax(step: Softmax) -> None:
    _counts(step, 1)
    _same(step)
    if not 0 <= step.axis < len(step.output.shape):
        raise PlanInvalid(f"axis {step.axis} is out of range")


def _normalize(step: Normalize) -> None:
    _same(step)
    rank = len(step.output.shape)
    _equal("the axes", step.axes, tuple(range(rank - len(step.axes), rank)))
    _expression(step.epilogue, [step.output], step.operands, step.outputs)


def _group_normalize(step: GroupNormalize) -> None:
    _counts(step, 3)
    _same(step)
    channels = step.output.shape[1]
    _equal("the channels beyond whole groups", channels % step.groups, 0)
    for value in step.inputs[1:]:
        _f32(value)
        _equal("scale and bias", value.shape, (channels,))


def _attention(step: Attention) -> None:
    q, k, v, *masks = step.inputs
    _equal("more than one mask", len(masks) > 1, False)
    _f32(q, k, v, step.output)
    _equal("the width of the keys", k.shape[-1], q.shape[-1])
    _equal("the number of values", v.shape[-2], k.shape[-2])
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], *(m.shape[:-2] for m in masks))
    _equal("the shape", step.output.shape, (*lead, q.shape[-2], v.shape[-1]))
    for mask in masks:
        _broadcasts(mask, (*lead, q.shape[-2], k.shape[-2]))
        _equal("the mask is f32 or boolean", mask.dtype.name in ("float32", "bool"), True)


def _rotary_embedding(step: RotaryEmbedding) -> None:
    _counts(step, 3)
    _same(step)
    _equal("the rest of the last axis after two halves", step.output.shape[-1] % 2, 0)
    for value in step.inputs[1:]:
        _f32(value)
        _broadcasts(value, step.output.shape)


def _concat(step: Concat) -> None:
    shapes = [v.shape for v in step.inputs]
    total = sum(s[step.axis] for s in shapes)
    for shape in shapes:
        expected = (*shape[: step.axis], total, *shape[step.axis + 1 :])
        _equal("the shape", step.output.shape, expected)
    for value in step.inputs:
        _equal(f"the dtype of {value}", value.dtype, step.output.dtype)


def _gather(step: Gather) -> None:
    _counts(step, 2)
    data, indices = step.inputs
    if not step.widens:
        _equal("the dtype", step.output.dtype, data.dtype)
    _equal("the indices are i32 or i64", indices.dtype.name in INDICES, True)
    _equal("the shape", step.output.shape, (*data.shape[: step.axis], *indices.shape, *data.shape[step.axis + 1 :]))


def _sample(step: Sample) -> None:
    _counts(step, 2)
    data, grid = step.inputs
    _f32(data, grid, step.output)
    _equal("the coordinates of a point", grid.shape[3:], (2,))
    _equal("the batch of the grid", grid.shape[0], data.shape[0])
    _equal("the shape", step.output.shape, (*data.shape[:2], *grid.shape[1:3]))


def _recurrent(step: Recurrent) -> None:
    x, *states = step.inputs[:-3]
    y, *last = step.outputs
    _f32(x, *states, y, *last)
    batch, length, _ = x.shape
    _equal("batch, directions, length", y.shape[:3], (batch, len(step.backwards), length))
    _equal("the states", [s.shape for s in states], [(*y.shape[:2], y.shape[3])] * (2 if step.cell == "lstm" else 1))
    _equal("the last states", [prod(s.shape) for s in last], [prod(s.shape) for s in states])


def _relayout(step: Relayout) -> None:
    _counts(step, 1)
    _equal("the dtype", step.output.dtype, step.inputs[0].dtype)
    _equal("the shape", step.output.shape, step.inputs[0].shape)


RULES: dict[type[Step], Callable[[Any], None]] = {
    Attention: _attention,
    Broadcast: _view,
    Compute: _compute,
    Concat: _concat,
    Conv: _conv,
    ConvTranspose: _conv_transpose,
    Elementwise: _elementwise,
    Gather: _gather,
    GroupNormalize: _group_normalize,
    MatMul: _matmul,
    Normalize: _normalize,
    Pool: _pool,
    Recurrent: _recurrent,
    Reduce: _reduce,
    Relayout: _relayout,
    Resample: _resample,
    Reshape: _view,
    RotaryEmbedding: _rotary_embedding,
    Sample: _sample,
    Slice: _view,
    Softmax: _softmax,
    Transpose: _view,
}
"""What holds of each step."""
