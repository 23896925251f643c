"""Selects the values that are stored in another type between steps: in bf16 or in i16.

Bytes are stored in i16 if a product would otherwise widen them in its innermost loop.

If products are computed in bf16, storing their data in bf16 halves memory traffic. The values are the maps of
convolutional nets, and values passed from one matmul to another. Residual streams of transformers, inputs of
normalizations, and operands of kernels that only read f32 remain f32. So do values that are compared with each other:
rounding would make different elements equal, for example in x == MaxPool(x), by which detectors find the maxima of a
map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irload.plan.backends.llvm.kernels.precision import pays_in_bf16, pays_in_i16
from irload.plan.backends.llvm.kernels.reorder import in_chunks
from irload.plan.backends.llvm.kernels.weights import narrow_form
from irload.plan.backends.llvm.selection import BF16, F32, I16, TABLE
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import WIDENED_ROWS
from irload.plan.ir.expression import compared_operands
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ElementwiseStep, MatMulStep, PoolStep, ProductStep
from irload.plan.memory.layout import PLANAR, Layout


def stored_layouts(
    program: Program, steps: Sequence[Step], layouts: Mapping[Value, Layout], target: Target
) -> dict[Value, Layout]:
    """Return the layouts, with bf16 as the stored type of values that these steps produce if all readers support it."""
    return _stored(BF16, _candidates(program, steps, layouts, target), program, steps, layouts, target)


def widened_layouts(
    program: Program, steps: Sequence[Step], layouts: Mapping[Value, Layout], target: Target
) -> dict[Value, Layout]:
    """Return the layouts, with i16 as the stored type of data of products that read i16 faster than bytes."""
    read = {s.inputs[0] for s in steps if pays_in_i16(s, target)}
    computed = {v for s in steps for v in s.outputs if v in read and v not in program.returned and v.size}
    return _stored(I16, computed, program, steps, layouts, target)


def _stored(
    dtype: np.dtype[Any],
    candidates: set[Value],
    program: Program,
    steps: Sequence[Step],
    layouts: Mapping[Value, Layout],
    target: Target,
) -> dict[Value, Layout]:
    """Return the layouts, with `dtype` as the stored type of the candidates that all steps support."""
    segment, candidates = set(steps), set(candidates)
    removed = bool(candidates)
    while removed:
        removed = set[Value]()
        for step in program.steps:
            values = {v for v in (*step.inputs, *step.outputs) if v in candidates}
            if not values:
                continue
            if step in segment and _selects_elements(step):
                alike = all(v in candidates for v in (*step.inputs, *step.outputs))
                removed |= set() if alike else values
            else:
                supported = TABLE.rows[type(step)].stored.get(dtype) if step in segment else None
                removed |= values if supported is None else values.difference(supported(step, layouts, target))
        candidates -= removed
    return {**layouts, **{v: replace(layouts.get(v, PLANAR), storage=dtype) for v in candidates}}


def _candidates(program: Program, steps: Sequence[Step], layouts: Mapping[Value, Layout], target: Target) -> set[Value]:
    """Return the values that are stored in bf16 if all steps that read them support it."""
    products = [s for s in steps if isinstance(s, ProductStep) and pays_in_bf16(s, target)]
    multiplied = {s.inputs[0] for s in products}
    compared = _compared(program) if products else set[Value]()
    candidates: set[Value] = set()
    for step in steps if products else ():
        for value in step.outputs:
            if value.dtype != F32 or value in program.returned or value in compared or not value.size:
                continue
            passed = isinstance(step, MatMulStep) and _is_only_multiplied(program, value, multiplied)
            if step.view is not None or value in layouts or passed:
                candidates.add(value)
    return candidates


def _selects_elements(step: Step) -> bool:
    """True if each output element is equal to an input element, so that all values have the same stored type."""
    return step.keeps_elements or (isinstance(step, PoolStep) and step.kind == "max")


def _compared(program: Program) -> set[Value]:
    """Return the values that are compared with another value, and the values from which their elements are selected."""
    compared = set[Value]()
    for step in reversed(program.steps):
        if isinstance(step, ElementwiseStep):
            computed = [not v.is_constant for v in step.inputs]
            compared.update(step.inputs[k] for k in compared_operands(step.expression, computed))
        elif _selects_elements(step) and not compared.isdisjoint(step.outputs):
            compared.update(step.inputs)
    return compared


def _is_only_multiplied(program: Program, value: Value, multiplied: set[Value]) -> bool:
    """True if only products read a value, directly or through views."""
    consumers = program.consumers(value)
    return bool(consumers) and all(
        _is_only_multiplied(program, s.output, multiplied)
        if s.view is not None
        else value in multiplied and s.inputs[0] is value and s.inputs.count(value) == 1
        for s in consumers
    )


def reordered_operands(
    steps: Sequence[Step], layouts: Mapping[Value, Layout], target: Target, *, weights_only: bool = False
) -> dict[Step, Layout]:
    """The matmuls in bf16 whose data are stored in f32, each with the layout of the rounded copy that it reads.

    `weights_only`: only products with constant weights. Compressed weights of less than 16 bits are widened to bf16
    for many rows, to f32 for few.
    """
    layouts_of_steps: dict[Step, Layout] = {}
    for step in steps:
        if not isinstance(step, MatMulStep) or not pays_in_bf16(step, target):
            continue
        data, weights = step.inputs[:2]
        narrow = weights_only and narrow_form(weights, step.summed_axis) is not None
        if weights_only and (not weights.is_constant or (narrow and not _shares_widened_weights(step))):
            continue
        rounded = not data.is_constant and layouts.get(data, PLANAR).storage is None
        if rounded and step.multiplies_rows:
            in_pairs = (narrow or not target.tiles) and data.shape[-1] % 2 == 0  # vectors read pairs in place
            nbytes = None if in_pairs else in_chunks(data.shape).nbytes
            layouts_of_steps[step] = Layout(storage=BF16, nbytes=nbytes)
    return layouts_of_steps


def _shares_widened_weights(step: MatMulStep) -> bool:
    """True if enough rows, of an even number of elements, are multiplied by weights that are widened to bf16."""
    return step.multiplies_rows and step.matrix[2] % 2 == 0 and prod(step.output.shape[:-1]) >= WIDENED_ROWS
