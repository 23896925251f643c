"""FarmHash's 64-bit fingerprint: the hash by which TensorFlow assigns strings to buckets."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def fingerprint(data: bytes) -> int:
    """The unsigned 64-bit fingerprint."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data)
    if size <= 32:
        return _up_to_32(data)
    return _up_to_64(data) if size <= 64 else _longer(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotated(value: int, count: int) -> int:
    value &= _MASK
    return (value >> count | value << 64 - count) & _MASK


def _mixed(value: int) -> int:
    return value ^ value >> 47


def _of_two(u: int, v: int, factor: int) -> int:
    a = _mixed(((u ^ v) * factor) & _MASK)
    b = _mixed(((v ^ a) * factor) & _MASK)
    return b * factor & _MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2 & _MASK
    if size >= 8:
        a, b = _word(data, 0) + _K2 & _MASK, _word(data, size - 8)
        c = _rotated(b, 37) * factor + a & _MASK
        return _of_two(c, (_rotated(a, 25) + b) * factor & _MASK, factor)
    if size >= 4:
        return _of_two(size + (_word(data, 0, 4) << 3) & _MASK, _word(data, size - 4, 4), factor)
    if not size:
        return _K2
    y = data[0] + (data[size >> 1] << 8)
    z = size + (data[-1] << 2)
    return _mixed((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK


def _up_to_32(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2 & _MASK
    a, b = _word(data, 0) * _K1 & _MASK, _word(data, 8)
    c, d = _word(data, size - 8) * factor & _MASK, _word(data, size - 16) * _K2
    u = _rotated(a + b, 43) + _rotated(c, 30) + d & _MASK
    return _of_two(u, a + _rotated(b + _K2, 18) + c & _MASK, factor)


def _up_to_64(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2 & _MASK
    a, b = _word(data, 0) * _K2 & _MASK, _word(data, 8)
    c, d = _word(data, size - 8) * factor & _MASK, _word(data, size - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d & _MASK
    z = _of_two(y, a + _rotated(b + _K2, 18) + c & _MASK, factor)
    e, f = _word(data, 16) * factor & _MASK, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * factor & _MASK, (z + _word(data, size - 24)) * factor
    u = _rotated(e + f, 43) + _rotated(g, 30) + h & _MASK
    return _of_two(u, e + _rotated(f + a, 18) + g & _MASK, factor)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two sums over 32 bytes, seeded by `a` and `b`."""
    w, x, y, z = (_word(data, at + 8 * k) for k in range(4))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    return a + z & _MASK, b + _rotated(a, 44) + c & _MASK


def _longer(data: bytes) -> int:
    seed = 81
    x, y = seed, seed * _K1 + 113 & _MASK
    z = _mixed(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(data, 0) & _MASK
    end = (len(data) - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _round(data, at, x, y, z, v, w, _K1, (1, 1))
    factor = _K1 + ((z & 0xFF) << 1) & _MASK
    w0 = w[0] + ((len(data) - 1) & 63)
    v0 = v[0] + w0
    w0 += v0
    x, y, z, v, w = _round(data, len(data) - 64, x, y, z, (v0 & _MASK, v[1]), (w0 & _MASK, w[1]), factor, (9, 9))
    a = _of_two(v[0], w[0], factor) + _mixed(y) * _K0 + z
    return _of_two(a & _MASK, _of_two(v[1], w[1], factor) + x & _MASK, factor)


def _round(
    data: bytes,
    at: int,
    x: int,
    y: int,
    z: int,
    v: tuple[int, int],
    w: tuple[int, int],
    factor: int,
    scales: tuple[int, int],
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """One round over 64 bytes; returns the state with x and z exchanged."""
    x = _rotated(x + y + v[0] + _word(data, at + 8), 37) * factor & _MASK
    y = _rotated(y + v[1] + _word(data, at + 48), 42) * factor & _MASK
    x ^= w[1] * scales[0] & _MASK
    y = y + v[0] * scales[1] + _word(data, at + 40) & _MASK
    z = _rotated(z + w[0], 33) * factor & _MASK
    v = _weak(data, at, v[1] * factor & _MASK, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
    return z, y, x, v, w
