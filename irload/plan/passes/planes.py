"""Convolve the planes of volumes as images if no window spans several planes.

Conv(x [N,C,D,H,W], w [1,O,C,1,kh,kw]) → Conv(x' [N·D,C,H,W], w' [1,O,C,kh,kw]) between views, which need no copy in
channels-last layout. Networks for video have many kernels of 1 × 3 × 3, for which Winograd's algorithm is then used.
"""

from __future__ import annotations

from dataclasses import replace

from irload.core.size import is_size
from irload.plan.ir.derivations import Reshaped
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.reshaping import reshaped, transposed
from irload.plan.ir.steps import ConvStep, TransposeStep

TURNED = (0, 2, 1, 3, 4)
"""The axes of [N,C,D,H,W] as [N,D,C,H,W], and back."""


def convolve_planes(program: Program) -> None:
    """Convolve planes as images if each operand of the epilogue has all planes, or is equal for all of them."""
    program.rewrite(ConvStep, _by_planes)


def _by_planes(step: ConvStep) -> list[Step] | None:
    """Return the convolution of images and the views around it; None if windows or operands do not permit it."""
    filters = step.inputs[1]
    if filters.source is None or not _has_separate_planes(step):
        return None
    steps: list[Step] = []
    inputs = [_as_images(value, step, steps) for value in (step.inputs[0], *step.operands)]
    if None in inputs:
        return None
    data, *operands = (value for value in inputs if value is not None)
    samples, channels, planes, *image = step.output.shape
    images = step.output.like((samples * planes, channels, *image))
    per_axis = {name: getattr(step, name)[1:] for name in ("strides", "dilations", "pads_begin", "pads_end")}
    filters = filters.by(Reshaped((*filters.shape[:3], *filters.shape[4:])))
    steps.append(replace(step, inputs=[data, filters, *operands], outputs=[images], **per_axis))
    split = reshaped(images, (samples, planes, channels, *image), steps, step.origin)
    return [*steps, TransposeStep([split], step.outputs, order=TURNED, origin=step.origin)]


def _has_separate_planes(step: ConvStep) -> bool:
    """True for windows of one plane and of several rows or columns, without padding of planes."""
    groups, _, _, *kernel = step.inputs[1].shape
    pads = step.pads_begin[0], step.pads_end[0]
    return (
        len(step.outputs) == groups == 1
        and len(kernel) == 3
        and kernel[0] == step.strides[0] == 1
        and max(kernel) > 1
        and pads == (0, 0)
    )


def _as_images(value: Value, step: ConvStep, steps: list[Step]) -> Value | None:
    """The data, or an operand of the epilogue, with its planes as samples.

    None for an operand that has only one of samples and planes, and for a constant that differs between planes.
    """
    padded = (*(1,) * (5 - len(value.shape)), *value.shape)
    samples, channels, planes, *image = padded
    if not is_size(samples) and not is_size(planes) and samples == planes == 1:
        return reshaped(value, (1, channels, *image), steps, step.origin)
    if padded[0] != step.output.shape[0] or planes != step.output.shape[2] or value.constant is not None:
        return None
    source = value if value.shape == padded else reshaped(value, padded, steps, step.origin)
    turned = transposed(source, TURNED, steps, step.origin)
    return reshaped(turned, (samples * planes, channels, *image), steps, step.origin)
