"""Which kernels run each kind of step: the one table of all selections."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.program import Step
from irload.plan.ir.steps import (
    Attention,
    Broadcast,
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

Selection = Callable[[Any, Selector], list[Launch]]
"""Gives the kernels of a step, which run one after the other; none for a view that needs no copy."""

SELECTIONS: dict[type[Step], str] = {
    Attention: "attention.select_attention",
    Broadcast: "copying.select_view",
    Concat: "copying.select_concat",
    Conv: "convolution.select_convolution",
    ConvTranspose: "conv_transpose.select_conv_transpose",
    Elementwise: "elementwise.select_elementwise",
    Gather: "gathering.select_gather",
    GroupNormalize: "normalization.select_group_normalize",
    MatMul: "matmul.select_matmul",
    Normalize: "normalization.select_normalize",
    Pool: "pool_selection.select_pool",
    Recurrent: "recurrent_selection.select_recurrent",
    Reduce: "reduction.select_reduce",
    Relayout: "copying.select_relayout",
    Resample: "resampling.select_resample",
    Reshape: "copying.select_view",
    RotaryEmbedding: "rotary.select_rotary_embedding",
    Sample: "grid_sampling.select_sample",
    Slice: "copying.select_view",
    Softmax: "softmax.select_softmax",
    Transpose: "copying.select_view",
}
"""The module of kernels/ and its function for each kind of step: a module is imported with the first step for it."""


@cache
def selection(kind: type[Step]) -> Selection:
    """What selects the kernels of steps of this kind."""
    module, name = SELECTIONS[kind].split(".")
    return getattr(import_module(f"{__package__}.kernels.{module}"), name)
