"""Selects the matmuls by compressed integer weights whose data are quantized to i8 in each inference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.plan.backends.llvm.kernels.weights import compression_of
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import LEAST_GROUP, MOST_GROUP
from irload.plan.backends.llvm.widening import Compression
from irload.plan.ir.compressed import compressed
from irload.plan.ir.program import Step
from irload.plan.ir.steps import MatMulStep
from irload.plan.memory.layout import Layout, RowCodes

MULTIPLE = 16
"""The length of a group is a multiple of this number, so that groups consist of whole vectors."""
INTEGERS = ("u4", "i4", "u8", "i8")


def quantized_operands(steps: Sequence[Step], target: Target, *, bf16: bool) -> dict[Step, Layout]:
    """The matmuls of quantized data, each with the layout of the copy that it reads.

    `bf16`: products of floats are computed in bf16. With tiles, no matmul is then selected, since tiles multiply bf16
    faster than vectors multiply bytes.
    """
    if bf16 and target.tiles:
        return {}
    layouts: dict[Step, Layout] = {}
    for step in steps:
        codes = _codes(step) if isinstance(step, MatMulStep) else None
        if codes is not None:
            data = step.inputs[0]
            nbytes = prod(data.shape[:-1]) * codes.row(data.shape[-1])
            layouts[step] = Layout(storage=np.dtype(np.int8), nbytes=nbytes, codes=codes)
    return layouts


def _codes(step: MatMulStep) -> RowCodes | None:
    """The form of the quantized data of a matmul, None if they are not quantized."""
    data, weights = step.inputs[:2]
    stored = compressed(weights.source)
    if stored is None or data.is_constant or step.multiplies_integers or not step.multiplies_rows:
        return None
    form = compression_of(stored, step.summed_axis)
    if form is None or form.scale is None:
        return None
    group = data_group(form, data.shape[-1])
    return None if group is None else RowCodes(group, interleaved=form.widening.bits == 4)


def data_group(form: Compression, length: int) -> int | None:
    """The largest group of the data that divides the group of the weights; None if there is none.

    If the weights have a single group, it must divide the length of the sum.
    """
    if form.element not in INTEGERS:
        return None
    whole = form.group or length
    return next((n for n in range(MOST_GROUP, LEAST_GROUP - 1, -MULTIPLE) if whole % n == 0), None)
