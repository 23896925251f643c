"""The vocabulary of steps: each says completely what is to be computed, and nothing of how.

One implementation of each stands in plan/kernels, in NumPy. A step has constant shapes and strides and its weights as
constants, so that a second implementation can be generated from the same description.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Step

IDENTITY = Expression(1)


@dataclass(slots=True, eq=False)
class Compute(Step):
    """An operation by its own `compute`: whatever has no step of its own."""

    op: Op = field(kw_only=True)
    types: tuple[TensorType, ...] = field(kw_only=True)


@dataclass(slots=True, eq=False)
class ViewOp(Step):
    """Base of steps that only look at their input in another way, without a copy wherever memory allows."""

    def look(self, array: Array) -> Array:
        """The view. Raises ValueError where none exists."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Reshape(ViewOp):
    """The same elements in another shape: Reshape, Squeeze, Unsqueeze."""

    def look(self, array: Array) -> Array:
        return np.reshape(array, self.output.shape, copy=False)


@dataclass(slots=True, eq=False)
class Transpose(ViewOp):
    """The same elements with axes in another order."""

    order: tuple[int, ...] = field(kw_only=True)

    def look(self, array: Array) -> Array:
        return array.transpose(self.order)


@dataclass(slots=True, eq=False)
class Slice(ViewOp):
    """A range of elements of each axis: Split, Slice."""

    index: tuple[slice, ...] = field(kw_only=True)

    def look(self, array: Array) -> Array:
        return array[self.index]


@dataclass(slots=True, eq=False)
class Broadcast(ViewOp):
    """The elements repeated along axes of length 1: Broadcast."""

    def look(self, array: Array) -> Array:
        return np.broadcast_to(array, self.output.shape)


@dataclass(slots=True, eq=False)
class Elementwise(Step):
    """An expression over operands that broadcast to the output's shape."""

    expression: Expression = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Conv(Step):
    """A convolution with an epilogue. Inputs: data [N,C,X…], weights [G,O/G,C/G,K…] (constant), then the epilogue's.

    The epilogue's operand 0 is the convolution's result; the others broadcast to the output's shape.
    """

    strides: tuple[int, ...] = field(kw_only=True)
    dilations: tuple[int, ...] = field(kw_only=True)
    pads_begin: tuple[int, ...] = field(kw_only=True)
    pads_end: tuple[int, ...] = field(kw_only=True)
    epilogue: Expression = field(default=IDENTITY, kw_only=True)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.inputs[1].shape[0]


@dataclass(slots=True, eq=False)
class ConvTranspose(Step):
    """A transposed convolution. Inputs: data [N,C,X…], weights [G,C/G,O/G,K…] (constant).

    Element i of the data meets element k of the kernel at i·stride + k·dilation − begin of the output, whose shape says
    what is cropped or filled with zeros at the end.
    """

    strides: tuple[int, ...] = field(kw_only=True)
    dilations: tuple[int, ...] = field(kw_only=True)
    begin: tuple[int, ...] = field(kw_only=True)


@dataclass(slots=True, eq=False)
class MatMul(Step):
    """A matmul with an epilogue. Inputs: a, b, then the epilogue's; transposes are those of the last two axes."""

    transpose_a: bool = field(default=False, kw_only=True)
    transpose_b: bool = field(default=False, kw_only=True)
    epilogue: Expression = field(default=IDENTITY, kw_only=True)


@dataclass(slots=True, eq=False)
class Pool(Step):
    """Maximum or mean over windows. `divisor` is how a mean counts: "real" elements only, or the "full" window.

    Convs reach beyond the data by as much as the output's shape asks for.
    """

    kind: str = field(kw_only=True)
    kernel: tuple[int, ...] = field(kw_only=True)
    strides: tuple[int, ...] = field(kw_only=True)
    dilations: tuple[int, ...] = field(kw_only=True)
    pads_begin: tuple[int, ...] = field(kw_only=True)
    divisor: str = field(default="real", kw_only=True)


@dataclass(slots=True, eq=False)
class Resample(Step):
    """Each position along one axis a sum of weighted elements of the data: its taps, of weight 0 perhaps.

    `index` and `weight` are [new size, taps].
    """

    axis: int = field(kw_only=True)
    index: Array = field(kw_only=True)
    weight: Array = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Reduce(Step):
    """Sum, mean, maximum or minimum over axes; kept as ones or dropped as the output's shape says."""

    kind: str = field(kw_only=True)
    axes: tuple[int, ...] = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Softmax(Step):
    """Softmax along one axis."""

    axis: int = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Normalize(Step):
    """(x − mean) / sqrt(variance + eps) over the trailing axes; without `center`, x / sqrt(mean(x²) + eps).

    Inputs: x, then the epilogue's; operand 0 of the epilogue is the normalised tensor.
    """

    axes: tuple[int, ...] = field(kw_only=True)
    eps: float = field(kw_only=True)
    center: bool = field(default=True, kw_only=True)
    epilogue: Expression = field(default=IDENTITY, kw_only=True)


@dataclass(slots=True, eq=False)
class GroupNormalize(Step):
    """Each group of channels of a sample normalised, then scaled and shifted. Inputs: x [N,C,X…], scale, bias [C]."""

    groups: int = field(kw_only=True)
    eps: float = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Attention(Step):
    """softmax(q kᵀ · scale + mask) v over leading axes that broadcast. Inputs: q, k, v and perhaps the mask.

    A mask is added where it is f32; a boolean one keeps and drops. With `causal` row l sees the keys 0…l.
    """

    scale: float = field(kw_only=True)
    causal: bool = field(default=False, kw_only=True)


@dataclass(slots=True, eq=False)
class RotaryEmbedding(Step):
    """Rotary embedding: x·cos + (−x₂, x₁)·sin, where x₁ and x₂ are the halves of x along the last axis.

    Inputs: x, cos, sin; the latter broadcast to x.
    """


@dataclass(slots=True, eq=False)
class Concat(Step):
    """Concatenation along an axis; producers write straight into the result where they can."""

    axis: int = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Recurrent(Step):
    """A recurrent network over whole sequences, its gates ending in sigmoid and tanh as by default.

    Inputs: x [batch, length, input], states [batch, directions, hidden], W, R and B (constant). Outputs: Y [batch,
    directions, length, hidden] and the last states. `cell` is lstm (gates f, i, c, o), gru (z, r, h), gru_linear (with
    linear_before_reset) or rnn; `backwards` tells of each direction whether it reads from the end.
    """

    cell: str = field(kw_only=True)
    backwards: tuple[bool, ...] = field(kw_only=True)
