"""DFT, IDFT, RDFT and IRDFT: discrete Fourier transforms along chosen axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from irload.core.element import INDEX, bf16, f16, f32
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axes
from irload.core.tensor import Array, TensorType, length_of
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.ports import require_element


def as_complex(data: Array) -> Array:
    """Complex numbers from pairs on the last axis."""
    return data[..., 0] + 1j * data[..., 1]


def as_pairs(values: Array) -> Array:
    """Pairs on a new last axis from complex numbers."""
    return np.stack([np.real(values), np.imag(values)], axis=-1)


def require_float(name: str, tensor: TensorType) -> None:
    """Raise TypeMismatch unless the type is a float."""
    if not (tensor.element.is_float or tensor.element.is_dynamic):
        raise TypeMismatch(f"{name} must be of a floating-point type, found {tensor.element}")


def require_index(name: str, tensor: TensorType) -> None:
    """Raise TypeMismatch for a type that is neither i32 nor i64."""
    if tensor.element not in INDEX and not tensor.element.is_dynamic:
        raise TypeMismatch(f"{name} must be of type i32 or i64, found {tensor.element}")


class Fourier(Op):
    """A transform along `axes`, each first cropped or zero-padded to its `signal_size` (−1: unchanged)."""

    takes_pairs: ClassVar[bool] = True
    """True if data is complex: pairs on a last axis, which `axes` do not count."""

    def checked(self, data: TensorType, axes: TensorType, signal_size: TensorType | None) -> tuple[int, ...] | None:
        """The axes, counted from the front, or None if they or the rank are unknown."""
        require_element("data", data, f32, f16, bf16)
        require_index("axes", axes)
        if axes.rank not in (None, 1):
            raise ShapeMismatch(f"axes must be a list (rank 1), found {axes.shape}")
        if signal_size is not None:
            require_index("signal_size", signal_size)
            if signal_size.rank not in (None, 1):
                raise ShapeMismatch(f"signal_size must be a list (rank 1), found {signal_size.shape}")
            if length_of(axes).meet(length_of(signal_size)) is None:
                raise ShapeMismatch(f"axes {axes.shape} and signal_size {signal_size.shape} must have equal lengths")
            if any(n < 1 and n != -1 for n in signal_size.ints or ()):
                raise ShapeMismatch(f"signal_size must hold positive sizes or -1, found {list(signal_size.ints or ())}")
        if data.rank is None:
            return None
        least = 2 if self.takes_pairs else 1
        if data.rank < least or (self.takes_pairs and not data.shape[-1].contains(2)):
            expected = " that ends in 2" if self.takes_pairs else ""
            raise ShapeMismatch(f"data must be of rank {least} or above{expected}, found {data.shape}")
        rank = data.rank - self.takes_pairs
        if length_of(axes).lo > rank:
            raise ShapeMismatch(f"there are {length_of(axes)} axes for the {rank} that data {data.shape} has")
        if axes.ints is None:
            return None
        chosen = normalize_axes(axes.ints, rank, "axis")
        if len(set(chosen)) != len(chosen):
            raise ShapeMismatch(f"axes must be distinct, found {list(axes.ints)}")
        return chosen

    def sizes(self, data: Array, axes: Array, signal_size: Array | None) -> tuple[list[int], list[int]]:
        """The axes, counted from the front, and their sizes after cropping or padding."""
        rank = data.ndim - self.takes_pairs
        chosen = [a % rank for a in axes.tolist()]
        requested = [-1] * len(chosen) if signal_size is None else signal_size.tolist()
        return chosen, [data.shape[a] if n == -1 else n for a, n in zip(chosen, requested, strict=True)]


class DFT(Fourier, since=7):
    """The discrete Fourier transform of complex data [..., 2].

    Specification: DFT-7. Axes refer to the complex tensor: negative ones count from the axis before the pairs.
    """

    def infer(self, data: TensorType, axes: TensorType, signal_size: TensorType | None = None) -> TensorType:
        chosen = self.checked(data, axes, signal_size)
        if data.rank is None or signal_size is None:
            return data.without_value()
        if chosen is None:
            return TensorType(data.element, Shape(*(ANY,) * (data.rank - 1), data.shape[-1]))
        shape = data.shape
        for k, axis in enumerate(chosen):
            if signal_size.ints is not None:
                shape = shape if signal_size.ints[k] == -1 else shape.with_dim(axis, signal_size.ints[k])
            else:
                shape = shape.with_dim(axis, ANY if signal_size.dims is None else signal_size.dims[k])
        return TensorType(data.element, shape)

    def compute(self, data: Array, axes: Array, signal_size: Array | None = None) -> Array:
        chosen, sizes = self.sizes(data, axes, signal_size)
        values = as_complex(data)
        if not chosen:
            return data.copy()
        if 0 in values.shape or 0 in sizes:
            return np.zeros((*_replaced(values.shape, chosen, sizes), 2), data.dtype)
        return as_pairs(self.transform(values, sizes, chosen)).astype(data.dtype)

    def transform(self, values: Array, sizes: Sequence[int], axes: Sequence[int]) -> Array:
        """The transform of complex values."""
        return np.fft.fftn(values, sizes, axes)


class IDFT(DFT, since=7):
    """The inverse of DFT, divided by the product of the sizes. Specification: IDFT-7."""

    def transform(self, values: Array, sizes: Sequence[int], axes: Sequence[int]) -> Array:
        return np.fft.ifftn(values, sizes, axes)


class RDFT(Fourier, since=9):
    """The discrete Fourier transform of real data, to pairs [..., 2].

    Specification: RDFT-9. Along the last axis in `axes` only the first half (n/2 + 1) of the spectrum is returned: the
    other half is symmetric.
    """

    takes_pairs = False

    def infer(self, data: TensorType, axes: TensorType, signal_size: TensorType | None = None) -> TensorType:
        chosen = self.checked(data, axes, signal_size)
        _require_an_axis(axes)
        if data.rank is None:
            return data.without_value()
        if chosen is None:
            return TensorType(data.element, Shape(*(ANY,) * data.rank, 2))
        shape = _sized(data.shape, chosen, signal_size)
        return TensorType(data.element, Shape(*shape.with_dim(chosen[-1], _half(shape[chosen[-1]])), 2))

    def compute(self, data: Array, axes: Array, signal_size: Array | None = None) -> Array:
        chosen, sizes = self.sizes(data, axes, signal_size)
        if 0 in data.shape or 0 in sizes:
            halved = [*sizes[:-1], sizes[-1] // 2 + 1 if sizes[-1] else 0]
            return np.zeros((*_replaced(data.shape, chosen, halved), 2), data.dtype)
        return as_pairs(np.fft.rfftn(data, sizes, chosen)).astype(data.dtype)


class IRDFT(Fourier, since=9):
    """The inverse of RDFT: real data from half a spectrum [..., 2].

    Specification: IRDFT-9. By default, the last axis in `axes` gets length 2·(n − 1). The imaginary parts of its first
    and (for even sizes) middle element are ignored.
    """

    def infer(self, data: TensorType, axes: TensorType, signal_size: TensorType | None = None) -> TensorType:
        chosen = self.checked(data, axes, signal_size)
        _require_an_axis(axes)
        if data.rank is None:
            return data.without_value()
        if chosen is None:
            return TensorType(data.element, Shape.any(data.rank - 1))
        shape, last = _sized(Shape(*data.shape[:-1]), chosen, signal_size), chosen[-1]
        if signal_size is None or (signal_size.ints is not None and signal_size.ints[-1] == -1):
            shape = shape.with_dim(last, (data.shape[last] - 1) * 2)
        return TensorType(data.element, shape)

    def compute(self, data: Array, axes: Array, signal_size: Array | None = None) -> Array:
        chosen, sizes = self.sizes(data, axes, signal_size)
        if signal_size is None or signal_size[-1] == -1:
            sizes[-1] = max(2 * (sizes[-1] - 1), 0)
        if 0 in data.shape or 0 in sizes:
            return np.zeros(_replaced(data.shape[:-1], chosen, sizes), data.dtype)
        return np.fft.irfftn(as_complex(data), sizes, chosen).astype(data.dtype)


def _require_an_axis(axes: TensorType) -> None:
    if length_of(axes) == Dim(0, 0):
        raise ShapeMismatch("axes must name at least one axis")


def _sized(shape: Shape, axes: Sequence[int], signal_size: TensorType | None) -> Shape:
    """The shape after cropping and padding; the axes are unknown if the sizes are."""
    for k, axis in enumerate(axes if signal_size is not None else ()):
        size = -1 if signal_size is None or signal_size.ints is None else signal_size.ints[k]
        if signal_size is not None and signal_size.ints is None:
            shape = shape.with_dim(axis, ANY)
        elif size != -1:
            shape = shape.with_dim(axis, size)
    return shape


def _half(dim: Dim) -> Dim:
    """The length of half a spectrum; 0 for 0."""
    lo, hi = (n // 2 + 1 if n else n for n in (dim.lo, dim.hi))
    return Dim(lo or 0, hi)


def _replaced(shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The shape with the sizes of some axes replaced."""
    result = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        result[axis] = size
    return result
