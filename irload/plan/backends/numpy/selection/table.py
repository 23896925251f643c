"""The kernel of each step: the one table of all selections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irload.plan.backends.numpy.selection import (
    compute,
    convolutions,
    elementwise,
    matrices,
    movement,
    resampling,
    rows,
    sequences,
)
from irload.plan.backends.numpy.selection.selector import Selected, Selector
from irload.plan.ir.program import Step
from irload.plan.ir.steps import (
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
)

SELECTIONS: dict[type[Step], Callable[[Any, Selector], Selected]] = {
    Attention: matrices.attention,
    Broadcast: movement.view_or_copy,
    Compute: compute.compute,
    Concat: movement.concat,
    Conv: convolutions.conv,
    ConvTranspose: convolutions.conv_transpose,
    Elementwise: elementwise.elementwise,
    Gather: movement.gather,
    GroupNormalize: rows.group_normalize,
    MatMul: matrices.matmul,
    Normalize: rows.normalize,
    Pool: convolutions.pool,
    Recurrent: sequences.recurrent,
    Reduce: rows.reduce,
    Relayout: movement.relayout,
    Resample: resampling.resample,
    Reshape: movement.view_or_copy,
    RotaryEmbedding: rows.rotary_embedding,
    Sample: compute.sample,
    Slice: movement.view_or_copy,
    Softmax: rows.softmax,
    Transpose: movement.view_or_copy,
}
"""What selects a kernel for each type of step: its name, and its calls on the memory of the step."""
