"""Functions of constant weights. A stored plan contains the name and the parameters of a function, not its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from irload.core.tensor import Array
from irload.ops.convolution.binary import from_low_bits
from irload.record import record


class Derivation(Protocol):
    """A hashable function of an array. `moves`: it only moves elements, so it accepts any dtype."""

    moves: ClassVar[bool]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the result for an array of this shape."""
        ...

    def __call__(self, array: Array) -> Array:
        """Return the result."""
        ...


@record()
class Reshaped:
    """The same elements in another shape."""

    sizes: tuple[int, ...]

    moves: ClassVar[bool] = True

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.sizes

    def __call__(self, array: Array) -> Array:
        return array.reshape(self.sizes)


@record()
class BinaryFilters:
    """Filters [O,C,K…] of a BinaryConvolution as weights [1,O,C,K…] in f32: −2 for 0, and 2 for 1."""

    moves: ClassVar[bool] = False

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (1, *shape)

    def __call__(self, array: Array) -> Array:
        return (4 * from_low_bits(array).astype(np.float32) - 2)[None]


@record()
class KeptTaps:
    """Weights [G,O,C,K…] with the taps `first`…`stop` − 1 along each spatial axis."""

    first: tuple[int, ...]
    stop: tuple[int, ...]

    moves: ClassVar[bool] = True

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:3], *(stop - first for first, stop in zip(self.first, self.stop, strict=True)))

    def __call__(self, array: Array) -> Array:
        return array[(..., *map(slice, self.first, self.stop))]


@record()
class ColumnsAsChannels:
    """Weights [G,C,O,K…,k] of a transposed convolution as [G,C,k·O,K…,1]."""

    moves: ClassVar[bool] = True

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:2], shape[-1] * shape[2], *shape[3:-1], 1)

    def __call__(self, array: Array) -> Array:
        return np.moveaxis(array, -1, 2).reshape(self.shape(array.shape))


@record()
class KeptChannels:
    """Weights [G,O,C,K…] with these ranges of channels C."""

    ranges: tuple[tuple[int, int], ...]

    moves: ClassVar[bool] = True

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:2], sum(stop - first for first, stop in self.ranges), *shape[3:])

    def __call__(self, array: Array) -> Array:
        return np.concatenate([array[:, :, first:stop] for first, stop in self.ranges], axis=2)
