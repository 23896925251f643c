"""The input of Whisper: logarithms of mel spectra of 30 seconds of audio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irload.core.tensor import Array
from irload.errors import InputInvalid

_STEP, _BREAK = 200 / 3, 1000.0
"""The mel scale of Slaney's Auditory Toolbox is linear up to 1000 Hz, in steps of 200/3 Hz, …"""
_FACTOR = np.log(6.4) / 27
"""… and logarithmic above, 27 steps per factor of 6.4."""


@dataclass(frozen=True)
class MelSpectra:
    """The parameters of the spectra.

    `rate`: samples per second; `size`: the number of mel bands; `fft`, `hop`: samples per frame and between frames;
    `samples`: the length to which audio is padded.
    """

    rate: int = 16000
    size: int = 80
    fft: int = 400
    hop: int = 160
    samples: int = 480000

    @staticmethod
    def of(config: Mapping[str, Any]) -> MelSpectra:
        """The features of preprocessor_config.json. Raises InputInvalid for values that are not positive integers."""
        values = {ours: config.get(theirs, getattr(MelSpectra, ours)) for theirs, ours in _NAMES.items()}
        if "n_samples" not in config and isinstance(config.get("chunk_length"), int):
            values["samples"] = config["chunk_length"] * values["rate"]
        for theirs, ours in _NAMES.items():
            if not isinstance(values[ours], int) or not 0 < values[ours] < 1 << 30:
                raise InputInvalid(f"{theirs} of preprocessor_config.json must be a positive integer")
        return MelSpectra(**values)

    def features(self, audio: Array) -> Array:
        """The features f32 [1, size, samples / hop] of samples, cut or padded with zeros to `samples`."""
        padded = np.zeros(self.samples)
        padded[: min(len(audio), self.samples)] = audio[: self.samples]
        half = self.fft // 2
        frames = sliding_window_view(np.pad(padded, half, mode="reflect"), self.fft)[:: self.hop][:-1]
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.fft) / self.fft)
        power = np.abs(np.fft.rfft(frames * window)) ** 2
        bands = np.log10(np.maximum(power @ self._filters, 1e-10))
        return ((np.maximum(bands, bands.max() - 8) + 4) / 4).astype(np.float32).T[None]

    @cached_property
    def _filters(self) -> Array:
        """Triangular filters of equal area, [frequencies, size]."""
        edges = _frequencies(np.linspace(_mels(0.0), _mels(self.rate / 2), self.size + 2))
        bins = np.linspace(0, self.rate / 2, self.fft // 2 + 1)[:, None]
        rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
        falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
        return np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])


_NAMES = {
    "sampling_rate": "rate",
    "feature_size": "size",
    "n_fft": "fft",
    "hop_length": "hop",
    "n_samples": "samples",
}


def _mels(frequency: float) -> float:
    if frequency < _BREAK:
        return frequency / _STEP
    return float(_BREAK / _STEP + np.log(frequency / _BREAK) / _FACTOR)


def _frequencies(mels: Array) -> Array:
    return np.where(
        mels < _BREAK / _STEP, mels * _STEP, _BREAK * np.exp(_FACTOR * np.maximum(mels - _BREAK / _STEP, 0))
    )
