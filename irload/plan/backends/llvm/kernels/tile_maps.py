"""The data of convolutions by tiles of AMX: in place, or a padded copy in which consecutive outputs are contiguous.

All phases of a transposed convolution read the data in place, or share one padded copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.contraction.nest import Contraction
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.groups import groups_per_tile, joined
from irload.plan.backends.llvm.kernels.maps import Maps, each_tap, launch_copy, maps_in_place, maps_of_copy, padded_copy
from irload.plan.backends.llvm.kernels.reorder import Reorder
from irload.plan.backends.llvm.kernels.windowed_contraction import contraction_of, launched
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import ROWS


def best_maps(conv: ConvProblem, dot: Dot, selector: Selector) -> tuple[Maps, Contraction]:
    """The data in place or the copy that takes the fewest cycles, and the contraction.

    A tile with fewer than half of its rows takes as long as a tile with half of them. If lines are not longer than half
    a tile, a copy with separate data for each tap is an alternative: the rows of a tile then continue on the next line.
    """
    target, spatial = selector.target, spatial_axes(conv)
    in_place = unpadded_in_place(conv, dot, target)
    default = _copied(conv, spatial, target) if in_place is None else (None, in_place)
    options: list[tuple[Reorder | None, Maps]] = [default]
    if len(spatial) > 1 and conv.windows[-1].count <= ROWS // 2 and conv.windows[-2].count > 1:
        options.append(_copied(conv, [*spatial[:-1], replace(spatial[-1], by_tap=True)], target))
    candidates = [(copy, maps, contraction_of(conv, maps, dot, selector)) for copy, maps in options]
    copy, maps, product = min(candidates, key=lambda way: (way[0].cycles if way[0] else 0) + way[2].cycles)
    return launch_copy(conv, copy, maps, selector), product


def unpadded_in_place(conv: ConvProblem, dot: Dot, target: Target) -> Maps | None:
    """The data in place. None if a copy is needed: for padding, or for chunks that are not contiguous."""
    if any(axis.is_padded for axis in spatial_axes(conv)):
        return None
    return maps_in_place(conv, dot, joined(conv.shape, groups_per_tile(conv.shape, target))[2])


def _copied(conv: ConvProblem, spatial: Sequence[CopiedAxis], target: Target) -> tuple[Reorder, Maps]:
    """The kernel that copies the data including padding, and the maps in this copy."""
    copy = padded_copy(conv, spatial, target)
    phases, positions = copy.strides[3 : 3 + len(spatial)], copy.strides[3 + len(spatial) :]
    along = [
        [phase * a + position * b for phase, position in map(axis.tap, range(axis.windows.kernel))]
        for axis, a, b in zip(spatial, phases, positions, strict=True)
    ]
    windows = tuple(WindowAxis(axis.count, axis.count) for axis in conv.windows)
    return copy, maps_of_copy(conv, copy, windows, each_tap(along))


def spatial_axes(conv: ConvProblem) -> list[CopiedAxis]:
    """The spatial axes of a convolution."""
    return [CopiedAxis(w, stride) for w, stride in zip(conv.windows, conv.data.strides[2:], strict=True)]


def convolutions_by_tiles(convs: Sequence[ConvProblem], dot: Dot, selector: Selector) -> list[Launch]:
    """Convolutions of stride 1 over the same data that differ in taps, outputs and padding."""
    target = selector.target
    launches: list[Launch] = []
    rest: list[ConvProblem] = []
    for conv in convs:
        maps = unpadded_in_place(conv, dot, target)
        if maps is None:
            rest.append(conv)
        else:
            launches += launched(conv, maps, contraction_of(conv, maps, dot, selector), selector)
    if not rest:
        return launches
    together = [_together(axes) for axes in zip(*map(spatial_axes, rest), strict=True)]
    copy = padded_copy(rest[0], together, target)
    buffer = selector.temporary(copy.nbytes)
    launches.append(selector.launch(copy, [rest[0].data, buffer]))
    for conv in rest:
        windows = tuple(
            replace(w, begin=w.begin - t.windows.begin) for w, t in zip(conv.windows, together, strict=True)
        )
        maps = replace(maps_of_copy(conv, copy, windows), data=buffer)
        launches += launched(conv, maps, contraction_of(conv, maps, dot, selector), selector)
    return launches


def _together(axes: Sequence[CopiedAxis]) -> CopiedAxis:
    """The positions that any of these axes of stride 1 reads, as the outputs of windows with one tap."""
    begin = max(axis.windows.begin for axis in axes)
    end = max(axis.length - axis.windows.begin for axis in axes)
    return CopiedAxis(WindowAxis(axes[0].windows.size, begin + end, begin=begin), axes[0].stride)
