"""Transposed convolutions in bf16: the convolutions of all phases read the data where they lie, or one copy."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.bf16_convolution import (
    copy_of,
    launch_product,
    product_of,
    read_copy,
    read_in_place,
    spatial_axes,
)
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial, each_tap


def bf16_conv_transpose(convs: Sequence[Windowed], selector: Selector) -> list[Launch]:
    """The convolutions of a transposed one, of stride 1 on the same data, that differ in taps, outputs and padding."""
    target = selector.target
    in_place = [(conv, read_in_place(conv, target)) for conv in convs]
    found = [
        launch_product(conv, read, product_of(conv, read, target), conv.data, selector)
        for conv, read in in_place
        if read is not None
    ]
    rest = [conv for conv, read in in_place if read is None]
    if not rest:
        return found
    each = [spatial_axes(conv) for conv in rest]
    together = [_together(axes) for axes in zip(*each, strict=True)]
    copy = copy_of(rest[0], together, target)
    place = selector.temporary(copy.nbytes)
    found.append(selector.launch(copy, [rest[0].data, place]))
    positions = copy.strides[-len(together) :]
    for conv, axes in zip(rest, each, strict=True):
        along = [
            [(k * axis.dilation + all_.begin - axis.begin) * stride for k in range(axis.taps)]
            for axis, all_, stride in zip(axes, together, positions, strict=True)
        ]
        read = read_copy(copy, each_tap(along))
        found.append(launch_product(conv, read, product_of(conv, read, target), place, selector))
    return found


def _together(axes: Sequence[Spatial]) -> Spatial:
    """All positions that any of these axes of stride 1 reads, as outputs of one tap."""
    begin = max(axis.begin for axis in axes)
    end = max(axis.length - axis.begin for axis in axes)
    return Spatial(axes[0].size, axes[0].stride, begin + end, begin=begin)
