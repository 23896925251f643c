"""Axes of layouts: permutations between two of them, positions of height, width and channels."""

from __future__ import annotations

from irload.core.shape import Shape
from irload.openvino.errors import OpenVINOError
from irload.openvino.layouts import Layout

__all__ = ["axis_of", "missing_axes", "names_of", "permutation", "permuted"]


def names_of(layout: Layout, rank: int | None) -> list[str]:
    """The names of a tensor's axes, `?` for axes that an ellipsis covers."""
    if rank is None:
        raise OpenVINOError(f"layout {layout} needs a known rank")
    names = layout.names
    if "..." not in names:
        if len(names) != rank:
            raise OpenVINOError(f"layout {layout} has {len(names)} axes, the tensor {rank}")
        return names
    at = names.index("...")
    rest = rank - (len(names) - 1)
    if rest < 0:
        raise OpenVINOError(f"layout {layout} has more axes than the tensor, {rank}")
    return [*names[:at], *["?"] * rest, *names[at + 1 :]]


def permutation(source: Layout, target: Layout, rank: int | None) -> list[int]:
    """The axes of `source` in the order of `target`; empty if nothing has to change."""
    if source == target or source.empty or target.empty or rank is None:
        return []
    before, after = names_of(source, rank), names_of(target, rank)
    lost = [name for name in after if name != "?" and name not in before]
    if lost:
        raise OpenVINOError(f"layout conversion failed: axis {lost[0]} of {target} is not in {source}")
    order = [before.index(name) if name != "?" else -1 for name in after]
    free = (k for k in range(rank) if k not in order)
    axes = [next(free) if k < 0 else k for k in order]
    return [] if axes == list(range(rank)) else axes


def missing_axes(source: Layout, target: Layout) -> int:
    """The number of axes that a tensor of layout `source` lacks for `target`: they are added in front."""
    if source.rank is None or target.rank is None or source.rank >= target.rank:
        return 0
    return target.rank - source.rank


def permuted(layout: Layout, order: list[int]) -> Layout:
    """The layout after a transposition."""
    if layout.empty:
        return layout
    names = names_of(layout, len(order))
    return Layout(f"[{','.join(names[k] for k in order)}]")


def axis_of(layout: Layout, name: str, shape: Shape, label: str) -> int:
    """The position of an axis, counted from the front. Raises if the layout does not name it."""
    if not layout.has_name(name):
        raise OpenVINOError(f"Layout {layout} doesn't have `{label}` dimension")
    axis = layout.get_index_by_name(name)
    if axis < 0:
        if shape.rank is None:
            raise OpenVINOError(f"the position of `{label}` in {layout} depends on the rank, which is unknown")
        axis += shape.rank
    return axis
