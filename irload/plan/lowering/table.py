"""How each operation becomes a step: the one table of all lowerings."""

from __future__ import annotations

from collections.abc import Callable

from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.lowering import (
    composed,
    contractions,
    convolutions,
    elementwise,
    gathering,
    matrices,
    movement,
    normalizations,
    padding,
    quantization,
    rearranging,
    resizing,
    sequences,
)

Lowering = Callable[[Node, list[Value], list[Value]], "Step | list[Step] | None"]
"""Gives the steps for a node with these inputs and outputs, or None where it has none for them."""

LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(elementwise.UNARY, elementwise.unary),
    **dict.fromkeys(elementwise.BINARY, elementwise.binary),
    "AvgPool": convolutions.pooling,
    "BatchNormInference": normalizations.batch_normalization,
    "BatchToSpace": rearranging.rearranged,
    "Broadcast": movement.broadcast,
    "Clamp": elementwise.clamp,
    "Concat": movement.concat,
    "Convolution": convolutions.convolution,
    "ConvolutionBackpropData": convolutions.transposed,
    "DepthToSpace": rearranging.rearranged,
    "Einsum": contractions.einsum,
    "Elu": elementwise.elu,
    "FakeQuantize": quantization.fake_quantize,
    "GRUSequence": sequences.recurrent,
    "Gather": gathering.gather,
    "Gelu": elementwise.gelu,
    "GroupConvolution": convolutions.convolution,
    "GroupConvolutionBackpropData": convolutions.transposed,
    "GroupNormalization": normalizations.group_normalization,
    "HSigmoid": elementwise.hard_sigmoid_six,
    "HardSigmoid": elementwise.hard_sigmoid,
    "Identity": movement.reshape,
    "Interpolate": resizing.interpolate,
    "LSTMSequence": sequences.recurrent,
    "LogSoftmax": composed.log_softmax,
    "MVN": normalizations.mean_variance,
    "MatMul": matrices.matmul,
    "MaxPool": convolutions.pooling,
    "NormalizeL2": composed.normalize,
    "PReLU": elementwise.leaky_relu,
    "Pad": padding.pad,
    "Power": elementwise.power,
    "RNNSequence": sequences.recurrent,
    "ReduceL1": composed.norm,
    "ReduceL2": composed.norm,
    "ReduceMax": normalizations.reduction,
    "ReduceMean": normalizations.reduction,
    "ReduceMin": normalizations.reduction,
    "ReduceSum": normalizations.reduction,
    "Reshape": movement.reshape,
    "Reverse": rearranging.rearranged,
    "Roll": rearranging.roll,
    "ScaledDotProductAttention": matrices.attention,
    "ShuffleChannels": rearranging.rearranged,
    "Slice": movement.slice_by_constants,
    "SoftMax": normalizations.softmax,
    "SpaceToDepth": rearranging.rearranged,
    "Split": movement.split,
    "SquaredDifference": elementwise.squared_difference,
    "Squeeze": movement.reshape,
    "StridedSlice": rearranging.rearranged,
    "Swish": elementwise.swish,
    "Tile": rearranging.tile,
    "Transpose": movement.transpose,
    "Unsqueeze": movement.reshape,
    "VariadicSplit": movement.split,
}
"""The lowering of each type of operation; an operation that is not here computes itself."""
