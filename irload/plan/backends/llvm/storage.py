"""Which values are stored in bf16 between steps, where products are computed in it: half the memory to go through.

Those are maps of convolutional nets, and what one matmul hands to another. Residual streams of transformers, what is
normalised, and whatever a kernel takes that reads f32 alone stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from ml_dtypes import bfloat16

from irload.plan.backends.llvm.kernels.bf16_selection import pays_in_bf16
from irload.plan.backends.llvm.kernels.depthwise import is_depthwise
from irload.plan.backends.llvm.kernels.windows import conv_axes
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Concat, Conv, ConvTranspose, Elementwise, MatMul, Pool, Reduce, ViewOp
from irload.plan.memory.layout import PLANAR, Layout

STORAGE = np.dtype(bfloat16)
_F32 = np.dtype(np.float32)


def stored_layouts(
    program: Program, steps: Sequence[Step], layouts: Mapping[Value, Layout], target: Target
) -> dict[Value, Layout]:
    """The layouts, and which of the values that these steps make are stored in bf16."""
    own = set(steps)
    found = _candidates(program, steps, layouts, target)
    removed = True
    while removed:
        removed = set[Value]()
        for step in program.steps:
            values = {v for v in (*step.inputs, *step.outputs) if v in found}
            if not values:
                continue
            if isinstance(step, ViewOp | Concat) and step in own:
                alike = all(v in found for v in (*step.inputs, *step.outputs))
                removed |= set() if alike else values
            else:
                removed |= values - (_taken(step, layouts, target) if step in own else set())
        found -= removed
    return {**layouts, **{v: replace(layouts.get(v, PLANAR), storage=STORAGE) for v in found}}


def _candidates(program: Program, steps: Sequence[Step], layouts: Mapping[Value, Layout], target: Target) -> set[Value]:
    """What would be stored so if all steps could read it."""
    products = [s for s in steps if isinstance(s, Conv | ConvTranspose | MatMul) and pays_in_bf16(s, target)]
    multiplied = {s.inputs[0] for s in products}
    found: set[Value] = set()
    for step in steps if products else ():
        for value in step.outputs:
            if value.dtype != _F32 or value in program.returned or not value.size:
                continue
            handed = isinstance(step, MatMul) and _only_multiplied(program, value, multiplied)
            if isinstance(step, ViewOp) or value in layouts or handed:
                found.add(value)
    return found


def _only_multiplied(program: Program, value: Value, multiplied: set[Value]) -> bool:
    """True where products alone take a value, as it is or through views."""
    consumers = program.consumers(value)
    return bool(consumers) and all(
        _only_multiplied(program, s.output, multiplied)
        if isinstance(s, ViewOp)
        else value in multiplied and s.inputs[0] is value and s.inputs.count(value) == 1
        for s in consumers
    )


def _taken(step: Step, layouts: Mapping[Value, Layout], target: Target) -> set[Value]:
    """What the kernels of a step can read or write in bf16."""
    if isinstance(step, Pool | Elementwise):
        return {*step.inputs, *step.outputs}
    if isinstance(step, Reduce):
        return set(step.inputs)
    if isinstance(step, MatMul):
        data = {step.inputs[0]} if pays_in_bf16(step, target) else set[Value]()
        return (data | {*step.operands, step.output}) - {step.inputs[1]}
    if isinstance(step, ConvTranspose):
        return {step.inputs[0], step.output} if pays_in_bf16(step, target) else set()
    if isinstance(step, Conv):
        return _taken_by_convolution(step, layouts, target)
    return set()


def _taken_by_convolution(step: Conv, layouts: Mapping[Value, Layout], target: Target) -> set[Value]:
    data, weights = step.inputs[:2]
    results = {*step.operands, step.output}
    if is_depthwise(weights.shape, conv_axes(step)[2]) and data in layouts:
        return {data, *results}
    if _may_be_winograd(step) and (target.dots or not pays_in_bf16(step, target)):
        return set()
    return {data, *results} if pays_in_bf16(step, target) else results - {data}


def _may_be_winograd(step: Conv) -> bool:
    """True for what Winograd, in f32, may compute."""
    return step.inputs[1].shape[3:] == (3, 3) and {*step.strides, *step.dilations} == {1}
