"""The vocabulary of steps: each says completely what is to be computed, and nothing of how.

A step has constant shapes and attributes, and its weights as constants, so that any back end can be written from the
same description.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Step, Value
from irload.plan.ir.strides import View
from irload.record import record

IDENTITY = Expression(1)


@record(frozen=False, eq=False)
class Compute(Step):
    """An operation by its own `compute`: whatever has no step of its own."""

    op: Op = field(kw_only=True)
    types: tuple[TensorType, ...] = field(kw_only=True)


@record(frozen=False, eq=False)
class ViewOp(Step):
    """Base of steps that only view their input in another way, without a copy wherever memory allows."""

    @property
    def view(self) -> View:
        """The way, as data."""
        raise NotImplementedError


@record(frozen=False, eq=False)
class Reshape(ViewOp):
    """The same elements in another shape: Reshape, Squeeze, Unsqueeze."""

    @property
    def view(self) -> View:
        return View("reshape", self.output.shape)


@record(frozen=False, eq=False)
class Transpose(ViewOp):
    """The same elements with axes in another order."""

    order: tuple[int, ...] = field(kw_only=True)

    @property
    def view(self) -> View:
        return View("transpose", self.order)


@record(frozen=False, eq=False)
class Slice(ViewOp):
    """A range of elements of each axis: Split, Slice."""

    index: tuple[slice, ...] = field(kw_only=True)

    @property
    def view(self) -> View:
        shape = self.inputs[0].shape
        index = (*self.index, *(slice(None),) * (len(shape) - len(self.index)))
        ranges = [range(*s.indices(n)) for s, n in zip(index, shape, strict=True)]
        return View("slice", ranges=tuple((r.start, len(r), r.step) for r in ranges))


@record(frozen=False, eq=False)
class Broadcast(ViewOp):
    """The elements repeated along axes of length 1: Broadcast."""

    @property
    def view(self) -> View:
        return View("broadcast", self.output.shape)


@record(frozen=False, eq=False)
class Elementwise(Step):
    """An expression over operands that broadcast to the shape of the outputs, one for each result."""

    expression: Expression = field(kw_only=True)


@record(frozen=False, eq=False)
class WithEpilogue(Step):
    """Base of steps whose result an expression changes before it is stored.

    The first `OWN` inputs are those of the step itself. Operand 0 of the epilogue is the step's result, the others are
    the inputs that follow, which broadcast to the output's shape.
    """

    OWN: ClassVar[int]

    epilogue: Expression = field(default=IDENTITY, kw_only=True)

    @property
    def operands(self) -> list[Value]:
        """The inputs of the epilogue."""
        return self.inputs[self.OWN :]


@record(frozen=False, eq=False)
class Conv(WithEpilogue):
    """A convolution. Inputs: data [N,C,X…], weights [G,O/G,C/G,K…] (constant), then the epilogue's."""

    OWN = 2

    strides: tuple[int, ...] = field(kw_only=True)
    dilations: tuple[int, ...] = field(kw_only=True)
    pads_begin: tuple[int, ...] = field(kw_only=True)
    pads_end: tuple[int, ...] = field(kw_only=True)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.inputs[1].shape[0]


@record(frozen=False, eq=False)
class ConvTranspose(Step):
    """A transposed convolution. Inputs: data [N,C,X…], weights [G,C/G,O/G,K…] (constant).

    Element i of the data meets element k of the kernel at i·stride + k·dilation − begin of the output, whose shape says
    what is cropped or filled with zeros at the end.
    """

    strides: tuple[int, ...] = field(kw_only=True)
    dilations: tuple[int, ...] = field(kw_only=True)
    begin: tuple[int, ...] = field(kw_only=True)


@record(frozen=False, eq=False)
class MatMul(WithEpilogue):
    """A matmul. Inputs: a, b, then the epilogue's; transposes are those of the last two axes."""

    OWN = 2

    transpose_a: bool = field(default=False, kw_only=True)
    transpose_b: bool = field(default=False, kw_only=True)


@record(frozen=False, eq=False)
class Pool(Step):
    """Maximum or mean over windows. `divisor` is how a mean counts: "real" elements only, or the "full" window.

    Windows reach beyond the data by as much as the output's shape asks for.
    """

    kind: str = field(kw_only=True)
    kernel: tuple[int, ...] = field(kw_only=True)
    strides: tuple[int, ...] = field(kw_only=True)
    dilations: tuple[int, ...] = field(kw_only=True)
    pads_begin: tuple[int, ...] = field(kw_only=True)
    divisor: str = field(default="real", kw_only=True)


@record(frozen=False, eq=False)
class Resample(Step):
    """Each position along one axis a sum of weighted elements of the data: its taps, of weight 0 perhaps.

    `index` and `weight` are [new size, taps].
    """

    axis: int = field(kw_only=True)
    index: Array = field(kw_only=True)
    weight: Array = field(kw_only=True)


@record(frozen=False, eq=False)
class Sample(Step):
    """GridSample-9: data at the points (x, y) of a grid. Inputs: data [N,C,H,W], grid [N,H',W',2].

    `mode` is bilinear, bicubic or nearest, `padding` zeros, border or reflection.
    """

    mode: str = field(kw_only=True)
    padding: str = field(kw_only=True)
    align_corners: bool = field(kw_only=True)


@record(frozen=False, eq=False)
class Reduce(Step):
    """Sum, mean, maximum or minimum over axes; kept as ones or dropped as the output's shape says."""

    kind: str = field(kw_only=True)
    axes: tuple[int, ...] = field(kw_only=True)


@record(frozen=False, eq=False)
class Softmax(Step):
    """Softmax along one axis."""

    axis: int = field(kw_only=True)


@record(frozen=False, eq=False)
class Normalize(WithEpilogue):
    """(x − mean) / sqrt(variance + eps) over the trailing axes; without `center`, x / sqrt(mean(x²) + eps).

    `outside`: / (sqrt(…) + eps). Inputs: x, then the epilogue's.
    """

    OWN = 1

    axes: tuple[int, ...] = field(kw_only=True)
    eps: float = field(kw_only=True)
    center: bool = field(default=True, kw_only=True)
    outside: bool = field(default=False, kw_only=True)


@record(frozen=False, eq=False)
class GroupNormalize(Step):
    """Each group of channels of a sample normalised, then scaled and shifted. Inputs: x [N,C,X…], scale, bias [C]."""

    groups: int = field(kw_only=True)
    eps: float = field(kw_only=True)


@record(frozen=False, eq=False)
class Attention(Step):
    """softmax(q kᵀ · scale + mask) v over leading axes that broadcast. Inputs: q, k, v and perhaps the mask.

    A mask is added where it is f32; a boolean one keeps and drops. With `causal` row l sees the keys 0…l.
    """

    scale: float = field(kw_only=True)
    causal: bool = field(default=False, kw_only=True)


@record(frozen=False, eq=False)
class RotaryEmbedding(Step):
    """Rotary embedding: x·cos + (−x₂, x₁)·sin, where x₁ and x₂ are the halves of x along the last axis.

    Inputs: x, cos, sin; the latter broadcast to x.
    """


@record(frozen=False, eq=False)
class Concat(Step):
    """Concatenation along an axis."""

    axis: int = field(kw_only=True)


INDICES = ("int32", "int64")
"""The types of the indices of a Gather."""


@record(frozen=False, eq=False)
class Gather(Step):
    """Slices of the data, picked along an axis by indices of i32 or i64. Inputs: data, indices.

    Negative indices count from the end. What lies outside the axis is zeros. Data of f16 may be given as f32.
    """

    axis: int = field(kw_only=True)

    @property
    def widens(self) -> bool:
        """True where f16 is taken and f32 given."""
        return (self.inputs[0].dtype.name, self.output.dtype.name) == ("float16", "float32")


@record(frozen=False, eq=False)
class Recurrent(Step):
    """A recurrent network over whole sequences, its gates ending in sigmoid and tanh as by default.

    Inputs: x [batch, length, input], states [batch, directions, hidden], W, R and B (constant). Outputs: Y [batch,
    directions, length, hidden] and the last states. `cell` is lstm (gates f, i, c, o), gru (z, r, h), gru_linear (with
    linear_before_reset) or rnn; `backwards` says of each direction whether it reads from the end.
    """

    cell: str = field(kw_only=True)
    backwards: tuple[bool, ...] = field(kw_only=True)


@record(frozen=False, eq=False)
class Relayout(Step):
    """The same tensor in another layout, between back ends that store it differently."""
