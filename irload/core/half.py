"""Converts f16 to f32 by integer arithmetic, which is twice as fast as NumPy's use of the F16C instruction."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array

BLOCK = 1 << 15
"""Elements per block: a block and its result fit the cache."""

SMALL = 1 << 12
"""Up to this number of elements NumPy's conversion is as fast."""

_KEPT = np.array(0x8FFF_FFFF, np.uint32).view(np.int32)[()]
_SCALE = np.float32(2.0**112)  # 2 to the difference of the exponent biases


def widened(x: Array) -> Array:
    """The f16 array `x` as a new f32 array."""
    if x.size <= SMALL or not x.flags.c_contiguous:
        return x.astype(np.float32)
    out = np.empty(x.shape, np.float32)
    source, target = x.reshape(-1), out.reshape(-1)
    for at in range(0, source.size, BLOCK):
        _widen(source[at : at + BLOCK], target[at : at + BLOCK])
    return out


def _widen(x: Array, out: Array) -> None:
    """Shift exponent and mantissa, clear the copies of the sign bit, then rescale to the exponent bias of f32."""
    bits = x.view(np.int16)
    if bits.max() >= 0x7C00 or bits.view(np.uint16).max() >= 0xFC00:  # infinities and NaN need another exponent
        np.copyto(out, x)
        return
    np.left_shift(bits, 13, out=out.view(np.int32), dtype=np.int32)
    np.bitwise_and(out.view(np.int32), _KEPT, out=out.view(np.int32))
    np.multiply(out, _SCALE, out=out)
