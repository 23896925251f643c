"""The two random generators behind RandomUniform, and the conversion of their words to each type."""

from __future__ import annotations

import numpy as np

from irload.core.element import ElementType, bf16, f16, f32, f64
from irload.core.tensor import Array

_HALF = np.uint64(32)


def philox(count: int, global_seed: int, op_seed: int) -> Array:
    """`count` words (u32) of Philox4x32-10, with key `global_seed` and counters `op_seed` and the block's number."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    n0, n1 = _split(blocks)
    c0, c1 = (np.full_like(n0, part) for part in _halves(op_seed))
    k0, k1 = _halves(global_seed)
    for _ in range(10):
        p0, p1 = _split(n0 * np.uint64(0xD2511F53))
        q0, q1 = _split(c0 * np.uint64(0xCD9E8D57))
        n0, n1, c0, c1 = q1 ^ n1 ^ np.uint32(k0), q0, p1 ^ c1 ^ np.uint32(k1), p0
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([n0, n1, c0, c1], axis=1).ravel()[:count]


def _split(wide: Array) -> tuple[Array, Array]:
    """The lower and the upper halves of 64-bit integers."""
    halves = wide.astype("<u8", copy=False).view("<u4")
    return halves[::2], halves[1::2]


def mersenne(count: int, global_seed: int) -> Array:
    """`count` words (u32) of MT19937 seeded with the lower half of `global_seed`."""
    state = np.random.RandomState(global_seed & 0xFFFFFFFF)
    return state.randint(0, 2**32, count, dtype=np.uint32)


def _halves(seed: int) -> tuple[int, int]:
    return seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF


_MANTISSA = {f64: 52, f32: 23, f16: 10, bf16: 7}


def unit_by_bits(words: Array, element: ElementType) -> Array:
    """Numbers of [0, 1): the lower bits of each word are the mantissa of a number of [1, 2). f64 takes two words."""
    bits = _MANTISSA[element]
    if element is f64:
        pairs = words.reshape(-1, 2)
        words = (pairs[:, 0] << _HALF) | pairs[:, 1]
    return _fraction(words, bits, element)


def unit_by_division(words: Array, element: ElementType) -> Array:
    """Numbers of [0, 1): the lower bits of each word, up to the type's precision, divided. f64 takes two words."""
    bits = _MANTISSA[element] + 1
    if element is f64:
        pairs = words.reshape(-1, 2)
        words = (pairs[:, 0] << _HALF) + pairs[:, 1]
    return _fraction(words, bits, element)


def _fraction(words: Array, bits: int, element: ElementType) -> Array:
    mask = words.dtype.type((1 << bits) - 1)
    return (words & mask).astype(element.dtype) / element.dtype.type(1 << bits)
