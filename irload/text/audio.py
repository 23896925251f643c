"""Reads audio files (.wav, .npy) as samples, mixed to one channel and resampled."""

from __future__ import annotations

import io
import math
import wave
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irload.arrays.npy import load_npy
from irload.core.tensor import Array
from irload.errors import InputInvalid, ReadError, Where
from irload.safety.files import read_limited

BYTES = 1 << 30
"""The maximum size of a .wav file."""
ZEROS = 24
"""Zero crossings of the sinc function on each side of the resampling filter."""
BETA = 8.6
"""The Kaiser window's parameter: 80 dB of attenuation."""


def read_audio(path: str | Path, rate: int) -> Array:
    """The samples of a file, f32 [samples] in -1..1 at `rate` samples per second.

    A .npy has samples at that rate, [samples], as floats or as integers of 16 bits. Raises ReadError for a file that
    cannot be read, InputInvalid for other kinds of files and arrays.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        return as_samples(load_npy(path))
    if suffix != ".wav":
        raise InputInvalid(f"{path} is not an audio file; irload reads .wav (PCM) and .npy (samples at {rate} Hz)")
    return _wav(path, rate)


def as_samples(array: Array) -> Array:
    """Convert floats, or integers of 16 bits, to samples f32 [samples]. Raises InputInvalid for other arrays."""
    if array.ndim != 1 or not array.size or (array.dtype.kind != "f" and array.dtype != np.int16):
        raise InputInvalid(f"audio is an array [samples] of floats or int16, found {array.dtype} {list(array.shape)}")
    samples = array.astype(np.float32) / (1.0 if array.dtype.kind == "f" else 32768.0)
    if not np.isfinite(samples).all():
        raise InputInvalid("the audio has samples that are NaN or infinite")
    return samples.astype(np.float32, copy=False)


def _wav(path: str | Path, rate: int) -> Array:
    try:
        with wave.open(io.BytesIO(read_limited(path, "the audio", BYTES))) as file:
            width, channels, file_rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ReadError(f"cannot be read as PCM audio: {error}", Where(str(path))) from None
    samples = _integers(data, width).reshape(-1, channels).mean(1)
    if not samples.size or file_rate <= 0:
        raise InputInvalid(f"{path} has no samples")
    return resampled(samples, file_rate, rate).astype(np.float32)


def _integers(data: bytes, width: int) -> Array:
    """Little-endian integers of `width` bytes as floats in -1..1; single bytes are unsigned."""
    count = len(data) // width
    if width == 1:
        return np.frombuffer(data, np.uint8).astype(np.float64) / 128 - 1
    wide = np.zeros((count, 4), np.uint8)
    wide[:, 4 - width :] = np.frombuffer(data, np.uint8, count * width).reshape(count, width)
    return wide.view("<i4")[:, 0] / 2.0**31


def resampled(samples: Array, rate: int, new_rate: int) -> Array:
    """The samples at another rate, by a windowed sinc filter that removes frequencies beyond half of the lower rate."""
    if rate == new_rate:
        return samples
    divisor = math.gcd(rate, new_rate)
    up, down = new_rate // divisor, rate // divisor
    count = -(-len(samples) * up // down)
    scale = min(1.0, up / down)
    half = math.ceil(ZEROS / scale)
    windows = sliding_window_view(np.pad(samples, (half, half + down)), 2 * half + 1)
    result = np.empty(count)
    offsets = np.arange(-half, half + 1)
    for phase in range(min(up, count)):
        positions = np.arange(phase, count, up) * down
        distances = (offsets - (positions[0] % up) / up) * scale
        window = np.i0(BETA * np.sqrt(np.clip(1 - (distances / ZEROS) ** 2, 0, None))) / np.i0(BETA)
        taps = np.sinc(distances) * window * scale * (np.abs(distances) <= ZEROS)
        result[phase::up] = windows[positions // up] @ taps
    return result
