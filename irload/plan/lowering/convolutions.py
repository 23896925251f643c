"""Lowerings of convolutions and transposed convolutions."""

from __future__ import annotations

from math import prod
from typing import cast

from irload.graph import Node
from irload.ops.convolution.backward import BackpropBase
from irload.ops.convolution.binary import BinaryConvolution
from irload.ops.windows import Windowed
from irload.plan.ir.derivations import BinaryFilters, Reshaped
from irload.plan.ir.expression import SUBTRACT
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConvStep, ConvTransposeStep, ElementwiseStep, MatMulStep, ReshapeStep
from irload.plan.lowering.values import all_f32, apart


def convolution(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower convolutions; 1×1 convolutions with computed filters to matmuls."""
    data, weights = inputs
    if not all_f32([*inputs, *outputs]):
        return None
    by_matmul = None if weights.is_constant else _by_matmul(node, inputs, outputs)
    if by_matmul is not None:
        return by_matmul
    weights, steps = (weights, []) if node.type == "GroupConvolution" else _one_group(weights)
    return [*steps, _convolved(node, data, weights, outputs)]


def _convolved(node: Node, data: Value, weights: Value, outputs: list[Value]) -> ConvStep:
    """Return the convolution of data by weights [G,O,C,K…], with the windows of a node."""
    op, spatial = cast(Windowed, node.op), len(data.shape) - 2
    pads = op.pads(data.shape[2:], weights.shape[3:])
    return ConvStep(
        [data, weights],
        outputs,
        strides=apart(op.per_axis("strides", spatial), outputs[0].shape[2:]),
        dilations=apart(op.per_axis("dilations", spatial), weights.shape[3:]),
        pads_begin=tuple(b for b, _ in pads),
        pads_end=tuple(e for _, e in pads),
    )


def _by_matmul(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a 1×1 convolution with stride 1, no padding, and computed filters [O,C,1…] to a MatMul."""
    data, weights = inputs
    (samples, depth, *sizes), (channels, *_) = data.shape, weights.shape
    if node.type != "Convolution" or prod(weights.shape[2:]) != 1 or outputs[0].shape[2:] != data.shape[2:]:
        return None
    if any(any(pads) for pads in cast(Windowed, node.op).pads(data.shape[2:], weights.shape[2:])):
        return None
    columns, rows = data.like((samples, depth, prod(sizes))), weights.like((channels, depth))
    product = outputs[0].like((samples, channels, prod(sizes)))
    steps: list[Step] = [ReshapeStep([data], [columns]), ReshapeStep([weights], [rows])]
    return [*steps, MatMulStep([rows, columns], [product]), ReshapeStep([product], outputs)]


def binary_convolution(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a BinaryConvolution of zeros and ones from a FakeQuantize: conv(x, ±2), minus the sum of each filter's ±1.

    Zeros of the padding count as −1, as the zeros of x do; other padding is not lowered.
    """
    data, filters = inputs
    op = cast(BinaryConvolution, node.op)
    pads = op.pads(data.shape[2:], filters.shape[2:])
    if filters.source is None or not all_f32([data, *outputs]) or not _is_binary(node.inputs[0].node):
        return None
    if op.pad_value != 0 and any(any(pad) for pad in pads):
        return None
    how = BinaryFilters()
    shape = how.shape(filters.shape)
    weights = filters.source.derived(how, shape, how, dtype=data.dtype)
    agreeing = outputs[0].like()
    each = tuple(range(2, len(shape)))
    total = Value.of(weights.array.sum(axis=each).reshape(1, -1, 1, 1) / 2, name=node.name)
    return [
        _convolved(node, data, Value(shape, data.dtype, weights, name=filters.name), [agreeing]),
        ElementwiseStep([agreeing, total], outputs, expression=SUBTRACT),
    ]


def _is_binary(node: Node) -> bool:
    """True for a FakeQuantize that returns zeros and ones."""
    if node.type != "FakeQuantize" or node.op.attributes["levels"] != 2:
        return False
    low, high = (output.type.value for output in node.inputs[3:])
    return low is not None and high is not None and not low.any() and bool((high == 1).all())


def transposed(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower transposed convolutions."""
    data, weights, *output_shape = inputs
    op = cast(BackpropBase, node.op)
    if not all_f32([data, weights, *outputs]):
        return None
    weights, steps = (weights, []) if node.type == "GroupConvolutionBackpropData" else _one_group(weights)
    kernel = weights.shape[3:]
    pads = op.begins(data.shape[2:], kernel, outputs[0].shape[2:] if output_shape else None)
    convolved = ConvTransposeStep(
        [data, weights],
        outputs,
        strides=apart(op.per_axis("strides", len(kernel)), data.shape[2:]),
        dilations=apart(op.per_axis("dilations", len(kernel)), kernel),
        begin=pads,
    )
    return [*steps, convolved]


def _one_group(weights: Value) -> tuple[Value, list[Step]]:
    """Return the weights with a leading axis of groups, and the step that reshapes computed weights."""
    shape = (1, *weights.shape)
    if weights.is_constant:
        return weights.by(Reshaped(shape)), []
    grouped = weights.like(shape)
    return grouped, [ReshapeStep([weights], [grouped])]
