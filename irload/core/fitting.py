"""Suggests how to change the shape of an array that an input does not accept."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irload.core.shape import Shape


def fitting(sizes: Sequence[int], takes: Shape) -> str:
    """Return advice in the form `; array[None] has a shape that fits`; empty if no axis order and no new axis fits.

    `sizes`: the shape of the array. `takes`: the shapes that the input accepts.
    """
    forms = {"[None]": (1, *sizes)}
    if len(sizes) in (3, 4):  # an image with channels last, alone or in a batch
        order = (2, 0, 1) if len(sizes) == 3 else (0, 3, 1, 2)
        moved = tuple(sizes[k] for k in order)
        forms |= {f".transpose{order}": moved, f".transpose{order}[None]": (1, *moved)}
    if takes.rank is not None and takes.rank > len(sizes):
        full = _filled(math.prod(sizes), takes)
        forms |= {f".reshape{full}": full}
    return next(
        (f"; array{how} has a shape that fits" for how, form in forms.items() if takes.contains(Shape(*form))), ""
    )


def _filled(size: int, takes: Shape) -> tuple[int, ...]:
    """A shape of `size` elements that fits: the first dynamic dim is computed, the others are 1. Empty if none fits."""
    dims = [dim.lo if dim.is_static else 1 for dim in takes]
    first = next((k for k, dim in enumerate(takes) if not dim.is_static), None)
    if first is not None:
        dims[first] = size // max(math.prod(dims), 1)
    return tuple(dims) if math.prod(dims) == size else ()
