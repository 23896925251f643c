"""Steps that compute sums of products: convolutions, matmuls, attention, recurrent networks."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.analysis.macs import attention_macs, convolution_macs, matmul_macs
from irload.ops.sliding import WindowAxis, window_axes
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import rules
from irload.plan.ir.steps.elementwise import WithEpilogue
from irload.record import record


@record()
class Integers:
    """Products of integers: data u8, weights i8. The result is Σ (data − `zero_point`) · weights, as f32.

    `pairs_fit`: for any u8 data, the sum of the products of two neighbouring channels fits into i16, as faster kernels
    require. It is determined by the weights. It is a field so that only steps with the same value share a kernel.
    """

    zero_point: int = 0
    pairs_fit: bool = False

    def check(self, data: Value, weights: Value, output: Value) -> None:
        """Raise PlanInvalid unless the operands are bytes."""
        rules.equal("the dtype of the data", data.dtype, np.dtype(np.uint8))
        rules.equal("the dtype of the weights", weights.dtype, np.dtype(np.int8))
        rules.constant(weights)
        rules.equal("whether the zero point is a byte", 0 <= self.zero_point <= 255, True)
        rules.equal("whether the result is f32 or u8", output.dtype.name in ("float32", "uint8"), True)


@record(frozen=False, eq=False)
class ProductStep(Step):
    """Base of sums of products of data and weights over channels and taps."""

    @property
    def multiplies_integers(self) -> bool:
        """True for products of u8 and i8."""
        return self.inputs[0].dtype == np.uint8

    @property
    def matrix(self) -> tuple[int, int, int]:
        """The number of groups, of output channels per group, and of input channels per group."""
        raise NotImplementedError

    @property
    def taps(self) -> int:
        """The number of kernel taps that an output element sums over; 0 if some elements sum over none."""
        return 1


@record(frozen=False, eq=False, kw_only=True)
class ConvStep(WithEpilogue, ProductStep):
    """A convolution. Inputs: data [N,C,X…], weights [G,O/G,C/G,K…], then the epilogue's inputs.

    Padding elements are 0; for `integers`, they are the zero point.
    """

    MAIN_INPUTS = 2
    prefers_channels_last = True

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    integers: Integers | None = None

    @property
    def matrix(self) -> tuple[int, int, int]:
        groups, channels, depth, *_ = self.inputs[1].shape
        return groups, channels, depth

    @property
    def taps(self) -> int:
        return prod(self.inputs[1].shape[3:])

    @property
    def flops(self) -> int:
        return 2 * convolution_macs(self.inputs[1].size, prod((self.output.shape[0], *self.output.shape[2:])))

    @property
    def needs_channels_last(self) -> bool:
        return self.integers is not None or (self.matrix[0] > 1 and self.matrix[1:] == (1, 1))

    @property
    def windows(self) -> tuple[WindowAxis, ...]:
        """The windows along each spatial axis."""
        sizes, counts = self.inputs[0].shape[2:], self.output.shape[2:]
        return window_axes(sizes, counts, self.inputs[1].shape[3:], self.strides, self.dilations, self.pads_begin)

    def check(self) -> None:
        x, w = self.inputs[:2]
        _operands(self, self.integers)
        groups, per_group, depth, *kernel = w.shape
        rules.equal("the channels of the data", x.shape[1], groups * depth)
        geometry = zip(x.shape[2:], kernel, self.strides, self.dilations, self.pads_begin, self.pads_end, strict=True)
        sizes = [(n + b + e - (k - 1) * d - 1) // s + 1 for n, k, s, d, b, e in geometry]
        # Along axes with one output element the step has stride 1, even if the layer has another stride.
        sizes = [1 if n == 1 and size > 1 else size for n, size in zip(self.output.shape[2:], sizes, strict=True)]
        rules.equal("the shape", self.output.shape, (x.shape[0], groups * per_group, *sizes))
        rules.expression(self.epilogue, [_sum(self)], self.operands, self.outputs)


def _operands(step: ProductStep, integers: Integers | None) -> None:
    """Check the types of the operands of a product."""
    data, weights = step.inputs[:2]
    if integers is not None:
        integers.check(data, weights, step.output)
    else:
        rules.f32(data, weights, step.output)


def _sum(step: ProductStep) -> Value:
    """Return operand 0 of the epilogue, the sum: f32 in the shape of the output."""
    return Value(step.output.shape, np.dtype(np.float32))


@record(frozen=False, eq=False, kw_only=True)
class ConvTransposeStep(WithEpilogue, ProductStep):
    """A transposed convolution. Inputs: data [N,C,X…], weights [G,C/G,O/G,K…], then the epilogue's inputs.

    Element i of the data and element k of the kernel contribute to element i·stride + k·dilation − begin of the output.
    The output's shape determines how many elements are cropped or filled with zeros at the end.
    """

    MAIN_INPUTS = 2
    prefers_channels_last = True

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]

    @property
    def matrix(self) -> tuple[int, int, int]:
        groups, depth, channels, *_ = self.inputs[1].shape
        return groups, channels, depth

    @property
    def taps(self) -> int:
        kernel = self.inputs[1].shape[3:]
        covers = all(d == 1 and k >= s for k, s, d in zip(kernel, self.strides, self.dilations, strict=True))
        return prod(kernel) // prod(self.strides) if covers else 0

    @property
    def flops(self) -> int:
        return 2 * convolution_macs(self.inputs[1].size, prod((self.inputs[0].shape[0], *self.inputs[0].shape[2:])))

    def check(self) -> None:
        x, w = self.inputs[:2]
        rules.f32(x, w, self.output)
        groups, depth, per_group, *kernel = w.shape
        rules.equal("the channels of the data", x.shape[1], groups * depth)
        rules.equal("batch and channels", self.output.shape[:2], (x.shape[0], groups * per_group))
        rules.lengths(self, ("strides", "dilations", "begin"), len(kernel))
        rules.equal("the rank", len(self.output.shape), len(x.shape))
        rules.expression(self.epilogue, [_sum(self)], self.operands, self.outputs)


@record(frozen=False, eq=False, kw_only=True)
class MatMulStep(WithEpilogue, ProductStep):
    """A matmul. Inputs: a, b, then the epilogue's inputs. A transpose flag swaps the last two axes of its operand."""

    MAIN_INPUTS = 2

    transpose_a: bool = False
    transpose_b: bool = False
    integers: Integers | None = None

    @property
    def matrix(self) -> tuple[int, int, int]:
        return 1, self.output.shape[-1], self.inputs[0].shape[-2 if self.transpose_a else -1]

    @property
    def summed_axis(self) -> int:
        """The axis of the second operand along which products are summed."""
        return -1 if self.transpose_b else -2

    @property
    def multiplies_rows(self) -> bool:
        """True if all rows of the first operand, in order, are multiplied by one matrix."""
        a, b = self.inputs[:2]
        return not self.transpose_a and prod(b.shape[:-2]) == 1 and len(b.shape) <= len(a.shape)

    @property
    def flops(self) -> int:
        return 2 * matmul_macs(self.output.size, self.matrix[2])

    def check(self) -> None:
        a, b = self.inputs[:2]
        _operands(self, self.integers)
        left = (*a.shape[:-2], a.shape[-1], a.shape[-2]) if self.transpose_a else a.shape
        right = (*b.shape[:-2], b.shape[-1], b.shape[-2]) if self.transpose_b else b.shape
        rules.equal("the length of the sums", left[-1], right[-2])
        lead = np.broadcast_shapes(left[:-2], right[:-2])
        rules.equal("the shape", self.output.shape, (*lead, left[-2], right[-1]))
        rules.expression(self.epilogue, [_sum(self)], self.operands, self.outputs)


@record(frozen=False, eq=False, kw_only=True)
class ExpertMatMulStep(Step):
    """Rows sorted by expert times the matrix of their expert. Inputs: data [rows, depth], counts [experts], weights….

    Expert e multiplies the `counts[e]` rows after the rows of all previous experts. The counts, in i32 or i64, add up
    to the rows of the data. Weights are constants [depth, columns], or one constant [experts, depth, columns]. With
    `transpose`, their last two axes are swapped.
    """

    transpose: bool

    @property
    def weights(self) -> list[Value]:
        """The weights of each expert, or of all experts."""
        return self.inputs[2:]

    @property
    def is_stacked(self) -> bool:
        """True if one constant contains the weights of all experts."""
        return len(self.weights[0].shape) == 3

    @property
    def experts(self) -> int:
        """The number of experts."""
        return self.weights[0].shape[0] if self.is_stacked else len(self.weights)

    @property
    def flops(self) -> int:
        return 2 * matmul_macs(self.output.size, self.inputs[0].shape[-1])

    def check(self) -> None:
        data, counts, *weights = self.inputs
        rules.f32(data, *weights, self.output)
        rules.equal("the shape of the counts", counts.shape, (self.experts,))
        rules.equal("whether the counts are i32 or i64", counts.dtype.name in ("int32", "int64"), True)
        rows, depth = data.shape
        columns = self.output.shape[1]
        matrix = (columns, depth) if self.transpose else (depth, columns)
        for value in weights:
            rules.constant(value)
            rules.equal("the shape of the weights", value.shape, (self.experts, *matrix) if self.is_stacked else matrix)
        rules.equal("the shape", self.output.shape, (rows, columns))


LEAST_SCORE = float(np.finfo(np.float32).min)
"""The score of masked keys if a row whose keys are all masked averages the values. With −∞, its weights are NaN."""


@record(frozen=False, eq=False, kw_only=True)
class AttentionStep(Step):
    """softmax((q · query_scale) kᵀ · scale + mask) v over leading axes that broadcast. Inputs: q, k, v, mask, sink.

    An f32 mask is added; a boolean mask keeps the scores where it is true and sets the others to `dropped`. With
    `causal`, query l attends to keys 0…l. A sink is one additional score per row, for a key without a value; it is the
    last input if `has_sink`. Mask and sink are optional.

    The scales are separate because of overflow: (q · query_scale) kᵀ may be finite where q kᵀ is not, and the reverse.
    """

    scale: float
    query_scale: float = 1.0
    causal: bool = False
    has_sink: bool = False
    averages: bool = False
    """Whether rows whose keys are all masked average all values."""

    @property
    def dropped(self) -> float:
        """The score where a boolean mask is false."""
        return LEAST_SCORE if self.averages else -np.inf

    @property
    def masks(self) -> list[Value]:
        """The mask, if there is one."""
        return self.inputs[3:-1] if self.has_sink else self.inputs[3:]

    @property
    def flops(self) -> int:
        q, k, v = self.inputs[:3]
        return 2 * attention_macs(prod(self.output.shape[:-1]), k.shape[-2], q.shape[-1], v.shape[-1])

    def check(self) -> None:
        (q, k, v), masks = self.inputs[:3], self.masks
        rules.equal("the presence of more than one mask", len(masks) > 1, False)
        rules.f32(q, k, v, self.output)
        rules.equal("the width of the keys", k.shape[-1], q.shape[-1])
        rules.equal("the number of values", v.shape[-2], k.shape[-2])
        lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], *(m.shape[:-2] for m in masks))
        rules.equal("the shape", self.output.shape, (*lead, q.shape[-2], v.shape[-1]))
        for mask in masks:
            rules.broadcasts(mask, (*lead, q.shape[-2], k.shape[-2]))
            rules.equal("whether the mask is f32 or boolean", mask.dtype.name in ("float32", "bool"), True)
        for sink in self.inputs[-1:] if self.has_sink else ():
            rules.f32(sink)
            rules.broadcasts(sink, (*lead, q.shape[-2], 1))


@record(frozen=False, eq=False, kw_only=True)
class RecurrentStep(Step):
    """A recurrent network over sequences with the activations sigmoid and tanh, or relu for rnn_relu.

    Inputs: x [batch, length, input], states [batch, directions, hidden], W, R and B (constant), and lengths [batch] in
    i64, each in 0..length, unless all sequences are whole. Outputs: Y [batch, directions, length, hidden], which is 0
    beyond the end of a sequence, and the last states. `cell` is lstm (gates f, i, c, o), gru (z, r, h), gru_linear
    (with linear_before_reset), rnn or rnn_relu; `backwards` has one flag per direction.
    """

    cell: str
    backwards: tuple[bool, ...]

    @property
    def states(self) -> list[Value]:
        """The initial states."""
        return self.inputs[1 : self._weights_at]

    @property
    def weights(self) -> list[Value]:
        """W, R and B."""
        return self.inputs[self._weights_at : self._weights_at + 3]

    @property
    def lengths(self) -> list[Value]:
        """The lengths of the sequences, unless all are whole."""
        return self.inputs[self._weights_at + 3 :]

    @property
    def _weights_at(self) -> int:
        return 3 if self.cell == "lstm" else 2

    def check(self) -> None:
        x, states, (y, *last) = self.inputs[0], self.states, self.outputs
        rules.f32(x, *states, y, *last)
        rules.equal("the number of weights", len(self.weights), 3)
        rules.equal("the presence of more than one input for lengths", len(self.lengths) > 1, False)
        batch, length, _ = x.shape
        for lengths in self.lengths:
            rules.equal("the shape of the lengths", lengths.shape, (batch,))
            rules.equal("the dtype of the lengths", lengths.dtype, np.dtype(np.int64))
        rules.equal("batch, directions, length", y.shape[:3], (batch, len(self.backwards), length))
        state = (*y.shape[:2], y.shape[3])
        rules.equal("the states", [s.shape for s in states], [state] * (2 if self.cell == "lstm" else 1))
        rules.equal("the last states", [prod(s.shape) for s in last], [prod(s.shape) for s in states])
