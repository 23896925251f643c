"""Which kernels run each kind of step: the one table of all selections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.attention import select_attention
from irload.plan.backends.llvm.kernels.conv_transpose import select_conv_transpose
from irload.plan.backends.llvm.kernels.convolution import select_convolution
from irload.plan.backends.llvm.kernels.copying import select_concat, select_relayout, select_view
from irload.plan.backends.llvm.kernels.elementwise import select_elementwise
from irload.plan.backends.llvm.kernels.matmul import select_matmul
from irload.plan.backends.llvm.kernels.normalization import select_group_normalize, select_normalize
from irload.plan.backends.llvm.kernels.pooling import select_pool
from irload.plan.backends.llvm.kernels.recurrent_selection import select_recurrent
from irload.plan.backends.llvm.kernels.reduction import select_reduce
from irload.plan.backends.llvm.kernels.resampling import select_resample
from irload.plan.backends.llvm.kernels.rotary import select_rotary_embedding
from irload.plan.backends.llvm.kernels.softmax import select_softmax
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.program import Step
from irload.plan.ir.steps import (
    Attention,
    Broadcast,
    Concat,
    Conv,
    ConvTranspose,
    Elementwise,
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
    Slice,
    Softmax,
    Transpose,
)

Selection = Callable[[Any, Selector], list[Launch]]
"""Gives the kernels of a step, which run one after the other; none for a view that needs no copy."""

SELECTIONS: dict[type[Step], Selection] = {
    Attention: select_attention,
    Broadcast: select_view,
    Concat: select_concat,
    Conv: select_convolution,
    ConvTranspose: select_conv_transpose,
    Elementwise: select_elementwise,
    GroupNormalize: select_group_normalize,
    MatMul: select_matmul,
    Normalize: select_normalize,
    Pool: select_pool,
    Recurrent: select_recurrent,
    Reduce: select_reduce,
    Relayout: select_relayout,
    Resample: select_resample,
    Reshape: select_view,
    RotaryEmbedding: select_rotary_embedding,
    Slice: select_view,
    Softmax: select_softmax,
    Transpose: select_view,
}
"""The selection of each kind of step."""
