"""The contraction of all inputs of a recurrent network, before its recurrence."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.matmul import RowContraction
from irload.plan.backends.llvm.kernels.weights import pack_weights
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import RecurrentStep

_ADD = Expression(2, (Instruction("add", (0, 1)),))


def input_gates(
    step: RecurrentStep,
    arrange: Callable[[Array], Array],
    key: Hashable,
    gates: Temporary,
    bias: Array,
    dot: Dot,
    selector: Selector,
) -> list[Launch]:
    """gates[direction, sample, time] = x[sample, time] · w[direction] + bias[direction], in f32.

    `bias` is [directions, width, 1]. `arrange` orders the constant weights as [directions, width, depth]; `key`
    identifies the order.
    """
    x = selector.array(step.inputs[0])
    (batch, length, _), (directions, width, _) = x.shape, bias.shape
    row = width * bias.itemsize
    strides = (batch * length * row, length * row, row, bias.itemsize)
    laid = as_strided(bias, (directions, batch, length, width), strides)  # the layout of the gates, not their memory
    tensors = [laid, np.broadcast_to(bias[:, None, None, :, 0], laid.shape)]
    if batch > length:
        x, tensors = x.swapaxes(0, 1), [tensor.swapaxes(1, 2) for tensor in tensors]
    rows = RowContraction.of(step.inputs[0], x, (directions, 1), tensors, _ADD, dot, selector)

    def pack(weights: Array) -> Array:
        return pack_weights(arrange(weights), rows.packing, selector.target, selector.threads)

    packed = selector.packed(step.inputs[-3], ("inputs", rows.packing, key), pack)
    return [*rows.copies, rows.launch(packed, [gates, bias], selector)]
