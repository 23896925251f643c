"""Lowerings of GridSample, and of DeformableConvolution and ROIAlign to weighted sums of samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np

from irload.core.element import f32, i64
from irload.core.size import is_size
from irload.core.tensor import Array
from irload.graph import Node
from irload.ops.convolution.deformable import DeformableConvolution
from irload.ops.detection.roi_align import ROIAlign
from irload.plan.ir import steps as ir
from irload.plan.ir.derivations import Reshaped
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.lowering.checked import RegionImages, checked
from irload.plan.lowering.rearranging import Rearranged
from irload.plan.lowering.values import all_f32, ending, progression, rounded

SAMPLES = 1 << 22
"""The number of samples per convolution: more are divided among convolutions that use the same memory."""
MOST_BLOCKS = 64
"""Maximum number of convolutions among which samples are divided."""
_MOVED = Expression(
    6,
    (
        Instruction("multiply", (1, 2)),
        Instruction("multiply", (3, 4)),
        Instruction("add", (6, 7)),
        Instruction("add", (8, 5)),
        Instruction("add", (0, 9)),
    ),
)
"""The points of samples: offsets + y · (1, 0) + x · (0, 1) + taps. Rounded once: all but the offsets are integers."""


def grid_sample(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a GridSample of nonempty f32 data and grid."""
    if not all_f32(inputs) or not all(v.size for v in inputs):
        return None
    known = node.op.attributes
    return ir.SampleStep(
        inputs, outputs, mode=known["mode"], padding=known["padding_mode"], align_corners=known["align_corners"]
    )


def deformable_convolution(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a DeformableConvolution to samples [N·D, C/D, oh·ow·taps] of D groups, and a convolution.

    A window of the convolution, which is along the samples, consists of the taps of one output.
    """
    data, offsets, filters, *mask = inputs
    op = cast(DeformableConvolution, node.op)
    channels, kernel = data.shape[1], filters.shape[2:]
    if not all_f32([*inputs, *outputs]) or is_size(channels) or filters.source is None:
        return None
    n, _, *size = data.shape
    rows, columns = offsets.shape[2:]
    maps, taps, points = n * op.deformable_group, prod(kernel), rows * columns
    steps: list[Step] = []

    moves = Rearranged(offsets, steps).reshape(maps, taps, 2, rows, columns).transpose(0, 3, 4, 1, 2)
    at = _mapped(_MOVED, [moves.value, *_centers(op, size, kernel, (rows, columns), steps)], moves.shape, steps)
    at = Rearranged(at, steps).reshape(maps, points * taps, 1, 2)
    factors = Rearranged(Value.of(np.ones((1, 1, 1), np.float32)), steps)
    if mask:
        factors = Rearranged(mask[0], steps).reshape(maps, taps, points).transpose(0, 2, 1)
        factors = factors.reshape(maps, points * taps, 1)
    maps_of_parts = Rearranged(data, steps).reshape(maps, channels // op.deformable_group, *size).value
    images = progression(0, 1, (maps,), i64, steps)
    padding, bounds = ("zeros", "border") if op.bilinear_interpolation_pad else ("border", "image")
    outputs_of_group = filters.shape[0] // op.group
    weights = filters.by(Reshaped((op.group, outputs_of_group, filters.shape[1], prod(filters.shape[2:]))))

    def product(first: int, count: int) -> Value:
        """Append the steps for `count` outputs, starting at output `first`. Returns their value."""
        part = slice(first * taps, (first + count) * taps)
        operands = [maps_of_parts, at[:, part].value, (factors[:, part] if mask else factors).value, images]
        samples = Value((*maps_of_parts.shape[:2], count * taps), data.dtype, name=node.name)
        steps.append(ir.SampleSumStep(operands, [samples], padding=padding, bounds=bounds))
        columns = Rearranged(samples, steps).reshape(n, channels, samples.shape[2]).value
        result = Value((n, outputs[0].shape[1], count), data.dtype, name=node.name)
        operands = [columns, weights]
        steps.append(ir.ConvStep(operands, [result], strides=(taps,), dilations=(1,), pads_begin=(0,), pads_end=(0,)))
        return result

    blocks = _blocks(n * channels * taps * points, points)
    block = points // blocks
    last = block * (blocks - 1)
    products = [*(product(k * block, block) for k in range(blocks - 1)), product(last, points - last)]
    joined = Value((n, outputs[0].shape[1], points), data.dtype, name=node.name)
    if len(products) > 1:
        steps.append(ir.ConcatStep(products, [joined], axis=2))
    return ending(data, [*steps, ir.ReshapeStep([steps[-1].output], outputs)], outputs)


def _blocks(samples: int, points: int) -> int:
    """The number of convolutions among which samples are divided: a power of 2, so that all shapes need few plans."""
    count = 1
    while count < MOST_BLOCKS and points >= 2 * count and samples > count * SAMPLES:
        count *= 2
    return count


def _centers(
    op: DeformableConvolution, size: Sequence[int], kernel: Sequence[int], counts: Sequence[int], steps: list[Step]
) -> list[Value]:
    """The operands of `_MOVED` after the offsets.

    For y and x: the positions of windows, [oh,1,1,1] or [ow,1,1], and an array [taps,2] with 1 at this coordinate. Then
    the (y, x) of the taps of a window, [taps,2].
    """
    strides, pads = op.per_axis("strides", 2), op.pads(size, kernel)
    taps = np.indices(kernel).reshape(2, -1).T * op.per_axis("dilations", 2)
    operands: list[Value] = []
    for axis, (count, stride, (pad, _)) in enumerate(zip(counts, strides, pads, strict=True)):
        positions = progression(-pad, stride, (count, *(1,) * (3 - axis)), f32, steps)
        operands += [positions, Value.of(np.zeros(taps.shape, np.float32) + np.eye(2, dtype=np.float32)[axis])]
    return [*operands, Value.of(taps.astype(np.float32))]


def roi_align(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a ROIAlign by the mean of a known number of samples, if their points take less memory than the results."""
    data, rois, indices = inputs
    op = cast(ROIAlign, node.op)
    (regions, _), channels, bins = rois.shape, data.shape[1], (op.pooled_h, op.pooled_w)
    ratio, count = op.sampling_ratio, bins[0] * bins[1]
    if not all_f32([data, rois, *outputs]) or op.mode != "avg" or ratio < 1 or 2 * ratio**2 > channels:
        return None
    steps: list[Step] = [checked(RegionImages, indices, data, node.name)]
    images = steps[0].output

    ends = Rearranged(rois, steps).reshape(regions, 1, 2, 2)[:, :, :, ::-1]  # (x, y) to (y, x)
    start, end = (ends[:, :, k : k + 1].reshape(regions, 1, 1, 2) for k in range(2))
    parts = Value.of(_positions(bins, ratio))
    shape = (regions, count, ratio * ratio, 2)
    points = _mapped(_sample_points(op), [parts, start.value, end.value], shape, steps)
    factors = Value.of(np.full((1, 1, 1), 1 / ratio**2, np.float32))
    pooled = Value((regions, channels, count), data.dtype, name=node.name)
    operands = [data, points, factors, images]
    steps.append(ir.SampleSumStep(operands, [pooled], padding="border", bounds="margin"))
    Rearranged(pooled, steps).reshape(regions, channels, *bins)
    return ending(data, steps, outputs)


def _positions(bins: tuple[int, int], ratio: int) -> Array:
    """The (y, x) of the samples in parts of the size of a region: [1, bins, samples, 2]."""
    y, x = ((np.arange(count * ratio) + 0.5) / (count * ratio) for count in bins)
    grid = np.stack(np.meshgrid(y, x, indexing="ij"), -1).reshape(bins[0], ratio, bins[1], ratio, 2)
    return grid.swapaxes(1, 2).reshape(1, bins[0] * bins[1], ratio**2, 2).astype(np.float32)


def _sample_points(op: ROIAlign) -> Expression:
    """The (y, x) of samples from their position in the region, and from the start and the end of the region."""
    mode, scale = op.attributes.get("aligned_mode", "asymmetric"), rounded(op.spatial_scale)
    instructions: list[Instruction] = []

    def append(opcode: str, *args: int, number: float | None = None) -> int:
        instructions.append(Instruction(opcode, args, () if number is None else (number,)))
        return 2 + len(instructions)

    corners: list[int] = []
    for corner in (1, 2):
        if mode == "half_pixel":
            corner = append("add_number", corner, number=0.5)
        corner = append("multiply_number", corner, number=scale)
        corners.append(corner if mode == "asymmetric" else append("add_number", corner, number=-0.5))
    size = append("subtract", corners[1], corners[0])
    if mode == "asymmetric":
        size = append("maximum_number", size, number=1.0)
    append("add", corners[0], append("multiply", size, 0))
    return Expression(3, tuple(instructions))


def _mapped(expression: Expression, operands: list[Value], shape: tuple[int, ...], steps: list[Step]) -> Value:
    """The result of an expression."""
    result = Value(shape, np.dtype(np.float32), name=operands[0].name)
    steps.append(ir.ElementwiseStep(operands, [result], expression=expression))
    return result
