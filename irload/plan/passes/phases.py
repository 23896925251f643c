"""Compute the columns of a transposed convolution as channels if the kernel is as wide as the stride.

ConvTranspose(x, w [1,C,O,…,k]) with stride k → ConvTranspose(x, w' [1,C,k·O,…,1]) with stride 1, and a view. Each
column of x yields k columns of the output, which are contiguous in channels-last layout, so the view needs no copy.
More channels fill the lanes of vectors, and one product instead of k reads x.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.core.size import is_size
from irload.plan.ir.derivations import ColumnsAsChannels
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.reshaping import reshaped, transposed
from irload.plan.ir.steps import ConvTransposeStep, ReshapeStep


def merge_columns(program: Program) -> None:
    """Compute columns as channels if all operands of the epilogue have a channel per column, too."""
    program.rewrite(ConvTransposeStep, _by_columns)


def _by_columns(step: ConvTransposeStep) -> list[Step] | None:
    """Return the convolution with columns as channels, and views; None if kernel or operands do not permit it."""
    data, weights = step.inputs[:2]
    if weights.source is None or not _has_separate_columns(step):
        return None
    steps: list[Step] = []
    operands = [_by_channels(operand, step, steps) for operand in step.operands]
    if None in operands:
        return None
    shape, width = step.output.shape, step.strides[-1]
    inputs = [data, weights.by(ColumnsAsChannels()), *(v for v in operands if v is not None)]
    merged = step.output.like(_merged(shape, width))
    steps.append(replace(step, inputs=inputs, outputs=[merged], strides=(*step.strides[:-1], 1)))
    split = reshaped(merged, (shape[0], width, *shape[1:-1], shape[-1] // width), steps, step.origin)
    moved = transposed(split, (0, *range(2, len(shape) + 1), 1), steps, step.origin)
    return [*steps, ReshapeStep([moved], step.outputs, origin=step.origin)]


def _has_separate_columns(step: ConvTransposeStep) -> bool:
    """True if each column of the output uses one column of the data: the kernel is as wide as the stride."""
    data, weights = (v.shape for v in step.inputs[:2])
    width = weights[-1]
    return (
        len(step.outputs) == 1
        and weights[0] == 1
        and width == step.strides[-1] > 1
        and step.dilations[-1] == 1
        and step.begin[-1] == 0
        and step.output.shape[-1] == data[-1] * width
    )


def _merged(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """The shape [N,O,…,W] with groups of `width` columns as channels."""
    return (shape[0], shape[1] * width, *shape[2:-1], shape[-1] // width)


def _by_channels(operand: Value, step: ConvTransposeStep, steps: list[Step]) -> Value | None:
    """The operand with columns as channels. None if its columns differ, unless it has the shape of the result."""
    shape, width = step.output.shape, step.strides[-1]
    if operand.shape == shape:
        rank = len(shape)
        split = reshaped(operand, (*shape[:-1], shape[-1] // width, width), steps, step.origin)
        moved = transposed(split, (0, rank, *range(1, rank)), steps, step.origin)
        return reshaped(moved, _merged(shape, width), steps, step.origin)
    _, channels, *_, columns = (*(1,) * (len(shape) - len(operand.shape)), *operand.shape)
    if is_size(columns) or columns != 1:
        return None
    if channels == 1:
        return operand
    constant = operand.constant
    return None if constant is None else Value.of(np.tile(constant, (width, *(1,) * (len(shape) - 2))), operand.name)
