"""Reshape and Flatten, with targets that are valid for any batch and image size if possible.

The declared dims describe one batch and one image size. Targets copy (0) or compute (−1) dims that depend on the input,
so that models can be reshaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.core.element import ElementType, element_of_precision
from irload.core.tensor import Array
from irload.read.legacy.layer import LegacyLayer, Wire
from irload.read.legacy.table import rewrites
from irload.read.weights import Weights
from irload.record import record

_PRECISIONS = ("FP32", "FP16", "I32", "I64")
"""The precisions in which converters stored targets."""


@rewrites("Reshape")
def reshape(layer: LegacyLayer) -> Wire:
    """Reshape to the stated target: the attribute `dim`, or the Const of the second input.

    Without a stated target, or if its result differs from the declared dims, the target is the declared dims.
    """
    before, after = layer.input_dims(), layer.output_dims()
    stated = None
    axis = layer.integer("axis", 0)
    if layer.has("dim") and 0 <= axis <= len(before) and layer.integer("num_axes", -1) == -1:
        stated = [*[0] * axis, *layer.integers("dim")]
    shape = layer.constant("shape", target(before, after, stated))
    stored = _stored(layer, before, after)
    if stored is not None:
        layer.operations[-1].values = stored
    return _reshaped(layer, shape)


@rewrites("Flatten")
def flatten(layer: LegacyLayer) -> Wire:
    """Reshape that merges the axes `axis` (1 by default) to `end_axis` (the last by default)."""
    before, after = layer.input_dims(), layer.output_dims()
    rank, axis = len(before), layer.integer("axis", 1)
    end = layer.integer("end_axis", -1)
    axis, end = (n + rank if n < 0 else n for n in (axis, end))
    last = rank - 1
    if not 0 <= axis < end <= last or after != (*before[:axis], prod(before[axis : end + 1]), *before[end + 1 :]):
        return _reshaped(layer, layer.constant("shape", target(before, after)))
    leading = [*[0] * axis, -1]
    if end == last:
        return _reshaped(layer, layer.constant("shape", target(before, after, leading)))
    trailing = layer.dims_of(layer.input(), end + 1, rank)
    parts = layer.constant("leading", leading), trailing
    return _reshaped(layer, layer.op("Concat", *parts, data={"axis": "0"}, name="shape"))


def flattened(layer: LegacyLayer, rows: Sequence[int], length: int) -> Wire:
    """The first input as rows of a length, which are the declared dims of the output of a FullyConnected."""
    before, after = layer.input_dims(), (*rows, length)
    merges = tuple(rows) == before[: len(rows)]
    shape = layer.constant("flattened/shape", target(before, after, [*[0] * len(rows), -1] if merges else None))
    return _reshaped(layer, shape, "flattened")


def target(before: Sequence[int], after: Sequence[int], stated: Sequence[int] | None = None) -> list[int]:
    """The target of a Reshape between declared dims. A 0 copies the dim of the input at the same index.

    The stated target applies if its result is `after`. Leading dims that do not change are copied in any case, because
    converters wrote the batch as a number, and a single dim after them is computed: the layer merges the other axes.
    """
    values = list(stated if stated is not None and _result(stated, before) == list(after) else after)
    copied = 0
    for old, new in zip(before, after, strict=False):
        if old != new or values[copied] == -1:
            break
        values[copied] = 0
        copied += 1
    if -1 in values or not 0 < prod(before) == prod(after):
        return values
    if 0 < copied == len(after) - 1 or copied == len(after) < len(before):
        values[-1] = -1
    return values


def _result(stated: Sequence[int], before: Sequence[int]) -> list[int] | None:
    """The dims of `before` reshaped to a target, None if it is invalid."""
    if any(n < -1 for n in stated) or stated.count(-1) > 1 or 0 in stated[len(before) :]:
        return None
    dims = [before[k] if n == 0 else n for k, n in enumerate(stated)]
    if -1 in dims:
        count = prod(n for n in dims if n != -1)
        if not count or prod(before) % count:
            return None
        dims[dims.index(-1)] = prod(before) // count
    return dims


def _stored(layer: LegacyLayer, before: tuple[int, ...], after: tuple[int, ...]) -> _StoredTarget | None:
    """The target that the second input states, None unless it is a Const with one number per declared dim."""
    source = layer.producer(1)
    if source is None or source.type != "Const" or source.precision() not in _PRECISIONS:
        return None
    offset, size = source.raw.blobs.get("custom", (0, 0))
    element = element_of_precision(source.precision())
    return _StoredTarget(before, after, element, offset) if 0 < size == element.bytes_for(len(after)) else None


def _reshaped(layer: LegacyLayer, shape: Wire, name: str = "") -> Wire:
    return layer.op("Reshape", layer.input(), shape, data={"special_zero": "true"}, name=name)


@record()
class _StoredTarget:
    """A target in the .bin file: the values of a Const, which are read on first use."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    element: ElementType
    offset: int

    def __call__(self, weights: Weights) -> Array:
        """The target in the file; without values in the file, the target of the declared dims."""
        return np.array(target(self.before, self.after, self._values(weights)), np.int64)

    def _values(self, weights: Weights) -> list[int] | None:
        """The values as integers, also if they are stored as floats; None if they are not integers."""
        count = len(self.after)
        size = self.element.bytes_for(count)
        if self.offset + size > weights.size:
            return None
        values = weights.array(self.offset, size, self.element, (count,))
        integral = np.isfinite(values) & (values == np.trunc(values))
        return [int(n) for n in values] if integral.all() else None
