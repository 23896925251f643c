"""STFT and ISTFT: Fourier transforms of the overlapping frames of a signal."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irload.core import attribute as attr
from irload.core.element import ElementType, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.signals.fourier import as_complex, as_pairs, require_float, require_index


class ShortTime(Op):
    """Base of STFT and ISTFT: checks the window, and the size and step of the frames."""

    @staticmethod
    def checked(
        data: TensorType, window: TensorType, frame_size: TensorType, frame_step: TensorType
    ) -> tuple[ElementType, int | None, int | None]:
        """The element type, the frame size and the frame step; None for an unknown size or step."""
        for name, tensor in (("data", data), ("window", window)):
            require_float(name, tensor)
        numbers: list[int | None] = []
        for name, tensor in (("frame_size", frame_size), ("frame_step", frame_step)):
            require_index(name, tensor)
            if tensor.rank not in (None, 0):
                raise ShapeMismatch(f"{name} must be a scalar, found {tensor.shape}")
            number = None if tensor.ints is None else tensor.ints[0]
            if number is not None and number < 1:
                raise ShapeMismatch(f"{name} must be positive, found {number}")
            numbers.append(number)
        if window.rank not in (None, 1):
            raise ShapeMismatch(f"window must be a list (rank 1), found {window.shape}")
        length = ANY if window.rank is None else window.shape[0]
        if length.hi == 0 or (numbers[0] is not None and length.lo > numbers[0]):
            raise ShapeMismatch(f"window must have 1 to {numbers[0] or 'frame_size'} values, found {length}")
        return merge(data.element, window.element), numbers[0], numbers[1]

    @staticmethod
    def padded(window: Array, frame_size: int) -> Array:
        """The window, centered in a frame of zeros."""
        before = (frame_size - len(window)) // 2
        return np.pad(window, (before, frame_size - len(window) - before))


class STFT(ShortTime, since=15):
    """The Fourier transform of each windowed frame of a `signal` of shape [n] or [batch, n].

    Specification: STFT-15. The shape of the result is [batch, frames, bins, 2], or [batch, bins, frames, 2] with
    `transpose_frames`; the batch axis exists only if the signal has one. There are ⌊(n − frame_size) / frame_step⌋ + 1
    frames and ⌊frame_size / 2⌋ + 1 bins. A window shorter than the frame is zero-padded on both sides.
    """

    transpose_frames = attr.boolean(default=False, spec_required=True)

    def infer(
        self, signal: TensorType, window: TensorType, frame_size: TensorType, frame_step: TensorType
    ) -> TensorType:
        element, size, step = self.checked(signal, window, frame_size, frame_step)
        if signal.rank is None:
            return TensorType(element, Shape.unranked())
        if signal.rank not in (1, 2):
            raise ShapeMismatch(f"signal must have shape [n] or [batch, n], found {signal.shape}")
        *batch, length = signal.shape
        if size is not None and length.hi is not None and size > length.hi:
            raise ShapeMismatch(f"frame_size must be within 1..{length}, found {size}")
        if size is None or step is None:
            return TensorType(element, Shape(*batch, None, None, 2))
        frames, bins = (length - size) // step + 1, Dim.of(size // 2 + 1)
        order = (bins, frames) if self.transpose_frames else (frames, bins)
        return TensorType(element, Shape(*batch, *order, 2))

    def compute(self, signal: Array, window: Array, frame_size: Array, frame_step: Array) -> Array:
        size = int(frame_size)
        frames = sliding_window_view(signal, size, axis=-1)[..., :: int(frame_step), :]
        spectra = as_pairs(np.fft.rfft(frames * self.padded(window, size), axis=-1)).astype(signal.dtype)
        return spectra.swapaxes(-3, -2) if self.transpose_frames else spectra


class ISTFT(ShortTime, since=16):
    """Reconstructs the signal [n] or [batch, n] from spectra `data` [bins, frames, 2] or [batch, bins, frames, 2].

    Specification: ISTFT-16. Overlapping frames are added, and the sum is divided by the sum of the squared windows.
    With `center`, ⌊frame_size / 2⌋ elements are dropped at each end of the signal. For an odd frame_size, OpenVINO
    and irload return one element more than the specification. With `normalized`, the spectra are multiplied by
    √frame_size. `signal_length` crops or zero-pads the signal.
    """

    center = attr.boolean(default=False, spec_required=True)
    normalized = attr.boolean(default=False, spec_required=True)

    def infer(
        self,
        data: TensorType,
        window: TensorType,
        frame_size: TensorType,
        frame_step: TensorType,
        signal_length: TensorType | None = None,
    ) -> TensorType:
        element, size, step = self.checked(data, window, frame_size, frame_step)
        if signal_length is not None:
            require_index("signal_length", signal_length)
            if signal_length.shape.meet(Shape()) is None and signal_length.shape.meet(Shape(1)) is None:
                raise ShapeMismatch(f"signal_length must be a scalar or a list of one, found {signal_length.shape}")
            if any(n < 1 for n in signal_length.ints or ()):
                raise ShapeMismatch(f"signal_length must be positive, found {signal_length.ints}")
        if data.rank is None:
            return TensorType(element, Shape.unranked())
        if data.rank not in (3, 4) or not data.shape[-1].contains(2):
            raise ShapeMismatch(f"data must have shape [bins, frames, 2] with or without a batch, found {data.shape}")
        *batch, bins, frames, _ = data.shape
        if size is not None and not bins.contains(size // 2 + 1):
            raise ShapeMismatch(f"data must have {size // 2 + 1} bins for frame_size {size}, found {data.shape}")
        if signal_length is not None:
            length = ANY if signal_length.dims is None else signal_length.dims[0]
        elif size is None or step is None:
            length = ANY
        else:
            length = (frames - 1) * step + (size % 2 if self.center else size)
        return TensorType(element, Shape(*batch, length))

    def compute(
        self, data: Array, window: Array, frame_size: Array, frame_step: Array, signal_length: Array | None = None
    ) -> Array:
        size, step = int(frame_size), int(frame_step)
        window = self.padded(window, size)
        spectra = as_complex(data).swapaxes(-2, -1)
        frames = np.fft.irfft(spectra, size, axis=-1) * window
        count = frames.shape[-2]
        signal = np.zeros((*frames.shape[:-2], max(count - 1, 0) * step + size), frames.dtype)
        weight = np.zeros(signal.shape[-1], frames.dtype)
        for k in range(count):
            signal[..., k * step : k * step + size] += frames[..., k, :]
            weight[k * step : k * step + size] += window * window
        signal = np.divide(signal, weight, out=np.zeros_like(signal), where=weight != 0)
        if self.normalized:
            signal *= np.sqrt(np.float32(size))
        margin = size // 2 if self.center else 0
        length = signal.shape[-1] - 2 * margin if signal_length is None else int(signal_length.item())
        result = signal[..., margin : margin + length]
        missing = length - result.shape[-1]
        return np.pad(result, [(0, 0)] * (result.ndim - 1) + [(0, missing)]).astype(data.dtype)
