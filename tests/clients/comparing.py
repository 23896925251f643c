"""Comparison of the outputs of two runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["TOLERANCE", "differences"]

TOLERANCE = 1e-4
"""The absolute and relative difference up to which floats agree."""


def differences(ours: Path, theirs: Path) -> list[str]:
    """One line per output that is missing or differs: integers must be equal."""
    with np.load(ours) as a, np.load(theirs) as b:
        if not b.files:
            return ["the client returned no outputs"]
        lines = [f"{name} is an output of one run only" for name in sorted(set(a.files) ^ set(b.files))]
        return lines + [
            line for name in sorted(set(a.files) & set(b.files)) if (line := _differs(name, a[name], b[name]))
        ]


def _differs(name: str, ours: np.ndarray, theirs: np.ndarray) -> str:
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return f"{name} is {ours.dtype}{list(ours.shape)}, expected {theirs.dtype}{list(theirs.shape)}"
    if not theirs.size:
        return f"{name} has no elements"
    if theirs.dtype.kind != "f":
        return "" if np.array_equal(ours, theirs) else f"{name} differs in {np.count_nonzero(ours != theirs)} elements"
    error = float(np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))))
    return "" if error <= TOLERANCE else f"{name} differs by {error:.3g}"
