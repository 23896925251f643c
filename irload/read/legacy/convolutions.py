"""Convolution, Deconvolution, and FullyConnected."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irload.errors import ReadError, ShapeMismatch
from irload.read.legacy.layer import LegacyLayer, Wire, listed
from irload.read.legacy.reshaping import flattened
from irload.read.legacy.table import rewrites
from irload.read.legacy.windows import Windows


@rewrites("Convolution")
def convolution(layer: LegacyLayer) -> Wire:
    """Convolution or GroupConvolution, and Add of the biases."""
    dims, windows = layer.input_dims(), Windows.of(layer)
    groups, channels = layer.integer("group", 1), layer.integer("output")
    _require_division(groups, dims[1], channels)
    sums = [channels // groups, dims[1] // groups, *windows.kernel]
    data = windows.attributes(windows.convolved_pads(dims[2:], layer.output_dims()[2:]))
    return _convolved(layer, "Convolution", groups, sums, channels, data)


@rewrites("Deconvolution")
def deconvolution(layer: LegacyLayer) -> Wire:
    """ConvolutionBackpropData or GroupConvolutionBackpropData with the declared output shape, and the biases."""
    dims, windows = layer.input_dims(), Windows.of(layer)
    groups, channels = layer.integer("group", 1), layer.integer("output")
    _require_division(groups, dims[1], channels)
    sums = [dims[1] // groups, channels // groups, *windows.kernel]
    begin, end = windows.transposed_pads(dims[2:], layer.output_dims()[2:])
    data = windows.attributes((begin, [max(n, 0) for n in end]))
    extra = [-n if n < 0 else 0 for n in end]
    if any(extra):
        data["output_padding"] = listed(extra)
    return _convolved(layer, "ConvolutionBackpropData", groups, sums, channels, data)


@rewrites("BinaryConvolution")
def binary_convolution(layer: LegacyLayer) -> Wire:
    """BinaryConvolution, whose weights are bits."""
    dims, windows = layer.input_dims(), Windows.of(layer)
    if layer.integer("group", 1) != 1:
        raise ReadError("a BinaryConvolution of several groups is not supported")
    weights = layer.bits("weights", [layer.integer("output"), dims[1], *windows.kernel])
    data = windows.attributes(windows.convolved_pads(dims[2:], layer.output_dims()[2:]))
    data |= {"mode": layer.text("mode", "xnor-popcount"), "pad_value": layer.text("pad_value", "0")}
    return layer.op("BinaryConvolution", layer.input(), weights, data=data)


def _convolved(
    layer: LegacyLayer, type: str, groups: int, sums: Sequence[int], channels: int, data: dict[str, str]
) -> Wire:
    shape = [groups, *sums] if groups > 1 else [*sums]
    weights = layer.blob("weights", shape)
    if weights is None:
        weights = layer.reshaped(layer.input(1), shape, "weights")
    output = layer.op(f"Group{type}" if groups > 1 else type, layer.input(), weights, data=data)
    output = layer.plus_biases(output, len(layer.input_dims()), channels)
    if layer.arity < 3:
        return output
    biases = layer.reshaped(layer.input(2), [1, channels, *[1] * (len(layer.input_dims()) - 2)], "biases")
    return layer.op("Add", output, biases)


def _require_division(groups: int, *channels: int) -> None:
    if groups < 1 or any(n % groups for n in channels):
        raise ShapeMismatch(f"group {groups} does not divide the channels {listed(channels)}")


@rewrites("FullyConnected")
def fully_connected(layer: LegacyLayer) -> Wire:
    """MatMul with weights [out-size, sum], and the biases. The sum is over the axes that the output does not have."""
    dims, outputs = layer.input_dims(), layer.output_dims()
    channels = layer.integer("out-size")
    rank = len(outputs)
    if rank == 0 or rank > len(dims):
        raise ReadError(f"has an input of rank {len(dims)} and an output of rank {rank}")
    rows, length = outputs[:-1], prod(dims) // max(prod(outputs[:-1]), 1)
    data = layer.input() if len(dims) == rank else flattened(layer, rows, length)
    weights = layer.blob("weights", [channels, length])
    if weights is None:
        weights = layer.reshaped(layer.input(1), [channels, length], "weights")
    output = layer.op("MatMul", data, weights, data={"transpose_a": "false", "transpose_b": "true"})
    biases = layer.blob("biases", [channels])
    return output if biases is None else layer.op("Add", output, biases)
